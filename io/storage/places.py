"""Places of tables and files: in a local folder or in a store."""

import dataclasses
import re
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeAlias

from ...web.base.errors import UsageError

# Each kind of store: its name, and the extra of nutbeam that installs its client.
STORES = {"gs": ("Google Cloud Storage", "gcp"), "s3": ("S3", "s3"), "hdfs": ("HDFS", "hdfs")}
_OTHER_NAMES = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "webhdfs": "hdfs"}
LOCAL_OR_STORE = "a local folder, gs://BUCKET/NAME, s3://BUCKET/NAME"
HDFS = "hdfs://HOST:PORT/NAME"
# Characters that clients of stores, or HTTP, would misinterpret.
_STRANGE = re.compile(r"[\x00-\x20\x7f?*\[\]{}#%\\]")


@dataclasses.dataclass(frozen=True, order=True)
class Remote:
    """A name in a store, with the methods of ``pathlib`` that need no request.

    Attributes:
        store: The store: ``gs://BUCKET``, ``s3://BUCKET`` or ``hdfs://HOST:PORT``.
        key: The name in the store.

    >>> place = Remote("gs://bucket", PurePosixPath("table")) / "manifest"
    >>> str(place), place.scheme, place.parent.name
    ('gs://bucket/table/manifest', 'gs', 'table')
    """

    store: str
    key: PurePosixPath

    def __truediv__(self, name: str | PurePosixPath) -> "Remote":
        return dataclasses.replace(self, key=self.key / name)

    def __str__(self) -> str:
        return f"{self.store}/{self.key}" if self.key.parts else self.store

    @property
    def scheme(self) -> str:
        return self.store.partition("://")[0]

    @property
    def netloc(self) -> str:
        """The bucket, or host and port."""
        return self.store.partition("://")[2]

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def stem(self) -> str:
        return self.key.stem

    @property
    def suffix(self) -> str:
        return self.key.suffix

    @property
    def parent(self) -> "Remote":
        return dataclasses.replace(self, key=self.key.parent)

    @property
    def parents(self) -> tuple["Remote", ...]:
        return tuple(dataclasses.replace(self, key=key) for key in self.key.parents)

    def with_name(self, name: str) -> "Remote":
        return dataclasses.replace(self, key=self.key.with_name(name))

    def with_suffix(self, suffix: str) -> "Remote":
        return dataclasses.replace(self, key=self.key.with_suffix(suffix))

    def relative_to(self, other: "Place") -> PurePosixPath:
        if not isinstance(other, Remote) or other.store != self.store:
            raise ValueError(f"{self} is not in {other}")
        return self.key.relative_to(other.key)


# The place of a file: a path, or a name in a store.
Place: TypeAlias = Path | Remote


class Folder(Protocol):
    """The folder of a table's files: ``folder / name`` is the place of a file."""

    def __truediv__(self, name: str | PurePosixPath, /) -> Place: ...


def full_address(place: Place) -> str:
    """Returns the address of a place, which does not depend on the working directory.

    >>> full_address(Path("/a/b")), full_address(Remote("gs://bucket", PurePosixPath("a")))
    ('/a/b', 'gs://bucket/a')
    """
    return str(place) if isinstance(place, Remote) else str(place.absolute())


def below(folder: Folder, place: Place) -> str:
    """Returns the path of a place relative to the folder of a table, as in file lists.

    >>> below(Path("/t"), Path("/t/state/x")), below(place_of("gs://b/t"), place_of("gs://b/t/x"))
    ('state/x', 'x')
    """
    top = (folder / "_").parent
    if isinstance(place, Remote):
        return str(place.relative_to(top))
    return str(place.relative_to(str(top)))


def place_of(address: str, allowed: str = f"{LOCAL_OR_STORE} or {HDFS}") -> Place:
    """Returns the place for an address; sends no request.

    Args:
        address: The address.
        allowed: The kinds of addresses, for the error.

    Raises:
        UsageError: The kind of the address is not supported, or it names no bucket.

    >>> place_of("gs://bucket/a//table/")
    Remote(store='gs://bucket', key=PurePosixPath('a/table'))
    """
    scheme, remote, rest = address.partition("://")
    if not remote:
        return Path(address)
    if scheme not in STORES:
        hint = f": write {_OTHER_NAMES[scheme]}://" if scheme in _OTHER_NAMES else ""
        raise UsageError(f"an address must be {allowed}, got {address!r}{hint}")
    netloc, _, key = rest.partition("/")
    strange = _STRANGE.search(rest)
    if strange:
        raise UsageError(f"an address must not contain {strange[0]!r}, got {address!r}")
    if not netloc or "@" in netloc:
        raise UsageError(f"an address begins with {scheme}://{_NETLOC[scheme]}/, got {address!r}")
    name = PurePosixPath(key.strip("/"))
    if ".." in name.parts:
        raise UsageError(f"an address must not contain '..', got {address!r}")
    return Remote(f"{scheme}://{netloc}", name)


_NETLOC = {"gs": "BUCKET", "s3": "BUCKET", "hdfs": "HOST:PORT"}


def is_place(word: str) -> bool:
    """Returns whether a word is the address of a file or folder, here or in a store, and no URL.

    >>> is_place("seeds/a"), is_place("s3://b/a"), is_place("http://a/"), is_place("file:/a")
    (True, True, False, False)
    """
    scheme, marked, _ = word.partition("://")
    return scheme in STORES if marked else not word.startswith("file:/")


def one_spelling(address: str) -> str:
    """Returns the same text for every way of writing the address of one table.

    >>> one_spelling("gs://b//t/"), one_spelling("bigtable://p/i/t")
    ('gs://b/t', 'bigtable://p/i/t')
    """
    if not is_place(address):
        return address
    place = place_of(address)
    return str(place if isinstance(place, Remote) else place.resolve())
