"""Sets the next fetch of all rows that were tried: visited, gone, or to be retried."""

from typing import Any

import polars as pl

from ...web.base.quoting import quoted
from ..base.row_status import Status
from .schedule import gone_interval, retry_time
from .visits import FETCHED, SCHEDULED, Schedule, ScheduleContext, content_time


def reschedule(tried: pl.DataFrame, schedule: Schedule, context: ScheduleContext) -> pl.DataFrame:
    """Sets ``fetch_interval``, ``fetch_time`` and ``modified_time``, and columns of the schedule.

    Args:
        tried: Rows with the columns of ``visits``, ``visited``, ``gone``, and ``old_status`` and
            ``old_retries``, since ``status`` and ``retries`` have their new values.
        schedule: Schedules the visited rows.
        context: Options, for the schedule.

    Returns:
        The rows, in their order.

    Raises:
        ValueError: The schedule has left out rows, or has made an impossible time.
    """
    visited = tried.get_column("visited")
    if visited.all():
        return tried.with_columns(_visit(tried, schedule, context))
    interval = pl.col("fetch_interval")
    gone = gone_interval(interval, context.options)
    others = tried.with_columns(
        fetch_interval=pl.when("gone").then(gone).otherwise(interval),
        fetch_time=pl.when("gone")
        .then(FETCHED + gone.cast(pl.Int64) * 1000)
        .otherwise(retry_time(FETCHED, pl.col("event.retry_after"))),
        modified_time=content_time(),
    )
    if not visited.any():
        return others
    after = _visit(tried.filter(visited), schedule, context)
    place = visited.cast(pl.UInt32).cum_sum() - visited.cast(pl.UInt32)
    after = after.rename(lambda name: f"after.{name}")[place.clip(0, len(after) - 1)]
    chosen = (pl.when("visited").then(f"after.{name}").otherwise(name) for name in SCHEDULED)
    named = (column.alias(name) for column, name in zip(chosen, SCHEDULED, strict=True))
    return others.hstack(after).with_columns(*named).drop(after.columns)


def _visit(visits: pl.DataFrame, schedule: Schedule, context: ScheduleContext) -> pl.DataFrame:
    """Returns the columns that a schedule sets, of the same rows."""
    before = visits.with_columns(
        # A row that is new has no status from before.
        status=pl.col("old_status").fill_null(int(Status.DB_UNFETCHED)),
        retries=pl.col("old_retries"),
    )
    module = getattr(schedule, "__module__", None) or type(schedule).__module__
    what = f"schedule {quoted(context.options.schedule)} of module {module}"
    try:
        after = schedule(before, context)
        wrong = _mistake(before, after, context.options.max_fetch_interval)
        if not wrong:
            return after.select(*SCHEDULED).cast(before.select(*SCHEDULED).schema)
    except Exception as error:
        raise ValueError(f"{what}: {type(error).__name__}: {error}") from error
    raise ValueError(f"{what}: {wrong}")


def _mistake(before: pl.DataFrame, after: Any, longest: int) -> str:
    """Returns what is wrong with the result of a schedule; empty if nothing is."""
    if not isinstance(after, pl.DataFrame):
        return f"it must return a frame, got {after!r}"
    if lost := [name for name in ("key", *SCHEDULED) if name not in after.columns]:
        return f"it must keep all columns, and has dropped {', '.join(lost)}"
    if len(after) != len(before) or not after["key"].equals(before["key"]):
        return "it must return all rows, in their order"
    wait = (pl.col("fetch_time") - FETCHED) / 1000
    right = (pl.col("fetch_interval") > 0) & wait.is_between(
        0, pl.max_horizontal(pl.lit(longest), "fixed_interval")
    )
    rows = after.filter(~right.fill_null(False))
    if rows.is_empty():
        return ""
    key, interval, seconds = rows.select("key", "fetch_interval", wait).row(0)
    return (
        f"an interval must be above 0 s, and a row due at most {longest} s after its fetch, got "
        f"an interval of {interval} s, due after {seconds} s, for {quoted(key)}"
    )
