"""A folder of this process for temporary files, which a later process sweeps if this one is killed.

It lies in TMPDIR and says in its name whose it is: process id, when that began,
and digests of the machine. So nobody removes the folder of a process that may
live, and of others' files in TMPDIR none is touched.
"""

import atexit
import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...web.base.errors import UsageError, UserError
from .processes import is_dead, this_process

_NAME = re.compile(r"nutbeam-(\d+)-(\d+)-([0-9a-f]{6})-([0-9a-f]{6})-([0-9a-f]{6})-[0-9a-f]{8}")
_MACHINE = ("boot", "pids", "host")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CURE = "make room there, or let TMPDIR name another folder"
# By process, as a forked child has its own, and by where it lies.
_folders: dict[tuple[int, Path], Path] = {}


class ScratchFull(UserError):
    """TMPDIR takes no more; what was begun may be begun again when there is room."""


class _Uses:
    """How many commands of this process have their temporary files here: threads may run several."""

    def __init__(self) -> None:
        self.lock, self.count = threading.Lock(), 0
        self.before: tuple[str | None, str | None] = (None, None)


_USES = _Uses()


def scratch() -> Path:
    """Returns this process' folder for temporary files, made if need be; sweeps those of dead ones.

    Raises:
        UsageError: TMPDIR names no folder that may be written.
        ScratchFull: TMPDIR is full.
    """
    base, me = _base(), os.getpid()
    if (me, base.parent) in _folders:  # all is made in it
        return base
    folder = _folders.get((me, base))
    if folder is None or not folder.is_dir():
        sweep(base)
        folder = _folders[me, base] = _make(base)
        atexit.register(remove_scratch)
    return folder


@contextlib.contextmanager
def all_in_scratch() -> Iterator[None]:
    """Has all temporary files within made in this process' folder: Beam's, and of child processes.

    Raises:
        UserError: See ``scratch``.
    """
    with _USES.lock:
        if not _USES.count:
            _USES.before = tempfile.tempdir, os.environ.get("TMPDIR")
            tempfile.tempdir = os.environ["TMPDIR"] = str(scratch())
        _USES.count += 1
    try:
        yield
    finally:
        with _USES.lock:
            _USES.count -= 1
            if not _USES.count:
                tempfile.tempdir, variable = _USES.before
                os.environ.pop("TMPDIR", None)
                if variable is not None:
                    os.environ["TMPDIR"] = variable


def remove_scratch() -> None:
    """Removes this process' folder, if it has one."""
    for process, base in list(_folders):
        if process == os.getpid():
            shutil.rmtree(_folders.pop((process, base)), ignore_errors=True)


def sweep(base: Path) -> None:
    """Removes the folders in ``base`` of processes that were killed."""
    for folder in _ours(base):
        sweep_one(folder)


def sweep_one(folder: Path) -> None:
    """Removes the folder of a process, unless that may live, or one whose folder lies in it."""
    with contextlib.suppress(OSError):  # another process is at it, too
        if _is_left(folder):
            sweep(folder)
            if not _ours(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _ours(base: Path) -> list[Path]:
    """Returns the folders in ``base`` that have the name of such a folder."""
    try:
        names = [path.name for path in base.iterdir()]
    except OSError:
        return []
    return [base / name for name in names if _NAME.fullmatch(name)]


@contextlib.contextmanager
def writing_scratch(path: Path) -> Iterator[None]:
    """Says it in one line if there is no room for a temporary file that is written within.

    Raises:
        ScratchFull: There is none.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise ScratchFull(full(path)) from error
        raise


def full(path: Path) -> str:
    """Returns what to say where there is no room for a temporary file.

    >>> full(Path("/tmp/nutbeam-7-9-000000-000000-000000-00000000/x"))[:36]
    "TMPDIR is full: no room in '/tmp' fo"
    """
    ours = [parent for parent in (path, *path.parents) if _NAME.fullmatch(parent.name)]
    base = ours[-1].parent if ours else path
    return f"TMPDIR is full: no room in {str(base)!r} for temporary files: {_CURE}"


def full_by(error: OSError) -> str | None:
    """Returns what to say of an error, if it is that a temporary file has no room."""
    path = Path(os.fsdecode(error.filename or ""))
    inside = any(_NAME.fullmatch(parent.name) for parent in (path, *path.parents))
    return full(path) if error.errno in _FULL and inside else None


def _base() -> Path:
    """Returns the folder for temporary files; unlike ``tempfile`` takes no other than TMPDIR's."""
    named = tempfile.tempdir or os.environ.get("TMPDIR")
    if named:
        return Path(named).absolute()
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise UsageError(
            "no folder for temporary files: let TMPDIR name one that may be written"
        ) from error


def _make(base: Path) -> Path:
    process = this_process()
    words = (process["pid"], process["start"] or 0, *_digests(process))
    folder = base / "-".join(["nutbeam", *map(str, words), secrets.token_hex(4)])
    try:
        if not base.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        folder.mkdir(mode=0o700)
    except OSError as error:
        if error.errno in _FULL:
            raise ScratchFull(full(folder)) from error
        raise UsageError(
            f"TMPDIR must be a folder that may be written, got {str(base)!r}: {error.strerror}"
        ) from error
    return folder


def _is_left(folder: Path) -> bool:
    """Returns whether a folder is this user's, and its process has surely ended."""
    match = _NAME.fullmatch(folder.name)
    known = folder.lstat()
    if match is None or known.st_uid != os.getuid() or not stat.S_ISDIR(known.st_mode):
        return False  # nor is it a link to somewhere else
    here = this_process()
    boot, pids, host = _digests(here)
    if "boot" not in here or match[5] != host:
        return False
    if match[3] != boot:
        return True  # this machine was started anew
    return match[4] == pids and is_dead({**here, "pid": int(match[1]), "start": int(match[2])})


def _digests(process: Mapping[str, Any]) -> list[str]:
    words = (str(process.get(name, "")) for name in _MACHINE)
    return [hashlib.sha256(word.encode()).hexdigest()[:6] for word in words]
