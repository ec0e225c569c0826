"""Corrects times that a wrong clock has left in rows.

If the last fetch of a row is later than now, a clock was ahead. All times of the row are shifted
back together, so that it waits as long as before. A row that was never tried is due at once.
"""

import polars as pl

from ..web.base.clock import EARLIEST_MS
from .schedule import DAY_MS, LONGEST_RETRY_S, TOLERANCE_MS, ScheduleOptions, horizon
from .schema import Status

COUNT = "clock"  # how many rows were corrected
# No host is left alone for longer: neither Retry-After nor failures may ask for more.
LONGEST_REST_MS = LONGEST_RETRY_S * 1000
_BEYOND = 1.5  # the interval of a page that is gone, as a multiple of what it was


def wrong_times(now: int, options: ScheduleOptions) -> pl.Expr:
    """Returns which rows of the state have impossible times at ``now`` (ms)."""
    late = now + TOLERANCE_MS
    ahead = pl.any_horizontal(pl.col("last_fetch_time", "modified_time") > late)
    new = pl.col("last_fetch_time").is_null() & (pl.col("fetch_time") > late)
    linked = pl.col("last_inlink_day") > late // DAY_MS
    return (ahead | new | linked | _too_far(now, options)).fill_null(False)


def _too_far(now: int, options: ScheduleOptions) -> pl.Expr:
    """Returns which rows are due later than any option allows, and than their own interval."""
    own = now + (_BEYOND * 1000 * pl.col("fetch_interval").cast(pl.Int64)).cast(pl.Int64)
    beyond = pl.col("fetch_time") > pl.max_horizontal(horizon(now, options), own)
    # To fetch a page for real, whose interval was too long, update leaves it due too late.
    unfetched = pl.col("status") == int(Status.DB_UNFETCHED)
    forced = unfetched & pl.col("last_fetch_time").is_not_null() & (pl.col("retries") == 0)
    return beyond & ~(forced & (pl.col("last_fetch_time") <= now + TOLERANCE_MS)).fill_null(False)


def set_right(
    rows: pl.DataFrame, now: int, options: ScheduleOptions, since: int | None = None
) -> tuple[pl.DataFrame, int]:
    """Corrects impossible times of STATE rows; returns (rows, how many were wrong).

    Args:
        rows: STATE rows.
        now: ms.
        options: How late a row may be due.
        since: Stands for the last fetch, ms, of a row if that is later than now; None is now.
            Results that come later must not be older than that.
    """
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
        last_inlink_day=_at_most("last_inlink_day", late // DAY_MS, now // DAY_MS).cast(pl.Int32),
    )
    far = pl.when(_too_far(now, options)).then(now).otherwise("fetch_time")
    return shifted.with_columns(fetch_time=far), int(wrong.sum())


def set_right_hosts(
    rows: pl.DataFrame, now: int, since: int | None = None
) -> tuple[pl.DataFrame, int]:
    """Corrects impossible times of HOSTS rows; returns (rows, how many were wrong).

    A robots.txt that was read later than now is of unknown age: it is fetched again.

    Args:
        rows: HOSTS rows.
        now: ms.
        since: Stands for the last request, ms, to a host if that is later than now; None is
            now.
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
    """Returns which rows of the host table have impossible times at ``now`` (ms)."""
    names = ("last_request_time", "robots_time", "robots_failing_since")
    ahead = pl.any_horizontal(pl.col(*names) > now + TOLERANCE_MS)
    return (ahead | (pl.col("backoff_until") > now + LONGEST_REST_MS)).fill_null(False)


def resting(now: int) -> pl.Expr:
    """Returns which hosts rest at ``now`` (ms); impossible times do not count."""
    return (pl.col("backoff_until") > now) & ~wrong_hosts(now)


def _at_most(name: str, late: int, then: int) -> pl.Expr:
    """Returns a column with ``then`` in place of what is later than ``late``."""
    value = pl.col(name)
    return pl.when(value > late).then(then).otherwise(value)
