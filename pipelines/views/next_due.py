"""Finds the URL of a table that is due next, and what holds it back; crawl --wait waits for it."""

import dataclasses
import math
import sys
import time

import polars as pl

from ...io.snapshots.manifest import load_manifest
from ...io.snapshots.rounds import stop_file
from ...io.table.opening import open_table
from ...io.table.web_table import WebTable
from ...io.tablets.tablets import tablets
from ...policy.components.vocabulary import iso
from ...policy.generating.selection import GenerateOptions, admissible_rows, drop_low_scores
from ...policy.schedules.schedule import DAY_MS
from ...transforms.wiring.plugin_groups import scorings_of
from ...web.base.clock import now_ms, pause
from ...web.base.dataclass import dataclass
from ...web.base.progress import PROGRESS
from ...web.urls.row_keys import shown_url
from ..generating.generate_candidates import rows_may_be_due
from .explain_row import TableAt, not_generated

_COLUMNS = ("key", "fetch_time")
# Looking for due pages takes at most a twentieth of the time.
_SHARE = 20
# Pause after rounds that fetched nothing, doubled by each further one, s.
_FIRST_S, _LONGEST_S = 60.0, 3600.0


@dataclass(frozen=True)
class NextUrl:
    """The URL that is due next.

    Attributes:
        url: The URL.
        time: When it is due, ms.
        add_days: Whole days of ``--add_days`` that make it due now; 0 if it is due.
        failure: Message of its last try, if that failed; else empty.
        reasons: (reason, detail) of each condition that keeps it from being chosen now.
    """

    url: str
    time: int
    add_days: int
    failure: str
    reasons: tuple[tuple[str, str], ...]


def next_url(address: str, options: GenerateOptions, *, after_now: bool = False) -> NextUrl | None:
    """Returns the URL of the newest snapshot that is due first; None if there is no URL.

    URLs that an option excludes come last. ``add_days`` does not count: it changes what one run
    chooses, not when a URL is due.

    Args:
        address: Address of the table.
        options: Options of generate.
        after_now: Whether to look only at URLs that are not due yet.
    """
    options = dataclasses.replace(options, add_days=0.0)
    seen = TableAt(address)
    since = seen.now + 1 if after_now else None
    key = _first_due(seen, options, since) or (_first_due(seen, None) if since is None else None)
    row = seen.find("state", key) if key is not None else None
    if row is None:
        return None
    wait = row["fetch_time"] - seen.now
    return NextUrl(
        shown_url(row["key"]),
        row["fetch_time"],
        max(0, math.ceil(wait / DAY_MS)),
        (row["protocol_message"] or "") if row["retries"] else "",
        tuple(not_generated(row, seen, options)),
    )


def _first_due(
    seen: TableAt, options: GenerateOptions | None, since: int | None = None
) -> str | None:
    """Returns the key that is due first (since then), of those that the options do not exclude."""

    scorings = None if options is None else scorings_of(options)
    columns: tuple[str, ...] = _COLUMNS
    if scorings is not None and not scorings.sorts_by_score:
        columns = tuple(dict.fromkeys((*_COLUMNS, "score", "distance", *scorings.sort_columns)))

    def narrow(state: pl.LazyFrame) -> pl.LazyFrame:
        state = state if since is None else state.filter(pl.col("fetch_time") >= since)
        if options is None or scorings is None:
            return state
        return admissible_rows(state, options, scorings, seen.now)

    best: tuple[int, str] | None = None
    # Tablets that may be due first before the others.
    state_tablets = tablets(seen.pinned.files("state"))
    for tablet in sorted(state_tablets, key=lambda tablet: tablet.min_time or 0):
        if best is not None and (tablet.min_time or 0) > best[0]:
            break  # all later tablets are due later, too
        rows = seen.pinned.table.read("state", [tablet], columns, narrow)
        if options is not None and scorings is not None:
            rows = drop_low_scores(rows, options, scorings).select(_COLUMNS)
        earliest = rows.drop_nulls().bottom_k(1, by=["fetch_time", "key"]).rows()
        best = min(
            [*([best] if best else []), *((time, key) for key, time in earliest)], default=None
        )
    return best[1] if best else None


def wait_for_due(
    address: str,
    options: GenerateOptions,
    until: int | None,
    idle: int = 0,
    *,
    announce: bool = True,
) -> bool:
    """Waits until a page may be due; returns False if the crawl ends instead.

    It ends because of a stop file, because its time is over, or because the table has no URL.

    Args:
        address: Address of the table.
        options: Options of generate.
        until: Time at which the crawl ends, ms; None is no limit.
        idle: How many times in a row pages were due, and none was fetched. They are still due, so
            the next try waits for longer, unless another page becomes due.
        announce: Whether to print until when it waits.
    """
    table, earliest = open_table(address), 0
    waiting = next_url(address, options, after_now=idle > 0)
    if waiting is None and not idle:
        return False
    if idle:
        earliest = now_ms() + int(1000 * min(_LONGEST_S, _FIRST_S * 2.0 ** min(idle - 1, 20)))
        earliest = min(earliest, waiting.time) if waiting is not None else earliest
    when = max(earliest, 0 if idle or waiting is None else waiting.time)
    if announce:
        print(f"waiting for pages that are due: until {iso(when)}", file=sys.stderr)
    PROGRESS.start("wait")
    try:
        return _wait(table, options, until, earliest)
    finally:
        PROGRESS.finish()


def _wait(table: WebTable, options: GenerateOptions, until: int | None, earliest: int) -> bool:
    poll = table.files.look_interval
    while stop_file(table) is None and (until is None or now_ms() < until):
        if now_ms() >= earliest:
            began = time.monotonic()
            newest = load_manifest(table, table.latest_snapshot())
            if rows_may_be_due(table, newest, options):
                return True
            earliest = now_ms() + int(1000 * _SHARE * (time.monotonic() - began))
        pause(poll if until is None else max(0.0, min(poll, (until - now_ms()) / 1000)))
    return False
