"""Places in stores; makes the place for an address, in a local folder or in a store."""

import contextlib
import math
import secrets
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import IO

from ...web.base.errors import UsageError, UserError
from ..disk.table_names import STRANGE
from . import stores
from .address_kinds import STORES, is_place
from .file_errors import errors_as, note_folder
from .local_place import LocalPlace
from .places import Found, Place
from .store_clients import StoreName, store_client_of

_OTHER_NAMES = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "webhdfs": "hdfs"}
LOCAL_OR_STORE = "a local folder, gs://BUCKET/NAME, s3://BUCKET/NAME"
HDFS = "hdfs://HOST:PORT/NAME"
_NETLOC = {"gs": "BUCKET", "s3": "BUCKET", "hdfs": "HOST:PORT"}


class StorePlace(StoreName, Place):
    """A folder or file in a store: a name there, with the methods of a place."""

    needs_shared_path = opens_by_name = has_cheap_seeks = may_lose_files = False
    # Cloud Storage accepts one write per second to the same name.
    write_interval = 1.0
    look_interval = 5.0  # each check is a request
    hint_if_missing = ""

    # Folders.

    def exists(self) -> bool:
        with errors_as(f"cannot read {self}"):
            return bool(stores.names(self))

    names_and_versions = stores.names

    def names_if_reached(self) -> list[str]:
        store_client_of(self)
        names = list(stores.names(self))
        if not names:
            stores.check_reach(self)
        return names

    def files_in(self) -> list["StorePlace"]:
        try:
            return sorted(self / name for name in stores.names(self, folders=False)) or [self]
        except NotADirectoryError:
            return [self]

    def folders_in(self) -> list[str]:
        try:
            files = stores.names(self, folders=False)
            return sorted(str(self / name) for name in stores.names(self) if name not in files)
        except NotADirectoryError:
            return []

    def files_below(self) -> Iterator[Found]:
        for name, (size, changed) in stores.tree(self).items():
            yield Found(self / name, size, changed)

    remove_tree = stores.remove_tree
    remove_empty_folders = stores.remove_empty_folders

    # Reading a file.

    open_for_reading = stores.open_object
    open_parts = stores.ranges
    parquet_source = stores.seekable
    size_and_version = stores.stat

    def read_whole(self, most: int) -> bytes:
        return stores.read_object(self)

    def version(self, known_version: Hashable = None) -> Hashable:
        if known_version:
            return known_version
        with contextlib.suppress(OSError):
            return self.size_and_version()
        return None

    # Writing a file.

    def create(self, data: bytes, *, durable: bool) -> bool:
        return stores.create(self, data)

    def check_exclusive(self) -> None:
        place = self / f".exclusive-{secrets.token_hex(8)}"
        with errors_as(f"cannot write {place}"):
            once, twice = stores.create(place, b"1"), stores.create(place, b"2")
        with contextlib.suppress(OSError):
            stores.remove(place)
        if not once or twice:
            raise UserError(
                f"no table can be kept at {place.store}: the store does not create a name only "
                "once (If-None-Match), so commits could be lost"
            )

    def open_new(self, *, durable: bool, named: bool = True) -> AbstractContextManager[IO[bytes]]:
        return stores.open_new(self)

    overwrite = stores.overwrite
    remove = stores.remove

    # Times, and the client.

    measure_time = stores.measure_time

    def limit_after(self, time: float) -> float:
        # Times on S3 are whole seconds: files of the same second count as not later, too.
        return math.nextafter(time, math.inf)

    check_client = store_client_of


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
        _check_not_half(address, allowed)
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


def _check_not_half(address: str, allowed: str) -> None:
    scheme, colon, _ = address.partition(":")
    if colon and scheme in (*STORES, *_OTHER_NAMES, "bigtable"):
        hint = f"write {_OTHER_NAMES.get(scheme, scheme)}://, or ./{address} for a folder"
        raise UsageError(f"an address must be {allowed}, got {address!r}: {hint}")


def root_at(address: str) -> Place:
    """Returns the place of a table's files; records it as ``note_root`` does."""
    place = place_of(address)
    note_root(place)
    return place


def note_root(place: Place) -> None:
    """Records the place of a table's files, so that no link leads out of it, and for advice."""
    note_folder(place)
    place.note_table()


def one_spelling(address: str) -> str:
    """Returns the same text for every way of writing the address of one table.

    >>> one_spelling("gs://b//t/"), one_spelling("bigtable://p/i/t")
    ('gs://b/t', 'bigtable://p/i/t')
    """
    if not is_place(address):
        return address
    place = place_of(address)
    try:
        return str(place.resolve())
    except (OSError, RuntimeError):  # links in a circle: who opens it gets the error
        return str(place.absolute())
