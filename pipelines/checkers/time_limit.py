"""Ends the call of a plug-in after a time, with the line at which it is."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class TookTooLong(Exception):
    """A plug-in took longer than the limit; its traceback has the line at which it was."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises ``TookTooLong`` in the block after a time."""

    def end(_: int, __: FrameType | None) -> None:
        raise TookTooLong(f"it took longer than {seconds:g} s (--parser_timeout)")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
