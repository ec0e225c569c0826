"""Joins the changes of a batch with the rows of their keys.

Rows and new URLs are numbered: the rows of the table first, in key order, then the new URLs, in key
order. All else refers to these numbers (column ``at``), because comparing keys is slow.
"""

# rows of the table   a  c  d             changes     c     b     d      b      c
# new URLs                     b          what        link  link  event  event  link
# at                  0  1  2  3          at          1     3     2      3      1
#
# Links are summed, and the first event of a URL counts: one row per number, in any order. An index
# has a place for each number, with the row that belongs to it; -1: none.
#
# links    at 3 1     index_by_number     -1  1 -1  0     row 1 is that of c, row 0 that of b
# events   at 2 3     event_of            -1 -1  0  1     d and b were tried
#
# A new URL that a limit leaves out has a number, but no row: without b, ``at`` of the rows is 0 1 2.

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ...web.base.clock import EARLIEST_MS, TOLERANCE_MS
from ...web.base.columns import gather
from ...web.exchange.status import SUCCESS
from ..components.page_facts import INHERITED
from ..components.schema import StateRows
from ..hosting.merit import within_room
from ..links import sum_links
from ..scoring.scorings import Scorings
from ..traps import within_budget
from .range_facts import RangeFacts
from .redirects import first_inheritances
from .update_rules import UpdateRules

Counts = dict[str, int]
Numbers = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]
# What the target of a redirect inherits.
INHERITANCE = ("repr_url", *INHERITED)
# 1990-12-20. An archive may be as old as this.
_FIRST_SITE_MS = 661_651_200_000
_OF_FETCHED = ("last_fetch_time", "document", "page", "http_code", "protocol_status")
_NOT_OF_EVENTS = (
    *("key", "at", "order", "inlink_score", "inlink_distance", "known_only"),
    *INHERITANCE,
)


class JoinedRows(NamedTuple):
    """Rows, known ones and then new ones, with the changes of a batch for them.

    Attributes:
        rows: STATE rows with ``inlink_score``, ``inlink_distance`` and columns of the scorings;
            a new row has only a key.
        known_count: Number of known rows.
        tried: Whether each row has an event, which is newer than the row.
        events: The events of the tried rows, in the order of the rows: columns ``event.*``.
        inherited: What targets of redirects inherit: columns of ``INHERITANCE``, and ``at`` in
            ``rows``.
        counts: Of changes that were left out, and of new rows.
    """

    rows: pl.DataFrame
    known_count: int
    tried: npt.NDArray[np.bool_]
    events: pl.DataFrame
    inherited: pl.DataFrame
    counts: Counts


def join_changes(
    rows: StateRows, changes: pl.DataFrame, facts: RangeFacts, rules: UpdateRules
) -> JoinedRows:
    """Joins the changes of a batch with the rows of one range of keys.

    Args:
        rows: STATE rows in key order.
        changes: CHANGES rows, for keys in the same range.
        facts: What the table has outside the range.
        rules: Limits of new URLs, and the scorings.
    """
    known_count, now, scorings = len(rows), facts.now, rules.scorings
    changes, fresh = _number_changes(rows, changes)
    total = known_count + len(fresh)
    events, links = _timely(_events(changes), now), _links(changes, scorings)
    event_of = index_by_number(events, total)
    part, stale = _left_out(events.filter(pl.col("at") < known_count), rows, now)
    event_of[part], event_of[stale] = -1, -1
    new, dropped = links.clear(), Counts()
    if len(fresh):
        is_new = pl.col("at") >= known_count
        to_new = links.filter(is_new & ~pl.col("known_only").fill_null(False)).drop("known_only")
        to_new = to_new.with_columns(key=fresh.gather(to_new.get_column("at") - known_count))
        pages = _pages(changes, events).with_columns(is_new=is_new)
        new, dropped = _new_rows(to_new, pages, facts, rules)
    # The number of each row, known and then new, among all keys of the changes.
    at = np.concatenate([np.arange(known_count), new.get_column("at").to_numpy()])
    linked = links.drop("at", "known_only")[nullable(index_by_number(links, total)[:known_count])]
    incoming = pl.concat([rows.hstack(linked), new.drop("at")], how="diagonal")
    event_of = event_of[at]
    tried = event_of >= 0
    if scorings.own:
        own = _own(changes, scorings)
        own_columns = own.drop("at")[nullable(index_by_number(own, total)[at])]
        timely = [column.name for column in scorings.own if not column.if_stale]
        incoming = incoming.hstack(own_columns)
        if timely:
            incoming = incoming.with_columns(pl.when(pl.Series(tried)).then(pl.col(*timely)))
    counts = {
        "added": len(new),
        "stale_results": len(stale),
        "dropped/part_fetched": len(part),
        **dropped,
    }
    timely_events = _complete_events(changes, events[event_of[tried]])
    return JoinedRows(
        incoming, known_count, tried, timely_events, _inheritances(changes, at), counts
    )


def _number_changes(rows: pl.DataFrame, changes: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Returns (changes with ``at``, the keys of the new URLs in order)."""
    at = _find(changes.get_column("key"), rows.get_column("key"))
    unknown = at.is_null()
    if not unknown.any():
        return changes.with_columns(at=at), rows.get_column("key").clear()
    keys = changes.get_column("key").filter(unknown)
    fresh = keys.unique().sort()
    at = at.scatter(unknown.arg_true(), _find(keys, fresh) + len(rows))
    return changes.with_columns(at=at), fresh


def _find(keys: pl.Series, among: pl.Series) -> pl.Series:
    """Returns, for each key, its index among unique keys, or null."""
    # Hashes are found in half of the time. Keys with equal hashes make wrong pairs.
    at = _positions_of_hashes(keys.hash().to_numpy(), among.hash().to_numpy())
    return _positions(keys, among) if (among.gather(at) != keys).any() else at


def _positions_of_hashes(values: _Hashes, among: _Hashes) -> pl.Series:
    """Returns the same as ``_positions`` for hashes; among equal ones it may choose any.

    Most hashes are alone with their last bits: a table by these finds them. The others are joined.
    """
    last_bits = np.uint64((1 << (2 * len(among)).bit_length()) - 1)
    places, numbers = (among & last_bits).view(np.int64), np.arange(len(among), dtype=np.uint32)
    table = np.zeros(int(last_bits) + 1, dtype=np.uint32)
    table[places] = numbers
    at = table[(values & last_bits).view(np.int64)].astype(np.int64)
    missed = np.flatnonzero(among[at] != values) if len(among) else np.arange(len(values))
    crowded = np.flatnonzero(table[places] != numbers)
    matches = _positions(pl.Series(values[missed]), pl.Series(among[crowded]))
    at[missed] = pl.Series(crowded).gather(matches).fill_null(-1)
    return nullable(at)


def _positions(values: pl.Series, among: pl.Series) -> pl.Series:
    """Returns, for each value, the index of one that equals it among others, or null."""
    numbered = among.to_frame("value").with_row_index("at")
    pairs = values.to_frame("value").with_row_index("of").join(numbered, on="value")
    at = np.full(len(values), -1, dtype=np.int64)
    at[pairs.get_column("of").to_numpy()] = pairs.get_column("at").to_numpy()
    return nullable(at)


def index_by_number(frame: pl.DataFrame, total: int) -> Numbers:
    """Returns, for each number, the index of its row in a frame; -1 if it has none."""
    index = np.full(total, -1, dtype=np.int64)
    index[frame.get_column("at").to_numpy()] = np.arange(len(frame))
    return index


def nullable(index: Numbers) -> pl.Series:
    """Returns indexes of rows for polars; null instead of -1."""
    return pl.Series(index).cast(pl.UInt32, strict=False)


def _all_different(numbers: pl.Series) -> bool:
    return bool((np.bincount(numbers.to_numpy()) <= 1).all())


def _first_by_number(frame: pl.DataFrame, *priority: str) -> pl.DataFrame:
    """Returns the first row of each number; nulls come first.

    Args:
        frame: Rows with ``at``.
        priority: Columns that decide which row is the first.
    """
    if _all_different(frame.get_column("at")):
        return frame
    order = frame.select("at", *priority).with_row_index("row").sort("at", *priority, "row")
    rows = order.get_column("row").filter(order.get_column("at").diff().fill_null(1) != 0)
    return frame[rows]


def _events(changes: pl.DataFrame) -> pl.DataFrame:
    """Returns the first event of each URL that was tried, and its ``row`` in the changes.

    It has the columns that decide which event is the first, and the time of the fetch.
    """
    row = changes.get_column("fetch_status").is_not_null().arg_true()
    events = changes.select("at", "part", "order", "fetch_time")[row].with_columns(row=row)
    # The event of a page has priority over that of a part of another page.
    return _first_by_number(events, "part", "order")


def _timely(events: pl.DataFrame, now: int) -> pl.DataFrame:
    """Replaces impossible times of events by the time that counts as now.

    A fetcher whose clock was not set says ``EARLIEST_MS``.
    """
    when = pl.col("fetch_time")
    wrong = (when > now + TOLERANCE_MS) | (when < _FIRST_SITE_MS) | (when == EARLIEST_MS)
    return events.with_columns(pl.when(wrong).then(now).otherwise(when).alias("fetch_time"))


def _complete_events(changes: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Returns all columns of events, as ``event.*``."""
    whole = gather([changes.drop(_NOT_OF_EVENTS)], events.get_column("row"))
    whole = whole.with_columns(events.get_column("fetch_time"))
    return whole.rename(lambda name: f"event.{name}")


def _left_out(events: pl.DataFrame, rows: pl.DataFrame, now: int) -> tuple[Numbers, Numbers]:
    """Returns the numbers of rows whose event does not count: (that of a part, an older one).

    Args:
        events: Events of known rows.
        rows: Known rows.
        now: The time that counts as now, ms. Later times of rows are wrong, and do not count.
    """
    at, last = events.get_column("at"), rows.get_column("last_fetch_time")
    last = last.gather(at)
    stale = ((last > events.get_column("fetch_time")) & (last <= now + TOLERANCE_MS)).fill_null(
        False
    )
    part = events.get_column("part").fill_null(False)
    if part.any():
        part &= _has_own_fetch(rows.select(_OF_FETCHED)[at])
    return at.filter(part).to_numpy(), at.filter(stale & ~part).to_numpy()


def _has_own_fetch(rows: pl.DataFrame) -> pl.Series:
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
    """Returns the score and distance that each URL gets from links, and what scorings pass on."""
    passed = [column.name for column in scorings.passed]
    named = ("at", "order", "inlink_score", "inlink_distance", "known_only", *passed)
    links = changes.select(named)
    links = links.filter(pl.col("inlink_score").is_not_null())
    if _all_different(links.get_column("at")):
        return links.drop("order")
    links = links.sort("order", maintain_order=True)
    return sum_links(links.drop("order"), scorings, "at")


def _own(changes: pl.DataFrame, scorings: Scorings) -> pl.DataFrame:
    """Returns the values of documents for the rows of their pages."""
    own = [column.name for column in scorings.own]
    tried = pl.col("fetch_status").is_not_null()
    events = changes.select("at", "order", "fetch_status", *own).filter(tried)
    if _all_different(events.get_column("at")):
        return events.select("at", *own)
    merged = (column.merge.alias(column.name) for column in scorings.own)
    return events.sort("order", maintain_order=True).group_by("at").agg(*merged)


def _inheritances(changes: pl.DataFrame, at: Numbers) -> pl.DataFrame:
    """Returns what the targets of redirects inherit; see ``JoinedRows``.

    Args:
        changes: All changes.
        at: The number of each row, ascending.
    """
    inheriting = changes.filter(
        pl.col("fetch_status").is_null() & pl.any_horizontal(pl.col(INHERITANCE).is_not_null())
    )
    if inheriting.is_empty():
        return inheriting.select(*INHERITANCE, at=pl.col("at").cast(pl.Int64))
    first = first_inheritances(inheriting.sort("order", maintain_order=True), "at")
    # A new URL that is left out has no row. The numbers of the rows ascend.
    targets = first.get_column("at").to_numpy()
    here = pl.Series(np.searchsorted(at, targets), dtype=pl.Int64)
    return first.select(INHERITANCE).with_columns(at=here).filter(pl.Series(np.isin(targets, at)))


def _pages(changes: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Returns the events of pages, without those of parts, as budgets need them."""
    pages = events.filter(pl.col("part").is_null())
    return pages.hstack(changes["key", "signature"][pages.get_column("row")])


def _new_rows(
    links: pl.DataFrame, pages: pl.DataFrame, facts: RangeFacts, rules: UpdateRules
) -> tuple[pl.DataFrame, Counts]:
    """Returns (new rows of the table with scores and distances from links, counts of the others).

    Args:
        links: Links to URLs that the table does not have. A part of a page is there, because its page
            has a link to it.
        pages: All events of pages, with ``is_new``.
        facts: What the table has outside the range.
        rules: Limits of new URLs.
    """
    fetched = pages.filter("is_new").select("key", "at")
    if not rules.options.additions_allowed:
        refused = len(pl.concat([links.select("key"), fetched.select("key")]).unique())
        return links.clear(), {"dropped/additions_not_allowed": refused}
    # A URL that the fetch followed is already fetched, so budgets do not apply to it.
    followed = links.join(fetched, on="at", how="semi")
    others = links.join(fetched, on="at", how="anti") if len(fetched) else links
    linked, dropped = within_budget(others, pages, rules.options, facts.host_urls)
    linked, full = within_room(linked, facts.room)
    without_link = fetched.join(links, on="at", how="anti")
    new = pl.concat([linked, followed, without_link], how="diagonal")
    return new.sort("at"), {**dropped, **full}
