"""Chooses the links that count in the web graph, by Nutch's rules.

A page may link many times to one site, so that links within a site and repeated links would
decide the ranks. Nutch's defaults keep no link within a domain, and one link from a page to each
foreign domain.
"""

import dataclasses
from typing import Any, TypeAlias

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ..generating.selection import groups

EdgeRows: TypeAlias = pl.DataFrame  # ``source``, ``target``: row keys, or positions of nodes
# If a chunk has more links of a page, those that cannot count leave before the shuffle.
MANY_LINKS = 4096


@dataclass(frozen=True)
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
        "Treat URLs that differ only in the query or in case as one page: count one link from each "
        "page to them, and one link from them to each page.",
        nutch="link.ignore.limit.page",
    )
    limit_domain: bool = option(
        True,
        "Count one link from a page to each registered domain, and one link from each domain to a "
        "page.",
        nutch="link.ignore.limit.domain",
    )

    @staticmethod
    def of(options: Any) -> "LinkLimits":
        """Returns the limits that wider options have, in attributes of the same names."""
        names = (field.name for field in dataclasses.fields(LinkLimits))
        return LinkLimits(*(getattr(options, name) for name in names))


def limit_links(edges: EdgeRows, limits: LinkLimits) -> tuple[EdgeRows, dict[str, int]]:
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
    rows, internal = foreign_links(edges.select("source", "target"), limits)
    counted_rows, repeated = first_links(rows, limits)
    return counted_rows.select("source", "target"), dict(sorted({**internal, **repeated}.items()))


def foreign_links(edges: EdgeRows, limits: LinkLimits) -> tuple[EdgeRows, dict[str, int]]:
    """Returns the links that leave their page, host or domain, and the numbers of the others.

    Args:
        edges: Columns ``source``, ``target`` and others, in any order.
        limits: The rules.

    Returns:
        (links, with ``domain``: a hash of the target's domain, null if no rule needs it; counts).
    """
    rows = edges.filter(pl.col("source") != pl.col("target"))
    counts = {"self_link": len(edges) - len(rows)}
    domain = pl.lit(None, pl.UInt64)
    if limits.ignore_internal_domain or limits.limit_domain:
        rows = rows.with_columns(domain=groups(rows.get_column("target"), "domain"))
        domain = pl.col("domain").hash()
    foreign_count = len(rows)
    if limits.ignore_internal_domain:
        rows = rows.filter(pl.col("domain") != groups(rows.get_column("source"), "domain"))
    elif limits.ignore_internal_host:
        hosts = groups(rows.get_column("target"), "host")
        rows = rows.filter(hosts != groups(rows.get_column("source"), "host"))
    counts["internal"] = foreign_count - len(rows)
    return rows.with_columns(domain=domain), _reasons(counts)


def first_links(rows: EdgeRows, limits: LinkLimits) -> tuple[EdgeRows, dict[str, int]]:
    """Keeps the first of several links that count as one; counts the others by reason.

    Args:
        rows: From ``foreign_links``; the links of a source are in the order of the page.
        limits: The rules.
    """
    once = [("repeated", ["source", "target"])]
    if limits.limit_page:
        rows = rows.with_columns(_page=page_of(pl.col("target")))
        once.append(("limit_page", ["source", "_page"]))
    if limits.limit_domain:
        once.append(("limit_domain", ["source", "domain"]))
    counts = {}
    for reason, names in once:
        row_count = len(rows)
        rows = rows.unique(names, keep="first", maintain_order=True)
        counts[reason] = row_count - len(rows)
    return rows.drop("_page", strict=False), _reasons(counts)


def group_of(limits: LinkLimits) -> pl.Expr:
    """Returns a number of the links of a page of which at most one counts.

    Links with different numbers never exclude one another.
    """
    same = pl.col("target")
    if limits.limit_domain:
        same = pl.col("domain")
    elif limits.limit_page:
        same = page_of(same)
    return pl.struct(pl.col("source"), same.alias("same")).hash()


def thin_out(rows: EdgeRows, limits: LinkLimits) -> tuple[EdgeRows, dict[str, int]]:
    """Drops links that cannot count, early: of many links of a page to one target one counts.

    Args:
        rows: From ``foreign_links``, with ``position``; not all links of a source.
        limits: The rules.
    """
    sources = rows.get_column("source").value_counts().filter(pl.col("count") > MANY_LINKS)
    if sources.is_empty():
        return rows, {}
    heavy = pl.col("source").is_in(sources.get_column("source").implode())
    ordered = rows.filter(heavy).sort("source", "position", "target", maintain_order=True)
    thinned, counts = first_links(ordered, limits)
    return pl.concat([rows.filter(~heavy), thinned.select(rows.columns)]), counts


def _reasons(counts: dict[str, int]) -> dict[str, int]:
    return {f"dropped/{reason}": number for reason, number in counts.items() if number}


def count_sources(edges: EdgeRows, limits: LinkLimits) -> pl.Series:
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


def to_level(edges: EdgeRows, level: str) -> EdgeRows:
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
