"""The status machine of update: applies the results of a batch to rows of the state.

It implements Nutch's transition table (nutch.md 2.5) as expressions on whole frames, and
fixes its defects. A page that was fetched but not parsed does not get the status "not
modified". A result that is older than the row is ignored. Scores are summed in the order
of their sources, so a rerun gives exactly the same numbers.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..web.base.clock import EARLIEST_MS
from ..web.base.options import option
from ..web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
    SUCCESS,
)
from .clocks import COUNT, set_right
from .links import sum_links
from .schedules.built_in import LIMITING_SCHEDULES
from .schedules.default_schedule import default_schedule
from .schedules.reschedule import reschedule
from .schedules.schedule import DAY_MS, TOLERANCE_MS
from .schedules.schedule_options import RescheduleOptions
from .schedules.visits import Schedule, ScheduleContext
from .schema import OUTCOME, STATE, STATUS_NAMES, ParseStatus, Status, empty
from .scoring.scoring_options import ScoringOptions
from .scoring.scorings import OPIC, Scorings
from .traps import BudgetOptions, within_budget

Counts = dict[str, int]
_TYPES = empty(STATE).schema
_STATUS_OF = {
    FETCH_SUCCESS: int(Status.DB_FETCHED),
    FETCH_REDIR_TEMP: int(Status.DB_REDIR_TEMP),
    FETCH_REDIR_PERM: int(Status.DB_REDIR_PERM),
    FETCH_RETRY: int(Status.DB_UNFETCHED),
}
# Only a page with one of these can be "not modified". Others may have left an index, even if they
# failed since then, and come back.
_PRESENT = (int(Status.DB_FETCHED), int(Status.DB_NOTMODIFIED))
_MOST_RETRIES = 2**31 - 1  # the largest number of the column (Nutch's is 127, its defect 32)
# What the target of a redirect inherits.
_HERITAGE = ("repr_url", "fetch_interval", "fixed_interval", "metadata")
# Columns that OUTCOME has and the state does not.
_OF_OUTCOME = ("event.fetch_status", "old_status", "old_document", "old_signature")
# Columns of a row that an event sets, and those that it sets only if it has a body.
_OF_EVENT = ("protocol_status", "protocol_message", "http_code", "response_ms")
_OF_BODY = ("content_type", "etag", "last_modified", "signature", "parse_status", "document",
            "page", "batch_id", "usage")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class UpdateOptions(RescheduleOptions, BudgetOptions, ScoringOptions):
    """Options of update: the URLs to add to the table, and the handling of parse failures."""

    GROUP = "update"

    additions_allowed: bool = option(
        True,
        "Add URLs that were found as links; false keeps the table to the URLs it has.",
        nutch="db.update.additions.allowed",
    )
    delete_failed_parse: bool = option(
        False,
        "Set the status db_parse_failed for pages that failed to parse, and fetch them again as "
        "late as pages that are gone.",
        nutch="parser.delete.failed.parse",
    )


class Surroundings(NamedTuple):
    """Facts about the table from outside the range of keys that is updated.

    Attributes:
        of_hosts: Number of URLs that large hosts (reversed) have already.
        since: See ``set_right``.
        pages: Number of rows of the table; None: unknown.
        schedule: Schedules the rows that were visited.
    """

    of_hosts: Mapping[str, int] | None = None
    since: int | None = None
    pages: int | None = None
    schedule: Schedule = default_schedule


_UNKNOWN = Surroundings()


def update_state(
    rows: pl.DataFrame,
    changes: pl.DataFrame,
    now: int,
    options: UpdateOptions,
    table: Surroundings = _UNKNOWN,
    scorings: Scorings = OPIC,
) -> tuple[pl.DataFrame, pl.DataFrame, Counts]:
    """Applies the results of a batch to the rows of one range of keys.

    Args:
        rows: STATE rows in key order.
        changes: CHANGES rows, for keys in the same range.
        now: The time that counts as now, ms; new URLs are due then.
        options: Intervals and limits.
        table: Facts from outside the range.
        scorings: The scorings.

    Returns:
        (STATE rows in key order, OUTCOME rows of the URLs that were tried, counts).
    """
    changes = scorings.completed(changes)
    events, links = _timely(_events(changes), now), _links(changes, scorings)
    at_event, at_link = (_find(rows, some) for some in (events, links))
    stale = _stale(rows, events.get_column("event.fetch_time")[at_event], now).fill_null(False)
    rows, wrong = set_right(rows, now, options, table.since)
    of_part = (_fetched(rows) & events.get_column("event.part")[at_event]).fill_null(False)
    unknown = events.filter(_missed(events, at_event))
    strangers = links.filter(_missed(links, at_link))
    new, dropped = _new_rows(strangers, unknown, events, options, table.of_hosts)
    known = rows.hstack(links.drop("key")[at_link])
    heirs = _heirs(changes)
    # Only rows with an event get the columns of events; other rows need few columns.
    incoming = pl.concat([known, new], how="diagonal")
    at_event = pl.concat([at_event.set(stale | of_part, None), _find(new, events)])
    if scorings.own:
        incoming = _with_own(incoming, at_event.is_not_null(), changes, scorings)
    arrived = _inherit(_arrive(incoming, now, options, scorings), heirs, len(rows))
    tried = at_event.is_not_null()
    event = events.drop("key")[at_event.drop_nulls()]
    is_known = pl.Series("is_known", np.arange(len(arrived)) < len(rows)).filter(tried)
    visited = arrived.filter(tried).with_columns(is_known).hstack(event)
    visited = _schedule(_statuses(visited, options), options, table)
    resolved = scorings.judged(visited.select(*STATE.names), now).cast(_TYPES)
    outcome = _outcome(resolved.hstack(visited.select(_OF_OUTCOME)))
    counts = _counts(resolved) | {
        "added": len(new),
        "stale_results": int((stale & ~of_part).sum()),
        "dropped/part_fetched": int(of_part.sum()),
        COUNT: wrong,
        **dropped,
    }
    untried = arrived.filter(~tried).select(*STATE.names).cast(_TYPES)
    return (
        pl.concat([untried, resolved]).sort("key"),
        outcome.sort("key"),
        {name: n for name, n in counts.items() if n},
    )


def _new_rows(
    strangers: pl.DataFrame,
    unknown: pl.DataFrame,
    events: pl.DataFrame,
    options: UpdateOptions,
    of_hosts: Mapping[str, int] | None,
) -> tuple[pl.DataFrame, Counts]:
    """Returns (new rows of the table with scores and distances from links, counts of the others).

    Args:
        strangers: Links to URLs that the table does not have.
        unknown: Events of URLs that it does not have.
        events: All events.
        options: Whether URLs are added, and the budgets.
        of_hosts: Number of URLs that large hosts have already.
    """
    # A part of a page is in ``strangers``, because its page has a link to it.
    fetched = _of_pages(unknown).select("key")
    if not options.additions_allowed:
        refused = len(pl.concat([strangers.select("key"), fetched]).unique())
        return strangers.clear(), {"dropped/additions_not_allowed": refused}
    if fetched.is_empty():
        return within_budget(strangers, _of_pages(events), options, of_hosts)
    # A URL that the fetch followed is already fetched, so budgets do not apply to it.
    followed = strangers.join(fetched, on="key", how="semi")
    others = strangers.join(fetched, on="key", how="anti")
    linked, dropped = within_budget(others, _of_pages(events), options, of_hosts)
    without_link = fetched.join(strangers, on="key", how="anti")
    return pl.concat([linked, followed, without_link], how="diagonal"), dropped


def _find(rows: pl.DataFrame, among: pl.DataFrame) -> pl.Series:
    """Returns, for each row, the index of the row with the same key in another frame, or null.

    A join would copy all columns; with the index, only the needed columns are copied.
    """
    numbered = among.select("key").with_row_index("at")
    found = rows.select("key").join(numbered, on="key", how="left", maintain_order="left")
    return found.get_column("at")


def _timely(events: pl.DataFrame, now: int) -> pl.DataFrame:
    """Replaces impossible times of events by the time that counts as now."""
    when = pl.col("event.fetch_time")
    wrong = (when > now + TOLERANCE_MS) | (when <= min(EARLIEST_MS, now - 1))
    return events.with_columns(pl.when(wrong).then(now).otherwise(when).alias("event.fetch_time"))


def _stale(rows: pl.DataFrame, fetched: pl.Series, now: int) -> pl.Series:
    """Returns a mask of the rows that are newer than their event; ignores future times."""
    last = rows.get_column("last_fetch_time")
    return (last > fetched) & (last <= now + TOLERANCE_MS)


def _missed(among: pl.DataFrame, at: pl.Series) -> pl.Series:
    """Returns a mask of the rows that ``_find`` has not found."""
    missed = np.ones(len(among), dtype=bool)
    missed[at.drop_nulls().to_numpy()] = False
    return pl.Series(missed)


def _events(changes: pl.DataFrame) -> pl.DataFrame:
    """Returns the first event of each URL that was tried, with columns ``event.*``."""
    events = (
        changes.filter(pl.col("fetch_status").is_not_null())
        # The event of a page has priority over that of a part of another page.
        .sort(pl.col("part").is_not_null(), "order", maintain_order=True)
        .unique("key", keep="first", maintain_order=True)
        .drop("order", "inlink_score", "inlink_distance", *_HERITAGE)
    )
    return events.rename({name: f"event.{name}" for name in events.columns if name != "key"})


def _of_pages(events: pl.DataFrame) -> pl.DataFrame:
    """Returns the events without those of parts."""
    parts = events.get_column("event.part")
    return events if parts.null_count() == len(parts) else events.filter(parts.is_null())


def _fetched(rows: pl.DataFrame) -> pl.Series:
    """Returns a mask of the URLs that were fetched themselves, not only as parts of other pages."""
    of_part = (
        pl.col("document").is_not_null()
        & pl.col("page").is_null()
        & pl.col("http_code").is_null()
        & (pl.col("protocol_status") == SUCCESS).fill_null(False)
    )
    tried = pl.col("last_fetch_time").is_not_null() & ~of_part
    return rows.select(tried.alias("tried")).get_column("tried")


def _links(changes: pl.DataFrame, scorings: Scorings) -> pl.DataFrame:
    """Returns the score and distance that each key gets from links, and what scorings pass on."""
    passed = (column.name for column in scorings.passed)
    return sum_links(
        changes.filter(pl.col("inlink_score").is_not_null())
        .select("key", "order", "inlink_score", "inlink_distance", *passed)
        .sort("order", maintain_order=True)
        .drop("order"),
        scorings,
    )


def _heirs(changes: pl.DataFrame) -> pl.DataFrame:
    """Returns what the targets of redirects inherit, one row per target."""
    found = changes.filter(
        pl.col("fetch_status").is_null() & pl.any_horizontal(pl.col(_HERITAGE).is_not_null())
    )
    first = found.sort("order", maintain_order=True).unique(
        "key", keep="first", maintain_order=True
    )
    return first.select("key", *_HERITAGE)


def _inherit(rows: pl.DataFrame, heirs: pl.DataFrame, known: int) -> pl.DataFrame:
    """Gives targets of redirects their URL to be shown, and new ones the columns of their source.

    Args:
        rows: Known rows, then new ones.
        heirs: See ``_heirs``.
        known: Number of known rows.
    """
    if heirs.is_empty():
        return rows
    given = heirs.drop("key").rename(lambda name: f"given.{name}")[_find(rows, heirs)]
    is_new = pl.Series(np.arange(len(rows)) >= known)
    return (
        rows.hstack(given)
        .with_columns(
            pl.coalesce("given.repr_url", "repr_url").alias("repr_url"),
            *(
                pl.when(is_new).then(pl.coalesce(f"given.{name}", name)).otherwise(name).alias(name)
                for name in _HERITAGE
                if name != "repr_url"
            ),
        )
        .drop(given.columns)
    )


def _with_own(
    rows: pl.DataFrame, tried: pl.Series, changes: pl.DataFrame, scorings: Scorings
) -> pl.DataFrame:
    """Adds what documents bring to the rows of their pages.

    Args:
        rows: Rows of the table, and new ones.
        tried: Whether the result of each counts, because it is newer than the row.
        changes: All changes.
        scorings: The scorings.
    """
    merged = (column.merge.alias(column.name) for column in scorings.own)
    events = changes.filter(pl.col("fetch_status").is_not_null()).sort("order", maintain_order=True)
    own = events.group_by("key").agg(*merged)
    found = own.drop("key")[_find(rows, own)]
    timely = [column.name for column in scorings.own if not column.if_stale]
    return rows.hstack(found).with_columns(pl.when(tried).then(pl.col(*timely)) if timely else [])


def _is(*statuses: int) -> pl.Expr:
    return pl.col("event.fetch_status").is_in(statuses).fill_null(False)


def _where(condition: pl.Expr | str, value: Any, otherwise: str) -> pl.Expr:
    """Returns a column with another value where a condition is true."""
    return pl.when(condition).then(value).otherwise(otherwise)


def _arrive(
    rows: pl.DataFrame, now: int, options: UpdateOptions, scorings: Scorings
) -> pl.DataFrame:
    """Sets the defaults of new rows, and adds scores and distances from links."""
    is_new, is_linked = pl.col("status").is_null(), pl.col("inlink_score").is_not_null()
    return scorings.arrived(rows, now).with_columns(
        status=pl.col("status").fill_null(int(Status.DB_UNFETCHED)),
        fetch_time=pl.col("fetch_time").fill_null(now),
        fetch_interval=_where(is_new, options.fetch_interval, "fetch_interval"),
        retries=pl.col("retries").fill_null(0),
        distance=pl.min_horizontal("distance", "inlink_distance"),
        last_inlink_day=_where(is_linked, now // DAY_MS, "last_inlink_day"),
    )


def _statuses(frame: pl.DataFrame, options: UpdateOptions) -> pl.DataFrame:
    """Decides the new status; all other columns still have their old values."""
    old, new = pl.col("signature"), pl.col("event.signature")
    status, retries = pl.col("event.fetch_status"), pl.col("retries")
    failed = pl.lit(False)
    if options.delete_failed_parse:
        parse_failed = pl.col("event.parse_status") == int(ParseStatus.FAILED)
        failed = _is(FETCH_SUCCESS) & parse_failed.fill_null(False)
    same = _is(FETCH_SUCCESS) & (old == new).fill_null(False)
    unchanged = (same | _is(FETCH_NOTMODIFIED)) & ~failed
    present = pl.col("status").is_in(_PRESENT)
    gone = _is(FETCH_GONE) | (_is(FETCH_RETRY) & (retries >= options.retry_max - 1))
    no_interval = pl.col("fetch_interval").fill_null(0) <= 0
    return frame.with_columns(
        failed=failed,
        gone=gone | failed,
        modified=_is(FETCH_SUCCESS) & (old != new).fill_null(False),
        notmodified=unchanged,
        visited=~_is(FETCH_RETRY) & ~gone & ~failed,
        old_status=pl.when("is_known").then("status"),
        old_retries=retries,
        old_document=pl.col("document"),
        old_signature=old,
        status=pl.when(failed)
        .then(int(Status.DB_PARSE_FAILED))
        .when(unchanged)
        .then(pl.when(present).then(int(Status.DB_NOTMODIFIED)).otherwise(int(Status.DB_FETCHED)))
        .when(gone)
        .then(int(Status.DB_GONE))
        .otherwise(status.replace_strict(_STATUS_OF, default=pl.col("status"))),
        retries=pl.when(_is(FETCH_RETRY))
        .then(pl.min_horizontal(retries, _MOST_RETRIES - 1) + 1)
        .when(_is(FETCH_GONE))
        .then(retries)
        .otherwise(0),
        fetch_interval=_where(no_interval, options.fetch_interval, "fetch_interval"),
    )


def _schedule(frame: pl.DataFrame, options: UpdateOptions, table: Surroundings) -> pl.DataFrame:
    """Sets the times, and copies columns of the event."""
    has_body = _is(FETCH_SUCCESS)
    too_long = pl.col("visited") & (pl.col("fetch_interval") > options.max_fetch_interval)
    if options.schedule in LIMITING_SCHEDULES:
        too_long = pl.lit(False)
    frame = frame.with_columns(
        # A 304 says nothing about a page whose interval is too long: it is due again, without
        # conditions.
        force=too_long & _is(FETCH_NOTMODIFIED),
        fetch_interval=_where(too_long, options.shortened, "fetch_interval"),
    )
    frame = reschedule(frame, table.schedule, ScheduleContext(options, table.pages))
    scheduled = frame.with_columns(
        **{name: pl.col(f"event.{name}") for name in _OF_EVENT},
        **{name: _where(has_body, f"event.{name}", name) for name in _OF_BODY},
        last_fetch_time=pl.col("event.fetch_time"),
        duplicate_of=pl.lit(None, pl.String),
    )
    forced = {
        "status": int(Status.DB_UNFETCHED),
        "signature": None,
        "etag": None,
        "last_modified": None,
        "modified_time": 0,
    }
    return scheduled.with_columns(
        fetch_time=_where("force", "event.fetch_time", "fetch_time"),
        **{name: _where("force", value, name) for name, value in forced.items()},
    ).with_columns(
        # If parsing failed, the next request is unconditional.
        signature=_where("failed", None, "signature")
    )


def _outcome(resolved: pl.DataFrame) -> pl.DataFrame:
    """Returns the OUTCOME rows; a URL that has failed has no document."""
    answered = _is(FETCH_SUCCESS, FETCH_NOTMODIFIED)
    return (
        resolved.with_columns(
            document=pl.when(answered).then("document"), fetch_status="event.fetch_status"
        )
        .select(*OUTCOME.names)
        .cast(empty(OUTCOME).schema)
    )


def _counts(resolved: pl.DataFrame) -> Counts:
    tried = resolved.get_column("status").value_counts()
    return {f"status/{STATUS_NAMES[status]}": n for status, n in tried.iter_rows()}
