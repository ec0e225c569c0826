"""Decides about links: which end, which changes are left out, and what changes make of the link table."""

from typing import TypeAlias

import polars as pl

from ...web.base.clock import TOLERANCE_MS
from ...web.rules.url_rules import UrlRules
from ..base.key_columns import from_keys
from ..components.blocklist import Blocklist
from ..components.clocks import COUNT, RightTimes, set_right
from ..components.link_rows import INLINKS, INLINKS_COLUMNS, LinkRows, link_keys
from ..components.schema import conform_frame
from .edges import LINK_CHANGES, LinkChangeRows, merge_rows, with_halves

SourceRows: TypeAlias = pl.DataFrame  # ``source``, ``since``, ``lives``; see ``read_source_rows``
_NEW = ("anchor", "rel", "score")
_FIRST = pl.min_horizontal("first", "time")


def drop_blocked_links(
    changes: LinkChangeRows, blocklist: Blocklist
) -> tuple[LinkChangeRows, dict[str, int]]:
    """Returns the changes of links between pages that were not purged, and the number of others."""
    if not blocklist:
        return changes, {}
    ends = with_halves(changes)
    blocked = blocklist.blocks(ends["target"]) | blocklist.blocks(ends["source"])
    return changes.filter(~blocked), {"dropped/purged": int(blocked.sum())}


def drop_outdated_links(
    changes: LinkChangeRows, source_rows: SourceRows
) -> tuple[LinkChangeRows, dict[str, int]]:
    """Returns the links that are not older than what this table knows of their pages, and counts.

    So an older copy of the table does not bring back links that have ended, even if no row says so
    any more: none does after a compact, and in Bigtable.

    Args:
        changes: LINK_CHANGES rows.
        source_rows: ``source``, ``since``; see ``read_source_rows``.
    """
    times = changes.join(source_rows, on="source", how="left", maintain_order="left")
    newer_links = changes.filter((times["time"] >= times["since"]).fill_null(True))
    left_out = len(changes) - len(newer_links)
    return newer_links, {"dropped/outdated": left_out} if left_out else {}


def end_unseen_links(old_rows: LinkRows, source_rows: SourceRows) -> LinkChangeRows:
    """Returns tombstones for links that were not seen for too long.

    A link stays as long as the newest document of its page has it, however old that is.

    Args:
        old_rows: Rows of the link table that were not seen for long: ``key``, ``source``,
            ``last_seen``.
        source_rows: ``source``, ``since``, ``lives``; see ``read_source_rows``.
    """
    rows = old_rows.join(source_rows, on="source", how="left", maintain_order="left")
    stands = pl.col("lives") & (pl.col("last_seen") >= pl.col("since"))
    return rows.filter(~stands.fill_null(False)).select("key", time="last_seen", gone=pl.lit(True))


def merged_links(
    links: LinkRows, rules: UrlRules | None, *, filters: bool
) -> tuple[LinkChangeRows, dict[str, int]]:
    """Returns the links of another table as changes of this one.

    Args:
        links: Rows of the link table.
        rules: Normalizers, and filters; None leaves all links as they are.
        filters: Whether to filter, too. A target that is refused has no links then.

    Returns:
        (LINK_CHANGES rows; numbers of links that were left out, by reason).
    """
    changes = links.filter(pl.col("gone_since").is_null()).with_columns(
        time="last_seen", first="first_seen", gone=pl.lit(False)
    )
    counts: dict[str, int] = {}
    if rules is not None:
        for name in ("target", "source"):
            keys = changes.get_column(name)
            judged = rules.admit(from_keys(keys), "linkdb", filters=filters)
            changes = changes.with_columns(judged.get_column("key").alias(name))
        admitted = changes.drop_nulls(["target", "source"])
        counts["dropped/filtered"] = len(changes) - len(admitted)
        changes = admitted.filter(pl.col("target") != pl.col("source"))
        counts["dropped/own_url"] = len(admitted) - len(changes)
    keys = link_keys(changes.get_column("target"), changes.get_column("source"))
    changes = changes.with_columns(keys).select(LINK_CHANGES.names)
    return changes, {reason: count for reason, count in counts.items() if count}


def apply_links(
    rows: LinkRows, changes: LinkChangeRows, now: int
) -> tuple[LinkRows, dict[str, int]]:
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
    link_rows: LinkRows, added: LinkRows, names: list[str], counts: dict[str, int]
) -> tuple[LinkRows, dict[str, int]]:
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


def _newest(seen: LinkChangeRows) -> LinkChangeRows:
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
