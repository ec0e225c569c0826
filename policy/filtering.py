"""Applies today's rules to the URLs that the table has: Nutch's updatedb and mergedb -filter.

A URL that the rules refuse is dropped. A URL that is now normalized to another one moves there; if
the table has that one already, the two rows become one.
"""

from collections import Counter
from typing import NamedTuple, TypeAlias

import polars as pl
import pyarrow as pa

from ..web.base.columns import reason_if
from ..web.base.dataclass import dataclass
from ..web.base.joined_options import joined_options
from ..web.base.options import option
from ..web.rules.url_options import PLUGIN_FAULTS
from .base.key_columns import host_keys
from .components.blocklist import REASON as PURGED
from .components.blocklist import Blocklist
from .components.host_rows import seed_host_rows
from .components.rule_counts import JudgedRows, by_rule, count_reasons
from .components.schema import STATE, TEXT, HostRows, StateRows, Status, conform_frame
from .scope import TargetOptions
from .scoring.orphan import is_orphan, without_link
from .scoring.scoring import OrphanOptions

# The columns that decide whether a row stays.
JUDGED = ("key", "status", "distance", "last_fetch_time", "last_inlink_day", "gone_since")
# The changes of filterdb: a row that moves to its new key, the key of a row that goes, or the key
# of a duplicate whose page goes.
REKEYED = pa.schema([*STATE, ("origin", TEXT), ("gone", pa.bool_()), ("questioned", pa.bool_())])
LeavingRows: TypeAlias = pl.DataFrame  # what ``filter_rows`` returns
RekeyedRows: TypeAlias = pl.DataFrame  # columns of REKEYED
# Duplicates with the page that was kept instead, and pages that go, for a join of the two.
KEPT_PAGE = pa.schema([STATE.field("key"), ("kept", TEXT)])
LEAVING = pa.schema([("kept", TEXT), ("leaves", TEXT)])
# Columns about a body, which files have under the key that it was fetched with.
BODY_COLUMNS = ("signature", "simhash", "etag", "last_modified", "modified_time", "content_type",
                "parse_status", "document", "page", "batch_id", "usage")  # fmt: skip

# Columns that do not simply come from the newest of several rows of one URL.
_OF_ALL = ("key", "distance", "last_inlink_day", "cash", *BODY_COLUMNS)


@dataclass(frozen=True)
class DropOptions(OrphanOptions):
    """Options of dropping URLs by their status and age."""

    GROUP = "filterdb"

    drop_gone: int = option(
        -1,
        "Drop URLs that have been gone for this long; -1 drops none. Rows from before 25 November 2026 do "
        "not have the time when the URL went: for them the time since the last fetch counts.",
        unit="s",
        nutch="db.update.purge.404",
        minimum=-1,
    )
    drop_orphans: int = option(
        -1,
        "Drop orphans to which no link was found for this long, and for --mark_orphan_after at "
        "least, whether or not their status is db_orphan already; -1 drops none.",
        unit="s",
        nutch="db.update.purge.orphans",
        minimum=-1,
    )


@joined_options
class FilterOptions(TargetOptions, DropOptions):
    """Options of filterdb, without those of launching."""


class RowRules(NamedTuple):
    """Which rows go besides those that the rules of URLs refuse.

    Attributes:
        blocklist: Names that no row may move to.
        now: The time that counts as now, ms.
        options: Which URLs go because of their age; None for none.
        family: Under which name rows that go are counted, by reason.
    """

    blocklist: Blocklist
    now: int
    options: DropOptions | None = None
    family: str = "dropped"


def filter_rows(
    rows: StateRows, judged: JudgedRows, rules: RowRules
) -> tuple[LeavingRows, dict[str, int]]:
    """Decides which rows of the table go, and which move to another key.

    Args:
        rows: Rows of the state, with at least the columns ``JUDGED``.
        judged: Verdicts of the rules, one per row: ``key`` of the normalized URL, ``reason``.
        rules: Which rows go besides those that were refused.

    Returns:
        (``key``, ``target`` and ``reason`` of the rows that do not stay where they are, in the same
        order: a row with a reason goes, another one moves to its target; counts).
    """
    blocklist, now, options, family = rules
    # A fault of a plug-in is no verdict: the row stays as it is.
    failed = judged.get_column("reason").str.contains(PLUGIN_FAULTS).fill_null(False)
    judged = judged.with_columns(
        key=pl.when(failed).then(rows.get_column("key")).otherwise("key"),
        reason=pl.when(~failed).then("reason"),
        fault=pl.when(failed).then("reason"),
    )
    reasons = [pl.lit(judged.get_column("reason"))]
    if blocklist:
        reasons.append(reason_if(pl.lit(blocklist.blocks(judged.get_column("key"))), PURGED))
    if options is not None:
        reasons += _too_old(now, options)
    verdicts = rows.select("key", target=judged.get_column("key"), reason=pl.coalesce(reasons))
    counts = Counter(by_rule(judged)) + Counter({"rows": len(rows)})
    counts.update(count_reasons(verdicts, f"{family}/"))
    counts.update(count_reasons(judged.select(pl.col("fault").alias("reason")), "kept/"))
    leaving = verdicts.filter(pl.col("reason").is_not_null() | (pl.col("key") != pl.col("target")))
    return leaving, dict(counts)


def _too_old(now: int, options: DropOptions) -> list[pl.Expr]:
    """Returns the reasons of rows that go because of their status and age."""
    reasons = []
    if options.drop_gone >= 0:
        gone = pl.col("status") == int(Status.DB_GONE)
        old = gone_for(now) >= options.drop_gone
        reasons.append(reason_if(gone & old, "gone"))
    if options.drop_orphans >= 0:
        # Update makes no orphan of a page to which no link was ever found: another program has.
        alone = without_link(now).fill_null(now) >= options.drop_orphans * 1000
        reasons.append(reason_if(is_orphan(now, options) & alone, "orphan"))
    return reasons


def gone_for(now: int) -> pl.Expr:
    """Returns how long a page that is gone has been gone, s; never more than it really is.

    Rows from before 25 November 2026 do not have the time when the page went: for them the time since the
    last fetch counts.

    Args:
        now: The time, ms.

    >>> rows = {"gone_since": [1_000, None], "last_fetch_time": [7_000, 7_000]}
    >>> pl.DataFrame(rows).select(gone_for(9_000)).to_series().to_list()
    [8.0, 2.0]
    """
    return (now - pl.coalesce("gone_since", "last_fetch_time", pl.lit(now))) / 1000


def departures(leaving: LeavingRows) -> RekeyedRows:
    """Returns changes that remove rows from their keys; columns that are null are missing."""
    return leaving.select("key", gone=pl.lit(True))


def arrivals(state_rows: StateRows, leaving: LeavingRows) -> RekeyedRows:
    """Returns changes that add moving rows at their new keys.

    Args:
        state_rows: STATE rows, those that move among them.
        leaving: From ``filter_rows``.
    """
    moving = leaving.filter(pl.col("reason").is_null()).select("key", "target")
    moved = state_rows.join(moving, on="key", maintain_order="left")
    moved = moved.rename({"key": "origin", "target": "key"})
    return conform_frame(moved, REKEYED)


def kept_pages(rows: StateRows) -> pl.DataFrame:
    """Returns KEPT_PAGE rows of the duplicates among rows of the state."""
    return rows.select("key", kept="duplicate_of").drop_nulls("kept")


def leaving_pages(leaving: LeavingRows) -> pl.DataFrame:
    """Returns LEAVING rows of what ``filter_rows`` has found."""
    return leaving.select(kept="key", leaves="key")


def questioned_duplicates(joined: pl.DataFrame) -> RekeyedRows:
    """Returns changes for duplicates whose page leaves: the next dedup compares them again.

    Args:
        joined: KEPT_PAGE rows with ``leaves``, null if the page stays where it is.
    """
    return joined.drop_nulls("leaves").select("key", questioned=pl.lit(True))


def hosts_of_seeds(arrived: RekeyedRows) -> HostRows:
    """Returns HOSTS rows of the hosts that seeds move to, if they leave theirs.

    Args:
        arrived: From ``arrivals``.
    """
    seeds = arrived.filter(pl.col("distance") == 0)
    here, there = (host_keys(seeds.get_column(name)) for name in ("origin", "key"))
    return seed_host_rows(there.filter(here != there))


def rekey_rows(
    state_rows: StateRows, changes: RekeyedRows, now: int
) -> tuple[StateRows, dict[str, int]]:
    """Applies the changes of a filter to the rows of one range of keys.

    Of several rows of one URL the one with the newest fetch stays. Its metadata is laid over that
    of the older ones. It gets the smallest distance, the latest day of a link, and the cash of all,
    so that none is lost: if one has cash, the score of another one counts as its cash. If it was a
    duplicate of one of the others, it no longer is. The row whose key it was before keeps its
    body: files have the body of a row that has moved under its old key. A row without its body is
    due at once, and fetched without conditions.

    Args:
        state_rows: STATE rows in key order.
        changes: REKEYED rows for keys in the same range.
        now: The time that counts as now, ms.

    Returns:
        (the rows that are left, and new ones, in key order; counts).
    """
    leaves = pl.col("gone").fill_null(False)
    gone = changes.filter(leaves).get_column("key")
    questioned = pl.col("questioned").fill_null(False)
    in_question = pl.col("key").is_in(changes.filter(questioned).get_column("key").implode())
    stayed = state_rows.filter(~pl.col("key").is_in(gone.implode()))
    staying = stayed.with_columns(duplicate_of=pl.when(~in_question).then("duplicate_of"))
    arrived = changes.filter(~leaves & ~questioned).drop("gone", "questioned")
    if arrived.is_empty():
        return staying, {}
    met = pl.col("key").is_in(arrived.get_column("key").implode())
    resident = stayed.filter(met).with_columns(origin=pl.lit(None, pl.String))
    together = pl.concat([resident, arrived.select(resident.columns)])
    united = _unite_by_key(together, now).with_columns(
        # A duplicate that has moved, or whose page leaves, is compared again.
        duplicate_of=pl.when(~in_question & pl.col("unmoved")).then("duplicate_of")
    )
    merged = len(together) - len(united)
    due = int(united.get_column("bare").sum())
    counts = {"moved": len(arrived), "merged": merged, "due_again": due}
    everything = pl.concat([staying.filter(~met), united.select(staying.columns)]).sort("key")
    return everything, {name: number for name, number in counts.items() if number}


def _unite_by_key(rows: RekeyedRows, now: int) -> StateRows:
    """Returns one row of each key, with ``bare``: whether it was fetched, and its body is lost.

    Args:
        rows: STATE rows with ``origin``: the key of a row before it moved, or null.
        now: The time that counts as now, ms.
    """
    stayed = pl.col("origin").is_null()
    has_body = pl.col("document").is_not_null() | pl.col("page").is_not_null()
    # The newest is last; if all is equal, the one that stayed, or the smallest old key.
    was = pl.coalesce("origin", "key")
    ordered = rows.with_columns(was=was, stayed=stayed, has_body=has_body).sort(
        ["key", "last_fetch_time", "fetch_time", "stayed", "origin"],
        descending=[False, False, False, False, True],
    )
    newest_columns = [name for name in rows.columns if name not in _OF_ALL]
    is_duplicate = pl.col("status").last() == int(Status.DB_DUPLICATE)
    itself = is_duplicate & (pl.col("was") == pl.col("duplicate_of").last()).any()
    united = ordered.group_by("key", maintain_order=True).agg(
        pl.col(*newest_columns, "has_body").last(),
        pl.col("distance").min(),
        pl.col("last_inlink_day").max(),
        pl.col(BODY_COLUMNS).filter("stayed").first(),
        cash=pl.when(pl.col("cash").count() > 0).then(pl.coalesce("cash", "score").sum()),
        itself=itself.fill_null(False),
        unmoved=pl.col("stayed").last(),
        maps=pl.col("metadata").drop_nulls(),
    )
    bare = pl.col("has_body") & pl.col("document").is_null() & pl.col("page").is_null()
    due = pl.min_horizontal("fetch_time", pl.lit(now))
    united = united.with_columns(
        bare=bare,
        fetch_time=pl.when(bare).then(due).otherwise("fetch_time"),
        status=pl.when("itself").then(int(Status.DB_FETCHED)).otherwise("status").cast(pl.UInt8),
        duplicate_of=pl.when(~pl.col("itself")).then("duplicate_of"),
    )
    return overlay_all_maps(united)


def overlay_all_maps(rows: StateRows) -> StateRows:
    """Sets the metadata of each row to its ``maps``, oldest first, each laid over those before."""
    number = pl.col("maps").list.len()
    one = rows.with_columns(metadata=pl.col("maps").list.last())
    several = rows.with_row_index("at").filter(number > 1)
    if several.is_empty():
        return one
    metadata = one.get_column("metadata").to_list()
    for at, maps in several.select("at", "maps").iter_rows():
        metadata[at] = {name: value for entries in maps for name, value in entries.items()}
    return one.with_columns(pl.Series("metadata", metadata, dtype=rows.schema["metadata"]))
