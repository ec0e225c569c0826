"""Limits against crawler traps: sites with an endless number of URLs.

The budgets need many URLs: they are checked when update adds new URLs to the table. Limits that need
only one URL, except the depth, are in ``scope``. Each URL that is left out has a reason.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import polars as pl

from ..web.base.columns import falses, number_in
from ..web.base.dataclass import dataclass
from ..web.base.options import option
from ..web.urls.domains import registered_domain
from ..web.urls.row_keys import from_host_key
from .base.key_columns import host_keys
from .components.schema import ChangeRows

NewUrlRows: TypeAlias = pl.DataFrame  # ``key``, ``inlink_score`` of URLs without a row


@dataclass(frozen=True)
class DepthOptions:
    """Options of the depth to which links are followed."""

    depth: int = option(
        50,
        "Add no URL that is more links away from the nearest seed; -1: no limit.",
        minimum=-1,
        group="traps",
    )


@dataclass(frozen=True)
class BudgetOptions:
    """Limits of the number of URLs that one update adds to the table."""

    GROUP = "traps"

    max_per_host: int = option(
        10_000_000,
        "How many URLs of one host the table holds, the best by score; -1: no limit. URLs in "
        "files that also have URLs of other hosts do not count, so a host may have some 2,000,000 "
        "more. In Bigtable it limits the URLs that one update adds.",
        minimum=-1,
    )
    max_new_per_host: int = option(
        100_000,
        "How many URLs of one host an update adds at most, the best by score; -1: no limit.",
        minimum=-1,
    )
    max_new_queries: int = option(
        10_000,
        "How many URLs that differ only in their query an update adds at most; -1: no limit.",
        minimum=-1,
    )
    max_new_hosts_per_domain: int = option(
        10_000,
        "For how many hosts of one registered domain an update adds URLs; -1: no limit.",
        minimum=-1,
    )
    domain_budget: float = option(
        2.0,
        "With --scope any: how many URLs of a registered domain the table holds at most, as a "
        "multiple of the domain's share. A domain's share of all URLs grows with the links to it "
        "from domains of seeds, and from domains to which these link. Domains of seeds have no limit; "
        "-1: no limit for any domain.",
        minimum=-1,
    )
    unlinked_domain_budget: int = option(
        10,
        "With --scope any: how many URLs of a registered domain the table holds at most while no link "
        "to the domain counts. A link counts if its page's domain has a seed, or may have at least "
        "this number of URLs itself. Only links that count add new domains. In a small crawl, a domain "
        "with an average share may have domain_budget times this number.",
        minimum=1,
    )
    max_same_pages: int = option(
        20,
        "Add no URL of a host if this many of its last pages in the batch have the same signature; "
        "-1: no limit.",
        minimum=-1,
    )


def within_budget(
    new: NewUrlRows,
    events: ChangeRows,
    options: BudgetOptions,
    host_sizes: Mapping[str, int] | None = None,
) -> tuple[NewUrlRows, dict[str, int]]:
    """Returns the new URLs that the budgets allow, and the counts of the others by reason.

    An update processes one range of keys at a time. A host in two ranges has two budgets.

    Args:
        new: URLs that the table does not have: ``key``, ``inlink_score``.
        events: Fetched pages: ``key``, ``signature``, ``fetch_time``.
        options: The budgets.
        host_sizes: Number of URLs that large hosts (reversed) have already; 0 for other hosts.
    """
    host_sizes = host_sizes or {}
    repeating = _repeating_hosts(events, options.max_same_pages)
    most_known = max(host_sizes.values(), default=0)
    limits = (options.max_per_host, options.max_new_per_host, options.max_new_queries,
              options.max_new_hosts_per_domain)  # fmt: skip
    crowded = any(0 <= most < len(new) + most_known for most in limits)
    if new.is_empty() or not (crowded or len(repeating)):
        return new, {}
    hosts = host_keys(new.get_column("key"))
    sizes = hosts.value_counts().get_column("count")
    largest = int(sizes.max() or 0)  # type: ignore[arg-type]
    total, held = options.max_per_host, pl.col("group").replace_strict(host_sizes, default=0)
    free = total - held.cast(pl.Int64)
    # (reason, limit, largest possible count for this limit, function of rows to keep). A test that
    # cannot drop anything is skipped: most updates have no host with a trap.
    tests: list[tuple[str, int, int, Callable[[pl.DataFrame, pl.Series, int], pl.Series]]] = [
        ("same_pages", 0, len(repeating), lambda _, at, most: ~at.is_in(repeating.implode())),
        (
            "host_total",
            total,
            largest + most_known,
            lambda new, at, _: best_of_groups(new, at, free),
        ),
        ("path_budget", options.max_new_queries, largest, _best_of_paths),
        ("host_budget", options.max_new_per_host, largest, best_of_groups),
        ("domain_budget", options.max_new_hosts_per_domain, len(sizes), _best_hosts),
    ]
    counts: dict[str, int] = {}
    for reason, limit, size, test in tests:
        if 0 <= limit < size and not (allowed := test(new, hosts, limit)).all():
            counts[f"dropped/{reason}"] = int((~allowed).sum())
            new, hosts = new.filter(allowed), hosts.filter(allowed)
    return new, counts


def _keep_all(rows: NewUrlRows) -> pl.Series:
    return ~falses(len(rows))


def best_of_groups(rows: NewUrlRows, groups: pl.Series, most: int | pl.Expr) -> pl.Series:
    """Returns a mask of the best ``most`` rows of each group.

    Args:
        rows: The rows.
        groups: The group of each; null groups have no limit.
        most: The limit, perhaps as an expression on ``group``; null is no limit.
    """
    sizes = groups.alias("group").drop_nulls().value_counts()
    limit = most if isinstance(most, pl.Expr) else pl.lit(most)
    crowds = sizes.with_columns(most=limit).filter(pl.col("count") > pl.col("most"))
    if crowds.is_empty():
        return _keep_all(rows)
    numbered = rows.select("key", "inlink_score", group=groups).with_row_index("at")
    crowded = numbered.join(crowds, on="group")
    order = crowded.sort("inlink_score", "key", descending=[True, False], nulls_last=True)
    beyond = order.filter(number_in("group") >= pl.col("most")).get_column("at")
    return _keep_all(rows).scatter(beyond, False)


def _best_of_paths(rows: NewUrlRows, hosts: pl.Series, most: int) -> pl.Series:
    """Returns a mask of the best rows among those that differ only in their query."""
    place = rows.get_column("key").str.find("?", literal=True)
    at = place.is_not_null().arg_true()
    queries = rows[at]
    paths = queries.get_column("key").str.slice(0, place.drop_nulls())
    return _keep_all(rows).scatter(at, best_of_groups(queries, paths, most))


def _best_hosts(rows: NewUrlRows, hosts: pl.Series, most: int) -> pl.Series:
    """Returns a mask of the rows of the best hosts of each registered domain."""
    names = hosts.unique()
    # A registered domain has at least two labels: if no last two labels have too many hosts, no
    # domain has too many.
    labels = names.str.extract(r"^([^.]*[.][^.]*)").alias("label")
    crowds = labels.drop_nulls().value_counts().filter(pl.col("count") > most).get_column("label")
    if not len(crowds):
        return _keep_all(rows)
    names = names.filter(labels.is_in(crowds.implode()))
    domains = pl.Series([registered_domain(from_host_key(name)) for name in names])
    at = hosts.is_in(names.implode()).arg_true()
    scored = rows[at].select("inlink_score", key=hosts[at]).group_by("key")
    best = scored.agg(pl.col("inlink_score").max())
    domain_of = best.get_column("key").replace_strict(names, domains, return_dtype=pl.String)
    dropped = best.filter(~best_of_groups(best, domain_of, most)).get_column("key")
    return ~hosts.is_in(dropped.implode())


def _repeating_hosts(events: ChangeRows, most: int) -> pl.Series:
    """Returns the hosts whose last ``most`` pages are identical."""
    none = pl.Series([], dtype=pl.String)
    pages = events.select("key", "signature", "fetch_time").filter(
        pl.col("signature").is_not_null()
    )
    # If there are fewer identical pages in total, no host has enough of them.
    if most < 0 or len(pages) - pages.get_column("signature").n_unique() < most - 1:
        return none
    pages = pages.with_columns(host_keys(pages.get_column("key")).alias("host"))
    last = pages.sort("fetch_time", "key", descending=True).filter(number_in("host") < most)
    same = last.group_by("host").agg(pl.len(), alike=pl.col("signature").n_unique() == 1)
    return same.filter(pl.col("alike") & (pl.col("len") >= most)).get_column("host")
