"""Admits new URLs by merit: a registered domain may have more, the more foreign domains link to it.

Links of a farm's own domains to one another must not count. So the links of a domain count only
once enough other domains whose links count link to it; those of the domains of seeds count from
the start.
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import polars as pl

from ...web.base.columns import falses
from ...web.rules.url_rules import host_keys
from ..traps import BudgetOptions
from .domain_sketch import number_of_domains
from .host_counts import domain_keys

# How many URLs of each of some registered domains (reversed) may be added; others have no limit.
Room = Callable[[pl.Series], Mapping[str, int]]


class KnownUrls(NamedTuple):
    """What the table has outside the range of keys that is updated.

    Attributes:
        of_hosts: Number of URLs that large hosts (reversed) have already.
        room: Room of registered domains; None: they have no limit.
    """

    of_hosts: Mapping[str, int] | None = None
    room: Room | None = None


def vouching_domains(
    hosts: pl.DataFrame, seeds: Collection[str], options: BudgetOptions
) -> frozenset[str]:
    """Returns the registered domains (reversed) whose links count.

    Args:
        hosts: ``key`` and ``linking_domains`` of domains.
        seeds: Domains of seeds, reversed.
        options: How many domains must link to another one.
    """
    # With few seeds, few domains can link to others at first.
    least = min(options.min_linking_domains, max(1, len(seeds)))
    known = hosts.select("key", "linking_domains").drop_nulls().iter_rows()
    return frozenset(seeds) | {key for key, s in known if number_of_domains(s) >= least}


def room_of_domains(
    hosts: pl.DataFrame, domains: Collection[str], options: BudgetOptions
) -> dict[str, int]:
    """Returns how many URLs of each domain (reversed) an update may add.

    Args:
        hosts: HOSTS rows of domains, with present ``domain_urls``.
        domains: The domains.
        options: The budgets.
    """
    rows = hosts.select("key", "linking_domains", "domain_urls").iter_rows()
    known = {key: (number_of_domains(sketch), urls or 0) for key, sketch, urls in rows}
    found = {}
    for domain in domains:
        linking, urls = known.get(domain, (0, 0))
        # One link is cheap to get, as a comment; many independent ones are not.
        budget = options.unlinked_domain_budget + linking**2 * options.domain_budget
        found[domain] = max(0, budget - urls)
    return found


def within_room(new: pl.DataFrame, room: Room | None) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the best new URLs for which their registered domain has room, and counts.

    Args:
        new: ``key``, ``inlink_score``.
        room: Room of domains.
    """
    if room is None or new.is_empty():
        return new, {}
    domains = domain_keys(host_keys(new.get_column("key")))
    sizes = domains.value_counts().rename({"count": "size"})
    limits = room(domains.unique())
    crowded = {
        domain: limits[domain] for domain, size in sizes.iter_rows()
        if domain in limits and limits[domain] < size
    }  # fmt: skip
    if not crowded:
        return new, {}
    most = domains.replace_strict(
        list(crowded), list(crowded.values()), default=None, return_dtype=pl.Int64
    )
    numbered = new.select("key", "inlink_score", domain=domains, most=most).with_row_index("at")
    order = numbered.filter(pl.col("most").is_not_null()).sort(
        "inlink_score", "key", descending=[True, False], nulls_last=True
    )
    beyond = order.filter(pl.int_range(pl.len()).over("domain") >= pl.col("most"))
    dropped = falses(len(new)).scatter(beyond.get_column("at"), True)
    return new.filter(~dropped), {"dropped/domain_full": len(beyond)}
