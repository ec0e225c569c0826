"""Decides which of several near pages stay: leaders, and the pages near them.

Pages are taken from the best to the worst. A page that is near a page that stays is a duplicate
of the best such page, else it stays. So no two pages that stay are near each other, and each
duplicate is near the page that stays instead of it: chains do not grow.
"""

import itertools

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .near_pairs import Places

NODE = ("scope", "hash")


def leaders(nodes: int, better: Places, worse: Places) -> Places:
    """Returns for each node the best leader near it, or -1 for a leader.

    Args:
        nodes: Number of nodes, which are numbered from the best (0) to the worst.
        better: The better node of each near pair.
        worse: The other node of each near pair.

    >>> leaders(4, np.array([0, 1, 2]), np.array([1, 2, 3])).tolist()
    [-1, 0, -1, 2]
    """
    winner = np.full(nodes, -1, dtype=np.int64)
    order = np.argsort(better, kind="stable")
    heads, starts = np.unique(better[order], return_index=True)
    edges = [*starts.tolist(), len(order)]
    ordered = worse[order]
    for head, (start, end) in zip(heads.tolist(), itertools.pairwise(edges), strict=True):
        if winner[head] < 0:
            near = ordered[start:end]
            winner[near[winner[near] < 0]] = head
    return winner


def stars(pairs: pl.DataFrame) -> pl.DataFrame:
    """Returns the connected nodes as one star per component: each node with its smallest node.

    Args:
        pairs: Rows (scope, hash, other): an edge between two nodes of a scope.

    Returns:
        The same columns, a row for each node; ``hash`` is the smallest of its component.

    >>> pairs = pl.DataFrame({"scope": [0, 0, 1], "hash": [5, 5, 5], "other": [3, 9, 4]})
    >>> stars(pairs).sort("scope", "other").rows()
    [(0, 3, 3), (0, 3, 5), (0, 3, 9), (1, 4, 4), (1, 4, 5)]
    """
    ends = [pairs.select(*NODE), pairs.select("scope", hash="other")]
    nodes = pl.concat(ends).unique().sort(NODE).with_row_index("number")
    numbered = pairs.join(nodes, on=list(NODE)).join(
        nodes, left_on=["scope", "other"], right_on=list(NODE), suffix="_other"
    )
    roots = _roots(
        len(nodes),
        numbered.get_column("number").to_numpy().astype(np.int64),
        numbered.get_column("number_other").to_numpy().astype(np.int64),
    )
    hashes = nodes.get_column("hash")
    return nodes.select("scope", hash=hashes.gather(roots), other="hash")


def _roots(nodes: int, one: Places, other: Places) -> NDArray[np.int64]:
    """Returns the smallest node of the component of each node."""
    roots = np.arange(nodes)
    while len(one):
        low = np.minimum(roots[one], roots[other])
        high = np.maximum(roots[one], roots[other])
        apart = low != high
        one, other, low, high = one[apart], other[apart], low[apart], high[apart]
        np.minimum.at(roots, high, low)
        while True:
            further = roots[roots]
            if np.array_equal(further, roots):
                break
            roots = further
    return roots
