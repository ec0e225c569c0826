"""Reads the hosts of seeds, and numbers of URLs of hosts and domains.

A job that changes rows of the state writes the differences that this makes in the numbers of URLs
of hosts: files of ``host_counts``, in the same commit. The next ``updatedb`` adds them to the host
table. Until then readers add them.
"""

import functools

import polars as pl

from ...policy.components.host_rows import (
    Seeds,
    host_changes,
    seeds_of,
    sum_host_counts,
    urls_of_domains,
)
from ...policy.components.schema import HOST_COUNTS, HOSTS, HostRows, empty
from ..snapshots.manifest import Pinned
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder
from ..tablets.written import Written

HOST_COUNTS_COMPONENT = "host_counts"


def seed_files(pinned: Pinned) -> tuple[str, ...]:
    """Returns the paths of files that name the hosts of seeds; ``read_seeds_hosts`` reads them."""
    return tuple(file.path for file in pinned.files(pinned.table.seed_component))


@functools.lru_cache(maxsize=2)
def read_seeds_hosts(root: Folder, paths: tuple[str, ...]) -> Seeds:
    """Returns the hosts and domains of the seeds, from the files that ``seed_files`` returns.

    Bases and runs are read without folding: once a host is marked as a seed's host, it keeps
    the mark.
    """
    if not paths:
        return Seeds()
    rows = scan([root / path for path in paths], HOSTS).filter(pl.col("seed"))
    return seeds_of(collect(rows.select("key")).get_column("key"))


def pending_counts(pinned: Pinned) -> pl.DataFrame:
    """Returns the HOST_COUNTS rows that are not in the host table yet, one per host."""
    paths = tuple(file.path for file in pinned.files(HOST_COUNTS_COMPONENT))
    return _pending(pinned.table, paths)


@functools.lru_cache(maxsize=2)
def _pending(root: Folder, paths: tuple[str, ...]) -> pl.DataFrame:
    frames = (collect(scan([root / path], HOST_COUNTS)) for path in paths)
    return sum_host_counts(frames)


@functools.lru_cache(maxsize=2)
def _pending_domain_urls(pinned: Pinned) -> pl.DataFrame:
    """Returns ``key`` and ``domain_urls`` of registered domains that ``pending_counts`` adds."""
    return urls_of_domains(pending_counts(pinned))


def read_domain_urls(pinned: Pinned, domains: pl.Series) -> HostRows:
    """Reads ``key`` and present ``domain_urls`` of domains (reversed)."""
    if not len(domains):
        return empty(HOSTS).select("key", "domain_urls")
    columns = ("key", "domain_urls")
    rows = pinned.find_rows("hosts", domains, columns).select(columns)
    pending = _pending_domain_urls(pinned).filter(pl.col("key").is_in(domains.implode()))
    return pl.concat([rows, pending]).group_by("key").agg(pl.col("domain_urls").sum())


@functools.lru_cache(maxsize=2)
def pending_changes(pinned: Pinned) -> pl.DataFrame:
    """Returns HOSTS rows, in key order, that add what ``pending_counts`` returns."""
    counts = pending_counts(pinned)
    return host_changes(counts)


def forgets_pending(pinned: Pinned) -> Written:
    """Returns the part of a commit that removes the pending differences after they were added."""
    paths = tuple(file.path for file in pinned.files(HOST_COUNTS_COMPONENT))
    return Written(HOST_COUNTS_COMPONENT, replaced=paths)
