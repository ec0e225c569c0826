"""The wall clock: the one place where it is read, for it may be wrong."""

import time

# 1 January 2025. What nutbeam needs to run is younger, so a clock that says less is wrong.
EARLIEST_MS = 1_735_689_600_000


def now_ms(known: int = 0) -> int:
    """Returns the time, UTC ms.

    Args:
        known: A time that has been, such as a table's newest: it counts where the
            clock says one that cannot be.

    >>> now_ms() >= EARLIEST_MS
    True
    """
    now = clock_ms()
    return now if now >= EARLIEST_MS else max(EARLIEST_MS, known)


def clock_ms() -> int:
    """Returns what the clock says, UTC ms, however wrong."""
    return time.time_ns() // 1_000_000
