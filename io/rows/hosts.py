"""Reads the hosts of seeds from the host table; merges findings into it."""

import functools

import polars as pl

from ...policy.hosts import merge_hosts
from ...policy.schema import HOSTS
from ...policy.scope import Seeds, seeds_of
from ..snapshots.manifest import Pinned
from ..snapshots.operations import Operation
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder
from ..tablets.resolve import Resolver, resolving


def seed_files(pinned: Pinned) -> tuple[str, ...]:
    """Returns the paths of files that name the hosts of seeds; ``read_seeds_hosts`` reads them."""
    return tuple(file.path for file in pinned.files(pinned.root.seed_component))


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


def merge_resolver(operation: Operation) -> Resolver:
    """Returns the resolver of host records."""
    return resolving(functools.partial(merge_hosts, now=operation.now))
