"""Opens files of the local disk; in a table only regular files, and through no link.

Opening a FIFO would wait for its writer for ever, and reading ``/dev/zero`` never ends. Of symbolic
links in a table only a moved folder is one.

A folder directly in a table, such as ``batches``, may be a link to another disk. It differs
from a link that a stranger made: the link has the name of a folder of tables, and leads to a folder
that is neither in this table, nor above it, nor in another table. Every other link in a table leads
to nothing: it is not followed when files are read, written, listed or deleted.
"""

import functools
import os
import re
import stat
from pathlib import Path
from typing import IO

from .table_names import table_folders

_MANIFEST = re.compile(r"\d{8,}\.json")
# The folders of the tables that this process has opened.
_TABLES: set[Path] = set()


class LinkError(OSError):
    """A name leads out of a table's folder, through a link or ``..``."""


def note_table(folder: Path) -> None:
    """Records the folder of a table, so that links in it are not followed."""
    if folder not in _TABLES:
        _TABLES.add(folder)
        name_in_table.cache_clear()


@functools.lru_cache(4096)  # each file is asked for several times in a round
def name_in_table(path: Path) -> tuple[Path, tuple[str, ...]] | None:
    """Returns (the folder of the table that a path is in, the parts of its name there), or None."""
    for folder in path.parents:
        if folder in _TABLES:
            parts = path.parts[len(folder.parts) :]
            return (folder, parts) if parts[0] in _folder_names() else None
    return None


def check_links(path: Path) -> bool:
    """Checks that no link is on the way to a file or folder of a table, and that it is none.

    Returns:
        Whether the path is in a table; others are not checked.

    Raises:
        LinkError: A part of the path is a link, and not a moved folder.
    """
    place_in_table = name_in_table(path)
    if place_in_table is None:
        return False
    folder, parts = place_in_table
    if ".." in parts:
        raise LinkError("it leads out of the table")
    path_so_far = str(folder)
    for number, part in enumerate(parts):
        path_so_far = f"{path_so_far}/{part}"
        if os.path.islink(path_so_far) and (number or not _is_moved(str(folder), path_so_far)):  # noqa: PTH114
            name = "/".join(parts[: number + 1])
            raise LinkError(f"{name} is a link, which is not followed")
    return True


def is_link_free(path: Path) -> bool:
    """Returns whether ``check_links`` has nothing to say about a path."""
    try:
        check_links(path)
    except LinkError:
        return False
    return True


@functools.cache
def _folder_names() -> frozenset[str]:
    return table_folders()


def _is_moved(folder: str, link: str) -> bool:
    """Returns whether a link in the folder of a table is one of its folders on another disk."""
    try:
        target, own = Path(link).resolve(strict=True), Path(folder).resolve()
    except (OSError, RuntimeError):  # it leads to nothing, or to itself
        return False
    if not target.is_dir() or target == own or own in target.parents or target in own.parents:
        return False
    return not any(_is_other_table(place, own) for place in target.parents)


def _is_other_table(folder: Path, own: Path) -> bool:
    """Returns whether a folder is that of a table, and its folders are not linked from this one."""
    if not has_manifests(folder / "manifest"):
        return False
    there = (name for name in _folder_names() if (folder / name).is_dir())
    return any((folder / name).resolve() != (own / name).resolve() for name in there)


def has_manifests(folder: Path) -> bool:
    """Returns whether a folder has manifests of a table."""
    try:
        with os.scandir(folder) as entries:
            return any(_MANIFEST.fullmatch(entry.name) for entry in entries)
    except OSError:
        return False


_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


class NotRegular(OSError):
    """The name is not that of a regular file."""


class FileTooLarge(OSError):
    """The file is larger than such files ever are."""


def open_for_reading(path: Path) -> IO[bytes]:
    """Opens a file for reading; a file in a table must be a regular one.

    Raises:
        OSError: It is no such file, or there is no permission to read it.
    """
    if not check_links(path):
        return path.open("rb")
    stat_file(path)  # before it is opened: to open a device may do something
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_regular(os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def stat_file(path: Path) -> os.stat_result:
    """Returns the facts of a file; in a table they are those of a regular file.

    Raises:
        OSError: There is no file; in a table, it is not regular.
    """
    if not check_links(path):
        return path.stat()
    file_stat = path.lstat()
    _check_regular(file_stat)
    return file_stat


def read_whole(path: Path, most: int) -> bytes:
    """Returns the content of a file; in a table it has at most ``most`` bytes.

    Raises:
        FileTooLarge: It has more.
        OSError: It cannot be read.
    """
    with open_for_reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most and check_links(path):
            raise FileTooLarge(f"it has {size:,} bytes, such a file has at most {most:,}")
        return file.read()


def kind_of_entry(path: Path) -> str:
    """Returns what a name stands for that is no regular file, such as ``a FIFO``; else empty."""
    try:
        return _KINDS.get(stat.S_IFMT(path.lstat().st_mode), "")
    except OSError:
        return ""


def _check_regular(facts: os.stat_result) -> None:
    kind = stat.S_IFMT(facts.st_mode)
    if kind != stat.S_IFREG:
        raise NotRegular(f"it is {_KINDS.get(kind, 'something else')}, not a file")
