"""Reads what the host index is made of, and writes its files."""

import polars as pl

from ...policy.components.archive_rows import HOST_INDEX, HostIndexRows
from ...policy.components.graph_schema import NodeRows
from ...policy.components.kinds import KINDS
from ..snapshots.pinned import Pinned
from ..storage.files import names, remove_file
from ..storage.parquet_files import ParquetWriter, collect, scan
from ..storage.places import Place

_RANKS = KINDS["host_ranks"]
_RANK_COLUMNS = ("harmonic", "pagerank")


def host_ranks(pinned: Pinned) -> NodeRows:
    """Returns the ranks of all hosts: their keys, harmonic centrality and PageRank."""
    return collect(_scan_ranks(pinned).select("key", *_RANK_COLUMNS))


def _scan_ranks(pinned: Pinned) -> pl.LazyFrame:
    paths = [pinned.table / file.path for file in pinned.files(_RANKS.name)]
    return scan(paths, _RANKS.columns.schema)


def host_index_name(number: int, partitions: int) -> str:
    """Returns the name of a file of the host index.

    >>> host_index_name(0, 2)
    'part-00000-of-00002.parquet'
    """
    return f"part-{number:05d}-of-{partitions:05d}.parquet"


def write_host_index(path: Place, rows: HostIndexRows) -> None:
    """Writes a file of the host index."""
    remove_file(path)  # not all stores replace a file
    with ParquetWriter(path, HOST_INDEX) as writer:
        writer.write(rows)


def remove_host_index(folder: Place) -> None:
    """Removes the files of an earlier host index."""
    for name in names(folder):
        remove_file(folder / name)
