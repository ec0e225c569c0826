"""What the host table says: who the seeds are, and what was learnt before."""

import functools
from collections.abc import Sequence

import polars as pl

from ...policy.clocks import resting
from ...policy.schema import HOSTS
from ...policy.scope import Seeds, seeds_of
from ...web.rules.url_rules import host_keys
from ..bigtable.root import BigtableRoot
from ..snapshots.manifest import Pinned
from ..snapshots.roots import Root
from ..storage.parquet_files import collect, scan
from ..tablets.file_lists import DataFile
from ..tablets.tablets import tablets
from .fold import read_tablets, rows_of_keys

# Which files say who the seeds are, of a table whose hosts are no files.
SEED_HOSTS = "seed_hosts"


def seed_files(pinned: Pinned) -> tuple[str, ...]:
    """Returns the paths of the files that say who the seeds are, for ``read_seeds_hosts``."""
    component = SEED_HOSTS if isinstance(pinned.root, BigtableRoot) else "hosts"
    return tuple(file.path for file in pinned.files(component))


@functools.lru_cache(maxsize=2)
def read_seeds_hosts(root: Root, paths: tuple[str, ...]) -> Seeds:
    """Returns the hosts and domains of the seeds, from the files that ``seed_files`` names.

    Runs need not be folded for that: a host that was a seed's stays one.
    """
    if not paths:
        return Seeds()
    rows = scan([root / path for path in paths], HOSTS).filter(pl.col("seed"))
    return seeds_of(collect(rows.select("key")).get_column("key"))


def read_hosts(root: Root, files: Sequence[DataFile], keys: pl.Series) -> pl.DataFrame:
    """Returns the rows of the given hosts (reversed host names).

    Args:
        root: The table's folder.
        files: Files of the host table.
        keys: Sought hosts; only tablets that may hold one are read.
    """
    return rows_of_keys(root, "hosts", tablets(files), keys)


def hosts_backing_off(
    root: Root, files: tuple[DataFile, ...], now: int, keys: pl.Series
) -> pl.Series:
    """Returns the hosts (reversed) that asked to be left alone until after ``now`` (ms).

    Args:
        root: The table's folder.
        files: Files of the host table.
        now: ms.
        keys: Of URLs: their hosts count; others may be among what comes back.
    """
    if isinstance(root, BigtableRoot):
        rows = read_hosts(root, files, host_keys(keys).unique())
        return rows.filter(resting(now)).get_column("key")
    return _backing_off(root, files, now)


@functools.lru_cache(maxsize=4)
def _backing_off(root: Root, files: tuple[DataFile, ...], now: int) -> pl.Series:
    rests = resting(now)
    rows = read_tablets(root, "hosts", tablets(files), ["key"], lambda some: some.filter(rests))
    return rows.get_column("key")
