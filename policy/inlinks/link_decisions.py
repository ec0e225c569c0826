"""Decides which links end, which changes of links are left out, and which links of another table count."""

import polars as pl

from ...web.rules.url_rules import UrlRules
from ...web.urls.key_columns import from_keys
from ..components.blocklist import Blocklist
from ..components.link_rows import link_keys
from .edges import LINK_CHANGES, with_halves


def drop_blocked_links(
    changes: pl.DataFrame, blocklist: Blocklist
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the changes of links between pages that were not purged, and the number of others."""
    if not blocklist:
        return changes, {}
    ends = with_halves(changes)
    blocked = blocklist.blocks(ends["target"]) | blocklist.blocks(ends["source"])
    return changes.filter(~blocked), {"dropped/purged": int(blocked.sum())}


def drop_outdated_links(
    changes: pl.DataFrame, source_rows: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, int]]:
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


def end_unseen_links(old_rows: pl.DataFrame, source_rows: pl.DataFrame) -> pl.DataFrame:
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
    links: pl.DataFrame, rules: UrlRules | None, *, filters: bool
) -> tuple[pl.DataFrame, dict[str, int]]:
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
