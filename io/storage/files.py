"""Files of a table: whole files under new names; Parquet is in ``parquet_files``.

Everything that touches storage goes through here and ``io/storage/exclusive.py``. A file
appears under its name only when it is complete, so a listing never shows half
a file, and no name is ever written twice.
"""

import contextlib
import dataclasses
import errno
import io
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ...policy.kinds import folders
from ...web.base.errors import UserError
from . import stores
from .places import Place, Remote


def new_name(suffix: str = ".parquet") -> str:
    """Returns a file name that nobody else uses."""
    return f"{secrets.token_hex(8)}{suffix}"


def read_bytes(path: Place) -> bytes:
    """Returns the whole file.

    Raises:
        UserError: There is no such file, or it may not be read.
    """
    try:
        return stores.read(path) if isinstance(path, Remote) else path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


def read_if_there(path: Place) -> bytes | None:
    """Returns the whole file, or None if there is none."""
    try:
        return stores.read(path) if isinstance(path, Remote) else path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error


def names(folder: Place, called: str = "") -> list[str]:
    """Returns the names in a folder, in order; none if there is no such folder.

    Args:
        folder: The folder.
        called: What an error calls it.

    Raises:
        UserError: It cannot be read, or is a file.
    """
    if isinstance(folder, Remote):
        return sorted(versions(folder, called))
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"cannot read {called or folder}: {error.strerror or error}") from error


def versions(folder: Remote, called: str = "") -> dict[str, str]:
    """Returns the names below a place in a store, with the version of each object.

    Args and errors are those of ``names``.
    """
    try:
        return stores.names(folder)
    except OSError as error:
        raise UserError(f"cannot read {called or folder}: {error.strerror or error}") from error


def size_of(path: Place) -> int | None:
    """Returns the size of a file, bytes, None where there is none.

    Raises:
        UserError: It may not be looked at.
    """
    try:
        return stores.stat(path)[0] if isinstance(path, Remote) else path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def file_size(path: Place) -> int:
    """Returns the size of a file that must be there, bytes; see ``size_of``."""
    size = size_of(path)
    if size is None:
        raise unreadable(path, FileNotFoundError(str(path)))
    return size


def file_version(path: Place) -> tuple[int | str, ...]:
    """Returns what tells a file from another one of the same name; empty if there is none.

    Files are never changed, but a table may be removed and made anew.
    """
    try:
        if isinstance(path, Remote):
            return stores.stat(path)
        known = path.stat()
    except OSError:
        return ()
    return known.st_ino, known.st_mtime_ns, known.st_size


@dataclasses.dataclass(frozen=True)
class Found:
    """A file that lies in a folder.

    Attributes:
        path: Where.
        bytes: Its size.
        changed: When it was last written, s, by the store's clock.
    """

    path: Place
    bytes: int
    changed: float


def list_files(folder: Place) -> Iterator[Found]:
    """Yields all files below a folder, hidden ones too; none where there is no folder.

    Raises:
        UserError: A folder may not be read.
    """
    try:
        if isinstance(folder, Remote):
            for name, (size, changed) in stores.tree(folder).items():
                yield Found(folder / name, size, changed)
            return
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                yield from list_files(path)
                continue
            with contextlib.suppress(FileNotFoundError):  # it went in the meantime
                known = path.stat()
                yield Found(path, known.st_size, known.st_mtime)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror or error}") from error


def crc32_of(path: Place) -> int:
    """Returns the checksum of a whole file.

    Raises:
        UserError: The file is missing, or may not be read.
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
        UserError: It cannot be read, or not be written there.
    """
    total = 0
    with contextlib.ExitStack() as stack:
        file: IO[bytes]
        if isinstance(target, Remote):
            file = stack.enter_context(creating(target))
        else:
            temporary = stack.enter_context(_appearing(target))
            file = stack.enter_context(temporary.open("wb"))
        for block in _blocks(source):
            file.write(block)
            total = zlib.crc32(block, total)
        if isinstance(file, io.BufferedWriter):
            file.flush()
            os.fsync(file.fileno())
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
    if isinstance(path, Remote):
        with writing(path):
            stores.write(path, data)
        return
    with _appearing(path) as temporary:
        temporary.write_bytes(data)
        sync(temporary)


def overwrite_bytes(path: Place, data: bytes) -> None:
    """Replaces a small file as a whole; for what need not survive a crash of the machine."""
    if isinstance(path, Remote):
        with writing(path):
            stores.overwrite(path, data)
        return
    temporary = path.with_name(f".{path.name}.{new_name('')}")
    with writing(path):
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def creating(path: Place) -> Iterator[IO[bytes]]:
    """Opens a new file for writing, one that nobody reads before it is complete."""
    with writing(path):
        if isinstance(path, Remote):
            with stores.open_new(path) as file:
                yield file
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                yield file


def opened(path: Place) -> IO[bytes]:
    """Opens a file for reading from its beginning to its end.

    Raises:
        OSError: It is not there, or may not be read.
    """
    return stores.opened(path) if isinstance(path, Remote) else path.open("rb")


def remove_tree(folder: Place) -> None:
    """Removes a folder and all that is in it, as far as that can be done."""
    if isinstance(folder, Remote):
        with contextlib.suppress(OSError):
            stores.remove_tree(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{new_name('')}")
        try:
            yield temporary
            temporary.rename(path)
            sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Place) -> Iterator[None]:
    """Makes one clear line of what goes wrong while a file is written within.

    Raises:
        UserError: The file cannot be written: no right, no room, no folder.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"cannot write {path}: {reason}{make_room(error)}") from error


def make_room(error: OSError) -> str:
    """Returns what to do about a full disk, for an error's end; empty where it is not full."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    return ": make room, then run the same again" if full else ""


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unreadable(path: Place, error: Exception) -> UserError:
    """Returns one clear line of why a file of a table cannot be read."""
    if isinstance(error, FileNotFoundError):
        return UserError(f"data file is missing: {path}{cure(path)}")
    return UserError(f"data file cannot be read: {path}: {first_line(error)}{cure(path)}")


def cure(path: Place) -> str:
    """Returns what to do about a file of a table that is missing or damaged, for an error's end.

    >>> cure(Path("mine/manifest/lists/state-1.parquet"))
    ': run nutbeam fsck mine'
    >>> cure(Path("seeds.txt"))
    ''
    """
    for folder in path.parents:
        if folder in _CALLED:
            return f": run nutbeam fsck {_CALLED[folder]}"
    for folder in path.parents:
        if folder.name in ("manifest", "operations", *folders()):
            return f": run nutbeam fsck {folder.parent}"
    return ""


# What tables are called, by the place of their files, where that has another name.
_CALLED: dict[Place, str] = {}


def called(files: Place, table: str) -> None:
    """Notes what a table is called that has its files in a place of another name."""
    _CALLED[files] = table


def first_line(error: Exception) -> str:
    """Returns the first line of what an error says, or its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def store_time(folder: Place) -> float:
    """Returns what the store's clock says, s since the epoch: when a file is written now.

    Ages of files are told by that clock alone, not by this machine's.
    """
    probe = folder / f".{new_name('')}"
    with writing(probe):
        if isinstance(probe, Remote):
            stores.overwrite(probe, b"-")
            try:
                return stores.time_written(probe)
            finally:
                stores.remove(probe)
        try:
            probe.parent.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"")
            return float(probe.stat().st_mtime)
        finally:
            probe.unlink(missing_ok=True)


def remove_file(path: Place) -> int:
    """Removes a file; returns how many bytes that frees, 0 where it is gone already.

    Raises:
        UserError: It may not be removed.
    """
    try:
        if isinstance(path, Remote):
            size = stores.stat(path)[0]
            stores.remove(path)
        else:
            size = path.stat().st_size
            path.unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise UserError(f"cannot remove {path}: {error.strerror or error}") from error
    return int(size)


def empty_folders(folder: Place, before: float) -> Iterator[str]:
    """Yields the names of the folders in a folder in which no file is.

    Args:
        folder: Where; in a store there are no folders to speak of.
        before: Time of the store's clock, s: where something was changed later,
            somebody may be about to write.
    """
    if isinstance(folder, Remote):
        return
    with contextlib.suppress(OSError):  # gone meanwhile
        for path in folder.iterdir():
            inside = [path, *path.rglob("*")]
            if all(one.is_dir() and one.stat().st_mtime < before for one in inside):
                yield path.name


def remove_empty_folders(folder: Place) -> None:
    """Removes a folder and those below it, as far as there are no files in them."""
    with contextlib.suppress(OSError):
        if isinstance(folder, Remote):
            stores.remove_empty_folders(folder)
            return
        for path in folder.iterdir():
            if path.is_dir():
                remove_empty_folders(path)
        folder.rmdir()
