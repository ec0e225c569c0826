"""Links of another table, normalized and filtered by the rules of this one."""

import polars as pl

from ...web.rules.url_rules import UrlRules
from ...web.urls.key_columns import from_keys
from .edges import LINK_CHANGES
from .link_keys import link_keys


def merged_links(
    links: pl.DataFrame, rules: UrlRules | None, *, filters: bool
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the links of another table as changes of this one.

    Args:
        links: Rows of the link table.
        rules: Normalizers, and filters; None leaves all links as they are.
        filters: Whether to filter, too. A target that is refused has no links then.

    Returns:
        (LINK_CHANGES rows; number of links that were left out).
    """
    found = links.filter(pl.col("gone_since").is_null()).with_columns(
        time="last_seen", first="first_seen", gone=pl.lit(False)
    )
    number = len(found)
    if rules is not None:
        for name in ("target", "source"):
            keys = found.get_column(name)
            admitted = rules.admit(from_keys(keys), "linkdb", filters=filters)
            found = found.with_columns(admitted.get_column("key").alias(name))
        found = found.drop_nulls(["target", "source"])
    keys = link_keys(found.get_column("target"), found.get_column("source"))
    found = found.with_columns(keys).select(LINK_CHANGES.names)
    left_out = number - len(found)
    return found, {"dropped/filtered": left_out} if left_out else {}
