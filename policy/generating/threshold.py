"""Finds the best N rows of a table, exactly, without collecting all rows.

Rows are compared by a 64-bit *rank*. Each part of the table sends a summary of
its ranks, with at most 4,096 numbers. From the summaries follow two ranks: all rows
above the first are chosen, and no row below the second is. Only the few rows
between the two must be compared.
"""

import dataclasses
import threading
from collections.abc import Iterable

import numpy as np
import polars as pl

STEPS = 4_096


@dataclasses.dataclass(frozen=True)
class Summary:
    """Ranks of a part: every ``step``-th rank of its best rows, best first.

    Attributes:
        step: Number of rows that each entry represents.
        ranks: uint64 as bytes, in descending order.
        rows: Number of all rows of the part.
    """

    step: int
    ranks: bytes
    rows: int


@dataclasses.dataclass(frozen=True)
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


def summarize(ranks: pl.Series, n: int) -> Summary:
    """Returns the summary of a part's ranks, for choosing at most ``n`` rows from all parts."""
    values = ranks.to_numpy()
    if len(values) > n:
        values = np.partition(values, len(values) - n)[len(values) - n :]
    best = np.sort(values)[::-1]
    step = -(-n // STEPS)
    return Summary(step, best[step - 1 :: step].astype(np.uint64).tobytes(), len(ranks))


def threshold(summaries: Iterable[Summary], n: int) -> Threshold:
    """Returns the ranks that are certainly, and those that are perhaps, among the best ``n``."""
    parts = list(summaries)
    if sum(part.rows for part in parts) <= n:
        return Threshold(n, 0, 0)
    ranks = np.concatenate([np.frombuffer(part.ranks, np.uint64) for part in parts])
    steps = np.concatenate([np.full(len(part.ranks) // 8, part.step) for part in parts])
    order = np.argsort(ranks)[::-1]
    # The last of equal ranks, so that each entry counts all rows with its rank.
    is_last_of_equals = (
        np.append(ranks[order][1:] != ranks[order][:-1], True) if len(ranks) else order
    )
    ranks, at_least = ranks[order][is_last_of_equals], np.cumsum(steps[order])[is_last_of_equals]
    # For each rank r of the list, the number of rows with rank r or better is at least
    # `at_least`, and at most `at_least` plus (step - 1) for every part. This is only true for
    # numbers below n: a part does not report further rows that equal its n-th row.
    slack = sum(part.step - 1 for part in parts)
    surely = np.flatnonzero(at_least + slack < n)
    enough = np.flatnonzero(at_least >= n)
    sure = int(ranks[surely[-1]]) if len(surely) else None
    return Threshold(n, sure, int(ranks[enough[0]]) if len(enough) else 0)
