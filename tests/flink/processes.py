"""Processes that carry a mark in their environment: found whatever their parent is, ended by id.

A process that was started by one that was killed has no parent to be found by.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NAME = "NUTBEAM_TEST_MARK"
PATIENCE_S = 60.0


class Process(NamedTuple):
    """A process: its id, its parent's, and its command line."""

    pid: int
    parent: int
    command: str


def marked(mark: str) -> list[Process]:
    """Returns the processes that carry a mark, in the order of their ids; no zombies."""
    wanted = f"{NAME}={mark}".encode()
    numbers = sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [found for pid in numbers for found in _look(pid, wanted)]


def _look(pid: int, wanted: bytes) -> Iterator[Process]:
    folder = Path("/proc") / str(pid)
    with contextlib.suppress(OSError):  # it has just ended, or is another user's
        if wanted in (folder / "environ").read_bytes().split(b"\0"):
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            if stat[0] != "Z":
                yield Process(pid, int(stat[1]), command.strip())


def end(mark: str) -> None:
    """Ends all processes that carry a mark.

    Raises:
        RuntimeError: Some did not end.
    """
    deadline = time.monotonic() + PATIENCE_S
    while left := marked(mark):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise RuntimeError(f"these processes do not end: {left}")
        time.sleep(0.05)


class Keeper:
    """Ends what carries its mark, and removes its folder, when it is closed.

    It also does so when the process that made it is gone, whatever has killed it.

    Attributes:
        mark: What ``environment`` gives to processes, unique.
        folder: Is removed at last.
    """

    def __init__(self, folder: Path) -> None:
        self.mark = secrets.token_hex(16)
        self.folder = folder
        # A session of its own: an interrupt from the keyboard is not for it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, self.mark, str(folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """This process' environment with the mark."""
        return {**os.environ, NAME: self.mark}

    def close(self) -> None:
        """Ends all; may be called twice.

        Raises:
            RuntimeError: Something is left.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.wait(timeout=2 * PATIENCE_S) or marked(self.mark):
            raise RuntimeError(f"left behind: {marked(self.mark)}")


def _keep(mark: str, folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()  # until the other end is closed, or its holder dies
    end(mark)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _keep(*sys.argv[1:])
