"""Reads and writes whole files of a table under new names; Parquet is in ``parquet_files``.

Here the operations of ``Place`` raise readable errors. A file appears under its name only when it
is complete, so a listing never shows an incomplete file. No name is ever written twice.
"""

import contextlib
import secrets
import zlib
from collections.abc import Iterator
from typing import IO

from ...web.base.errors import Unavailable, UsageError
from .file_errors import errors_as, unreadable
from .places import Found, Place
from .store_clients import StoreUnreachable

# No record or list of a table is larger, and no other file that is read as a whole.
RECORD_BYTES = 256 << 20
LARGEST_BYTES = 8 << 30


def new_name(suffix: str = ".parquet") -> str:
    """Returns a unique file name."""
    return f"{secrets.token_hex(8)}{suffix}"


def read_bytes(path: Place, most: int = RECORD_BYTES) -> bytes:
    """Returns the whole file.

    Args:
        path: The file.
        most: Largest size of a file in the folder of a table, bytes.

    Raises:
        UserError: There is no such file, no permission to read it, or it is too large; or it is
            in a table and no regular file.
    """
    try:
        return path.read_whole(most)
    except OSError as error:
        raise unreadable(path, error) from error


def read_if_there(path: Place, most: int = RECORD_BYTES) -> bytes | None:
    """Returns the whole file, or None if there is none; see ``read_bytes``."""
    with errors_as(f"cannot read {path}"):
        try:
            return path.read_whole(most)
        except FileNotFoundError:
            return None


def names(folder: Place) -> list[str]:
    """Returns the names in a folder, in order; none if there is no such folder.

    Raises:
        UserError: The folder cannot be read, or is a file.
    """
    with errors_as(f"cannot read {folder}"):
        return sorted(folder.names_and_versions())


def names_of_table(place: Place, address: str) -> list[str]:
    """Returns the names in the place of a table; checks that its store can be reached.

    Raises:
        UsageError: The place is a file, or cannot be read.
        Unavailable: The store does not answer.
    """
    try:
        return place.names_if_reached()
    except NotADirectoryError as error:
        raise UsageError(f"the table must be a folder, got the file {address!r}") from error
    except OSError as error:
        kind = Unavailable if isinstance(error, StoreUnreachable) else UsageError
        raise kind(f"cannot read table {address!r}: {error.strerror}") from error


def size_of(path: Place) -> int | None:
    """Returns the size of a file in bytes, or None if there is no file.

    Raises:
        UserError: There is no permission to read the file's folder.
    """
    try:
        return path.size_and_version()[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def list_files(folder: Place) -> Iterator[Found]:
    """Yields all files below a folder, hidden files included; none if there is no folder.

    Only regular files are listed, and no link is followed, except a moved folder of a table.

    Raises:
        UserError: There is no permission to read a folder.
    """
    with errors_as(f"cannot read {folder}"):
        yield from folder.files_below()


def crc32_of(path: Place) -> int:
    """Returns the checksum of a whole file.

    Raises:
        UserError: The file is missing, or there is no permission to read it.
    """
    total = 0
    for block in _blocks(path):
        total = zlib.crc32(block, total)
    return total


def copy_bytes(source: Place, target: Place) -> int:
    """Copies a file piece by piece; it appears under its name when it is on disk.

    Returns:
        The checksum of the whole file.

    Raises:
        UserError: The source cannot be read, or the target cannot be written.
    """
    total = 0
    with creating(target, durable=True) as file:
        for block in _blocks(source):
            file.write(block)
            total = zlib.crc32(block, total)
    return total


def _blocks(path: Place) -> Iterator[bytes]:
    try:
        with path.open_for_reading() as file:
            while block := file.read(1 << 20):
                yield block
    except OSError as error:
        raise unreadable(path, error) from error


def write_bytes(path: Place, data: bytes, *, named: bool = True) -> None:
    """Writes a new file; it appears under its name when it is on disk; ``named`` as in ``open_new``."""
    with errors_as(f"cannot write {path}"), path.open_new(durable=True, named=named) as file:
        file.write(data)


def sync_names(folder: Place) -> None:
    """Waits until the names of the files in a folder are on disk.

    Raises:
        UserError: The disk fails.
    """
    with errors_as(f"cannot write {folder}"):
        folder.sync_names()


def overwrite_bytes(path: Place, data: bytes) -> None:
    """Replaces a small file atomically; a crash of the machine may lose the new content."""
    with errors_as(f"cannot write {path}"):
        path.overwrite(data)


def create_exclusive(path: Place, data: bytes, *, durable: bool = True) -> bool:
    """Creates a file with its complete content, or not at all; all commits depend on it.

    Args:
        path: Place of the file.
        data: Its content.
        durable: Whether it must survive a crash of the machine.

    Returns:
        True if this call created it; False if it existed already, unchanged.

    Raises:
        UserError: The folder is not writable.
    """
    with errors_as(f"cannot write {path}"):
        return path.create(data, durable=durable)


@contextlib.contextmanager
def creating(path: Place, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """Opens a new file for writing; it appears under its name when it is complete.

    Args:
        path: Place of the file.
        durable: Whether it must survive a crash of the machine; in a store it always does.

    Raises:
        UserError: The file cannot be written.
    """
    with errors_as(f"cannot write {path}"), path.open_new(durable=durable) as file:
        yield file


def store_time(folder: Place) -> float:
    """Returns the time of the store's clock, s since the epoch, by writing a file.

    Ages of files are measured only with that clock, not with this machine's clock.
    """
    probe = folder / f".{new_name('')}"
    with errors_as(f"cannot write {probe}"):
        return probe.measure_time()


def remove_file(path: Place) -> int:
    """Removes a file; returns the number of freed bytes, or 0 if there was no file.

    Raises:
        UserError: There is no permission to remove it.
    """
    with errors_as(f"cannot remove {path}"), contextlib.suppress(FileNotFoundError):
        size, _ = path.size_and_version()
        path.remove()
        return size
    return 0
