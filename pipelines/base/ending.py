"""Ends a command after a signal: Ctrl-C, SIGTERM, or the end of its terminal.

The first signal interrupts the main thread, which saves the fetched pages and ends. Python handles
a signal only between two Python instructions, so this may take long during C code or while worker
processes run. Therefore a second thread ends the process after 10 s in any case, and at once after
a second signal. A command may be killed at any moment: the table stays intact.
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

from ...io.storage.processes import remove_scratch

INTERRUPTED = 130
GRACE_S = 10.0
# ``timeout`` sends its signal twice, to the process and to its group.
_SAME_S = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KNOWN = frozenset(map(int, _SIGNALS))


class Ending:
    """The state of the end of a command.

    Attributes:
        signalled: Whether a signal was received.
        done: Whether the command is done: then a signal interrupts nothing.
    """

    def __init__(self) -> None:
        self.signalled = self.done = self._interrupted = self._in_shell = False
        self._noted: threading.Event | None = None

    @contextlib.contextmanager
    def shell(self) -> Iterator[None]:
        """Makes each Ctrl-C in the block interrupt the main thread, without ending the command."""
        self._in_shell = True
        try:
            yield
        finally:
            self._in_shell = False

    @contextlib.contextmanager
    def noting(self) -> Iterator[threading.Event]:
        """Makes signals in the block set an event; its end then interrupts the main thread."""
        self._noted = noted = threading.Event()
        try:
            yield noted
        finally:
            self._noted = None
            if noted.is_set():
                self._interrupted = not self._in_shell
                raise KeyboardInterrupt

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Interrupts the main thread, once."""
        if self._noted is not None:
            self._noted.set()
            return
        if self._in_shell and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self._interrupted and not self.done:
            self._interrupted = True
            raise KeyboardInterrupt

    def finish(self, code: int) -> None:
        """Records that the command is done, and limits the time for the clean-up."""
        self.done = True
        last = threading.Timer(GRACE_S, os._exit, [code])
        last.daemon = True
        last.start()

    def watch(self, signals: socket.socket, say: Callable[[str], object]) -> None:
        """Waits for signals, in a thread; ends the process if the main thread takes too long."""
        while not self._ends(signals.recv(64)):
            pass
        self.signalled = True
        threading.excepthook = _say_nothing  # for threads that wait for worker processes
        end_children(signal.SIGTERM)
        _await_another(signals)
        say("interrupted, and ended in the middle of its work: the table is whole; run it again")
        end_children(signal.SIGKILL)
        remove_scratch()
        os._exit(INTERRUPTED)

    def _ends(self, numbers: bytes) -> bool:
        """Returns whether signals end the command."""
        return bool((_KNOWN - {signal.SIGINT} if self._in_shell else _KNOWN) & set(numbers))


def _await_another(signals: socket.socket) -> None:
    """Waits for a second signal, at most until ``GRACE_S`` have passed."""
    first = time.monotonic()
    while (remaining_s := first + GRACE_S - time.monotonic()) > 0:
        ready, _, _ = select.select([signals], [], [], remaining_s)
        again = bool(ready) and bool(_KNOWN & set(signals.recv(64)))
        if again and time.monotonic() - first > _SAME_S:
            return


ENDING = Ending()
_kept: list[socket.socket] = []


def watch_signals(say: Callable[[str], object]) -> None:
    """Makes this process end properly after a signal.

    A signal that the parent process ignores, as ``nohup`` does, stays ignored.

    Args:
        say: Function that prints a line; called if the process must be killed.
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
    """Sends a signal to the child processes.

    Leaders of process groups are those that parse pages. They end when their pipe is closed, so
    they get no signal except SIGKILL.
    """
    for pid in _children():
        with contextlib.suppress(OSError):
            if os.getpgid(pid) != pid:
                os.kill(pid, number)
            elif number == signal.SIGKILL:
                os.killpg(pid, number)


def _children() -> Iterator[int]:
    """Yields the ids of child processes; none on systems without /proc."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in brackets, may contain any character.
            if int(status.read_bytes().rpartition(b")")[2].split()[1]) == os.getpid():
                yield int(status.parent.name)


def _say_nothing(_: threading.ExceptHookArgs) -> None:
    pass
