"""Joins two orders of pages: by the words of a query, and by the meaning of their best chunks."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Page = TypeVar("_Page", bound=Hashable)
_K = 60  # of Cormack, Clarke and Büttcher, Reciprocal Rank Fusion, SIGIR 2009


def fuse_ranks(orders: Sequence[Sequence[_Page]]) -> list[tuple[_Page, float]]:
    """Returns the pages of several orders with their scores, the best first.

    The score of a page is the sum of 1 / (60 + rank) over the orders that have it; ranks count from
    1. Of pages with equal scores, that which the first order has first is first.

    >>> [page for page, _ in fuse_ranks([["a", "b"], ["c", "b"]])]
    ['b', 'a', 'c']
    """
    scores = dict[_Page, float]()
    for order in orders:
        for rank, page in enumerate(order, 1):
            scores[page] = scores.get(page, 0.0) + 1 / (_K + rank)
    return sorted(scores.items(), key=lambda item: -item[1])


def best_chunk_scores(
    scores: NDArray[np.float32], counts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Returns the score of the best chunk of each page.

    Args:
        scores: Scores of the chunks, page by page.
        counts: Number of chunks of each page, at least 1.

    >>> best_chunk_scores(np.array([1, 3, 2], np.float32), np.array([2, 1])).tolist()
    [3.0, 2.0]
    """
    if not len(counts):
        return np.zeros(0, np.float32)
    return np.asarray(np.maximum.reduceat(scores, np.cumsum(counts) - counts))
