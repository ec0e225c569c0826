"""Ends a command that is told to end: by Ctrl-C, SIGTERM, or a terminal that closes.

The first signal interrupts the main thread, which keeps what was fetched and
leaves. Python does that between two of its own steps; a query in C code may take
long, and so may worker processes. So a thread beside it ends the process 10 s
later, whatever it is doing, and at once if a second signal comes: a command may
be killed at any moment, and the table is whole.
"""

import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from ...io.storage.scratch import remove_scratch

INTERRUPTED = 130
GRACE_S = 10.0
# ``timeout`` sends its signal twice, to the process and to its group.
_SAME_S = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KNOWN = frozenset(map(int, _SIGNALS))


class Ending:
    """Whether the command was told to end.

    Attributes:
        told: Whether a signal came.
        done: Whether the command is through: then a signal interrupts nothing.
    """

    def __init__(self) -> None:
        self.told = self.done = self._interrupted = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Interrupts the main thread, once."""
        if not self._interrupted and not self.done:
            self._interrupted = True
            raise KeyboardInterrupt

    def through(self, code: int) -> None:
        """Says that all is done: what is left to be put in order gets its time, and no more."""
        self.done = True
        last = threading.Timer(GRACE_S, os._exit, [code])
        last.daemon = True
        last.start()

    def watch(self, signals: socket.socket, say: Callable[[str], object]) -> None:
        """Waits for signals, in a thread; ends the process where that takes too long."""
        while not _KNOWN & set(signals.recv(64)):
            pass
        self.told = True
        threading.excepthook = _say_nothing  # of threads that wait for worker processes
        end_children(signal.SIGTERM)
        _await_another(signals)
        say("interrupted, and ended in the middle of its work: the table is whole; run it again")
        end_children(signal.SIGKILL)
        remove_scratch()
        os._exit(INTERRUPTED)


def _await_another(signals: socket.socket) -> None:
    """Waits until the time is over, or a second signal comes."""
    first = time.monotonic()
    while (left := first + GRACE_S - time.monotonic()) > 0:
        ready, _, _ = select.select([signals], [], [], left)
        again = bool(ready) and bool(_KNOWN & set(signals.recv(64)))
        if again and time.monotonic() - first > _SAME_S:
            return


ENDING = Ending()
_kept: list[socket.socket] = []


def watch_signals(say: Callable[[str], object]) -> None:
    """Has this process, a command, end in good order when it is told to.

    A signal that whoever started it wants ignored, as ``nohup`` does, stays so.

    Args:
        say: Prints a line, if it comes to the worst.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    _kept.append(theirs)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, ENDING.handle)
    threading.Thread(target=ENDING.watch, args=(ours, say), name="ending", daemon=True).start()


def end_children(number: int) -> None:
    """Sends a signal to the processes that this one has started.

    Those that lead a group of their own parse pages. They end when their pipe is
    closed, and are sent nothing but SIGKILL.
    """
    for pid in _children():
        with contextlib.suppress(OSError):
            if os.getpgid(pid) != pid:
                os.kill(pid, number)
            elif number == signal.SIGKILL:
                os.killpg(pid, number)


def _children() -> Iterator[int]:
    """Yields the ids of child processes; none where the system does not say."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in brackets, may hold anything.
            if int(status.read_bytes().rpartition(b")")[2].split()[1]) == os.getpid():
                yield int(status.parent.name)


def _say_nothing(_: threading.ExceptHookArgs) -> None:
    pass
