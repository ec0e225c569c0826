"""Reads and writes the blocks of a graph: a file of nodes and a file of links per block."""

import contextlib
import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from ...policy.components.graph_schema import (
    MOST_BLOCK_NODES,
    Block,
    Piece,
    block_of,
    pack_piece,
    unpack_piece,
)
from ...policy.components.kinds import KINDS
from ...web.base.errors import NothingToDo, UserError
from ..snapshots.manifest import Pinned
from ..storage.file_errors import unreadable
from ..storage.files import new_name
from ..storage.parquet_files import ParquetWriter, collect, columns_with_values, parquet_file, scan
from ..storage.places import Folder, Place, below
from ..table.web_table import WebTable
from ..tablets.file_lists import DataFile

# Decoded links that a process keeps for the next round, in bytes.
KEPT_BYTES = 256 << 20
_LINKS = ("id", "out_links", "counted_links")


@dataclasses.dataclass(frozen=True)
class StoredGraph:
    """A graph of a snapshot.

    Attributes:
        root: Where the table has its files.
        level: One of ``GRAPH_LEVELS``.
        nodes: Files of nodes, a block each; ``order`` is the first id, ``partition`` the number.
        edges: Files of links, one per block of targets; ``order`` is the number of the block.
    """

    table: WebTable
    level: str
    nodes: tuple[DataFile, ...]
    edges: tuple[DataFile, ...]

    @property
    def blocks(self) -> int:
        return len(self.nodes)

    @property
    def all_nodes(self) -> int:
        """Number of nodes."""
        return self.nodes[-1].order + self.nodes[-1].partition if self.nodes else 0

    def block(self, number: int) -> Block:
        block: Block = _DECODED.get(self.nodes, number, lambda: self._read_block(number))
        return block

    def _read_block(self, number: int) -> tuple[Block, int]:
        file = self.nodes[number]
        schema = KINDS[f"{self.level}_nodes"].schema
        rows = collect(scan([self.table / file.path], schema).select(_LINKS))
        if len(rows) < file.partition:  # a purge has removed nodes; their ids stay
            ids = pl.int_range(file.order, file.order + file.partition, dtype=pl.Int64, eager=True)
            whole = ids.alias("id").to_frame()
            rows = whole.join(rows, on="id", how="left", maintain_order="left").fill_null(0)
        block = block_of(number, file.order, self.all_nodes, rows)
        return block, block.out_links.nbytes + block.counted_links.nbytes

    def keys(self, number: int) -> pl.DataFrame:
        """Returns the rows of a block's nodes, in key order."""
        file = self.nodes[number]
        return collect(scan([self.table / file.path], KINDS[f"{self.level}_nodes"].schema))

    def pieces(
        self, sources: int, targets: int, chosen: Iterable[bool] | None = None
    ) -> Iterator[Piece]:
        """Yields the links from one block to another one; ``chosen`` says which pieces to read."""
        path = self.table / self.edges[targets].path
        groups = _groups(path).get(sources, [])
        for group in groups if chosen is None else itertools.compress(groups, chosen):
            make = functools.partial(self._read_piece, path, group, (sources, targets))
            yield _DECODED.get(self.nodes, (path, group), make)

    def _read_piece(self, path: Place, group: int, blocks: tuple[int, int]) -> tuple[Piece, int]:
        with _file_of_links(path) as file:
            piece = unpack_piece(file.read_row_group(group).to_pylist()[0])
            for positions, block in zip(piece[:2], blocks, strict=True):
                if len(positions) and positions.max() >= self.nodes[block].partition:
                    raise ValueError(f"a link is to a node that block {block} does not have")
        return piece, piece.nbytes


def stored_graph(pinned: Pinned, level: str) -> StoredGraph:
    """Returns the graph of a snapshot.

    Raises:
        NothingToDo: There is none, or it has no nodes.
        UserError: Its list of files was rebuilt.
    """
    nodes, edges = (
        tuple(sorted(pinned.files(f"{level}_{kind}"), key=lambda file: file.order))
        for kind in ("nodes", "edges")
    )
    hint = f"nutbeam webgraph {pinned.address}" + (f" --level {level}" if level != "page" else "")
    if not nodes:
        raise NothingToDo(
            f"nothing to do: table {pinned.address} has no links between {level}s, or no graph: "
            f"run {hint}"
        )
    ends = [file.order + file.partition for file in nodes]
    if len(edges) != len(nodes) or [0, *ends[:-1]] != [file.order for file in nodes]:
        raise UserError(
            f"the graph of {level}s in table {pinned.address} is incomplete: run {hint}"
        )
    if max(file.partition for file in nodes) > 2 * MOST_BLOCK_NODES:
        raise UserError(f"a block of the graph of {level}s in table {pinned.address} is too large")
    return StoredGraph(pinned.table, level, nodes, edges)


def ranked_files(pinned: Pinned, level: str, rank: str) -> list[DataFile]:
    """Returns the files of ranks, in the order of the ids.

    Raises:
        NothingToDo: The rank was not computed.
    """
    files = sorted(pinned.files(f"{level}_ranks"), key=lambda file: file.order)
    if not any(columns_with_values(pinned.table / file.path, {rank}) for file in files):
        method = "hits" if rank in ("authority", "hub") else rank
        hint = f"--ranking {method}" + (f" --level {level}" if level != "page" else "")
        raise NothingToDo(
            f"nothing to do: table {pinned.address} has no {rank} of {level}s: "
            f"run nutbeam linkrank {pinned.address} {hint}"
        )
    return files


def write_nodes(root: Folder, level: str, first: int, rows: pl.DataFrame) -> DataFile:
    """Writes the nodes of a block; ``first`` is the id of the first one."""
    keys = rows.get_column("key")
    file = _write(root, f"{level}_nodes", [rows], first, (keys.min(), keys.max()))
    return dataclasses.replace(file, partition=len(rows))


def write_ranks(root: Folder, level: str, first: int, rows: pl.DataFrame) -> DataFile:
    """Writes the ranks of a block; ``first`` is the id of its first node."""
    keys = rows.get_column("key")
    return _write(root, f"{level}_ranks", [rows], first, (keys.min(), keys.max()))


def write_edges(
    root: Folder, level: str, block: int, pieces: Iterable[tuple[int, Piece]]
) -> DataFile:
    """Writes the links to a block.

    Args:
        root: Where the table has its files.
        level: One of ``GRAPH_LEVELS``.
        block: Number of the block of the targets.
        pieces: (number of the block of the sources, links), in the order of these numbers.
    """
    keys: list[str] = []

    def rows() -> Iterator[pl.DataFrame]:
        for number, (source, piece) in enumerate(pieces):
            keys.append(f"{block:06d}/{source:06d}/{number:06d}")
            yield pack_piece(keys[-1], piece)

    file = _write(root, f"{level}_edges", rows(), block, (None, None))
    return dataclasses.replace(
        file, first=keys[0] if keys else None, last=keys[-1] if keys else None
    )


def _write(
    root: Folder, kind: str, frames: Iterable[pl.DataFrame], order: int, bounds: Sequence
) -> DataFile:
    path = root / kind / new_name()
    with ParquetWriter(
        path, KINDS[kind].schema, plain=("key", "id", "sources", "targets")
    ) as writer:
        for frame in frames:
            writer.write(frame)
        size = writer.close()
    first, last = bounds
    rows, crc32 = writer.rows, writer.crc32
    return DataFile(below(root, path), rows, size, first, last, order=order, crc32=crc32)


@functools.lru_cache(maxsize=1024)
def _groups(path: Place) -> dict[int, list[int]]:
    """Returns the row groups of a file of links, by the block of their sources."""
    groups_by_source: dict[int, list[int]] = {}
    with _file_of_links(path) as file:
        for group, key in enumerate(file.read(["key"]).column("key").to_pylist()):
            groups_by_source.setdefault(int(key.split("/")[1]), []).append(group)
    return groups_by_source


@contextlib.contextmanager
def _file_of_links(path: Place) -> Iterator[pq.ParquetFile]:
    """Opens a file of links; what is decoded in the context may show damage."""
    with parquet_file(path) as file:
        try:
            yield file
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise unreadable(path, error) from error


class _DecodedCache:
    """Keeps what was decoded first, up to ``KEPT_BYTES``.

    Rounds read everything in the same order. So items stay: a cache that drops the oldest item
    would drop each one before it is read again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: dict[Hashable, Any] = {}
        self._bytes = 0
        self._graph: Hashable = None

    def get(self, graph: Hashable, key: Hashable, make: Callable[[], tuple[Any, int]]) -> Any:
        """Returns an item from the cache, or makes it.

        Args:
            graph: The graph; items of another one are dropped.
            key: Key of the item.
            make: Returns the item and its size in bytes.
        """
        with self._lock:
            if graph != self._graph:
                self._items.clear()
                self._graph, self._bytes = graph, 0
            if key in self._items:
                return self._items[key]
        item, size = make()
        with self._lock:
            if graph == self._graph and key not in self._items and self._bytes + size <= KEPT_BYTES:
                self._items[key] = item
                self._bytes += size
        return item


_DECODED = _DecodedCache()
