"""Finds the URL of a table that is due next, and what keeps it from being fetched now."""

import dataclasses
import math
from collections.abc import Iterator

import polars as pl

from ...io.parsing.plugins import scorings_of
from ...io.snapshots.manifest import Pinned
from ...io.tablets.tablets import Tablet, tablets
from ...policy.choosing.selection import GenerateOptions, admissible_rows, drop_low_scores
from ...policy.schedules.schedule import DAY_MS
from ...web.urls.row_keys import shown_url
from .explain_row import TableAt, not_generated

_COLUMNS = ("key", "fetch_time")


@dataclasses.dataclass(frozen=True)
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
    for tablet in _by_time(seen.pinned):
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


def _by_time(pinned: Pinned) -> Iterator[Tablet]:
    """Yields the tablets of the state, those that may be due first before the others."""
    state_tablets = tablets(pinned.files("state"))
    yield from sorted(state_tablets, key=lambda tablet: tablet.min_time or 0)
