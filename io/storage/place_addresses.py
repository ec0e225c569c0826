"""Makes the place for an address: in a local folder or in a store."""

from pathlib import PurePosixPath

from ...web.base.errors import UsageError
from ..disk.table_names import STRANGE
from .file_errors import note_folder
from .local_place import LocalPlace
from .places import Place
from .store_clients import STORES
from .store_place import StorePlace

_OTHER_NAMES = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "webhdfs": "hdfs"}
LOCAL_OR_STORE = "a local folder, gs://BUCKET/NAME, s3://BUCKET/NAME"
HDFS = "hdfs://HOST:PORT/NAME"


def place_of(address: str, allowed: str = f"{LOCAL_OR_STORE} or {HDFS}") -> Place:
    """Returns the place for an address; sends no request.

    Args:
        address: The address.
        allowed: The kinds of addresses, for the error.

    Raises:
        UsageError: The kind of the address is not supported, or it names no bucket.

    >>> place_of("gs://bucket/a//table/")
    StorePlace(store='gs://bucket', key=PurePosixPath('a/table'))
    """
    scheme, remote, rest = address.partition("://")
    if not remote:
        return LocalPlace(address)
    if scheme not in STORES:
        hint = f": write {_OTHER_NAMES[scheme]}://" if scheme in _OTHER_NAMES else ""
        raise UsageError(f"an address must be {allowed}, got {address!r}{hint}")
    netloc, _, key = rest.partition("/")
    strange = STRANGE.search(rest)
    if strange:
        raise UsageError(f"an address must not contain {strange[0]!r}, got {address!r}")
    if not netloc or "@" in netloc:
        raise UsageError(f"an address begins with {scheme}://{_NETLOC[scheme]}/, got {address!r}")
    name = PurePosixPath(key.strip("/"))
    if ".." in name.parts:
        raise UsageError(f"an address must not contain '..', got {address!r}")
    return StorePlace(f"{scheme}://{netloc}", name)


_NETLOC = {"gs": "BUCKET", "s3": "BUCKET", "hdfs": "HOST:PORT"}


def root_at(address: str) -> Place:
    """Returns the place of a table's files; records it as ``note_root`` does."""
    place = place_of(address)
    note_root(place)
    return place


def note_root(place: Place) -> None:
    """Records the place of a table's files, so that no link leads out of it, and for advice."""
    note_folder(place)
    place.note_table()


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
    return str(place_of(address).resolve())
