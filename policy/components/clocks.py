"""Corrects wrong times in rows, caused by a wrong clock.

The declarations of columns say which times a row has, so a new column of times is corrected, too. A
time of something that happened cannot be later than now: a clock was ahead. A planned time moves
back by as much as the time from which it was planned, so the wait stays the same.
"""

from typing import NamedTuple

import polars as pl

from ...web.base.clock import EARLIEST_MS, TOLERANCE_MS
from ..schedules.schedule import DAY_MS, ScheduleOptions
from .columns import Column, Columns, Form
from .schema import HOSTS_COLUMNS

COUNT = "clock"  # name of the count of corrected rows
_DEFAULTS = ScheduleOptions()


def wrong_times(columns: Columns, now: int, options: ScheduleOptions = _DEFAULTS) -> pl.Expr:
    """Returns a condition: a row has impossible times at ``now`` (ms).

    Args:
        columns: The declared columns of the rows.
        now: Time in ms.
        options: Options that limit how late a row of the state may be due.
    """
    wrong = [_is_wrong(column, now, options) for column in columns.times]
    return pl.any_horizontal(*wrong).fill_null(False) if wrong else pl.lit(False)


class RightTimes(NamedTuple):
    """Which times are right.

    Attributes:
        now: Time in ms.
        since: New time of what has happened later than now, ms; null or None means now. Results that
            arrive later must not be older than this time.
        options: Options that limit how late a row of the state may be due.
    """

    now: int
    since: int | pl.Expr | None = None
    options: ScheduleOptions = _DEFAULTS


def set_right(columns: Columns, rows: pl.DataFrame, right: RightTimes) -> tuple[pl.DataFrame, int]:
    """Corrects impossible times of rows; returns (rows, number of corrected rows).

    What is read again after some time, such as a robots.txt, is read again at once. Something
    planned that stays too late is due now.

    Args:
        columns: The declared columns of the rows, as far as these have them.
        rows: Rows of a component, perhaps with further columns.
        right: Which times are right.
    """
    now, since, options = right
    times = Columns(column for column in columns.times if column.name in rows.columns)
    wrong = rows.select(wrong_times(times, now, options).alias(COUNT)).to_series()
    if not wrong.any():
        return rows, 0
    then = pl.min_horizontal(pl.lit(now, pl.Int64), since)
    planned = [column for column in times if column.planned]
    fixed = rows.with_columns(
        *(_at_most_now(column, now, then) for column in times if not column.planned),
        *(_move_planned(column, now, then) for column in planned),
    )
    # A planned time may depend on others, so it is compared when these are right.
    fixed = fixed.with_columns(
        pl.when(_is_wrong(column, now, options)).then(now).otherwise(column.name).alias(column.name)
        for column in planned
    )
    return fixed, int(wrong.sum())


def is_resting(now: int) -> pl.Expr:
    """Returns a condition: a host gets no requests at ``now`` (ms); ignores impossible times."""
    return (pl.col("backoff_until") > now) & ~wrong_times(HOSTS_COLUMNS, now)


def _is_wrong(column: Column, now: int, options: ScheduleOptions) -> pl.Expr:
    if column.planned is not None:
        return pl.col(column.name) > column.planned.latest(now, options)
    latest = now + TOLERANCE_MS
    return pl.col(column.name) > (latest // DAY_MS if column.form is Form.DAY else latest)


def _at_most_now(column: Column, now: int, then: pl.Expr) -> pl.Expr:
    """Returns a column in which a time of the future is ``then``, or long ago if it is renewed."""
    if column.form is Form.DAY:
        then = pl.lit(now // DAY_MS)
    if column.renewed:
        then = pl.lit(EARLIEST_MS)
    value = pl.col(column.name)
    right = pl.when(_is_wrong(column, now, _DEFAULTS)).then(then).otherwise(value)
    return right.cast(pl.Int32 if column.form is Form.DAY else pl.Int64).alias(column.name)


def _move_planned(column: Column, now: int, then: pl.Expr) -> pl.Expr:
    """Returns a column of planned times, moved with the times from which they were planned."""
    assert column.planned is not None
    after = pl.col(column.planned.after)
    return pl.col(column.name) - pl.when(after > now + TOLERANCE_MS).then(after - then).otherwise(0)
