"""Reads the wall clock, which may be wrong; no other module reads it."""

import time

# 1 January 2025. Packages that nutbeam needs are newer, so an earlier time is wrong.
EARLIEST_MS = 1_735_689_600_000


def now_ms(known: int = 0) -> int:
    """Returns the time, UTC ms.

    Args:
        known: A time that has passed, such as a table's newest time. It is used if the clock
            is obviously wrong.

    >>> now_ms() >= EARLIEST_MS
    True
    """
    now = clock_ms()
    return now if now >= EARLIEST_MS else max(EARLIEST_MS, known)


def clock_ms() -> int:
    """Returns the time of the clock, UTC ms, even if it is wrong."""
    return time.time_ns() // 1_000_000
