"""Corrects wrong times in rows, caused by a wrong clock.

If the last fetch of a row is later than now, a clock was ahead. All times of the row are shifted
back by the same amount, so the time until its next fetch stays the same. A row that was never
tried is due at once.
"""

import polars as pl

from ...web.base.clock import EARLIEST_MS
from ..schedules.schedule import DAY_MS, LONGEST_RETRY_S, TOLERANCE_MS, ScheduleOptions, too_far

COUNT = "clock"  # name of the count of corrected rows
# Longest time without requests to a host, for Retry-After and for failures.
LONGEST_REST_MS = LONGEST_RETRY_S * 1000


def wrong_times(now: int, options: ScheduleOptions) -> pl.Expr:
    """Returns a condition: a row of the state has impossible times at ``now`` (ms)."""
    late = now + TOLERANCE_MS
    ahead = pl.any_horizontal(pl.col("last_fetch_time", "modified_time") > late)
    new = pl.col("last_fetch_time").is_null() & (pl.col("fetch_time") > late)
    linked = pl.col("last_inlink_day") > late // DAY_MS
    return (ahead | new | linked | too_far(now, options)).fill_null(False)


def _all_in_bounds(rows: pl.DataFrame, now: int, options: ScheduleOptions) -> bool:
    """Returns whether the latest times prove that no row has impossible ones: mostly they do."""
    late, last = now + TOLERANCE_MS, pl.col("last_fetch_time")
    beyond = (
        pl.max("last_fetch_time", "modified_time") > late,
        pl.max("last_inlink_day") > late // DAY_MS,
        pl.col("fetch_time").filter(last.is_null()).max() > late,
        pl.max("fetch_time") > now + options.max_fetch_interval * 1000,
    )
    return not rows.select(pl.any_horizontal(*beyond).fill_null(False)).item()


def set_right(
    rows: pl.DataFrame, now: int, options: ScheduleOptions, since: int | None = None
) -> tuple[pl.DataFrame, int]:
    """Corrects impossible times of STATE rows; returns (rows, number of corrected rows).

    Args:
        rows: STATE rows.
        now: Time in ms.
        options: Options that limit how late a row may be due.
        since: New time of a last fetch that is later than now, ms; None means now.
            Results that arrive later must not be older than this time.
    """
    if _all_in_bounds(rows, now, options):
        return rows, 0
    wrong = rows.select(wrong_times(now, options).alias(COUNT)).to_series()
    if not wrong.any():
        return rows, 0
    late, last = now + TOLERANCE_MS, pl.col("last_fetch_time")
    since = now if since is None else min(now, since)
    ahead = pl.when(last > late).then(last - since).otherwise(0)
    new = last.is_null() & (pl.col("fetch_time") > late)
    shifted = rows.with_columns(
        fetch_time=pl.when(new).then(now).otherwise(pl.col("fetch_time") - ahead),
        last_fetch_time=last - ahead,
        modified_time=_at_most("modified_time", late, since),
        gone_since=_at_most("gone_since", late, since),
        last_inlink_day=_at_most("last_inlink_day", late // DAY_MS, now // DAY_MS).cast(pl.Int32),
    )
    far = pl.when(too_far(now, options)).then(now).otherwise("fetch_time")
    return shifted.with_columns(fetch_time=far), int(wrong.sum())


def set_right_hosts(
    rows: pl.DataFrame, now: int, since: int | None = None
) -> tuple[pl.DataFrame, int]:
    """Corrects impossible times of HOSTS rows; returns (rows, number of corrected rows).

    If the time of a robots.txt is later than now, its age is unknown: it is fetched again.

    Args:
        rows: HOSTS rows.
        now: Time in ms.
        since: New time of a last request that is later than now, ms; None means now.
    """
    wrong = rows.select(wrong_hosts(now).alias(COUNT)).to_series()
    if not wrong.any():
        return rows, 0
    late, last = now + TOLERANCE_MS, pl.col("last_request_time")
    since = now if since is None else min(now, since)
    ahead = pl.when(last > late).then(last - since).otherwise(0)
    rest = pl.col("backoff_until") - ahead
    fixed = rows.with_columns(
        last_request_time=last - ahead,
        backoff_until=pl.when(rest > now + LONGEST_REST_MS).then(since).otherwise(rest),
        robots_time=_at_most("robots_time", late, EARLIEST_MS),
        robots_failing_since=_at_most("robots_failing_since", late, since),
    )
    return fixed, int(wrong.sum())


def wrong_hosts(now: int) -> pl.Expr:
    """Returns a condition: a row of the host table has impossible times at ``now`` (ms)."""
    names = ("last_request_time", "robots_time", "robots_failing_since")
    ahead = pl.any_horizontal(pl.col(*names) > now + TOLERANCE_MS)
    return (ahead | (pl.col("backoff_until") > now + LONGEST_REST_MS)).fill_null(False)


def resting(now: int) -> pl.Expr:
    """Returns a condition: a host gets no requests at ``now`` (ms); ignores impossible times."""
    return (pl.col("backoff_until") > now) & ~wrong_hosts(now)


def _at_most(name: str, late: int, then: int) -> pl.Expr:
    """Returns a column in which times later than ``late`` are replaced by ``then``."""
    value = pl.col(name)
    return pl.when(value > late).then(then).otherwise(value)
