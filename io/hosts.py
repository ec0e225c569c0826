"""What the host table says: who the seeds are, and what was learnt before."""

import functools
from collections.abc import Sequence

import polars as pl

from ..policy.schema import HOSTS
from ..policy.scope import Seeds, seeds_of
from .fold import read_tablets
from .manifest import DataFile
from .parquet_files import collect, scan
from .places import Place
from .tablets import tablets


@functools.lru_cache(maxsize=2)
def read_seeds_hosts(root: Place, paths: tuple[str, ...]) -> Seeds:
    """Returns the hosts and domains of the seeds, from the files of the host table.

    Runs need not be folded for that: a host that was a seed's stays one.
    """
    if not paths:
        return Seeds()
    rows = scan([root / path for path in paths], HOSTS).filter(pl.col("seed"))
    return seeds_of(collect(rows.select("key")).get_column("key"))


def read_hosts(root: Place, files: Sequence[DataFile], keys: pl.Series) -> pl.DataFrame:
    """Returns the rows of the given hosts (reversed host names).

    Args:
        root: The table's folder.
        files: Files of the host table.
        keys: Sought hosts; only tablets that may hold one are read.
    """
    low, high = keys.min(), keys.max()
    some = [
        tablet
        for tablet in tablets(files)
        if len(keys) and str(tablet.first) <= str(high) and str(tablet.last) >= str(low)
    ]
    sought = pl.col("key").is_in(keys.unique().implode())
    return read_tablets(root, "hosts", some, HOSTS.names, lambda rows: rows.filter(sought))


@functools.lru_cache(maxsize=4)
def hosts_backing_off(root: Place, files: tuple[DataFile, ...], now: int) -> pl.Series:
    """Returns the hosts (reversed) that asked to be left alone until after ``now`` (ms)."""
    resting = pl.col("backoff_until") > now
    rows = read_tablets(root, "hosts", tablets(files), ["key"], lambda some: some.filter(resting))
    return rows.get_column("key")
