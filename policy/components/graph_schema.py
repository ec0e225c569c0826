"""The graph of pages, hosts or domains: the schemas of its rows, and what their bytes hold.

A block is a range of nodes in key order. A piece has links from one block (the sources) to one
block (the targets), as bytes: sorted pairs. A node is its position in its block. Links are sorted
by source, then by target. The sources are stored as differences, which are nearly always 0 or 1;
the targets as they are, in the smallest type.
"""

import functools
import importlib.util
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from ...web.base.columns import limited_ranges
from .columns import Column, Columns, Form
from .schema import TEXT

NodeRows: TypeAlias = pl.DataFrame  # columns of NODE_COLUMNS or RANK_COLUMNS
PieceRows: TypeAlias = pl.DataFrame  # columns of EDGE_COLUMNS
# The nodes of a graph: URLs, hosts or registered domains.
GRAPH_LEVELS = ("page", "host", "domain")
# The nodes of a graph, in key order; a file is a block.
NODE_COLUMNS = (
    Column("id", pa.int64(), "Number of the node, from 0, in the order of the keys."),
    Column("in_links", pa.int64(), "Number of links to it."),
    Column("out_links", pa.int64(), "Number of its links."),
    Column("counted_links", pa.int64(), "Number of its links that count in LinkRank."),
)
# The links of a graph; a row is a ``Piece``.
EDGE_COLUMNS = Columns(
    (
        Column("key", TEXT, "Block of the targets, block of the sources, number of the piece."),
        Column("links", pa.int64(), "Number of links."),
        Column("source_bytes", pa.uint8(), "Size of a number in `sources`.", unit="bytes"),
        Column(
            "sources",
            pa.large_binary(),
            "Positions of the sources in their block, each as the difference to the one before.",
            form=Form.HEX,
        ),
        Column("target_bytes", pa.uint8(), "Size of a number in `targets`.", unit="bytes"),
        Column(
            "targets", pa.large_binary(), "Positions of the targets in their block.", form=Form.HEX
        ),
        Column(
            "counts",
            pa.large_binary(),
            "A bit per link: whether it counts in LinkRank; null: all do.",
            form=Form.HEX,
        ),
    )
)
RANK_COLUMNS = (
    Column("linkrank", pa.float64(), "LinkRank; the mean of all nodes is 1."),
    Column("pagerank", pa.float64(), "PageRank; the sum of all nodes is 1."),
    Column("authority", pa.float64(), "Authority (HITS); the sum of all nodes is 1."),
    Column("hub", pa.float64(), "Hub (HITS); the sum of all nodes is 1."),
    Column("harmonic", pa.float64(), "Harmonic centrality."),
)
# The option of webgraph is at most this; a block of whole ranges has some nodes more.
MOST_BLOCK_NODES = 1 << 26
# Most links of a piece; a round needs about 40 bytes of memory per link.
PIECE_LINKS = 1 << 20
_TYPES = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"))
# Arrays of the nodes of a block, by name.
Values = dict[str, np.ndarray]


class Block(NamedTuple):
    """A block of nodes: the ids from ``first`` on.

    Attributes:
        number: Its number.
        first: Id of its first node.
        nodes: Number of its nodes.
        all_nodes: Number of nodes of the graph.
        out_links: Number of links of each node.
        counted_links: Number of links of each node that count when LinkRank sums them.
    """

    number: int
    first: int
    nodes: int
    all_nodes: int
    out_links: np.ndarray
    counted_links: np.ndarray


def block_of(number: int, first: int, all_nodes: int, nodes: NodeRows) -> Block:
    """Returns the block of the nodes of a graph, from their rows."""
    links = (nodes.get_column(name).to_numpy() for name in ("out_links", "counted_links"))
    return Block(number, first, len(nodes), all_nodes, *links)


class _Links(NamedTuple):
    sources: np.ndarray
    targets: np.ndarray
    counts: np.ndarray | None = None


class Piece(_Links):
    """Links between two blocks.

    Attributes:
        sources: Positions in the block of the sources, ascending.
        targets: Positions in the block of the targets; ascending for equal sources.
        counts: Which links count when LinkRank sums the links to a page; None means all.
    """

    @property
    def nbytes(self) -> int:
        """Size in memory, about; with that of ``counted_links``."""
        size = self.sources.nbytes + self.targets.nbytes
        return size if self.counts is None else 2 * size + self.counts.nbytes

    @functools.cached_property
    def counted_links(self) -> "Piece":
        """The links that count when LinkRank sums them."""
        if self.counts is None:
            return self
        return Piece(self.sources[self.counts], self.targets[self.counts])

    @functools.cached_property
    def matrix(self) -> tuple[np.ndarray, Any]:
        """The sources, each once, and a matrix of scipy with a column for each of them.

        The matrix has a row for each position of the block of the targets, up to the last target. It
        shares ``targets``, if they are 32-bit numbers. There is at least one link.
        """
        from scipy.sparse import csc_array

        links, targets = len(self.sources), self.targets.astype(np.int32, copy=False)
        changes = np.flatnonzero(self.sources[1:] != self.sources[:-1]) + 1
        starts = np.concatenate([[0], changes, [links]]).astype(np.int32)
        shape = (int(targets.max()) + 1, len(starts) - 1)
        return self.sources[starts[:-1]], csc_array((_ones(links), targets, starts), shape)


@functools.lru_cache(maxsize=4)
def _many_ones(number: int) -> np.ndarray:
    return np.ones(number)


def _ones(number: int) -> np.ndarray:
    """Returns ones; those of pieces of about the same size share their memory."""
    return _many_ones(1 << max(number - 1, 0).bit_length())[:number]


@functools.cache
def has_scipy() -> bool:
    """Returns whether scipy is installed (the extra ``ranks``)."""
    return importlib.util.find_spec("scipy") is not None


def join_pieces(pieces: Iterable[Piece]) -> Piece:
    """Returns the links of pieces, whose sources ascend from one to the next, as one piece."""
    sources, targets, counts = zip(*pieces, strict=True)
    if all(part is None for part in counts):
        return Piece(np.concatenate(sources), np.concatenate(targets))
    whole = zip(counts, sources, strict=True)
    parts = [np.ones(len(of), bool) if part is None else part for part, of in whole]
    return Piece(np.concatenate(sources), np.concatenate(targets), np.concatenate(parts))


def pieces_of(piece: Piece) -> Iterator[Piece]:
    """Sorts links and cuts them into pieces of at most ``PIECE_LINKS``."""
    order = np.lexsort((piece.targets, piece.sources))
    for start in range(0, len(order), PIECE_LINKS):
        selected = order[start : start + PIECE_LINKS]
        counts = None if piece.counts is None else piece.counts[selected]
        yield Piece(piece.sources[selected], piece.targets[selected], counts)


def source_ranges(links: np.ndarray) -> Iterator[tuple[int, int]]:
    """Cuts sources into ranges that have at most ``PIECE_LINKS`` links each, or are one source.

    Args:
        links: Number of links of each source.

    Yields:
        The first source of each range that has links, and the one after its last.

    >>> list(source_ranges(np.array([0, PIECE_LINKS, 0, 2, PIECE_LINKS, 0])))
    [(0, 3), (3, 4), (4, 6)]
    """
    for low, high in limited_ranges(links, PIECE_LINKS):
        if links[low:high].any():
            yield low, high


def pack_piece(key: str, piece: Piece) -> PieceRows:
    """Returns a piece as a row of ``EDGE_COLUMNS``.

    >>> piece = Piece(np.array([5, 5, 7]), np.array([1, 300, 2]))
    >>> row = pack_piece("0/0/0", piece)
    >>> row.drop("key").row(0)
    (3, 1, b'\\x05\\x00\\x02', 2, b'\\x01\\x00,\\x01\\x02\\x00', None)
    >>> [array.tolist() for array in unpack_piece(row.row(0, named=True))[:2]]
    [[5, 5, 7], [1, 300, 2]]
    """
    steps = _small(np.diff(piece.sources, prepend=0))
    targets = _small(piece.targets)
    counts = None
    if piece.counts is not None and not piece.counts.all():
        counts = np.packbits(piece.counts).tobytes()
    row = {
        "key": key,
        "links": len(steps),
        "source_bytes": steps.itemsize,
        "sources": steps.tobytes(),
        "target_bytes": targets.itemsize,
        "targets": targets.tobytes(),
        "counts": counts,
    }
    return pl.DataFrame([row], schema_overrides={"counts": pl.Binary})


def unpack_piece(row: dict) -> Piece:
    """Returns the piece of a row of ``EDGE_COLUMNS``.

    Raises:
        ValueError, TypeError: The row is damaged: its arrays do not fit its number of links, or
            their values have a size that no number has.
    """
    links, counts = row["links"], row["counts"]
    sizes = {"sources": links * row["source_bytes"], "targets": links * row["target_bytes"]}
    if counts is not None:
        sizes["counts"] = -(-links // 8)
    for name, size in sizes.items():
        if len(row[name]) != size:
            raise ValueError(f"{len(row[name])} bytes of {name} for {links} links")
    steps = np.frombuffer(row["sources"], f"<u{row['source_bytes']}")
    targets = np.frombuffer(row["targets"], f"<u{row['target_bytes']}")
    if counts is not None:
        counts = np.unpackbits(np.frombuffer(counts, np.uint8), count=links).astype(bool)
    # numpy's type of indexes, if it sums: it would convert another one in every round, which takes
    # longer than the sums themselves.
    number = np.int32 if has_scipy() else np.intp
    return Piece(np.cumsum(steps, dtype=number), targets.astype(number, copy=False), counts)


def _small(numbers: np.ndarray) -> np.ndarray:
    most = int(numbers.max(initial=0))
    return numbers.astype(next(t for t in _TYPES if most < 256**t.itemsize))
