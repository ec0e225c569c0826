"""Reads links to registered domains, and numbers of their URLs, from the host table."""

import functools
from collections.abc import Mapping

import polars as pl

from ...policy.components.schema import HOSTS, empty
from ...policy.hosting.host_counts import urls_of_domains
from ...policy.hosting.merit import Merits, Room, merits_of, room_of_domains
from ...policy.traps import BudgetOptions
from ...web.urls.row_keys import host_key
from ..snapshots.operations import Operation
from ..tablets.tablets import tablets
from .hosts import pending_counts, read_seeds_hosts, seed_files

_COLUMNS = ("key", "linking_domains", "domain_urls")


def _urls_of(operation: Operation, domains: pl.Series) -> pl.DataFrame:
    """Returns ``key`` and present ``domain_urls`` of domains (reversed)."""
    known, columns = tablets(operation.files("hosts")), ("key", "domain_urls")
    rows = operation.table.find("hosts", known, domains, columns).select(columns)
    added = _pending_urls(operation).filter(pl.col("key").is_in(domains.implode()))
    return pl.concat([rows, added]).group_by("key").agg(pl.col("domain_urls").sum())


@functools.lru_cache(maxsize=2)
def _pending_urls(operation: Operation) -> pl.DataFrame:
    return urls_of_domains(pending_counts(operation))


@functools.lru_cache(maxsize=2)
def seed_domains(operation: Operation) -> frozenset[str]:
    """Returns the registered domains of seeds, reversed."""
    seeds = read_seeds_hosts(operation.table, seed_files(operation))
    return frozenset(map(host_key, seeds.domains))


def domain_merits(operation: Operation, options: BudgetOptions) -> Merits:
    """Returns the merits of all domains; each process reads three columns of the host table."""
    return _merits(operation, options.domain_budget, options.unlinked_domain_budget)


@functools.lru_cache(maxsize=2)
def _merits(operation: Operation, budget: float, unlinked: int) -> Merits:
    frames, urls = [], int(_pending_urls(operation).get_column("domain_urls").sum())
    for tablet in tablets(operation.files("hosts")):
        rows = operation.table.read("hosts", [tablet], _COLUMNS).select(_COLUMNS)
        urls += int(rows.get_column("domain_urls").sum())
        frames.append(rows.drop("domain_urls").drop_nulls())
    hosts = pl.concat([empty(HOSTS).select("key", "linking_domains"), *frames])
    options = BudgetOptions(domain_budget=budget, unlinked_domain_budget=unlinked)
    return merits_of(hosts, seed_domains(operation), urls, options)


def domain_room(operation: Operation, options: BudgetOptions) -> Room:
    """Returns the function that finds the room of domains; domains of seeds have no limit."""

    def room(domains: pl.Series) -> Mapping[str, int]:
        merits = domain_merits(operation, options)
        limited = domains.filter(~domains.is_in(list(merits.seeds)) & (domains != ""))
        if not len(limited):
            return {}
        return room_of_domains(_urls_of(operation, limited), limited.to_list(), merits)

    return room
