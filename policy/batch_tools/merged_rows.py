"""Rows of several tables become rows of one: Nutch's mergedb."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import polars as pl

from ...web.rules.url_rules import UrlRules
from ..base.key_columns import from_keys, host_keys
from ..components.blocklist import Blocklist, drop_blocked
from ..components.host_rows import seed_host_rows
from ..components.rule_counts import count_reasons
from ..components.schema import STATE, HostRows, StateRows, Status, conform_frame
from ..filtering import BODY_COLUMNS, overlay_all_maps

_FILES = ("document", "page", "batch_id")
# A server that is asked with these answers 304; without the body there would never be a text.
_CONDITIONS = ("etag", "last_modified")
# Columns that do not come from the newest row alone.
_OF_ALL = ("key", "distance", "last_inlink_day", *BODY_COLUMNS)


class MergeRules(NamedTuple):
    """Which rows of another table arrive, and how.

    Attributes:
        rules: Normalizes and filters URLs; None leaves them as they are.
        filters: Whether to filter them.
        blocklist: Names that the table must not have.
        batches: Batches that this table has, too: their files are here.
    """

    rules: UrlRules | None
    filters: bool
    blocklist: Blocklist
    batches: Collection[str]


def arriving_rows(other_rows: StateRows, how: MergeRules) -> tuple[StateRows, Counter[str]]:
    """Returns the STATE rows of another table as they come into this one, and counts.

    The files with their bodies are not in this table, unless the batches are. Where rules apply, a
    duplicate is compared again: the page that was kept instead may have been left out.
    """
    counts = Counter({"rows": len(other_rows)})
    rows = other_rows.with_columns(moved=pl.lit(False))
    if how.rules is not None:
        keys = rows.get_column("key")
        admitted = how.rules.admit(from_keys(keys), "default", filters=how.filters)
        counts.update(count_reasons(admitted))
        target = admitted.get_column("key")
        rows = rows.with_columns(
            target.alias("key"), moved=target != keys, duplicate_of=pl.lit(None, pl.String)
        ).drop_nulls("key")
        counts.update({"moved": int(rows.get_column("moved").sum())})
    rows, blocked = drop_blocked(rows, how.blocklist)
    counts.update(blocked)
    is_here = pl.col("batch_id").is_in(list(how.batches)) & ~pl.col("moved")
    rows = rows.with_columns(pl.when(is_here.fill_null(False)).then(pl.col(_FILES + _CONDITIONS)))
    return conform_frame(rows, STATE), +counts


def hosts_of_seed_rows(state_rows: StateRows) -> HostRows:
    """Returns HOSTS rows of the hosts of seeds among STATE rows."""
    seeds = state_rows.filter(pl.col("distance") == 0).get_column("key")
    return seed_host_rows(host_keys(seeds))


def merge_state_rows(state_rows: StateRows, arrived: StateRows) -> tuple[StateRows, dict[str, int]]:
    """Merges rows of other tables into the rows of a range of keys.

    Of several rows of a URL the one with the newest fetch counts; then that with the later due time.
    Its metadata is laid over that of the others. It gets the smallest distance, and the latest day of
    a link. If its body is in no file of this table, what the table has about the newest body stays.

    Args:
        state_rows: STATE rows in key order.
        arrived: STATE rows for keys in the same range; a key may be there several times.

    Returns:
        (STATE rows in key order, counts).
    """
    keys = arrived.get_column("key")
    hashes = keys.hash()  # two keys with one hash only take the longer way
    is_alone = hashes.is_unique() & ~hashes.is_in(state_rows.get_column("key").hash().implode())
    if is_alone.all():
        rows = pl.concat([state_rows, arrived]).sort("key")
        return rows, {"added": len(arrived)} if len(arrived) else {}
    alone, arrived = arrived.filter(is_alone), arrived.filter(~is_alone)
    met = pl.col("key").is_in(arrived.get_column("key").implode())
    resident = state_rows.filter(met)
    together = pl.concat(
        [arrived.with_columns(own=pl.lit(False)), resident.with_columns(own=pl.lit(True))]
    )
    was_fetched = pl.col("status") != int(Status.DB_UNFETCHED)
    ordered = together.with_columns(
        fetched=pl.when(was_fetched).then("last_fetch_time").fill_null(0),
        has_body=pl.col("document").is_not_null() | pl.col("page").is_not_null(),
    ).sort("key", "fetched", "fetch_time", "own", maintain_order=True)
    newest_columns = [name for name in state_rows.columns if name not in _OF_ALL]
    body = pl.col(BODY_COLUMNS)
    united = ordered.group_by("key", maintain_order=True).agg(
        pl.col(*newest_columns, "own").last(),
        pl.col("distance").min(),
        pl.col("last_inlink_day").max(),
        pl.when(pl.col("has_body").any())
        .then(body.filter("has_body").last())
        .otherwise(body.last()),
        maps=pl.col("metadata").drop_nulls(),
    )
    added = len(united) - len(resident) + len(alone)
    replaced = len(resident) - int(united.get_column("own").sum())
    merged = overlay_all_maps(united).select(state_rows.columns)
    rows = pl.concat([state_rows.filter(~met), merged, alone]).sort("key")
    return rows, {name: n for name, n in (("added", added), ("replaced", replaced)) if n}
