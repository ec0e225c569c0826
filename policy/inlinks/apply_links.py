"""Applies changes to rows of the link table: links appear, are seen again, and die."""

import polars as pl

from ...web.base.clock import TOLERANCE_MS
from ..components.clocks import COUNT, RightTimes, set_right
from ..components.schema import INLINKS, INLINKS_COLUMNS, conform_frame
from .edges import merge_rows, with_halves

_NEW = ("anchor", "rel", "score")
_FIRST = pl.min_horizontal("first", "time")


def apply_links(
    rows: pl.DataFrame, changes: pl.DataFrame, now: int
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns rows of the link table after changes.

    The newest time counts, so batches may come in any order. A link that ends stays as a row with
    ``gone_since``: nothing is rewritten for it. Times later than now are corrected first: a row
    that a clock ahead has left is older than a change of its key.

    Args:
        rows: INLINKS rows in key order.
        changes: LINK_CHANGES rows in any order. A link has priority over a tombstone of its key.
        now: Time in ms.

    Returns:
        (INLINKS rows in key order; counts ``links_added``, ``links_seen``, ``links_gone`` and that
        of corrected rows).
    """
    late = pl.col("time", "first") > now + TOLERANCE_MS
    changes = changes.with_columns(
        pl.when(late).then(now).otherwise(pl.col("time", "first")).name.keep()
    )
    seen = _newest(changes.filter(~pl.col("gone")))
    ended = changes.filter("gone").select("key", "time")
    if len(ended):
        ended = ended.join(seen.select("key"), on="key", how="anti")
    ended = ended.group_by("key").agg(pl.col("time").max().alias("ended"))
    new = seen.join(rows.select("key"), on="key", how="anti") if len(rows) else seen
    added = with_halves(new).with_columns(
        first_seen=_FIRST, last_seen=pl.col("time"), gone_since=pl.lit(None, pl.Int64)
    )
    again = seen.select(
        "key", "time", "first", *(pl.col(name).alias(f"{name}.new") for name in _NEW)
    )
    link_rows = rows.join(again, on="key", how="left", maintain_order="left")
    link_rows = link_rows.join(ended, on="key", how="left", maintain_order="left")
    since = pl.min_horizontal(pl.lit(now, pl.Int64), "time", "ended")
    link_rows, wrong = set_right(INLINKS_COLUMNS, link_rows, RightTimes(now, since))
    return _update_rows(link_rows, added, rows.columns, {COUNT: wrong})


def _update_rows(
    link_rows: pl.DataFrame, added: pl.DataFrame, names: list[str], counts: dict[str, int]
) -> tuple[pl.DataFrame, dict[str, int]]:
    alive, time = pl.col("gone_since").is_null(), pl.col("time")
    newer = (time >= pl.max_horizontal("last_seen", "gone_since")).fill_null(False)
    dies = (alive & (pl.col("ended") >= pl.col("last_seen"))).fill_null(False)
    judged = link_rows.with_columns(_newer=newer, _dies=dies)
    back = judged.select(number=pl.col("_newer") & ~alive).get_column("number").sum()
    counts |= {
        "links_added": len(added) + int(back or 0),
        "links_seen": int(judged.get_column("_newer").sum()) - int(back or 0),
        "links_gone": int(judged.get_column("_dies").sum()),
    }
    changed_rows = judged.with_columns(
        *(pl.when("_newer").then(f"{name}.new").otherwise(name).alias(name) for name in _NEW),
        first_seen=pl.min_horizontal("first_seen", _FIRST),
        last_seen=pl.max_horizontal("last_seen", "time"),
        gone_since=pl.when("_newer").then(None).when("_dies").then("ended").otherwise("gone_since"),
    )
    wide = conform_frame(added, INLINKS)
    rows = pl.concat([changed_rows.select(names), wide.select(names)]).sort("key")
    return rows, {name: number for name, number in counts.items() if number}


def _newest(seen: pl.DataFrame) -> pl.DataFrame:
    """Returns one change per key: those of its newest time in one, with the earliest first time."""
    once = seen.get_column("key").hash().is_unique()  # hashes are quicker than texts
    if once.all():
        return seen
    several = seen.filter(~once).with_columns(first=_FIRST.min().over("key"))
    several = several.filter(pl.col("time") == pl.col("time").max().over("key"))
    # Another order of the changes gives the same row.
    several = several.sort(
        "key", "score", "anchor", "rel", descending=[False, True, False, False], nulls_last=True
    )
    return pl.concat([seen.filter(once), merge_rows(several).select(seen.columns)])
