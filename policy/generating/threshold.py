"""Finds the best N rows of a table, exactly, without collecting all rows.

Rows are compared by a 64-bit *rank*. Each part of the table sends a summary of its ranks: the best
``GRID`` ranks, and further ones at growing distances, a few thousand numbers. From the summaries follow
two ranks: all rows above the first are chosen, and no row below the second is. Only the rows between
the two must be compared: about ``2 / GRID`` of the chosen ones, for any number of parts.
"""

import functools
import threading
from collections.abc import Iterable

import numpy as np
import polars as pl

from ...web.base.dataclass import dataclass

# Of a part that has k of the best rows, about k / GRID may have to be compared.
GRID = 256


@dataclass(frozen=True)
class Summary:
    """Ranks of a part: those of its best rows at some ``positions``, best first.

    Attributes:
        ranks: uint64 as bytes, in descending order.
        rows: Number of all rows of the part.
    """

    ranks: bytes
    rows: int


@dataclass(frozen=True)
class Threshold:
    """Two ranks that decide for most rows whether they are among the best ``n``.

    Attributes:
        n: Number of rows to choose.
        sure: Rows with this rank or a higher one are chosen; None if no row is certain.
        least: Rows with a lower rank are not chosen.
    """

    n: int
    sure: int | None
    least: int


def rank(scores: pl.Series, keys: pl.Series) -> pl.Series:
    """Returns ranks (uint64) that order rows by score, ties by a hash of the key.

    >>> s = rank(pl.Series([0.5, 2.0, -1.0], dtype=pl.Float32), pl.Series(["a", "b", "c"]))
    >>> s.arg_sort(descending=True).to_list()
    [1, 0, 2]
    """
    bits = np.nan_to_num(scores.cast(pl.Float32).to_numpy(), nan=-np.inf).view(np.uint32)
    # Positive IEEE 754 numbers sort like integers; negative ones sort in reverse.
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(0x80000000)).astype(np.uint64)
    ties = keys.hash(0).to_numpy() >> np.uint64(32)
    return pl.Series("rank", (ordered << np.uint64(32)) | ties, dtype=pl.UInt64)


def score_of(rank: int) -> float:
    """Returns the score of a rank.

    >>> score_of(rank(pl.Series([-0.25]), pl.Series(["a"])).item())
    -0.25
    """
    ordered = np.uint32(rank >> 32)
    bits = ordered ^ np.uint32(0x80000000) if ordered >> 31 else ~ordered
    return float(bits.view(np.float32))


class Leaders:
    """The best ``n`` ranks of all parts so far.

    Rows with worse ranks cannot be chosen, so later parts can leave them out. Safe to use from
    several threads.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._parts: dict[str, np.ndarray] = {}
        self._lock = threading.Lock()
        self.least = 0

    def add(self, part: str, ranks: pl.Series) -> None:
        """Adds the ranks of a part; a part that is added again counts once."""
        with self._lock:
            values = ranks.to_numpy()
            self._parts[part] = values[values >= self.least]
            together = np.concatenate(list(self._parts.values()))
            if len(together) >= self._n:
                self.least = int(np.partition(together, -self._n)[-self._n])
                self._parts = {name: v[v >= self.least] for name, v in self._parts.items()}


def best_ranks(ranks: Iterable[pl.Series], n: int) -> pl.Series:
    """Returns at most the ``n`` highest of all ranks, in descending order."""
    values = np.concatenate([np.empty(0, np.uint64), *(part.to_numpy() for part in ranks)])
    if len(values) > n:
        values = np.partition(values, len(values) - n)[len(values) - n :]
    return pl.Series("rank", np.sort(values)[::-1], dtype=pl.UInt64)


def summarize(ranks: pl.Series, n: int, rows: int | None = None) -> Summary:
    """Returns the summary of a part's ranks, for choosing at most ``n`` rows from all parts.

    Args:
        ranks: The ranks of the part, or its ``best_ranks``.
        n: Number of rows to choose.
        rows: Number of all rows of the part, if ``ranks`` are the best.
    """
    best = best_ranks([ranks], n).to_numpy()
    places = positions(n, GRID)
    summarized = best[places[places <= len(best)] - 1]
    return Summary(summarized.astype(np.uint64).tobytes(), len(ranks) if rows is None else rows)


@functools.lru_cache(maxsize=4)
def positions(n: int, grid: int) -> np.ndarray:
    """Returns the positions of ranks in a summary: from 1 to ``n``, and less dense after ``grid``.

    >>> positions(20, 4).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20]
    """
    places = [1]
    while places[-1] < n:
        places.append(min(n, places[-1] + max(1, places[-1] // grid)))
    return np.array(places)


def threshold(summaries: Iterable[Summary], n: int) -> Threshold:
    """Returns the ranks that are certainly, and those that are perhaps, among the best ``n``."""
    parts = list(summaries)
    if sum(part.rows for part in parts) <= n:
        return Threshold(n, 0, 0)
    places = positions(n, GRID)
    # An entry stands for the rows since the one before. Rows until the next entry may have its
    # rank, or a better one than the entry of another part. The last entry has any number of equals.
    before, until = np.diff(places, prepend=0), np.append(np.diff(places), n + 1)
    part_ranks = [np.frombuffer(part.ranks, np.uint64) for part in parts]
    ranks = np.concatenate(part_ranks)
    order = np.argsort(ranks)[::-1]
    ranks = ranks[order]
    # The last of equal ranks, so that each entry counts all rows with its rank.
    is_last_of_equals = np.append(ranks[1:] != ranks[:-1], True) if len(ranks) else order
    # For each rank, how many rows have it or a better one.
    at_least, at_most = (
        np.cumsum(np.concatenate([counts[: len(part)] for part in part_ranks])[order])
        for counts in (before, until)
    )
    ranks, at_least, at_most = (a[is_last_of_equals] for a in (ranks, at_least, at_most))
    surely = np.flatnonzero(at_most <= n)
    enough = np.flatnonzero(at_least >= n)
    sure = int(ranks[surely[-1]]) if len(surely) else None
    return Threshold(n, sure, int(ranks[enough[0]]) if len(enough) else 0)
