"""Opens files of the local disk; in a table only regular files, and through no link.

Opening a FIFO would wait for its writer for ever, and reading ``/dev/zero`` never ends.
"""

import os
import stat
from pathlib import Path
from typing import IO

from .table_links import check_links

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
    facts = path.lstat()
    _check_regular(facts)
    return facts


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
