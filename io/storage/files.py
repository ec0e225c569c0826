"""Reads and writes whole files of a table under new names; Parquet is in ``parquet_files``.

All access to storage goes through this module and ``io/storage/exclusive.py``. A file
appears under its name only when it is complete, so a listing never shows an incomplete
file. No name is ever written twice.
"""

import contextlib
import dataclasses
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..disk.regular_files import open_for_reading, read_whole, stat_file
from ..disk.table_links import check_links, is_link_free
from . import stores
from .file_errors import errors_as, unreadable
from .places import Place, Remote

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
        return _read(path, most)
    except OSError as error:
        raise unreadable(path, error) from error


def read_if_there(path: Place, most: int = RECORD_BYTES) -> bytes | None:
    """Returns the whole file, or None if there is none; see ``read_bytes``."""
    with errors_as(f"cannot read {path}"):
        try:
            return _read(path, most)
        except FileNotFoundError:
            return None


def _read(path: Place, most: int) -> bytes:
    return stores.read_object(path) if isinstance(path, Remote) else read_whole(path, most)


def names(folder: Place, label: str = "") -> list[str]:
    """Returns the names in a folder, in order; none if there is no such folder.

    Args:
        folder: The folder.
        label: The folder's name in errors; its path if empty.

    Raises:
        UserError: The folder cannot be read, or is a file.
    """
    return sorted(names_and_versions(folder, label))


def names_and_versions(folder: Place, label: str = "") -> dict[str, str]:
    """Returns the names in a folder and, in a store, each object's version; see ``names``."""
    with errors_as(f"cannot read {label or folder}"):
        if isinstance(folder, Remote):
            return stores.names(folder)
        try:
            check_links(folder)
            return {entry.name: "" for entry in folder.iterdir()}
        except FileNotFoundError:
            return {}


def size_of(path: Place) -> int | None:
    """Returns the size of a file in bytes, or None if there is no file.

    Raises:
        UserError: There is no permission to read the file's folder.
    """
    try:
        return _size_and_version(path)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def file_version(path: Place) -> tuple[int, str] | tuple[()]:
    """Returns a value that differs between two files of the same name; empty if there is no file.

    Files are never changed, but a table may be removed and created again.
    """
    try:
        return _size_and_version(path)
    except OSError:
        return ()


def _size_and_version(path: Place) -> tuple[int, str]:
    if isinstance(path, Remote):
        return stores.stat(path)
    known = stat_file(path)
    return known.st_size, f"{known.st_ino} {known.st_mtime_ns}"


@dataclasses.dataclass(frozen=True)
class Found:
    """A file in a folder.

    Attributes:
        path: Its place.
        bytes: Its size.
        changed: When it was last written, s, by the store's clock.
    """

    path: Place
    bytes: int
    changed: float


def list_files(folder: Place) -> Iterator[Found]:
    """Yields all files below a folder, hidden files included; none if there is no folder.

    Only regular files are listed, and no link is followed, except a moved folder of a table.

    Raises:
        UserError: There is no permission to read a folder.
    """
    with errors_as(f"cannot read {folder}"):
        if isinstance(folder, Remote):
            for name, (size, changed) in stores.tree(folder).items():
                yield Found(folder / name, size, changed)
        elif is_link_free(folder):
            yield from _files_below(folder)


def _files_below(folder: Path) -> Iterator[Found]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(folder.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                known = path.lstat()
                if stat.S_ISDIR(known.st_mode):
                    yield from _files_below(path)
                elif stat.S_ISREG(known.st_mode):
                    yield Found(path, known.st_size, known.st_mtime)


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
        with opened(path) as file:
            while block := file.read(1 << 20):
                yield block
    except OSError as error:
        raise unreadable(path, error) from error


def write_bytes(path: Place, data: bytes) -> None:
    """Writes a new file; it appears under its name when it is on disk."""
    with creating(path, durable=True) as file:
        file.write(data)


def overwrite_bytes(path: Place, data: bytes) -> None:
    """Replaces a small file atomically; a crash of the machine may lose the new content."""
    with errors_as(f"cannot write {path}"):
        if isinstance(path, Remote):
            stores.overwrite(path, data)
            return
        check_links(path.parent)
        with temporary_beside(path) as temporary:
            temporary.write_bytes(data)
            temporary.replace(path)


@contextlib.contextmanager
def creating(path: Place, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """Opens a new file for writing; it appears under its name when it is complete.

    Args:
        path: Place of the file.
        durable: Whether it must survive a crash of the machine; in a store it always does.

    Raises:
        UserError: The file cannot be written.
    """
    with errors_as(f"cannot write {path}"):
        if isinstance(path, Remote):
            with stores.open_new(path) as file:
                yield file
            return
        check_links(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(path) as temporary:
            with temporary.open("wb") as file:
                yield file
            if durable:
                sync(temporary)
            temporary.rename(path)
            if durable:
                sync(path.parent)


@contextlib.contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Yields the name of a temporary file in the folder of ``path``; removes it at the end."""
    temporary = path.with_name(f".{path.name}.{new_name('')}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def opened(path: Place) -> IO[bytes]:
    """Opens a file for reading from its beginning to its end.

    Raises:
        OSError: There is no such file, or no permission to read it.
    """
    return stores.opened(path) if isinstance(path, Remote) else open_for_reading(path)


def remove_tree(folder: Place) -> None:
    """Removes a folder and its content; skips files that cannot be removed."""
    if isinstance(folder, Remote):
        with contextlib.suppress(OSError):
            stores.remove_tree(folder)
    elif is_link_free(folder):
        shutil.rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    """Calls fsync on a file, or on a folder so that its names are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_time(folder: Place) -> float:
    """Returns the time of the store's clock, s since the epoch, by writing a file.

    Ages of files are measured only with that clock, not with this machine's clock.
    """
    probe = folder / f".{new_name('')}"
    with errors_as(f"cannot write {probe}"):
        if isinstance(probe, Remote):
            stores.overwrite(probe, b"-")
            try:
                return stores.time_written(probe)
            finally:
                stores.remove(probe)
        check_links(probe.parent)
        probe.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(probe) as temporary:
            temporary.touch()
            return temporary.stat().st_mtime


def remove_file(path: Place) -> int:
    """Removes a file; returns the number of freed bytes, or 0 if there was no file.

    Raises:
        UserError: There is no permission to remove it.
    """
    with errors_as(f"cannot remove {path}"), contextlib.suppress(FileNotFoundError):
        size, _ = _size_and_version(path)
        if isinstance(path, Remote):
            stores.remove(path)
        else:
            path.unlink()
        return size
    return 0


def empty_folders(folder: Place, before: float) -> Iterator[str]:
    """Yields the names of the folders in a folder that have no files.

    Args:
        folder: The folder; stores have no empty folders.
        before: Time of the store's clock, s. A folder that was changed later is left out,
            because another process may be about to write there.
    """
    if isinstance(folder, Remote):
        return
    with contextlib.suppress(OSError):  # another process has removed it
        for path in folder.iterdir() if is_link_free(folder) else ():
            inside = [path, *path.rglob("*")]
            if all(_is_folder(one) and one.stat().st_mtime < before for one in inside):
                yield path.name


def remove_empty_folders(folder: Place) -> None:
    """Removes empty folders: ``folder`` and those below it."""
    with contextlib.suppress(OSError):
        if isinstance(folder, Remote):
            stores.remove_empty_folders(folder)
            return
        check_links(folder)
        for path in folder.iterdir():
            if _is_folder(path):
                remove_empty_folders(path)
        folder.rmdir()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
