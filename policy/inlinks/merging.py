"""Links of another table, normalized and filtered by the rules of this one."""

import polars as pl

from ...web.rules.url_rules import UrlRules
from ...web.urls.key_columns import from_keys
from ..components.link_rows import link_keys
from .edges import LINK_CHANGES


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
