"""Stores links between two blocks of nodes as bytes: sorted pairs, as differences.

A piece has links from one block (the sources) to one block (the targets). A node is its position
in its block. Links are sorted by source, then by target. The sources are stored as differences,
which are nearly always 0 or 1; the targets as they are, in the smallest type.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

# Most links of a piece; a round needs about 40 bytes of memory per link.
PIECE_LINKS = 1 << 20
_TYPES = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"))


class Piece(NamedTuple):
    """Links between two blocks.

    Attributes:
        sources: Positions in the block of the sources, ascending.
        targets: Positions in the block of the targets; ascending for equal sources.
        counts: Which links count when LinkRank sums the links to a page; None means all.
    """

    sources: np.ndarray
    targets: np.ndarray
    counts: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return sum(array.nbytes for array in self if array is not None)

    def counted_links(self) -> "Piece":
        """Returns the links that count when LinkRank sums them."""
        if self.counts is None:
            return self
        return Piece(self.sources[self.counts], self.targets[self.counts])

    def swap_ends(self) -> "Piece":
        """Returns the links with sources and targets swapped, unsorted."""
        return Piece(self.targets, self.sources, self.counts)


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
    upto, low = np.cumsum(links), 0
    while low < len(upto):
        previous_links = upto[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(upto, previous_links + PIECE_LINKS, side="right")))
        if upto[high - 1] > previous_links:
            yield low, high
        low = high


def pack_piece(key: str, piece: Piece) -> pl.DataFrame:
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
    # The type of indexes: numpy would convert another one in every round, which takes longer than
    # the sums themselves.
    return Piece(np.cumsum(steps, dtype=np.intp), targets.astype(np.intp), counts)


def _small(numbers: np.ndarray) -> np.ndarray:
    most = int(numbers.max(initial=0))
    return numbers.astype(next(t for t in _TYPES if most < 256**t.itemsize))
