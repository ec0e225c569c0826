"""Names the rule that set the next fetch of a row, for people who ask for the reason.

A row does not say which schedule made its dates. So it names only rules that the row proves.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from ...web.base.wording import in_words
from ...web.exchange.status import ANSWERED, EXCEPTION, FAILED
from ...web.urls.row_keys import host_key_of
from ..base.row_status import CONDITIONS, FETCHED_STATUSES, Status
from .adaptive_schedule import HostIntervals, sync_offset
from .rate_schedule import PRIOR_DAYS, PRIOR_SHAPE
from .schedule import DAY_S, LONGEST_RETRY_S, RescheduleOptions

# What scoring orphan makes of pages without links, whatever their server answers.
_MARKED = (Status.DB_GONE, Status.DB_ORPHAN)
# Shortest and longest interval from the settings of a host, s; None: not set.
Own = tuple[float | None, float | None]
_NOT_SET: Own = (None, None)
_SETTING = "a setting of its host allows (hostinject)"
_KNOWN_ENOUGH = 0.01  # float32 holds less than this of the numbers of a rate


class DueRule(NamedTuple):
    """A rule that sets the next fetch.

    Attributes:
        name: ``never_fetched``, ``retry``, ``retry_after``, ``gone``, ``forced``, ``revived``,
            ``fixed_interval``, ``sync_delta``, ``longest_interval``, ``interval``,
            ``host_setting``, ``moved``, or ``set``: no rule that is known here, but a plug-in, a
            seed list or another program.
        detail: The rule in words, with its numbers.
    """

    name: str
    detail: str


def due_rule(
    row: Mapping[str, Any],
    options: RescheduleOptions,
    hosts: HostIntervals | None = None,
    own: Own = _NOT_SET,
) -> DueRule:
    """Returns the rule that set the next fetch of a row.

    Args:
        row: A row of the state.
        options: Options of the schedule, as update has them.
        hosts: Shortest and longest intervals of some hosts, from the file of the options.
        own: Shortest and longest interval from the settings of its host.
    """
    name, detail = _due_rule(row, options, hosts, own)
    for which, bound in zip(("shortest", "longest"), own, strict=True):
        if name != "host_setting" and row["fetch_interval"] == bound is not None:
            detail += f"; that is the {which} interval that {_SETTING}"
            break
    return DueRule(name, detail)


def _due_rule(
    row: Mapping[str, Any], options: RescheduleOptions, hosts: HostIntervals | None, own: Own
) -> DueRule:
    last, status = row["last_fetch_time"], row["status"]
    if last is None:
        return DueRule("never_fetched", "it has never been fetched; it is due since it was added")
    wait = _wait_of(row)
    if status == Status.DB_UNFETCHED and row["retries"]:
        return _rule_of_failure(row["retries"], wait, options)
    if status in (Status.DB_UNFETCHED, *_MARKED) and _is_forced(row):
        detail = "it was not modified, and its interval was over max_fetch_interval: it is fetched "
        return DueRule("forced", f"{detail}again without conditions")
    rule = _rule_of_answer(row, options, hosts, own)
    if status == Status.DB_UNFETCHED:
        detail = "it was an orphan until a link to it was found, and has kept its date"
        return DueRule("revived", f"{detail}: {rule.detail}")
    return rule


def _wait_of(row: Mapping[str, Any]) -> float:
    """Returns the time between the last fetch and the next one, s."""
    return float(row["fetch_time"] - row["last_fetch_time"]) / 1000


def _rule_of_answer(
    row: Mapping[str, Any], options: RescheduleOptions, hosts: HostIntervals | None, own: Own
) -> DueRule:
    """Returns the rule for the last answer, whatever status a scoring has set since."""
    wait = _wait_of(row)
    if _may_pass(row, wait, options):
        return _rule_of_failure(row["retries"], wait, options)
    if _is_gone_page(row) and wait == row["fetch_interval"]:
        interval, limit = row["fetch_interval"], options.shortened_interval
        grown = (
            "nine tenths of max_fetch_interval" if interval == limit else "longer by half each time"
        )
        what = "failed to parse" if row["status"] == Status.DB_PARSE_FAILED else "is gone"
        return DueRule("gone", f"it {what}: its interval is {in_words(interval)}, {grown}")
    return _rule_of_visit(row, options, hosts, own)


def _rule_of_failure(retries: int, wait: float, options: RescheduleOptions) -> DueRule:
    failure = f"failure {retries} of {options.retry_max}"
    if wait == DAY_S:
        return DueRule("retry", f"{failure}: tried again a day later")
    if 1 <= wait <= LONGEST_RETRY_S:
        more = ", or a longer one" if wait == LONGEST_RETRY_S else ""
        more = ", or a shorter one" if wait < DAY_S else more  # it may be doubled
        server_wait = f"its server asked for a wait of {in_words(wait)}{more}"
        return DueRule("retry_after", f"{failure}: {server_wait}")
    return DueRule("set", f"{failure}: tried again {in_words(wait)} later")


def _is_forced(row: Mapping[str, Any]) -> bool:
    due_at_once = row["fetch_time"] == row["last_fetch_time"] and row["modified_time"] == 0
    return due_at_once and all(row[name] is None for name in CONDITIONS)


def _may_pass(row: Mapping[str, Any], wait: float, options: RescheduleOptions) -> bool:
    """Returns whether a page that scoring orphan has marked failed, and is tried again soon."""
    failed = row["status"] in _MARKED and row["protocol_status"] in (EXCEPTION, FAILED)
    return bool(failed and 0 < row["retries"] < options.retry_max and wait <= LONGEST_RETRY_S)


def _is_gone_page(row: Mapping[str, Any]) -> bool:
    """Returns whether the row is scheduled as a gone page.

    An orphan counts, too: its server has the page, but no link leads to it.
    """
    status = row["status"]
    if status in (Status.DB_GONE, Status.DB_ORPHAN, Status.DB_UNFETCHED):
        unknown = (*ANSWERED, None) if status != Status.DB_GONE else ANSWERED
        return row["protocol_status"] not in unknown
    return bool(status == Status.DB_PARSE_FAILED)


def _rule_of_visit(
    row: Mapping[str, Any], options: RescheduleOptions, hosts: HostIntervals | None, own: Own
) -> DueRule:
    """Returns the rule of a page that was fetched, was not modified, or redirects."""
    wait, interval = _wait_of(row), row["fetch_interval"]
    if wait == interval == row["fixed_interval"]:
        return DueRule("fixed_interval", f"its seed list sets an interval of {in_words(interval)}")
    notes = _note_of_bound(row, options, hosts) + _changes(row)
    if wait == interval == options.shortened_interval:
        most = f"max_fetch_interval, {in_words(options.max_fetch_interval)}"
        return DueRule("longest_interval", f"{in_words(interval)}: nine tenths of {most}{notes}")
    if abs(wait - interval) < 1:  # intervals are whole seconds, times are not
        detail = f"{in_words(interval)}, its interval, after its last fetch"
        return DueRule("interval", f"{detail}{notes}")
    if abs(interval - wait - _offset(row, options, hosts)) < 1:
        moved = f"{in_words(interval - wait)} earlier, towards the time of the last change"
        return DueRule("sync_delta", f"{in_words(interval)}, its interval, {moved}{notes}")
    if own[0] is not None and abs(wait - own[0]) < 1:
        least = f"{in_words(wait)} after its last fetch, the shortest interval that {_SETTING}"
        return DueRule("host_setting", f"{least}; its interval is {in_words(interval)}{notes}")
    if _has_lost_body(row):
        detail = "it has no body any more, as after filterdb has changed its URL: due at once"
        return DueRule("moved", f"{detail}, without conditions")
    detail = f"{in_words(wait)} after its last fetch; its interval is {in_words(interval)}"
    return DueRule("set", detail)


def _offset(
    row: Mapping[str, Any], options: RescheduleOptions, hosts: HostIntervals | None
) -> float:
    """Returns by how many seconds an adaptive schedule may have moved the next fetch."""
    if not options.sync_delta or not row["modified_time"] or row["modified_time"] < 0:
        return 0.0
    bounds = hosts.of(host_key_of(row["key"])) if hosts else None
    shortest = bounds[0] if bounds else options.shortest
    age = pl.lit(max(0, row["last_fetch_time"] - row["modified_time"]))
    interval = pl.lit(row["fetch_interval"])
    offset = sync_offset(age, interval, pl.lit(shortest), options.sync_delta_rate)
    return float(pl.select(offset).item()) / 1000


def _has_lost_body(row: Mapping[str, Any]) -> bool:
    present = row["status"] in FETCHED_STATUSES
    return present and row["document"] is None and row["page"] is None


def _note_of_bound(
    row: Mapping[str, Any], options: RescheduleOptions, hosts: HostIntervals | None
) -> str:
    """Returns that the interval is a bound of the row's host, if it is."""
    bounds = hosts.of(host_key_of(row["key"])) if hosts else None
    interval = row["fetch_interval"]
    if bounds is None or interval not in bounds:
        return ""
    which = "shortest" if interval == bounds[0] else "longest"
    return f"; that is the {which} interval of its host in {options.host_intervals}"


def _changes(row: Mapping[str, Any]) -> str:
    """Returns what schedule rate has learned about the changes of a page, if it has seen it."""
    shape, days = row["change_shape"], row["change_days"]
    if not shape or not days:
        return ""
    # Only a change adds to the shape, only a time without one to the days alone.
    if abs(shape - PRIOR_SHAPE) > PRIOR_SHAPE * _KNOWN_ENOUGH:
        return f"; by its visits it changes about every {in_words(days / shape * DAY_S)}"
    if abs(days - PRIOR_DAYS) > PRIOR_DAYS * _KNOWN_ENOUGH:
        return f"; it has not changed in the {in_words((days - PRIOR_DAYS) * DAY_S)} of its visits"
    return "; nothing is known yet of how often it changes"
