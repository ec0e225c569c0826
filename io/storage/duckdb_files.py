"""Lets DuckDB read files in stores, by nutbeam's own clients: no extension of DuckDB is needed."""

import contextlib
import datetime
import functools
import io
import os
from collections.abc import Iterator, Mapping
from typing import IO, Any, cast

from ...web.base.errors import UserError
from . import stores
from .file_errors import MissingFile, unreadable
from .parquet_files import check_before_opening
from .places import Place

# How many small files are kept in memory, because DuckDB opens a file several times.
_KEPT = 64
_NEVER_CHANGED = datetime.datetime(2025, 1, 1)


def register_files(connection: Any, sizes: Mapping[Place, int], failures: list[UserError]) -> None:
    """Makes files in a store readable by a connection of DuckDB, which reads local ones itself.

    It reads the parts of a file that a query needs, each with one request. Other files of the
    store are not readable.

    Args:
        connection: The connection.
        sizes: The size of each file, in bytes. No file changes while the connection is open.
        failures: Gets the errors of reading; those of DuckDB have only a traceback as their text.

    Raises:
        UserError: A local file is no regular file, or no Parquet file of a table.
    """
    in_stores: dict[str, tuple[Place, int]] = {}
    for place, size in sizes.items():
        if not place.opens_by_name:
            in_stores[str(place)] = place, size
            continue
        with contextlib.suppress(MissingFile):  # a query of other files does not need it
            check_before_opening(place)
    for scheme in {address.partition("://")[0] for address in in_stores}:
        connection.register_filesystem(_system_of(scheme, in_stores, failures))


class _Parts(io.RawIOBase):
    """An open file; notes errors of reading it."""

    def __init__(self, file: IO[bytes], place: Place, failures: list[UserError]) -> None:
        self._file, self._place, self._failures = file, place, failures

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        with _noting_errors(self._place, self._failures):
            return self._file.read(-1 if size is None else size)


@contextlib.contextmanager
def _noting_errors(place: Place, failures: list[UserError]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failures.append(unreadable(place, error))
        raise


def _system_of(
    scheme: str, files: Mapping[str, tuple[Place, int]], failures: list[UserError]
) -> Any:
    """Returns a file system of fsspec, which DuckDB accepts."""
    from fsspec.spec import AbstractFileSystem  # late: few commands need it

    @functools.lru_cache(maxsize=_KEPT)
    def small(address: str) -> bytes:
        place, size = files[address]
        return place.read_whole(size)

    class StoreFiles(AbstractFileSystem):  # type: ignore[misc]
        """The methods that DuckDB calls."""

        protocol = scheme
        cachable = False  # instances are not shared

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path] if path in files else []

        def exists(self, path: str, **_: Any) -> bool:
            return path in files

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            if path not in files:
                raise FileNotFoundError(path)
            return {"name": path, "size": files[path][1], "type": "file"}

        def modified(self, _: str) -> datetime.datetime:
            return _NEVER_CHANGED

        def open(self, path: str, mode: str = "rb", **_: Any) -> IO[bytes]:
            if path not in files or mode != "rb":
                raise PermissionError(f"not a file of the table: {path}")
            place, size = files[path]
            if size > stores.WHOLE_BYTES:
                return cast("IO[bytes]", _Parts(place.open_parts(size), place, failures))
            with _noting_errors(place, failures):
                return io.BytesIO(small(path))

    return StoreFiles()
