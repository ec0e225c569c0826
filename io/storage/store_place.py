"""Places in stores."""

import contextlib
import math
import secrets
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from typing import IO

from ...web.base.errors import UserError
from . import stores
from .file_errors import errors_as
from .places import Found, Place
from .store_clients import StoreName, store_client_of


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
        return known_version or super().version()

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

    def open_new(self, *, durable: bool) -> AbstractContextManager[IO[bytes]]:
        return stores.open_new(self)

    overwrite = stores.overwrite
    remove = stores.remove

    # Times, and the client.

    measure_time = stores.measure_time

    def limit_after(self, time: float) -> float:
        # Times on S3 are whole seconds: files of the same second count as not later, too.
        return math.nextafter(time, math.inf)

    check_client = store_client_of
