"""Quantiles of numbers of any amount, in bounded memory: a t-digest.

A digest has the distinct numbers with their counts, as long as they are few: then its quantiles are
exact. Of more it keeps centroids, small ones at both ends, so that a quantile is off by at most
about 0.2 % of the ranks in the middle, and far less at the ends.

Ted Dunning, Otmar Ertl: Computing Extremely Accurate Quantiles Using t-Digests, 2019.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

# Twice the number of centroids that a digest has at most.
COMPRESSION = 4_000


@dataclasses.dataclass(frozen=True)
class Digest:
    """Numbers in ascending order, and how often each is there.

    Attributes:
        means: The numbers, or means of adjacent numbers.
        counts: How many numbers each stands for.
        exact: Whether all of ``means`` are numbers themselves.
    """

    means: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    exact: bool = True


def digest_of(values: np.ndarray) -> Digest:
    """Returns the digest of numbers, of which none is NaN.

    >>> digest_of(np.array([2.0, 1.0, 2.0]))
    Digest(means=(1.0, 2.0), counts=(1, 2), exact=True)
    """
    means, counts = np.unique(values.astype(np.float64), return_counts=True)
    return _digest(means, counts, True)


def merge_digests(parts: Sequence[Digest]) -> Digest:
    """Returns the digest of the numbers of several digests."""
    means = np.concatenate([np.array(part.means, np.float64) for part in parts])
    counts = np.concatenate([np.array(part.counts, np.int64) for part in parts])
    distinct, place = np.unique(means, return_inverse=True)
    summed = np.zeros(len(distinct), np.int64)
    np.add.at(summed, place, counts)
    return _digest(distinct, summed, all(part.exact for part in parts))


def quantiles_of(digest: Digest, wanted: Sequence[float]) -> list[float]:
    """Returns quantiles: the smallest number with at least this share of numbers up to it.

    >>> quantiles_of(digest_of(np.array([1.0, 2.0, 3.0, 4.0])), [0.25, 0.5, 0.51])
    [1.0, 2.0, 3.0]
    """
    if not digest.means:
        return []
    means, counts = np.array(digest.means), np.array(digest.counts)
    upto = np.cumsum(counts)
    ranks = np.array(wanted) * upto[-1]
    if digest.exact:
        # A share such as 0.07 is a little more than written: its rank must not round up.
        at = np.searchsorted(upto, ranks - 1e-9 * upto[-1])
        return [float(mean) for mean in means[np.minimum(at, len(means) - 1)]]
    return [float(value) for value in np.interp(ranks, upto - counts / 2, means)]


def _digest(means: np.ndarray, counts: np.ndarray, exact: bool) -> Digest:
    if len(means) > COMPRESSION:
        means, counts, exact = *_compress(means, counts), False
    return Digest(tuple(means.tolist()), tuple(counts.tolist()), exact)


def _compress(means: np.ndarray, counts: np.ndarray) -> tuple[Any, Any]:
    """Joins neighbours whose ranks are in one step of the scale, which is fine at both ends."""
    middles = (np.cumsum(counts) - counts / 2) / counts.sum()
    scale = COMPRESSION / (2 * np.pi) * np.arcsin(2 * middles - 1)
    starts = np.flatnonzero(np.diff(np.floor(scale), prepend=-np.inf))
    summed = np.add.reduceat(counts, starts)
    # inf times a count is inf, as it should be, and a mean of both infinities is none.
    joined = np.add.reduceat(means * counts, starts) / summed
    return joined, summed
