"""Reads facts about registered domains from the host table: links to them, numbers of their URLs."""

import functools
from collections.abc import Mapping

import polars as pl

from ...policy.hosting.host_counts import urls_of_domains
from ...policy.hosting.merit import Room, room_of_domains, vouching_domains
from ...policy.traps import BudgetOptions
from ...web.urls.row_keys import host_key
from ..snapshots.operations import Operation
from ..tablets.tablets import tablets
from .hosts import pending_counts, read_seeds_hosts, seed_files

_COLUMNS = ("key", "linking_domains", "domain_urls")


def find_domains(operation: Operation, domains: pl.Series) -> pl.DataFrame:
    """Returns ``key``, ``linking_domains`` and present ``domain_urls`` of domains (reversed)."""
    known = tablets(operation.files("hosts"))
    rows = operation.root.find("hosts", known, domains, _COLUMNS).select(_COLUMNS)
    added = _pending_urls(operation).rename({"domain_urls": "added"})
    added = added.filter(pl.col("key").is_in(domains.implode()))
    both = rows.join(added, on="key", how="full", coalesce=True)
    urls = pl.col("domain_urls").fill_null(0) + pl.col("added").fill_null(0)
    return both.select("key", "linking_domains", domain_urls=urls)


@functools.lru_cache(maxsize=2)
def _pending_urls(operation: Operation) -> pl.DataFrame:
    return urls_of_domains(pending_counts(operation))


@functools.lru_cache(maxsize=2)
def seed_domains(operation: Operation) -> frozenset[str]:
    """Returns the registered domains of seeds, reversed."""
    seeds = read_seeds_hosts(operation.root, seed_files(operation))
    return frozenset(map(host_key, seeds.domains))


def vouching_among(
    operation: Operation, domains: pl.Series, options: BudgetOptions
) -> frozenset[str]:
    """Returns those of some domains (reversed), and of seeds, whose links count."""
    return vouching_domains(find_domains(operation, domains), seed_domains(operation), options)


def domain_room(operation: Operation, options: BudgetOptions) -> Room:
    """Returns the function that finds the room of domains; domains of seeds have no limit."""

    def room(domains: pl.Series) -> Mapping[str, int]:
        limited = domains.filter(~domains.is_in(list(seed_domains(operation))) & (domains != ""))
        if not len(limited):
            return {}
        return room_of_domains(find_domains(operation, limited), limited.to_list(), options)

    return room
