"""The status machine of update: applies the results of a batch to rows of the state.

It implements Nutch's transition table as expressions on whole frames, and
fixes its defects. A page that was fetched but not parsed does not get the status "not
modified". A result that is older than the row is ignored. Scores are summed in the order
of their sources, so a rerun gives exactly the same numbers.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ...web.base.columns import gather, put
from ...web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
)
from ..base.row_status import CONDITIONS, FETCHED_STATUSES
from ..components.clocks import COUNT, RightTimes, set_right
from ..components.page_facts import INHERITED
from ..components.schema import (
    OUTCOME,
    STATE,
    STATE_COLUMNS,
    STATUS_NAMES,
    ParseStatus,
    StateRows,
    Status,
)
from ..hosting.host_settings import within_bounds
from ..hosting.hosts import COUNTED_OF_STATE, updated_counts
from ..schedules.reschedule import LIMITING_SCHEDULES, is_early, reschedule
from ..schedules.schedule import DAY_MS
from ..schedules.visits import ScheduleContext, default_schedule
from ..scoring.metadata import overlay_maps
from .arrivals import Counts, JoinedRows, Numbers, index_by_number, join_changes, nullable
from .range_facts import RangeFacts
from .redirects import NO_URL
from .update_rules import UpdateOptions, UpdateRules

_TYPES = pl.Schema(STATE)
_STATUS_OF = {
    FETCH_SUCCESS: int(Status.DB_FETCHED),
    FETCH_REDIR_TEMP: int(Status.DB_REDIR_TEMP),
    FETCH_REDIR_PERM: int(Status.DB_REDIR_PERM),
    FETCH_RETRY: int(Status.DB_UNFETCHED),
}
_MOST_RETRIES = 2**31 - 1  # the largest number of the column (Nutch's is 127, its defect 32)
# Columns that OUTCOME has and the state does not.
_OF_OUTCOME = (
    "event.fetch_status",
    "event.document",
    "old_status",
    "old_document",
    "old_signature",
)
# Columns of a row that an event sets, and those that it sets only if it has a body.
_OF_EVENT = ("protocol_status", "protocol_message", "http_code", "response_ms")
_OF_BODY = ("content_type", "etag", "last_modified", "signature", "parse_status", "page",
            "batch_id")  # fmt: skip
_OF_TEXT = ("document", "usage")


class Updated(NamedTuple):
    """Rows after an update.

    Attributes:
        rows: STATE rows in key order.
        outcome: OUTCOME rows of the URLs that were tried.
        counts: Of what was done.
        host_counts: HOST_COUNTS rows: the differences that the update makes.
    """

    rows: pl.DataFrame
    outcome: pl.DataFrame
    counts: Counts
    host_counts: pl.DataFrame


def update_state(
    rows: StateRows, changes: pl.DataFrame, facts: RangeFacts, rules: UpdateRules
) -> Updated:
    """Applies the results of a batch to the rows of one range of keys.

    Args:
        rows: STATE rows in key order.
        changes: CHANGES rows, for keys in the same range.
        facts: What the table has outside the range.
        rules: Intervals, limits, scorings and the schedule.
    """
    options, scorings, now = rules.options, rules.scorings, facts.now
    changes, removed = leave_out_removed(
        rows, scorings.add_missing_columns(changes), facts.removed_keys
    )
    joined = join_changes(rows, changes, facts, rules)
    right, wrong = set_right(
        STATE_COLUMNS, joined.rows, RightTimes(now, facts.oldest_result, options)
    )
    after = _inherit(_defaults(right, now, rules), joined)
    tried = np.flatnonzero(joined.tried)
    tried_rows = after if len(tried) == len(after) else gather([after], tried)
    # Arrived links may have revived an orphan already; the outcome tells what it was.
    tried_rows = tried_rows.hstack(joined.events).with_columns(
        old_status=right.get_column("status")[tried]
    )
    tried_rows = _schedule(_statuses(tried_rows, options), facts, rules)
    resolved = scorings.judged(tried_rows.select(*STATE.names), now).with_columns(
        _gone_since(tried_rows)
    )
    resolved = resolved.cast(_TYPES)
    outcome = _outcome(resolved.hstack(tried_rows.select(_OF_OUTCOME)))
    counts = _counts(resolved) | joined.counts | {COUNT: wrong} | removed
    after = after.select(*STATE.names).cast(_TYPES)
    return Updated(
        _merge_rows(after, resolved, tried, joined.known_count),
        outcome if joined.known_count == len(after) else outcome.sort("key"),
        {name: n for name, n in counts.items() if n},
        _host_counts(joined.rows[: joined.known_count], after, resolved, tried),
    )


def leave_out_removed(
    rows: StateRows, changes: pl.DataFrame, removed_keys: pl.Series
) -> tuple[pl.DataFrame, Counts]:
    """Leaves out changes of URLs that were removed since the batch was generated.

    If a URL is in the table again, its changes stay.

    Returns:
        (the other changes, counts of the URLs that were left out).
    """
    if not len(removed_keys):
        return changes, {}
    keys = changes.get_column("key")
    left_out = keys.is_in(removed_keys.implode()) & ~keys.is_in(rows.get_column("key").implode())
    return changes.filter(~left_out), {"dropped/removed": keys.filter(left_out).n_unique()}


def _host_counts(
    old_rows: pl.DataFrame, arrived: pl.DataFrame, resolved: pl.DataFrame, tried: Numbers
) -> pl.DataFrame:
    """Returns the differences in the numbers of URLs of hosts; see ``_merge_rows``."""
    at, after = pl.Series(tried), arrived.select(COUNTED_OF_STATE)
    numbers = ("status", "retries")
    of_tried = (put(after.get_column(n), at, resolved.get_column(n)) for n in numbers)
    return updated_counts(old_rows, after.with_columns(of_tried))


def _merge_rows(
    rows: pl.DataFrame, resolved: pl.DataFrame, tried: Numbers, known_count: int
) -> pl.DataFrame:
    """Puts the resolved rows into the place of the old ones, and new rows into key order.

    Args:
        rows: Known rows in key order, then new ones in key order.
        resolved: Rows that replace some of them.
        tried: Their indexes in ``rows``, ascending.
        known_count: Number of known rows.
    """
    if len(tried) == len(rows) == known_count:
        return resolved
    if not len(tried) and known_count == len(rows):
        return rows
    index = np.arange(len(rows))
    index[tried] = len(rows) + np.arange(len(tried))
    if known_count < len(rows):
        keys = rows.get_column("key")
        insert_at = keys[:known_count].search_sorted(keys[known_count:]).to_numpy().astype(np.int64)
        index = np.insert(index[:known_count], insert_at, index[known_count:])
    return gather([rows, resolved], index)


def _inherit(rows: pl.DataFrame, joined: JoinedRows) -> pl.DataFrame:
    """Gives targets of redirects the URL to show, and new targets the columns of their source.

    If a new target already has metadata, from its document or from links, this metadata has priority
    over that of the source.
    """
    if joined.inherited.is_empty():
        return rows
    at = index_by_number(joined.inherited, len(rows))
    inherited = joined.inherited.drop("at").rename(lambda name: f"inherited.{name}")
    is_new = pl.Series(np.arange(len(rows)) >= joined.known_count)
    repr_url = pl.coalesce("inherited.repr_url", "repr_url")
    rows = rows.hstack(inherited[nullable(at)])
    has_both = is_new & pl.col("inherited.metadata").is_not_null()
    own = rows.select(pl.when(has_both).then("metadata")).to_series()
    rows = rows.with_columns(
        pl.when(repr_url != NO_URL).then(repr_url).alias("repr_url"),
        *(
            pl.when(is_new).then(pl.coalesce(f"inherited.{name}", name)).otherwise(name).alias(name)
            for name in INHERITED
        ),
    ).drop(inherited.columns)
    return rows.with_columns(overlay_maps(rows.get_column("metadata"), own))


def _is(status: int) -> pl.Expr:
    return pl.col("event.fetch_status") == status


def _where(condition: pl.Expr | str, value: Any, otherwise: str) -> pl.Expr:
    """Returns a column with another value where a condition is true."""
    return pl.when(condition).then(value).otherwise(otherwise)


def _defaults(rows: pl.DataFrame, now: int, rules: UpdateRules) -> pl.DataFrame:
    """Sets the defaults of new rows, and adds scores and distances from links."""
    is_new, is_linked = pl.col("status").is_null(), pl.col("inlink_score").is_not_null()
    return rules.scorings.arrived(rows, now).with_columns(
        status=pl.col("status").fill_null(int(Status.DB_UNFETCHED)),
        fetch_time=pl.col("fetch_time").fill_null(now),
        fetch_interval=_where(is_new, rules.options.fetch_interval, "fetch_interval"),
        retries=pl.col("retries").fill_null(0),
        distance=pl.min_horizontal("distance", "inlink_distance"),
        last_inlink_day=_where(is_linked, now // DAY_MS, "last_inlink_day"),
    )


def _statuses(frame: pl.DataFrame, options: UpdateOptions) -> pl.DataFrame:
    """Decides the new status; all other columns still have their old values."""
    old, retries = frame.get_column("signature"), pl.col("retries")
    equal = old == frame.get_column("event.signature")  # null: one of them has none
    failed = pl.lit(False)
    if options.delete_failed_parse:
        parse_failed = pl.col("event.parse_status") == int(ParseStatus.FAILED)
        failed = _is(FETCH_SUCCESS) & parse_failed.fill_null(False)
    same = _is(FETCH_SUCCESS) & equal.fill_null(False)
    unchanged = (same | _is(FETCH_NOTMODIFIED)) & ~failed
    # Only such a page can be "not modified". Others may have left an index, even if they failed since
    # then, and come back.
    present = pl.col("status").is_in(FETCHED_STATUSES)
    early = is_early(options.retry_max)
    counts = _is(FETCH_RETRY) & ~early
    gone = _is(FETCH_GONE) | (counts & (retries >= options.retry_max - 1))
    no_interval = pl.col("fetch_interval").fill_null(0) <= 0
    other = pl.col("status")
    for of_event, status in _STATUS_OF.items():
        other = pl.when(_is(of_event)).then(status).otherwise(other)
    return frame.with_columns(
        failed=failed,
        gone=gone | failed,
        modified=_is(FETCH_SUCCESS) & ~equal.fill_null(True),
        notmodified=unchanged,
        visited=~_is(FETCH_RETRY) & ~gone & ~failed,
        early=early,
        old_retries=retries,
        gone_before=_gone_before(),
        old_document=pl.col("document"),
        old_signature=old,
        status=pl.when(failed)
        .then(int(Status.DB_PARSE_FAILED))
        .when(unchanged)
        .then(pl.when(present).then(int(Status.DB_NOTMODIFIED)).otherwise(int(Status.DB_FETCHED)))
        .when(gone)
        .then(int(Status.DB_GONE))
        .otherwise(other),
        retries=pl.when(counts)
        .then(pl.min_horizontal(retries, _MOST_RETRIES - 1) + 1)
        .when(_is(FETCH_RETRY) | _is(FETCH_GONE))
        .then(retries)
        .otherwise(0),
        fetch_interval=_where(no_interval, options.fetch_interval, "fetch_interval"),
    )


def _gone_before() -> pl.Expr:
    """Returns since when a page was gone before this visit, ms; null if it was not.

    A row that does not say it was gone when it was last fetched.
    """
    was_gone = pl.col("status") == int(Status.DB_GONE)
    return pl.when(was_gone).then(pl.coalesce("gone_since", "last_fetch_time"))


def _gone_since(visited: pl.DataFrame) -> pl.Expr:
    """Returns since when resolved rows are gone, ms; null if they are not."""
    since = visited.select(pl.coalesce("gone_before", "event.fetch_time")).to_series()
    is_gone = pl.col("status") == int(Status.DB_GONE)
    return pl.when(is_gone).then(pl.lit(since)).alias("gone_since")


def _schedule(frame: pl.DataFrame, facts: RangeFacts, rules: UpdateRules) -> pl.DataFrame:
    """Sets the times, and copies columns of the event."""
    options, schedule = rules.options, rules.schedule
    too_long = pl.col("visited") & (pl.col("fetch_interval") > options.max_fetch_interval)
    if options.schedule in LIMITING_SCHEDULES:
        too_long = pl.lit(False)
    elif schedule is not default_schedule:  # that of a plug-in may keep fixed intervals
        too_long &= pl.col("fixed_interval").fill_null(0) <= 0
    frame = frame.with_columns(
        # A 304 says nothing about a page whose interval is too long: it is due again, without
        # conditions.
        force=too_long & _is(FETCH_NOTMODIFIED),
        fetch_interval=_where(too_long, options.shortened_interval, "fetch_interval"),
    )
    frame = reschedule(frame, schedule, ScheduleContext(options, facts.table_rows))
    frame = within_bounds(frame, facts.bounds, options.max_fetch_interval)
    has_body = frame.get_column("event.fetch_status") == FETCH_SUCCESS
    scheduled = frame.with_columns(
        *_renew_columns(frame, _OF_BODY, has_body),
        # Until a newer body is parsed, the older text is kept, with its permitted uses.
        *_renew_columns(
            frame, _OF_TEXT, has_body & frame.get_column("event.document").is_not_null()
        ),
        **{name: pl.col(f"event.{name}") for name in _OF_EVENT},
        last_fetch_time=pl.col("event.fetch_time"),
        duplicate_of=pl.lit(None, pl.String),
    )
    if scheduled.get_column("force").any():
        # The signature stays: if the content is the same, its links give no score again. (Nutch
        # forgets it.) Without ``modified_time`` the request has no condition.
        scheduled = scheduled.with_columns(
            fetch_time=_where("force", "event.fetch_time", "fetch_time"),
            status=_where("force", int(Status.DB_UNFETCHED), "status"),
            modified_time=_where("force", 0, "modified_time"),
            **{name: _where("force", None, name) for name in CONDITIONS},
        )
    if scheduled.get_column("failed").any():
        # If parsing failed, the next request is unconditional, too.
        scheduled = scheduled.with_columns(signature=_where("failed", None, "signature"))
    return scheduled


def _renew_columns(frame: pl.DataFrame, names: Sequence[str], of_event: pl.Series) -> pl.DataFrame:
    """Returns columns with the values of the event in some rows."""
    new = frame.select(pl.col(f"event.{name}").alias(name) for name in names)
    index = np.arange(len(frame)) + len(frame) * of_event.to_numpy()
    return gather([frame.select(names), new], index)


def _outcome(resolved: pl.DataFrame) -> pl.DataFrame:
    """Returns the OUTCOME rows; a URL that has failed, or was not parsed, has no document."""
    parsed = _is(FETCH_SUCCESS) & pl.col("event.document").is_not_null()
    answered = parsed | _is(FETCH_NOTMODIFIED)
    return (
        resolved.with_columns(
            document=pl.when(answered).then("document"), fetch_status="event.fetch_status"
        )
        .select(*OUTCOME.names)
        .cast(pl.Schema(OUTCOME))
    )


def _counts(resolved: pl.DataFrame) -> Counts:
    tried = resolved.get_column("status").value_counts()
    return {f"status/{STATUS_NAMES[status]}": n for status, n in tried.iter_rows()}
