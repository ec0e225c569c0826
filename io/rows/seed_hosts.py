"""Reads the hosts of seeds: each process once, and many of them as a mapped file.

A table may have millions. Processes on one machine that map the same file share its memory.
"""

import functools
from pathlib import Path

import polars as pl
import pyarrow as pa

from ...policy.components.host_rows import Seeds
from ...policy.components.schema import HOSTS
from ...web.base.memory import give_back
from ..snapshots.pinned import Pinned
from ..storage.arrow_files import read_arrow, write_arrow
from ..storage.parquet_files import collect, scan
from ..storage.processes import scratch
from ..table.web_table import WebTable

# Up to this number, hosts stay in memory: a file would cost more than it saves.
_FEW = 100_000


def read_seed_hosts(pinned: Pinned) -> Seeds:
    """Returns the hosts of seeds, in the snapshot that ``pinned`` reads."""
    seeds, _ = _seeds(pinned.table, _paths(pinned))
    return seeds


def seed_hosts_file(pinned: Pinned) -> str:
    """Returns a file of this machine that ``map_seed_hosts`` reads; empty: there are no seeds.

    Raises:
        UserError: See ``scratch`` and ``write_arrow``.
    """
    table, paths = pinned.table, _paths(pinned)
    if not Path(_file(table, paths)).exists():  # the temporary files were removed
        _file.cache_clear()
        _seeds.cache_clear()
    return _file(table, paths)


@functools.lru_cache(maxsize=2)
def map_seed_hosts(path: str) -> Seeds:
    """Returns the hosts of seeds in a file of ``seed_hosts_file``."""
    return Seeds(pl.Series(read_arrow(path)["key"])) if path else Seeds()


def _paths(pinned: Pinned) -> tuple[str, ...]:
    return tuple(file.path for file in pinned.files(pinned.table.seed_component))


@functools.lru_cache(maxsize=2)
def _seeds(table: WebTable, paths: tuple[str, ...]) -> tuple[Seeds, str]:
    """Returns the hosts of seeds, and their file if they are many."""
    seeds = _read(table, paths)
    if len(seeds.host_keys) <= _FEW:
        return seeds, ""
    path = _write(seeds)
    del seeds
    give_back()
    return map_seed_hosts(path), path


@functools.lru_cache(maxsize=2)
def _file(table: WebTable, paths: tuple[str, ...]) -> str:
    seeds, path = _seeds(table, paths)
    return path or (_write(seeds) if len(seeds.host_keys) else "")


def _read(table: WebTable, paths: tuple[str, ...]) -> Seeds:
    """Reads the hosts of seeds.

    Bases and runs are read without folding: once a host is marked as a seed's host, it keeps
    the mark.
    """
    if not paths:
        return Seeds()
    rows = scan([table / path for path in paths], HOSTS).filter(pl.col("seed"))
    keys = collect(rows.select("key")).get_column("key").rechunk()
    # One base has them in order. To sort millions takes longer than to look.
    in_order = bool((keys > keys.shift()).fill_null(True).all())
    return Seeds(keys if in_order else keys.unique().sort())


def _write(seeds: Seeds) -> str:
    # Views, as in memory: other strings would be copied when they are read.
    keys = seeds.host_keys.to_arrow(compat_level=pl.CompatLevel.newest())
    return write_arrow(scratch(), pa.table({"key": keys}))
