"""The files of a graph: those of its blocks, and those of a ranking that is under way.

A block has a file of nodes and a file of links. A ranking writes the values of each block after each
round. Their folder has the name of what the ranks depend on: the graph, the method and its rounds. So
a job that is started again continues after the last complete round, whatever its operation id is.
"""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from ...policy.components.graph_schema import (
    MOST_BLOCK_NODES,
    RANK_COLUMNS,
    Block,
    Piece,
    Values,
    block_of,
    join_pieces,
    pack_piece,
    unpack_piece,
)
from ...policy.components.kinds import KINDS
from ...web.base.dataclass import dataclass
from ...web.base.errors import NothingToDo, UserError
from ...web.base.safe_json import json_object
from ..snapshots.pinned import Pinned
from ..storage.file_errors import unreadable
from ..storage.files import LARGEST_BYTES, creating, names, new_name, read_if_there, remove_file
from ..storage.parquet_files import ParquetWriter, collect, columns_with_values, parquet_file, scan
from ..storage.places import Folder, Place
from ..table.web_table import WebTable
from ..tablets.file_lists import DataFile, below

# Start of the names of the folders.
_FOLDER = "rounds-"
_LONGEST_HEAD = 1 << 20
# Decoded links that a process keeps for the next round, in bytes.
KEPT_BYTES = 256 << 20
_LINKS = ("id", "out_links", "counted_links")
_PLAIN = ("key", "id", "sources", "targets", *(column.name for column in RANK_COLUMNS))
# Stored pieces that a round reads at a time: for each piece it makes a sum for each node.
_JOINED_PIECES = 4


@contextlib.contextmanager
def _damage(path: Place) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise unreadable(path, error) from error


@dataclass(frozen=True)
class Receipt:
    """What a block reports after a round.

    Attributes:
        block: Number of the block.
        round: Number of the round; 0 is before the first one.
        totals: Sums over the block.
        changes: The changes of all rounds before.
        ended: Whether no further round is needed.
    """

    block: int
    round: int
    totals: dict[str, float]
    changes: tuple[float, ...] = ()
    ended: bool = False


@dataclass(frozen=True)
class RoundFiles:
    """The folder of a ranking.

    Attributes:
        root: The folder of the table's files.
        name: Its name below the table.
    """

    root: Folder
    name: str

    def _path(self, number: int, block: int) -> Place:
        return self.root / f"{self.name}/{number:04d}-{block:06d}.values"

    def write(self, receipt: Receipt, values: Values) -> None:
        """Writes the values of a block after a round: a line of JSON, and the arrays."""
        arrays = [(name, array.dtype.str, array.shape) for name, array in values.items()]
        head = {"receipt": dataclasses.asdict(receipt), "arrays": arrays}
        with creating(self._path(receipt.round, receipt.block)) as file:
            file.write(json.dumps(head).encode() + b"\n")
            for array in values.values():
                file.write(np.ascontiguousarray(array).data)

    def receipt(self, number: int, block: int) -> Receipt | None:
        """Returns what a block reported after a round, or None if its file is not there."""
        path = self._path(number, block)
        data = read_if_there(path, LARGEST_BYTES)
        if data is None:
            return None
        with _damage(path):
            record: dict[str, Any] = json_object(data.partition(b"\n")[0])["receipt"]
            return Receipt(**record | {"changes": tuple(record["changes"])})

    def values(self, number: int, block: int, wanted: tuple[str, ...] | None = None) -> Values:
        """Returns values of a block after a round; ``wanted`` names those to read."""
        values: Values = {}
        path = self._path(number, block)
        with _damage(path), path.open_for_reading() as file:
            for name, kind, shape in json_object(file.readline(_LONGEST_HEAD))["arrays"]:
                if np.dtype(kind).hasobject:
                    raise ValueError(f"{name} is no array of numbers")
                data = file.read(np.dtype(kind).itemsize * math.prod(shape))
                if wanted is None or name in wanted:
                    values[name] = np.frombuffer(data, kind).reshape(shape)
        return values

    def last_round(self, blocks: int) -> int | None:
        """Returns the number of the last round of which all blocks are there, or None."""
        parts = Counter(name.split("-")[0] for name in names(self.root / self.name))
        return max((int(n) for n, number in parts.items() if number == blocks and n.isdigit()),
                   default=None)  # fmt: skip

    def forget(self, number: int, block: int) -> None:
        """Deletes the values of a block after a round that is not needed any more."""
        if number >= 0:
            remove_file(self._path(number, block))


def round_files(root: Folder, level: str, *parts: object) -> RoundFiles:
    """Returns the folder of a ranking; ``parts`` are all that its values depend on."""
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return RoundFiles(root, f"{level}_ranks/{_FOLDER}{digest}")


def remove_rounds(root: Folder, level: str) -> None:
    """Deletes the files of all rankings of a level, also of those that were killed."""
    for name in names(root / f"{level}_ranks"):
        if name.startswith(_FOLDER):
            (root / f"{level}_ranks/{name}").remove_tree()


@dataclass(frozen=True)
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

    def keys(self, number: int, *columns: str) -> pl.DataFrame:
        """Returns columns of a block's nodes, in key order; without names, all."""
        file = self.nodes[number]
        rows = scan([self.table / file.path], KINDS[f"{self.level}_nodes"].schema)
        return collect(rows.select(columns or pl.all()))

    def pieces(self, sources: int, targets: int) -> Iterator[Piece]:
        """Yields the links from one block to another one, several stored pieces as one."""
        path, groups = self._groups(sources, targets)
        for start in range(0, len(groups), _JOINED_PIECES):
            yield self._piece(path, groups[start : start + _JOINED_PIECES], (sources, targets))

    def stored_pieces(
        self, sources: int, targets: int, chosen: Iterable[bool] | None = None
    ) -> Iterator[Piece]:
        """Yields the same links piece by piece; ``chosen`` says which pieces to read."""
        path, groups = self._groups(sources, targets)
        for group in groups if chosen is None else itertools.compress(groups, chosen):
            yield self._piece(path, [group], (sources, targets))

    def _groups(self, sources: int, targets: int) -> tuple[Place, list[int]]:
        path = self.table / self.edges[targets].path
        return path, _groups(path).get(sources, [])

    def _piece(self, path: Place, groups: list[int], blocks: tuple[int, int]) -> Piece:
        make = functools.partial(self._read_piece, path, groups, blocks)
        piece: Piece = _DECODED.get(self.nodes, (path, *groups), make)
        return piece

    def _read_piece(
        self, path: Place, groups: list[int], blocks: tuple[int, int]
    ) -> tuple[Piece, int]:
        with _file_of_links(path) as file:
            piece = join_pieces(map(unpack_piece, file.read_row_groups(groups).to_pylist()))
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
    with ParquetWriter(path, KINDS[kind].schema, plain=_PLAIN) as writer:
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
