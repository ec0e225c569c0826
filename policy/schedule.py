"""When a URL is due next: Nutch's default schedule, as expressions on frames."""

import dataclasses

import polars as pl

from ..web.options import option

DAY_S = 86_400
DAY_MS = DAY_S * 1000


@dataclasses.dataclass(frozen=True)
class ScheduleOptions:
    """How often pages are fetched again."""

    fetch_interval: int = option(
        2_592_000,
        "Time between two fetches of a page.",
        unit="s",
        nutch="db.fetch.interval.default",
        minimum=1,
        group="schedule",
    )
    max_fetch_interval: int = option(
        7_776_000,
        "Longest time between two fetches of a page, whatever happens to it.",
        unit="s",
        nutch="db.fetch.interval.max",
        minimum=1,
        group="schedule",
    )
    retry_max: int = option(
        3,
        "How many failures in a row make a URL gone.",
        nutch="db.fetch.retry.max",
        minimum=1,
        group="schedule",
    )


def due(now: int, options: ScheduleOptions) -> pl.Expr:
    """Says which rows of the state may be fetched at ``now`` (ms).

    All statuses are eligible, only the time matters; a time further away than
    the longest interval is a mistake of the past, and due (nutch.md 2.2).
    """
    longest = options.max_fetch_interval * 1000
    when = pl.col("fetch_time")
    return (when <= now) | (when > now + longest)


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
    wait = retry_after.clip(1, 30 * DAY_S).fill_null(DAY_S).cast(pl.Int64)
    return fetched + wait * 1000
