"""Brings the changes of a batch together with the rows that they are for.

Rows and new URLs are numbered: the rows of the table first, in key order, then the new URLs, in key
order. All else refers to these numbers (column ``at``), because comparing keys is slow.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ...web.base.clock import EARLIEST_MS
from ...web.exchange.status import SUCCESS
from ..hosting.merit import KnownUrls, within_room
from ..links import sum_links
from ..schedules.schedule import TOLERANCE_MS
from ..scoring.scorings import Scorings
from ..traps import BudgetOptions, within_budget

Counts = dict[str, int]
Numbers = npt.NDArray[np.int64]
# What the target of a redirect inherits.
HERITAGE = ("repr_url", "fetch_interval", "fixed_interval", "metadata")


class Arrived(NamedTuple):
    """Rows, known ones and then new ones, with what a batch brings for them.

    Attributes:
        rows: STATE rows with ``inlink_score``, ``inlink_distance`` and the scorings' columns;
            a new row has only a key.
        known: Number of known rows.
        tried: Whether each row has an event, which is newer than the row.
        events: The events of the tried rows, in the order of the rows: columns ``event.*``.
        heirs: What targets of redirects inherit: columns of ``HERITAGE``, and ``at`` in ``rows``.
        counts: Of changes that were left out, and of new rows.
    """

    rows: pl.DataFrame
    known: int
    tried: npt.NDArray[np.bool_]
    events: pl.DataFrame
    heirs: pl.DataFrame
    counts: Counts


def arrive(
    rows: pl.DataFrame,
    changes: pl.DataFrame,
    now: int,
    budgets: BudgetOptions | None,
    elsewhere: KnownUrls,
    scorings: Scorings,
) -> Arrived:
    """Brings the changes of a batch together with the rows of one range of keys.

    Args:
        rows: STATE rows in key order.
        changes: CHANGES rows, for keys in the same range.
        now: The time that counts as now, ms.
        budgets: Limits of new URLs; None: no URL is added.
        elsewhere: What the table has outside the range.
        scorings: The scorings.
    """
    known = len(rows)
    changes, fresh = _numbered(rows, changes)
    total = known + len(fresh)
    events, links = _timely(_events(changes), now), _links(changes, scorings)
    event_of = index_by_number(events, total)
    of_rows = events["event.fetch_time", "event.part"][nullable(event_of[:known])]
    part = _fetched(rows) & of_rows.get_column("event.part").fill_null(False)
    stale = _stale(rows, of_rows.get_column("event.fetch_time"), now).fill_null(False)
    event_of[:known][(stale | part).to_numpy()] = -1
    new, dropped = _new_rows(fresh, known, events, links, budgets, elsewhere)
    # Where each row stands, known and then new, among all that changes name.
    at = np.concatenate([np.arange(known), new.get_column("at").to_numpy()])
    linked = links.drop("key", "at")[nullable(index_by_number(links, total)[:known])]
    incoming = pl.concat([rows.hstack(linked), new.drop("at")], how="diagonal")
    event_of = event_of[at]
    tried = event_of >= 0
    if scorings.own:
        own = _own(changes, scorings)
        found = own.drop("at")[nullable(index_by_number(own, total)[at])]
        timely = [column.name for column in scorings.own if not column.if_stale]
        incoming = incoming.hstack(found)
        if timely:
            incoming = incoming.with_columns(pl.when(pl.Series(tried)).then(pl.col(*timely)))
    counts = {
        "added": len(new),
        "stale_results": int((stale & ~part).sum()),
        "dropped/part_fetched": int(part.sum()),
        **dropped,
    }
    timely_events = _taken(events, event_of[tried]).drop("key", "at")
    return Arrived(incoming, known, tried, timely_events, _heirs(changes, at, total), counts)


def _numbered(rows: pl.DataFrame, changes: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
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
    numbered = among.alias("key").to_frame().with_columns(at=pl.int_range(len(among)))
    found = keys.to_frame("key").join(numbered, on="key", how="left", maintain_order="left")
    return found.get_column("at")


def index_by_number(frame: pl.DataFrame, total: int) -> Numbers:
    """Returns, for each number, the index of its row in a frame; -1 if it has none."""
    index = np.full(total, -1, dtype=np.int64)
    index[frame.get_column("at").to_numpy()] = np.arange(len(frame))
    return index


def nullable(index: Numbers) -> pl.Series:
    """Returns indexes of rows for polars; null instead of -1."""
    return pl.Series(index).replace(-1, None).cast(pl.UInt32)


def _taken(frame: pl.DataFrame, index: Numbers) -> pl.DataFrame:
    """Returns the rows with these indexes; the frame itself if these are all, in order."""
    if len(index) == len(frame) and bool((index == np.arange(len(frame))).all()):
        return frame
    return frame[index]


def _first(frame: pl.DataFrame, *priority: str) -> pl.DataFrame:
    """Returns the first row of each number, in the order of numbers; nulls come first.

    Args:
        frame: Rows with ``at``.
        priority: Columns that decide which row is the first.
    """
    order = frame.select("at", *priority).with_row_index("row").sort("at", *priority, "row")
    rows = order.get_column("row").filter(order.get_column("at").diff().fill_null(1) != 0)
    return _taken(frame, rows.to_numpy().astype(np.int64))


def _events(changes: pl.DataFrame) -> pl.DataFrame:
    """Returns the first event of each URL that was tried, with columns ``event.*``."""
    events = changes.filter(pl.col("fetch_status").is_not_null())
    events = events.drop("inlink_score", "inlink_distance", *HERITAGE)
    # The event of a page has priority over that of a part of another page.
    first = _first(events, "part", "order").drop("order")
    own = ("key", "at")
    return first.rename({name: f"event.{name}" for name in first.columns if name not in own})


def _timely(events: pl.DataFrame, now: int) -> pl.DataFrame:
    """Replaces impossible times of events by the time that counts as now."""
    when = pl.col("event.fetch_time")
    wrong = (when > now + TOLERANCE_MS) | (when <= min(EARLIEST_MS, now - 1))
    return events.with_columns(pl.when(wrong).then(now).otherwise(when).alias("event.fetch_time"))


def _stale(rows: pl.DataFrame, fetched: pl.Series, now: int) -> pl.Series:
    """Returns a mask of the rows that are newer than their event; ignores future times."""
    last = rows.get_column("last_fetch_time")
    return (last > fetched) & (last <= now + TOLERANCE_MS)


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
    passed = [column.name for column in scorings.passed]
    links = changes.select("key", "at", "order", "inlink_score", "inlink_distance", *passed)
    links = links.filter(pl.col("inlink_score").is_not_null())
    if links.get_column("at").n_unique() == len(links):
        return links.drop("order")
    links = links.sort("order", maintain_order=True)
    first = _first(links.select("key", "at"))
    return first.join(sum_links(links.drop("key", "order"), scorings, "at"), on="at")


def _own(changes: pl.DataFrame, scorings: Scorings) -> pl.DataFrame:
    """Returns what documents bring to the rows of their pages."""
    merged = (column.merge.alias(column.name) for column in scorings.own)
    events = changes.filter(pl.col("fetch_status").is_not_null()).sort("order", maintain_order=True)
    return events.group_by("at").agg(*merged)


def _heirs(changes: pl.DataFrame, at: Numbers, total: int) -> pl.DataFrame:
    """Returns what the targets of redirects inherit; see ``Arrived``."""
    given = changes.filter(
        pl.col("fetch_status").is_null() & pl.any_horizontal(pl.col(HERITAGE).is_not_null())
    )
    first = _first(given, "order")
    place = np.full(total, -1, dtype=np.int64)
    place[at] = np.arange(len(at))
    here = pl.Series(place[first.get_column("at").to_numpy()], dtype=pl.Int64)
    return first.select(HERITAGE).with_columns(at=here).filter(pl.col("at") >= 0)


def _new_rows(
    fresh: pl.Series,
    known: int,
    events: pl.DataFrame,
    links: pl.DataFrame,
    budgets: BudgetOptions | None,
    elsewhere: KnownUrls,
) -> tuple[pl.DataFrame, Counts]:
    """Returns (new rows of the table with scores and distances from links, counts of the others).

    Args:
        fresh: Keys that the table does not have.
        known: Number of rows that it has.
        events: All events.
        links: All links.
        budgets: Limits of new URLs; None: no URL is added.
        elsewhere: What the table has outside the range.
    """
    strangers = links.filter(pl.col("at") >= known)
    if fresh.is_empty():
        return strangers, {}
    # A part of a page is in ``strangers``, because its page has a link to it.
    pages = events.filter(pl.col("event.part").is_null())
    fetched = pages.select("key", "at").filter(pl.col("at") >= known)
    if budgets is None:
        refused = len(pl.concat([strangers.select("key"), fetched.select("key")]).unique())
        return strangers.clear(), {"dropped/additions_not_allowed": refused}
    # A URL that the fetch followed is already fetched, so budgets do not apply to it.
    followed = strangers.join(fetched, on="at", how="semi")
    others = strangers.join(fetched, on="at", how="anti") if len(fetched) else strangers
    linked, dropped = within_budget(others, pages, budgets, elsewhere.of_hosts)
    linked, full = within_room(linked, elsewhere.room)
    without_link = fetched.join(strangers, on="at", how="anti")
    new = pl.concat([linked, followed, without_link], how="diagonal")
    return new.sort("at"), {**dropped, **full}
