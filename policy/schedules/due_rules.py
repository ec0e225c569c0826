"""Names the rule that set the next fetch of a row, for people who ask for the reason."""

import datetime
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..base.row_status import Status
from .schedule import DAY_S
from .schedule_options import RescheduleOptions


class DueRule(NamedTuple):
    """A rule that sets the next fetch.

    Attributes:
        name: ``never_fetched``, ``retry``, ``retry_after``, ``gone``, ``forced``,
            ``fixed_interval``, ``sync_delta``, ``longest_interval``, ``schedule``, or ``set``:
            no rule of update, but a seed list or another program.
        detail: The rule in words, with its numbers.
    """

    name: str
    detail: str


def due_rule(row: Mapping[str, Any], options: RescheduleOptions) -> DueRule:
    """Returns the rule that set the next fetch of a row.

    A row does not say which schedule made its dates, so they are compared with those that the
    options make.

    Args:
        row: A row of the state.
        options: Options of the schedule, as update has them.
    """
    last, status = row["last_fetch_time"], row["status"]
    if last is None:
        return DueRule("never_fetched", "it has never been fetched; it is due since it was added")
    wait = (row["fetch_time"] - last) / 1000
    if status == Status.DB_UNFETCHED:
        return _unfetched(row["retries"] or 0, wait, options)
    interval = row["fetch_interval"]
    if status in (Status.DB_GONE, Status.DB_PARSE_FAILED) and wait == interval:
        grown = (
            "nine tenths of max_fetch_interval"
            if interval == options.shortened
            else "grown by half"
        )
        return DueRule("gone", f"it is gone: its interval is {_time(interval)}, {grown}")
    if wait == interval == row["fixed_interval"]:
        return DueRule("fixed_interval", f"its seed list sets an interval of {_time(interval)}")
    if wait == interval == options.shortened and options.schedule == "default":
        most = f"max_fetch_interval, {_time(options.max_fetch_interval)}"
        return DueRule("longest_interval", f"{_time(interval)}: nine tenths of {most}")
    if abs(wait - interval) < 1:  # intervals are whole seconds, times are not
        return DueRule("schedule", f"schedule {options.schedule}: {_time(interval)}{_changes(row)}")
    if 0 <= wait < interval and "adaptive" in options.schedule and options.sync_delta:
        moved = f"{_time(interval - wait)} earlier, towards the time of the last change"
        return DueRule("sync_delta", f"schedule {options.schedule}: {_time(interval)}, {moved}")
    return DueRule("set", f"{_time(wait)} after its last fetch; its interval is {_time(interval)}")


def _unfetched(retries: int, wait: float, options: RescheduleOptions) -> DueRule:
    if not retries:
        detail = "it was not modified, and its interval was over max_fetch_interval: it is fetched "
        return DueRule("forced", f"{detail}again without conditions")
    failure = f"failure {retries} of {options.retry_max}"
    if wait == DAY_S:
        return DueRule("retry", f"{failure}: tried again a day later")
    return DueRule("retry_after", f"{failure}: its server asked for a wait of {_time(wait)}")


def _changes(row: Mapping[str, Any]) -> str:
    """Returns how often a page changes, if that is estimated."""
    shape, days = row["change_shape"], row["change_days"]
    return f"; it changes about every {_time(days / shape * DAY_S)}" if shape and days else ""


def _time(seconds: float) -> str:
    """Returns a number of seconds in words.

    >>> _time(2_592_000), _time(3_600), _time(-5)
    ('30 days', '1:00:00', '-0:00:05')
    """
    if seconds < 0:
        return f"-{_time(-seconds)}"
    return str(datetime.timedelta(seconds=round(seconds))).removesuffix(", 0:00:00")
