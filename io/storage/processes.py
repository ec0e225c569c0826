"""Identifies this process, checks whether another one lives, and makes this one's temporary folder.

The folder is below TMPDIR. If the process is killed, a later process removes it. Its name identifies
the process: its id, its start time, and digests of the machine's ids. So the folder of a process
that may still live is never removed, and other files in TMPDIR stay untouched.
"""

import atexit
import contextlib
import errno
import functools
import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...web.base.errors import UsageError, UserError

_NAME = re.compile(r"nutbeam-(\d+)-(\d+)-([0-9a-f]{6})-([0-9a-f]{6})-([0-9a-f]{6})-[0-9a-f]{8}")
_MACHINE = ("boot", "pids", "host")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CURE = "make room there, or let TMPDIR name another folder"
# By process id, as a forked child has its own folder, and by TMPDIR.
_folders: dict[tuple[int, Path], Path] = {}
_LOCK = threading.Lock()
# ``tempfile.tempdir`` and TMPDIR before each active ``all_in_scratch``: threads may run several.
_BEFORE: list[tuple[str | None, str | None]] = []


@functools.cache
def _machine() -> dict[str, str]:
    """Returns ids of this machine; process ids and clocks can be compared if these are equal.

    It is empty on systems other than Linux.
    """
    try:
        return {
            "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            # Two containers on one machine have the same boot id, but different namespaces.
            "pids": str(Path("/proc/self/ns/pid").readlink()),
            "clock": str(Path("/proc/self/ns/time").readlink()),
        }
    except OSError:
        return {}


def this_process() -> dict[str, Any]:
    """Returns a record, for JSON, that identifies this process."""
    pid = os.getpid()
    return {**_machine(), "pid": pid, "start": _start(pid), "host": socket.gethostname()}


def same_clock(process: Mapping[str, Any]) -> bool:
    """Returns whether another process reads the same monotonic clock as this one."""
    return _agree(process, "boot", "clock")


def is_dead(process: Mapping[str, Any]) -> bool:
    """Returns whether a process has certainly ended; False if that is unknown."""
    if not may_be_seen(process):
        return False
    try:
        os.kill(int(process["pid"]), 0)  # signal 0 only checks that the process exists
    except ProcessLookupError:
        return True
    except OSError:  # a process of another user
        return False
    return _start(int(process["pid"])) != process.get("start")


def may_be_seen(process: Mapping[str, Any]) -> bool:
    """Returns whether this process would see that another one has ended; see ``is_dead``."""
    return _agree(process, "boot", "pids")


def _agree(process: Mapping[str, Any], *names: str) -> bool:
    here = _machine()
    return bool(here) and all(process.get(name) == here[name] for name in names)


def _start(pid: int) -> int | None:
    """Returns the start of a process, in ticks since the boot; None if it has ended."""
    try:
        # The name of the program, in parentheses, may have any characters.
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return None if words[0] in (b"Z", b"X") else int(words[19])
    except (OSError, ValueError, IndexError):
        return None


class ScratchFull(UserError):
    """TMPDIR is full; the same work may succeed when there is space again."""


def scratch() -> Path:
    """Returns this process's folder for temporary files; sweeps old folders before creating it.

    Raises:
        UsageError: TMPDIR is not a writable folder.
        ScratchFull: TMPDIR is full.
    """
    base, me = _base(), os.getpid()
    if (me, base.parent) in _folders:  # TMPDIR is this process's folder, see ``all_in_scratch``
        return base
    folder = _folders.get((me, base))
    if folder is None or not folder.is_dir():
        remove_left(base)
        folder = _folders[me, base] = _make(base)
        atexit.register(remove_scratch)
    return folder


@contextlib.contextmanager
def all_in_scratch() -> Iterator[None]:
    """Puts all temporary files of a block, also of child processes, into this process's folder.

    Raises:
        UserError: See ``scratch``.
    """
    with _LOCK:
        folder = str(scratch())
        _BEFORE.append((tempfile.tempdir, os.environ.get("TMPDIR")))
        tempfile.tempdir = os.environ["TMPDIR"] = folder
    try:
        yield
    finally:
        with _LOCK:  # the last thread to leave restores the settings that the first one found
            tempfile.tempdir, variable = _BEFORE.pop()
            os.environ.pop("TMPDIR", None)
            if variable is not None:
                os.environ["TMPDIR"] = variable


def remove_scratch() -> None:
    """Removes this process's folder, if it has one."""
    for process, base in list(_folders):
        if process == os.getpid():
            shutil.rmtree(_folders.pop((process, base)), ignore_errors=True)


def remove_left(base: Path) -> None:
    """Removes folders of killed processes from ``base``."""
    for folder in _ours(base):
        remove_left_folder(folder)


def remove_left_folder(folder: Path) -> None:
    """Removes the folder of a dead process, unless it holds the folder of a live one."""
    with contextlib.suppress(OSError):  # another process removes it, too
        if _is_left(folder):
            remove_left(folder)
            if not _ours(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _ours(base: Path) -> list[Path]:
    """Returns the folders in ``base`` whose names have the form that ``_make`` uses."""
    with contextlib.suppress(OSError):
        return [path for path in base.iterdir() if _NAME.fullmatch(path.name)]
    return []


@contextlib.contextmanager
def writing_scratch(path: Path) -> Iterator[None]:
    """Converts errors of a full TMPDIR in a block that writes a temporary file.

    Raises:
        ScratchFull: There is no space.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise ScratchFull(full(path)) from error
        raise


def full(path: Path) -> str:
    """Returns the message for a temporary file that does not fit into TMPDIR.

    >>> full(Path("/tmp/nutbeam-7-9-000000-000000-000000-00000000/x"))[:36]
    "TMPDIR is full: no room in '/tmp' fo"
    """
    return f"TMPDIR is full: no room in {str(_above_ours(path))!r} for temporary files: {_CURE}"


def _above_ours(path: Path) -> Path:
    """Returns the folder that has the folders of processes; the path itself if it is in none."""
    ours = [parent for parent in (path, *path.parents) if _NAME.fullmatch(parent.name)]
    return ours[-1].parent if ours else path


def temporary_files() -> Path:
    """Returns the folder in which processes make their folders for temporary files."""
    return _above_ours(_base())


def full_by(error: OSError) -> str | None:
    """Returns the message for an error, if its cause is a full TMPDIR."""
    path = Path(os.fsdecode(error.filename or ""))
    inside = any(_NAME.fullmatch(parent.name) for parent in (path, *path.parents))
    return full(path) if error.errno in _FULL and inside else None


def _base() -> Path:
    """Returns TMPDIR; unlike ``tempfile``, it never chooses another folder."""
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
    """Returns whether a folder is this user's, and its process has certainly ended."""
    match = _NAME.fullmatch(folder.name)
    facts = folder.lstat()
    if match is None or facts.st_uid != os.getuid() or not stat.S_ISDIR(facts.st_mode):
        return False  # another user's folder, or a link
    here = this_process()
    boot, pids, host = _digests(here)
    if "boot" not in here or match[5] != host:
        return False
    if match[3] != boot:
        return True  # the machine was rebooted since then
    return match[4] == pids and is_dead({**here, "pid": int(match[1]), "start": int(match[2])})


def _digests(process: Mapping[str, Any]) -> list[str]:
    words = (str(process.get(name, "")) for name in _MACHINE)
    return [hashlib.sha256(word.encode()).hexdigest()[:6] for word in words]
