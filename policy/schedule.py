"""Schedules the next fetch of a URL: Nutch's default schedule, as expressions on frames."""

import dataclasses
from typing import NamedTuple

import polars as pl

from ..web.base.options import option

DAY_S = 86_400
DAY_MS = DAY_S * 1000
# The longest wait that a failure or a server's Retry-After leads to.
LONGEST_RETRY_S = 30 * DAY_S
# By how much correct clocks of several machines may differ, as in Kerberos. With NTP it is less than
# a second; a larger difference means that a clock is wrong.
TOLERANCE_MS = 300_000


@dataclasses.dataclass(frozen=True)
class ScheduleOptions:
    """How often pages are fetched again."""

    GROUP = "schedule"

    fetch_interval: int = option(
        2_592_000,
        "Time between two fetches of a page.",
        unit="s",
        nutch="db.fetch.interval.default",
        minimum=1,
    )
    max_fetch_interval: int = option(
        7_776_000,
        "Longest time between two fetches of a page.",
        unit="s",
        nutch="db.fetch.interval.max",
        minimum=1,
    )
    retry_max: int = option(
        3,
        "After how many failures in a row a URL is gone.",
        nutch="db.fetch.retry.max",
        minimum=1,
    )


class Clock(NamedTuple):
    """The time for a table, and earlier errors of clocks.

    Attributes:
        now: The time that counts as now, ms.
        latest: The latest time that has ever counted as now, ms; a later one than
            ``now`` says that a clock was ahead, and that rows may have its times.
        back: Since when the clock is right again, ms, where it was right before;
            None where that is not known.
    """

    now: int
    latest: int = 0
    back: int | None = None


def horizon(now: int, options: ScheduleOptions) -> pl.Expr:
    """Returns the latest time at which a row may be due again that was tried by ``now`` (ms).

    What failed may have to wait longer than the longest interval, as its server asks.
    """
    longest = options.max_fetch_interval
    failed = pl.col("retries").fill_null(0) > 0
    wait = pl.when(failed).then(max(longest, LONGEST_RETRY_S)).otherwise(longest)
    return now + wait.cast(pl.Int64) * 1000


def due(clock: Clock, options: ScheduleOptions) -> pl.Expr:
    """Returns which rows of the state may be fetched.

    All statuses are eligible, only the time matters; a time beyond the
    ``horizon`` is a mistake of the past, and due (nutch.md 2.2). So is a row that
    was never tried, and was added while the clock was ahead. What was fetched at
    such a time, by a table that had the right time before, was fetched before
    the clock was right again: it is due when its interval is over since then.
    """
    when, last = pl.col("fetch_time"), pl.col("last_fetch_time")
    beyond = when > horizon(clock.now, options)
    if clock.back is not None:
        still = clock.back + (when - last) > clock.now
        beyond &= ~((last > clock.now + TOLERANCE_MS) & still).fill_null(False)
    taken = (when <= clock.now) | beyond
    if clock.latest > clock.now:  # else no further column is read for it
        taken |= last.is_null() & (when <= clock.latest)
    return taken


def gone_interval(interval: pl.Expr, options: ScheduleOptions) -> pl.Expr:
    """Returns the interval of a page that is gone: half as long again, up to a limit.

    >>> pl.select(gone_interval(pl.lit(86_400 * 30), ScheduleOptions())).item() // 86_400
    45
    """
    longer = (interval * 1.5).cast(pl.Int64)
    limit = options.max_fetch_interval
    return pl.when(longer < limit).then(longer).otherwise(int(0.9 * limit)).cast(pl.Int32)


def retry_time(fetched: pl.Expr, retry_after: pl.Expr) -> pl.Expr:
    """Returns when to try again after a failure: as the server asks, else in a day (ms)."""
    wait = retry_after.clip(1, LONGEST_RETRY_S).fill_null(DAY_S).cast(pl.Int64)
    return fetched + wait * 1000
