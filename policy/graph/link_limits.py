"""Chooses the links that count in the web graph, by Nutch's rules.

A page may link many times to one site, so that links within a site and repeated links would
decide the ranks. Nutch's defaults keep no link within a domain, and one link from a page to each
foreign domain.
"""

import dataclasses

import polars as pl

from ...web.base.options import option
from ..selection import groups

# The nodes of a graph: URLs, hosts or registered domains.
GRAPH_LEVELS = ("page", "host", "domain")


@dataclasses.dataclass(frozen=True)
class LinkLimits:
    """Options that say which links count."""

    GROUP = "webgraph"

    ignore_internal_host: bool = option(
        True, "Leave out links between pages of one host.", nutch="link.ignore.internal.host"
    )
    ignore_internal_domain: bool = option(
        True,
        "Leave out links between pages of one registered domain.",
        nutch="link.ignore.internal.domain",
    )
    limit_page: bool = option(
        True,
        "Count one link from a page to a URL without its query, and one link from such a URL.",
        nutch="link.ignore.limit.page",
    )
    limit_domain: bool = option(
        True,
        "Count one link from a page to each registered domain, and one link from each domain to a "
        "page.",
        nutch="link.ignore.limit.domain",
    )


def limit_links(edges: pl.DataFrame, limits: LinkLimits) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the links that count, in their order, and the numbers of the others by reason.

    Args:
        edges: Columns ``source`` and ``target`` (row keys). All links of a source must be there,
            in the order in which the page has them: the first one counts.
        limits: The rules. A link of a page to itself, and a repeated link, never count.

    >>> edges = pl.DataFrame({"source": ["a.x:http/"] * 3,
    ...     "target": ["a.y:http/1", "a.y:http/1", "a.x:http/2"]})
    >>> limit_links(edges, LinkLimits())
    (shape: (1, 2)
    ┌───────────┬────────────┐
    │ source    ┆ target     │
    │ ---       ┆ ---        │
    │ str       ┆ str        │
    ╞═══════════╪════════════╡
    │ a.x:http/ ┆ a.y:http/1 │
    └───────────┴────────────┘, {'dropped/internal': 1, 'dropped/repeated': 1})
    """
    rows = edges.select("source", "target")
    counts: dict[str, int] = {}

    def kept(left: pl.DataFrame, reason: str) -> pl.DataFrame:
        if len(left) < len(rows):
            name = f"dropped/{reason}"
            counts[name] = counts.get(name, 0) + len(rows) - len(left)
        return left

    rows = kept(rows.filter(pl.col("source") != pl.col("target")), "self_link")
    if limits.ignore_internal_domain or limits.limit_domain:
        rows = rows.with_columns(
            domain=groups(rows.get_column("target"), "domain"),
            own=groups(rows.get_column("source"), "domain"),
        )
    if limits.ignore_internal_domain:
        rows = kept(rows.filter(pl.col("domain") != pl.col("own")), "internal")
    elif limits.ignore_internal_host:
        hosts = groups(rows.get_column("target"), "host")
        rows = kept(rows.filter(hosts != groups(rows.get_column("source"), "host")), "internal")
    once = ["source", "target"]
    rows = kept(rows.unique(once, keep="first", maintain_order=True), "repeated")
    if limits.limit_page:
        page = page_of(pl.col("target"))
        rows = rows.with_columns(page=page)
        rows = kept(
            rows.unique(["source", "page"], keep="first", maintain_order=True), "limit_page"
        )
    if limits.limit_domain:
        some = rows.unique(["source", "domain"], keep="first", maintain_order=True)
        rows = kept(some, "limit_domain")
    return rows.select(once), dict(sorted(counts.items()))


def count_sources(edges: pl.DataFrame, limits: LinkLimits) -> pl.Series:
    """Returns which links count when the links to a page are summed: at most one per domain.

    Args:
        edges: Columns ``target``, ``source``, ``domain`` and ``page`` (of the source). The first
            of equal ones counts.
        limits: The rules.
    """
    counts = pl.repeat(True, pl.len())
    if limits.limit_page:
        counts = counts & pl.struct("target", "page").is_first_distinct()
    if limits.limit_domain:
        counts = counts & pl.struct("target", "domain").is_first_distinct()
    return edges.select(counts=counts).get_column("counts")


def page_of(keys: pl.Expr) -> pl.Expr:
    """Returns row keys without their query, in lower case (Nutch's page of a URL)."""
    return keys.str.split("?").list.first().str.to_lowercase()


def to_level(edges: pl.DataFrame, level: str) -> pl.DataFrame:
    """Returns links between the hosts or domains of the given links; each link may be repeated.

    >>> edges = pl.DataFrame({"source": ["com.a.www:http/"], "target": ["com.b:http/x"]})
    >>> to_level(edges, "domain").rows()
    [('com.a', 'com.b')]
    """
    if level == "page":
        return edges.select("source", "target")
    return edges.select(
        groups(edges.get_column("source"), level).alias("source"),
        groups(edges.get_column("target"), level).alias("target"),
    )
