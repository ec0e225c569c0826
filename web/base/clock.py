"""Reads the wall clock, which may be wrong; no other module reads it.

Programs that simulate years use ``replaced_clock``: then all jobs of the process have its time.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

# 1 January 2025. Packages that nutbeam needs are newer, so an earlier time is wrong.
EARLIEST_MS = 1_735_689_600_000
# By how much correct clocks of several machines may differ, as in Kerberos. With NTP it is less
# than a second; a larger difference means that a clock is wrong.
TOLERANCE_MS = 300_000


class Clock(NamedTuple):
    """The time for a table, and earlier errors of clocks.

    Attributes:
        now: The time that counts as now, ms.
        latest: The latest time that has ever counted as now, ms. If it is later than
            ``now``, a clock was ahead, and rows may have its times.
        back: Time since which the clock is right again, ms, if it was right before;
            None if unknown.
        began: Time at which the run of a crawl began, ms; None if it begins now.
    """

    now: int
    latest: int = 0
    back: int | None = None
    began: int | None = None


def now_ms(passed_ms: int = 0) -> int:
    """Returns the time, UTC ms.

    Args:
        passed_ms: A time that has passed, such as a table's newest time. It is used if the clock
            is obviously wrong.

    >>> now_ms() >= EARLIEST_MS
    True
    """
    now = clock_ms()
    return now if now >= EARLIEST_MS else max(EARLIEST_MS, passed_ms)


def clock_ms() -> int:
    """Returns the time of the clock, UTC ms, even if it is wrong."""
    return _clocks[-1]()


def pause(seconds: float) -> None:
    """Lets time pass on this clock; not for politeness, which takes real time."""
    _pauses[-1](seconds)


@contextlib.contextmanager
def replaced_clock(
    read: Callable[[], int], wait: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Replaces the clock of this process, in all threads, until the block ends.

    Waiting for politeness takes real time, as before.

    Args:
        read: Returns the time, UTC ms.
        wait: Lets a number of seconds pass on this clock.

    >>> with replaced_clock(lambda: EARLIEST_MS + 5):
    ...     now_ms() - EARLIEST_MS
    5
    """
    _clocks.append(read)
    _pauses.append(wait)
    try:
        yield
    finally:
        _clocks.remove(read)
        _pauses.remove(wait)


_clocks: list[Callable[[], int]] = [lambda: time.time_ns() // 1_000_000]
_pauses: list[Callable[[float], None]] = [time.sleep]
