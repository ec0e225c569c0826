"""The status machine of update: what a batch does to the rows of the state.

Nutch's transition table (nutch.md 2.5) as expressions on whole frames, with
its defects fixed: a page that was fetched but not parsed is not "not
modified", a result older than the row is ignored, and contributions are summed
in the order of their sources, so that a rerun gives the same bits.
"""

import dataclasses
from collections.abc import Mapping

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
from .schedule import DAY_MS, TOLERANCE_MS, ScheduleOptions, gone_interval, retry_time
from .schema import STATE, STATUS_NAMES, ParseStatus, Status
from .traps import BudgetOptions, within_budget

Counts = dict[str, int]


@dataclasses.dataclass(frozen=True)
class UpdateOptions(ScheduleOptions, BudgetOptions):
    """What update lets into the table."""

    GROUP = "update"

    additions_allowed: bool = option(
        True,
        "Add URLs that were found as links; false keeps the table to the URLs it has.",
        nutch="db.update.additions.allowed",
    )
    delete_failed_parse: bool = option(
        False,
        "Give pages that a parser failed at the status db_parse_failed, and try them again as "
        "late as pages that are gone.",
        nutch="parser.delete.failed.parse",
    )


def update_state(
    rows: pl.DataFrame,
    changes: pl.DataFrame,
    now: int,
    options: UpdateOptions,
    of_hosts: Mapping[str, int] | None = None,
    since: int | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame, Counts]:
    """Resolves what a batch did against the rows that it falls among.

    Args:
        rows: STATE rows in key order.
        changes: CHANGES rows, for keys in the same range.
        now: ms; when URLs that are new become due.
        options: Intervals and limits.
        of_hosts: How many URLs large hosts (reversed) have already.
        since: See ``set_right``.

    Returns:
        (STATE rows in key order, OUTCOME rows of the URLs that were tried, counts).
    """
    events, links = _timely(_events(changes), now), _links(changes)
    at_event, at_link = (_find(rows, some) for some in (events, links))
    stale = _stale(rows, events.get_column("event.fetch_time")[at_event], now)
    rows, wrong = set_right(rows, now, options, since)
    told = (_fetched(rows) & events.get_column("event.part")[at_event]).fill_null(False)
    strangers = links.filter(_missed(links, at_link))
    dropped: Counts = {}
    met = events.filter(_missed(events, at_event))
    if options.additions_allowed:
        # What was followed at once is fetched already: no budget keeps it out.
        fetched = _of_pages(met)
        asked = strangers.join(fetched, on="key", how="semi") if len(fetched) else strangers.clear()
        others = strangers.join(asked, on="key", how="anti") if len(asked) else strangers
        others, dropped = within_budget(others, _of_pages(events), options, of_hosts)
        strangers = pl.concat([others, asked])
    # A part's page links to it: it comes in as a link does, or not at all.
    unknown = _of_pages(met).join(strangers, on="key", how="anti")
    known = rows.hstack(links.select("inlink_score", "inlink_distance")[at_link])
    new = pl.concat([strangers, unknown.select("key")], how="diagonal")
    refused = 0 if options.additions_allowed else len(new)
    new = new.clear() if refused else new
    # What nothing arrives for stays as it is; what only links arrive for needs few columns.
    arrived = _arrive(pl.concat([known, new], how="diagonal"), now, options)
    fresh = at_event.set(stale.fill_null(False) | told, None)
    at_event = pl.concat([fresh, _find(new, events)])
    tried = at_event.is_not_null()
    event = events.drop("key")[at_event.drop_nulls()]
    resolved = _schedule(_statuses(arrived.filter(tried).hstack(event), options), options)
    outcome = resolved.select("key", "document", "status", "score", "signature")
    counts = _counts(resolved) | {
        "added": len(new),
        "stale_results": int((stale.fill_null(False) & ~told).sum()),
        "dropped/part_fetched": int(told.sum()),
        COUNT: wrong,
        "dropped/additions_not_allowed": refused,
        **dropped,
    }
    parts = [part.select(*STATE.names) for part in (arrived.filter(~tried), resolved)]
    return (
        pl.concat(parts).sort("key"),
        outcome.sort("key"),
        {name: n for name, n in counts.items() if n},
    )


def _find(rows: pl.DataFrame, among: pl.DataFrame) -> pl.Series:
    """Returns which row of others has the key of each row, null where there is none.

    To look up numbers and take what is needed is cheaper than a join, which copies all columns.
    """
    numbered = among.select("key").with_row_index("at")
    found = rows.select("key").join(numbered, on="key", how="left", maintain_order="left")
    return found.get_column("at")


def _timely(events: pl.DataFrame, now: int) -> pl.DataFrame:
    """Gives events the time that counts as now, in place of one that cannot be."""
    when = pl.col("event.fetch_time")
    wrong = (when > now + TOLERANCE_MS) | (when <= min(EARLIEST_MS, now - 1))
    return events.with_columns(pl.when(wrong).then(now).otherwise(when).alias("event.fetch_time"))


def _stale(rows: pl.DataFrame, fetched: pl.Series, now: int) -> pl.Series:
    """Says for which rows an event is older than what they say; a row of the future says nothing."""
    last = rows.get_column("last_fetch_time")
    return (last > fetched) & (last <= now + TOLERANCE_MS)


def _missed(among: pl.DataFrame, at: pl.Series) -> pl.Series:
    """Returns which rows are not among those that ``_find`` has found."""
    missed = np.ones(len(among), dtype=bool)
    missed[at.drop_nulls().to_numpy()] = False
    return pl.Series(missed)


def _events(changes: pl.DataFrame) -> pl.DataFrame:
    """Returns what happened to each page that was tried, as ``event.*``: of several the first."""
    events = (
        changes.filter(pl.col("fetch_status").is_not_null())
        # Whatever a part says of a URL, the page itself says it better.
        .sort(pl.col("part").is_not_null(), "order", maintain_order=True)
        .unique("key", keep="first", maintain_order=True)
        .drop("order", "inlink_score", "inlink_distance")
    )
    return events.rename({name: f"event.{name}" for name in events.columns if name != "key"})


def _of_pages(events: pl.DataFrame) -> pl.DataFrame:
    """Returns the events without those of parts."""
    parts = events.get_column("event.part")
    return events if parts.null_count() == len(parts) else events.filter(parts.is_null())


def _fetched(rows: pl.DataFrame) -> pl.Series:
    """Returns which URLs were tried themselves: a row that is of a part alone has no page."""
    of_part = (
        pl.col("document").is_not_null()
        & pl.col("page").is_null()
        & pl.col("http_code").is_null()
        & (pl.col("protocol_status") == SUCCESS).fill_null(False)
    )
    tried = pl.col("last_fetch_time").is_not_null() & ~of_part
    return rows.select(tried.alias("tried")).get_column("tried")


def _links(changes: pl.DataFrame) -> pl.DataFrame:
    """Returns what links bring to each key."""
    return sum_links(
        changes.filter(pl.col("inlink_score").is_not_null())
        .select("key", "order", "inlink_score", "inlink_distance")
        .sort("order", maintain_order=True)
        .drop("order")
    )


def _is(*statuses: int) -> pl.Expr:
    return pl.col("event.fetch_status").is_in(statuses).fill_null(False)


def _arrive(rows: pl.DataFrame, now: int, options: UpdateOptions) -> pl.DataFrame:
    """Fills in what a new row has, and adds what links bring (OPIC 1.x)."""
    linked = pl.col("inlink_score").is_not_null()
    return rows.with_columns(
        status=pl.col("status").fill_null(int(Status.DB_UNFETCHED)),
        fetch_time=pl.col("fetch_time").fill_null(now),
        fetch_interval=pl.when(pl.col("status").is_null())
        .then(options.fetch_interval)
        .otherwise("fetch_interval")
        .cast(pl.Int32),
        retries=pl.col("retries").fill_null(0),
        score=(
            pl.col("score").fill_null(0.0).cast(pl.Float64) + pl.col("inlink_score").fill_null(0.0)
        ).cast(pl.Float32),
        distance=pl.min_horizontal("distance", "inlink_distance"),
        last_inlink_day=pl.when(linked)
        .then(pl.lit(now // DAY_MS, pl.Int32))
        .otherwise("last_inlink_day"),
    )


def _statuses(frame: pl.DataFrame, options: UpdateOptions) -> pl.DataFrame:
    """Decides the new status; columns of the old row are still as they were."""
    old, new = pl.col("signature"), pl.col("event.signature")
    parsed = new.is_not_null()
    same = (parsed & old.is_not_null() & (old == new)).fill_null(False)
    changed = (parsed & old.is_not_null() & (old != new)).fill_null(False)
    exhausted = pl.col("retries") + 1 >= options.retry_max
    failed = pl.lit(False)
    if options.delete_failed_parse:
        failed = _is(FETCH_SUCCESS) & (pl.col("event.parse_status") == int(ParseStatus.FAILED))
        failed = failed.fill_null(False)
    unchanged = ((_is(FETCH_SUCCESS) & same) | _is(FETCH_NOTMODIFIED)) & ~failed
    gone = _is(FETCH_GONE) | (_is(FETCH_RETRY) & exhausted)
    return frame.with_columns(
        unchanged=unchanged,
        failed=failed,
        fetch_interval=pl.when(pl.col("fetch_interval").fill_null(0) <= 0)
        .then(options.fetch_interval)
        .otherwise("fetch_interval")
        .cast(pl.Int32),
        modified=_is(FETCH_SUCCESS) & changed,
        gone=gone | failed,
        status=pl.when(failed)
        .then(int(Status.DB_PARSE_FAILED))
        .when(unchanged)
        .then(int(Status.DB_NOTMODIFIED))
        .when(_is(FETCH_SUCCESS))
        .then(int(Status.DB_FETCHED))
        .when(_is(FETCH_REDIR_TEMP))
        .then(int(Status.DB_REDIR_TEMP))
        .when(_is(FETCH_REDIR_PERM))
        .then(int(Status.DB_REDIR_PERM))
        .when(gone)
        .then(int(Status.DB_GONE))
        .when(_is(FETCH_RETRY))
        .then(int(Status.DB_UNFETCHED))
        .otherwise("status")
        .cast(pl.UInt8),
        retries=pl.when(_is(FETCH_RETRY))
        .then(pl.col("retries") + 1)
        .when(~_is(FETCH_GONE))
        .then(0)
        .otherwise("retries")
        .cast(pl.Int32),
    )


def _schedule(frame: pl.DataFrame, options: UpdateOptions) -> pl.DataFrame:
    """Sets the times, and takes over what the event brought."""
    fetched = pl.col("event.fetch_time")
    body = _is(FETCH_SUCCESS)
    visited = ~_is(FETCH_RETRY) & ~pl.col("gone")
    # Too long an interval: really fetch it again, whatever the signature says.
    force = visited & (pl.col("fetch_interval") > options.max_fetch_interval)
    interval = (
        pl.when(pl.col("gone"))
        .then(gone_interval(pl.col("fetch_interval"), options))
        .otherwise("fetch_interval")
    )
    next_time = (
        pl.when(visited | pl.col("gone"))
        .then(fetched + interval.cast(pl.Int64) * 1000)
        .when(_is(FETCH_RETRY))
        .then(retry_time(fetched, pl.col("event.retry_after")))
        .otherwise("fetch_time")
    )
    first_seen = body & (pl.col("modified") | (pl.col("modified_time").fill_null(0) <= 0))
    of_event = ("protocol_status", "protocol_message", "http_code", "response_ms")
    of_body = ("content_type", "etag", "last_modified", "signature", "parse_status",
               "document", "page", "batch_id")  # fmt: skip
    taken = {name: pl.col(f"event.{name}") for name in of_event}
    taken |= {name: pl.when(body).then(f"event.{name}").otherwise(name) for name in of_body}
    scheduled = frame.with_columns(
        **taken,
        fetch_interval=interval,
        fetch_time=next_time,
        last_fetch_time=fetched,
        modified_time=pl.when(first_seen).then(fetched).otherwise("modified_time"),
    )
    # What failed to be parsed is asked for without conditions the next time.
    forgotten = force | pl.col("failed")
    return scheduled.with_columns(
        status=pl.when(force).then(int(Status.DB_UNFETCHED)).otherwise("status").cast(pl.UInt8),
        signature=pl.when(forgotten).then(None).otherwise("signature"),
        etag=pl.when(force).then(None).otherwise("etag"),
        last_modified=pl.when(force).then(None).otherwise("last_modified"),
        modified_time=pl.when(force).then(0).otherwise("modified_time"),
        retries=pl.when(force).then(0).otherwise("retries").cast(pl.Int32),
        fetch_interval=pl.when(force)
        .then(int(0.9 * options.max_fetch_interval))
        .otherwise("fetch_interval")
        .cast(pl.Int32),
    )


def _counts(resolved: pl.DataFrame) -> Counts:
    tried = resolved.get_column("status").value_counts()
    return {f"status/{STATUS_NAMES[status]}": n for status, n in tried.iter_rows()}
