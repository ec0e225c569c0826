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
    found = links.filter(pl.col("gone_since").is_null()).with_columns(
        time="last_seen", first="first_seen", gone=pl.lit(False)
    )
    counts: dict[str, int] = {}
    if rules is not None:
        for name in ("target", "source"):
            keys = found.get_column(name)
            judged = rules.admit(from_keys(keys), "linkdb", filters=filters)
            found = found.with_columns(judged.get_column("key").alias(name))
        admitted = found.drop_nulls(["target", "source"])
        counts["dropped/filtered"] = len(found) - len(admitted)
        found = admitted.filter(pl.col("target") != pl.col("source"))
        counts["dropped/own_url"] = len(admitted) - len(found)
    keys = link_keys(found.get_column("target"), found.get_column("source"))
    found = found.with_columns(keys).select(LINK_CHANGES.names)
    return found, {reason: count for reason, count in counts.items() if count}
