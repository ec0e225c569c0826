"""The status machine of update: what a batch does to the rows of the state.

Nutch's transition table (nutch.md 2.5) as expressions on whole frames, with
its defects fixed: a page that was fetched but not parsed is not "not
modified", a result older than the row is ignored, and contributions are summed
in the order of their sources, so that a rerun gives the same bits.
"""

import dataclasses

import polars as pl

from ..web.options import option
from ..web.protocol import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
)
from .links import sum_links
from .schedule import DAY_MS, ScheduleOptions, gone_interval, retry_time
from .schema import STATE, STATUS_NAMES, Status

Counts = dict[str, int]


@dataclasses.dataclass(frozen=True)
class UpdateOptions(ScheduleOptions):
    """What update lets into the table."""

    additions_allowed: bool = option(
        True,
        "Add URLs that were found as links; false keeps the table to the URLs it has.",
        nutch="db.update.additions.allowed",
        group="update",
    )


def update_state(
    rows: pl.DataFrame, changes: pl.DataFrame, now: int, options: UpdateOptions
) -> tuple[pl.DataFrame, pl.DataFrame, Counts]:
    """Resolves what a batch did against the rows that it falls among.

    Args:
        rows: STATE rows in key order.
        changes: CHANGES rows, for keys in the same range.
        now: ms; when URLs that are new become due.
        options: Intervals and limits.

    Returns:
        (STATE rows in key order, OUTCOME rows of the URLs that were tried, counts).
    """
    joined = _join(rows, changes)
    stale = _event() & (pl.col("event.fetch_time") < pl.col("last_fetch_time"))
    count = int(joined.select(stale.fill_null(False).sum()).item())
    joined = joined.with_columns(
        pl.when(stale)
        .then(None)
        .otherwise(pl.col("event.fetch_status"))
        .alias("event.fetch_status")
    )
    refused = pl.col("status").is_null() & ~pl.lit(options.additions_allowed)
    nobody = pl.col("status").is_null() & ~_event() & pl.col("inlink_score").is_null()
    dropped = joined.select((refused & ~nobody).sum()).item()
    joined = joined.filter(~refused & ~nobody)
    resolved = _schedule(_statuses(_arrive(joined, now, options), options), options)
    outcome = resolved.filter(_event()).select(
        "key", "document", "status", "score", pl.col("signature")
    )
    counts = _counts(resolved) | {"stale_results": count, "dropped/additions_not_allowed": dropped}
    kept = resolved.select(*STATE.names).sort("key")
    return kept, outcome.sort("key"), {name: n for name, n in counts.items() if n}


def _join(rows: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """One row per key: its state, its event as ``event.*``, and its links' sums."""
    events = (
        changes.filter(pl.col("fetch_status").is_not_null())
        .sort("order", maintain_order=True)
        .unique("key", keep="first", maintain_order=True)
        .drop("order", "inlink_score", "inlink_distance")
    )
    links = sum_links(
        changes.filter(pl.col("inlink_score").is_not_null())
        .select("key", "order", "inlink_score", "inlink_distance")
        .sort("order", maintain_order=True)
        .drop("order")
    )
    events = events.rename({name: f"event.{name}" for name in events.columns if name != "key"})
    return rows.join(events, on="key", how="full", coalesce=True).join(
        links, on="key", how="full", coalesce=True
    )


def _event() -> pl.Expr:
    return pl.col("event.fetch_status").is_not_null()


def _is(*statuses: int) -> pl.Expr:
    return pl.col("event.fetch_status").is_in(statuses).fill_null(False)


def _arrive(joined: pl.DataFrame, now: int, options: UpdateOptions) -> pl.DataFrame:
    """Fills in what a new row has, and adds what links bring (OPIC 1.x)."""
    linked = pl.col("inlink_score").is_not_null()
    gained = pl.col("inlink_score").fill_null(0.0)
    # Rows that nothing arrives for stay as they are, whatever they fall among.
    met = pl.col("status").is_null() | _event()
    return joined.with_columns(
        is_new=pl.col("status").is_null(),
        status=pl.col("status").fill_null(int(Status.DB_UNFETCHED)),
        fetch_time=pl.col("fetch_time").fill_null(now),
        fetch_interval=pl.when(met & (pl.col("fetch_interval").fill_null(0) <= 0))
        .then(options.fetch_interval)
        .otherwise("fetch_interval")
        .cast(pl.Int32),
        retries=pl.col("retries").fill_null(0),
        score=(pl.col("score").fill_null(0.0).cast(pl.Float64) + gained).cast(pl.Float32),
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
    unchanged = (_is(FETCH_SUCCESS) & same) | _is(FETCH_NOTMODIFIED)
    return frame.with_columns(
        unchanged=unchanged,
        modified=_is(FETCH_SUCCESS) & changed,
        gone=_is(FETCH_GONE) | (_is(FETCH_RETRY) & exhausted),
        status=pl.when(unchanged)
        .then(int(Status.DB_NOTMODIFIED))
        .when(_is(FETCH_SUCCESS))
        .then(int(Status.DB_FETCHED))
        .when(_is(FETCH_REDIR_TEMP))
        .then(int(Status.DB_REDIR_TEMP))
        .when(_is(FETCH_REDIR_PERM))
        .then(int(Status.DB_REDIR_PERM))
        .when(_is(FETCH_GONE) | (_is(FETCH_RETRY) & exhausted))
        .then(int(Status.DB_GONE))
        .when(_is(FETCH_RETRY))
        .then(int(Status.DB_UNFETCHED))
        .otherwise("status")
        .cast(pl.UInt8),
        retries=pl.when(_is(FETCH_RETRY))
        .then(pl.col("retries") + 1)
        .when(_event() & ~_is(FETCH_GONE))
        .then(0)
        .otherwise("retries")
        .cast(pl.Int32),
    )


def _schedule(frame: pl.DataFrame, options: UpdateOptions) -> pl.DataFrame:
    """Sets the times, and takes over what the event brought."""
    fetched = pl.col("event.fetch_time")
    body = _is(FETCH_SUCCESS)
    visited = _event() & ~_is(FETCH_RETRY) & ~pl.col("gone")
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
    taken = {
        name: pl.when(condition).then(f"event.{name}").otherwise(name)
        for condition, names in (
            (_event(), ("protocol_status", "protocol_message", "http_code", "response_ms")),
            (body, ("content_type", "etag", "last_modified", "signature", "parse_status",
                    "document", "page")),
        )
        for name in names
    }  # fmt: skip
    scheduled = frame.with_columns(
        **taken,
        fetch_interval=interval,
        fetch_time=next_time,
        last_fetch_time=pl.when(_event()).then(fetched).otherwise("last_fetch_time"),
        modified_time=pl.when(first_seen).then(fetched).otherwise("modified_time"),
        batch_id=pl.when(body).then("event.batch_id").otherwise("batch_id"),
    )
    return scheduled.with_columns(
        status=pl.when(force).then(int(Status.DB_UNFETCHED)).otherwise("status").cast(pl.UInt8),
        signature=pl.when(force).then(None).otherwise("signature"),
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
    tried = resolved.filter(_event()).get_column("status").value_counts()
    counts = {f"status/{STATUS_NAMES[status]}": n for status, n in tried.iter_rows()}
    counts["added"] = int(resolved.get_column("is_new").sum())
    return counts
