"""What the host table says: who the seeds are, and what was learnt before."""

import functools

import polars as pl

from ..policy.schema import HOSTS
from ..policy.scope import Seeds, seeds_of
from .files import collect, scan
from .manifest import DataFile
from .places import Place


@functools.lru_cache(maxsize=2)
def read_seeds_hosts(root: Place, paths: tuple[str, ...]) -> Seeds:
    """Returns the hosts and domains of the seeds, from the files of the host table."""
    if not paths:
        return Seeds()
    rows = scan([root / path for path in paths], HOSTS).filter(pl.col("seed"))
    return seeds_of(collect(rows.select("key")).get_column("key"))


def read_hosts(root: Place, files: list[DataFile], keys: pl.Series) -> pl.DataFrame:
    """Returns the rows of the given hosts (reversed host names).

    Args:
        root: The table's folder.
        files: Tablets of the host table.
        keys: Sought hosts; only tablets that may hold one are read.
    """
    low, high = keys.min(), keys.max()
    paths = [
        root / file.path
        for file in files
        if len(keys) and str(file.first) <= str(high) and str(file.last) >= str(low)
    ]
    if not paths:
        return pl.DataFrame(pl.from_arrow(HOSTS.empty_table()))
    found = scan(paths, HOSTS).filter(pl.col("key").is_in(keys.unique().implode()))
    return collect(found)


@functools.lru_cache(maxsize=4)
def hosts_backing_off(root: Place, paths: tuple[str, ...], now: int) -> pl.Series:
    """Returns the hosts (reversed) that asked to be left alone until after ``now`` (ms)."""
    if not paths:
        return pl.Series("key", [], dtype=pl.String)
    rows = scan([root / path for path in paths], HOSTS).filter(pl.col("backoff_until") > now)
    return collect(rows.select("key")).get_column("key")
