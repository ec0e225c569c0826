"""Reads links to registered domains, and numbers of their URLs, from the host table."""

import functools

import polars as pl

from ...policy.components.page_facts import DomainFacts, HostRows
from ...policy.components.schema import HOSTS, empty
from ..snapshots.operations import Operation
from ..tablets.tablets import tablets
from .hosts import pending_domain_urls

_COLUMNS = ("key", "linking_domains", "domain_urls")


@functools.lru_cache(maxsize=2)
def read_domain_facts(operation: Operation) -> DomainFacts:
    """Reads three columns of the whole host table; each process reads them once."""
    frames, urls = [], int(pending_domain_urls(operation).get_column("domain_urls").sum())
    for tablet in tablets(operation.files("hosts")):
        rows = operation.table.read("hosts", [tablet], _COLUMNS).select(_COLUMNS)
        urls += int(rows.get_column("domain_urls").sum())
        frames.append(rows.drop("domain_urls").drop_nulls())
    return DomainFacts(pl.concat([empty(HOSTS).select("key", "linking_domains"), *frames]), urls)


def read_domain_urls(operation: Operation, domains: pl.Series) -> HostRows:
    """Reads ``key`` and present ``domain_urls`` of domains (reversed)."""
    if not len(domains):
        return empty(HOSTS).select("key", "domain_urls")
    known_tablets, columns = tablets(operation.files("hosts")), ("key", "domain_urls")
    rows = operation.table.find("hosts", known_tablets, domains, columns).select(columns)
    pending = pending_domain_urls(operation).filter(pl.col("key").is_in(domains.implode()))
    return pl.concat([rows, pending]).group_by("key").agg(pl.col("domain_urls").sum())
