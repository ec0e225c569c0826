"""Identifies this process, and checks whether another process still lives."""

import functools
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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
    if not _agree(process, "boot", "pids"):
        return False
    try:
        os.kill(int(process["pid"]), 0)  # signal 0 only checks that the process exists
    except ProcessLookupError:
        return True
    except OSError:  # a process of another user
        return False
    return _start(int(process["pid"])) != process.get("start")


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
