"""Sets the next fetch of all rows that were tried: visited, gone, or to be retried."""

from typing import Any

import numpy as np
import polars as pl

from ...web.base.columns import gather
from ...web.base.errors import one_line
from ...web.base.wording import quote_value
from ..base.row_status import Status
from .default_schedule import default_schedule
from .retries import retry_time
from .schedule import gone_interval
from .visits import FETCH_TIME, SCHEDULED, Schedule, ScheduleContext, content_time


def reschedule(tried: pl.DataFrame, schedule: Schedule, context: ScheduleContext) -> pl.DataFrame:
    """Sets ``fetch_interval``, ``fetch_time`` and ``modified_time``, and columns of the schedule.

    Args:
        tried: Rows with the columns of ``visits``, ``visited``, ``gone``, and ``old_status`` and
            ``old_retries``, since ``status`` and ``retries`` have their new values; and ``early``
            (see ``is_early``).
        schedule: Schedules the visited rows.
        context: Options, for the schedule.

    Returns:
        The rows, in their order.

    Raises:
        ValueError: The schedule has left out rows, or has made an impossible time.
    """
    visited = tried.get_column("visited")
    if schedule is default_schedule:
        # It looks at each row by itself, so it may see all. The others get their times below.
        scheduled = default_schedule(tried, context)
    elif len(tried) and visited.all():
        scheduled = tried.with_columns(_visit(tried, schedule, context))
    else:
        scheduled = tried.with_columns(modified_time=content_time())
        if visited.any():
            after = _visit(tried.filter(visited), schedule, context)
            index = np.arange(len(tried))
            index[visited.arg_true()] = len(tried) + np.arange(len(after))
            gathered = gather([scheduled.select(SCHEDULED), after], index)
            scheduled = scheduled.with_columns(gathered)
    if visited.all():
        return scheduled
    interval = pl.col("fetch_interval")
    gone = gone_interval(interval, context.options)
    retry = tried.select(retry_time()).to_series()
    other = pl.when("gone").then(FETCH_TIME + gone.cast(pl.Int64) * 1000).otherwise(retry)
    return scheduled.with_columns(
        fetch_interval=pl.when("gone").then(gone).otherwise(interval),
        fetch_time=pl.when("visited").then("fetch_time").otherwise(other),
    )


def _visit(visits: pl.DataFrame, schedule: Schedule, context: ScheduleContext) -> pl.DataFrame:
    """Returns the columns that a schedule sets, of the same rows."""
    untouched = visits.with_columns(
        # A row that is new has no status from before.
        status=pl.col("old_status").fill_null(int(Status.DB_UNFETCHED)),
        retries=pl.col("old_retries"),
    )
    module = getattr(schedule, "__module__", None) or type(schedule).__module__
    what = f"schedule {quote_value(context.options.schedule)} of module {module}"
    try:
        after = schedule(untouched, context)
        wrong = _mistake(untouched, after, context.options.max_fetch_interval)
        if not wrong:
            return after.select(*SCHEDULED).cast(untouched.select(*SCHEDULED).schema)
    except Exception as error:
        raise ValueError(one_line(f"{what}: {type(error).__name__}: {error}")) from error
    raise ValueError(f"{what}: {wrong}")


def _mistake(untouched: pl.DataFrame, after: Any, longest: int) -> str:
    """Returns the mistake in the result of a schedule; empty if there is none."""
    if not isinstance(after, pl.DataFrame):
        return f"it must return a frame, got {after!r}"
    if lost := [name for name in ("key", *SCHEDULED) if name not in after.columns]:
        return f"it must keep all columns, and has dropped {', '.join(lost)}"
    if len(after) != len(untouched) or not after["key"].equals(untouched["key"]):
        return "it must return all rows, in their order"
    wait = pl.col("fetch_time") - FETCH_TIME
    limit = pl.max_horizontal(pl.lit(longest), "fixed_interval").cast(pl.Int64)
    interval = pl.col("fetch_interval")
    right = (interval > 0) & (interval <= limit) & wait.is_between(0, limit * 1000)
    rows = after.filter(~right.fill_null(False))
    if rows.is_empty():
        return ""
    key, interval, seconds = rows.select("key", "fetch_interval", wait / 1000).row(0)
    return (
        f"an interval must be above 0 s, and it and the wait after a fetch at most {longest} s, got "
        f"an interval of {interval} s, due after {seconds} s, for {quote_value(key)}"
    )
