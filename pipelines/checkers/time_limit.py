"""The call of a plug-in: what comes out, and its end after a time, with the line at which it is."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple


class Trial(NamedTuple):
    """What came out of one call of a plug-in.

    Attributes:
        record: What it was given, and its result.
        lines: The result for people.
        fault: What it raised, and where in its code; empty if it did not fail.
        seconds: How long it took.
    """

    record: dict[str, Any]
    lines: list[str]
    fault: str
    seconds: float


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
