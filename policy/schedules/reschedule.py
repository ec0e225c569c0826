"""Chooses the schedule that options name, and sets the next fetch of all rows that were tried.

These are visited, gone, or to be retried. A server that asks for a wait of seconds (Retry-After) gets
the next request soon. If the page fails again then, this failure says nothing new about a page that
lasts for days: it does not count, and the next wait is at least twice as long, up to the usual delay.
So a pause of some minutes does not make a page gone, and a server that asks for a second each time is
not requested each second.
"""

from typing import Any

import numpy as np
import polars as pl

from ...web.base.columns import gather
from ...web.base.dataclass import dataclass
from ...web.base.option_checks import Launch
from ...web.base.wording import quote_value
from ...web.plugins.plugin_files import fault_text, place_of_code
from ...web.rule_files.rule_files import RuleFile, read_rule_file
from ..base.row_status import Status
from .adaptive_schedule import (
    SHIPPED_RATES,
    AdaptiveSchedule,
    HostIntervals,
    host_intervals,
    mime_rates,
)
from .rate_schedule import rate_schedule
from .schedule import DAY_MS, LONGEST_RETRY_S, RescheduleOptions, gone_interval
from .visits import (
    FETCH_TIME,
    SCHEDULED,
    Schedule,
    ScheduleContext,
    VisitRows,
    default_schedule,
    new_modified_time,
)

# Those that keep to the longest interval, whatever the interval of a row was.
LIMITING_SCHEDULES = ("adaptive", "mime_adaptive", "rate")
BUILT_IN_SCHEDULES = ("default", *LIMITING_SCHEDULES)
_SINCE_LAST = FETCH_TIME - pl.col("last_fetch_time")
_LAST_WAIT = pl.col("fetch_time") - pl.col("last_fetch_time")


@dataclass(frozen=True)
class CheckedScheduleOptions(RescheduleOptions):
    """Options of a schedule, whose files are read before a command starts."""

    def check_setup(self, _: Launch) -> None:
        """Reads the files of the schedule."""
        built_in_schedule(self)


def built_in_schedule(options: RescheduleOptions) -> Schedule | None:
    """Returns the schedule that the options name; None if it is none of the built-in ones.

    Its files are read here, so a copy on another machine needs none.

    Raises:
        ValueError: A file cannot be read, or has a line that cannot be used.
    """
    if options.schedule == "default":
        return default_schedule
    if options.schedule == "rate":
        return rate_schedule
    if options.schedule == "adaptive":
        return AdaptiveSchedule(intervals_of_hosts(options))
    if options.schedule == "mime_adaptive":
        path = options.mime_rates
        file = read_rule_file(path, flag="--mime_rates") if path else SHIPPED_RATES
        return AdaptiveSchedule(intervals_of_hosts(options), mime_rates(file))
    return None


def intervals_of_hosts(options: RescheduleOptions) -> HostIntervals:
    """Returns the shortest and longest intervals of hosts that the options name a file of.

    Raises:
        ValueError: The file cannot be read, or has a line that cannot be used.
    """
    path = options.host_intervals
    file = read_rule_file(path, flag="--host_intervals") if path else RuleFile("")
    return host_intervals(file, options.shortest, options.longest)


def is_early(retry_max: int) -> pl.Expr:
    """Returns a condition on rows before their event: their last try failed, less than a day ago.

    It is only true if that try has also set a wait of less than a day, as only servers demand. So
    rows that are fetched before they are due, as with ``--add_days``, are not early.

    Args:
        retry_max: After how many failures a page is gone.
    """
    has_failed = (pl.col("status") == int(Status.DB_UNFETCHED)) & (pl.col("retries") > 0)
    has_failed &= pl.col("retries") < retry_max  # else an orphan came back that was gone
    return (has_failed & (_SINCE_LAST < DAY_MS) & (_LAST_WAIT < DAY_MS)).fill_null(False)


def retry_time() -> pl.Expr:
    """Returns the time of the next try (ms): after the server's Retry-After, or else after a day.

    After an early try (column ``early``) it is at least twice the wait before, up to a day.
    """
    asked = pl.col("event.retry_after").clip(1, LONGEST_RETRY_S).cast(pl.Int64) * 1000
    doubled = (pl.max_horizontal(_SINCE_LAST, _LAST_WAIT) * 2).clip(upper_bound=DAY_MS)
    wait = pl.when("early").then(pl.max_horizontal(asked, doubled)).otherwise(asked)
    asks = pl.col("event.retry_after").is_not_null()
    return FETCH_TIME + pl.when(asks).then(wait).otherwise(DAY_MS)


def reschedule(tried: VisitRows, schedule: Schedule, context: ScheduleContext) -> VisitRows:
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
        scheduled = tried.with_columns(modified_time=new_modified_time())
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


def _visit(visits: VisitRows, schedule: Schedule, context: ScheduleContext) -> VisitRows:
    """Returns the columns that a schedule sets, of the same rows."""
    untouched = visits.with_columns(
        # A row that is new has no status from before.
        status=pl.col("old_status").fill_null(int(Status.DB_UNFETCHED)),
        retries=pl.col("old_retries"),
    )
    name = quote_value(context.options.schedule)
    what = f"schedule {name} of {place_of_code(schedule)}"
    try:
        after = schedule(untouched, context)
        wrong = _mistake(untouched, after, context.options.max_fetch_interval)
        if not wrong:
            return after.select(*SCHEDULED).cast(untouched.select(*SCHEDULED).schema)
    except Exception as error:
        raise ValueError(f"{what}: {fault_text(error, schedule)}") from error
    raise ValueError(f"{what}: {wrong}")


def _mistake(untouched: VisitRows, after: Any, longest: int) -> str:
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
