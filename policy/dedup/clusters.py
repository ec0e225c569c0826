"""Decides which of several near pages stay: leaders, and the pages near them.

Pages are taken from the best to the worst. A page that is near a page that stays is a duplicate
of the best such page, else it stays. So no two pages that stay are near each other, and each
duplicate is near the page that stays instead of it: chains do not grow.
"""

import itertools

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .near_pairs import Hashes, Places, first_near, near_hashes

# Pairs of near hashes that are in memory at a time: 16 MB. With more, dense hashes take longer.
LED_PAIRS = 1 << 20


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


def near_leaders(scopes: Hashes, hashes: Hashes, distance: int) -> Places:
    """Returns for each hash the best leader near it, or -1 for a leader.

    Memory: ``LED_PAIRS`` pairs, however many there are. If there are more, the better half is led
    first; its leaders take most of the others.

    Args:
        scopes: Scope of each hash; only hashes of one scope can be near each other.
        hashes: The hashes, from the best to the worst.
        distance: In how many bits near hashes may differ.

    >>> near_leaders(np.zeros(4, np.uint64), np.array([0, 1, 3, 7], np.uint64), 1).tolist()
    [-1, 0, -1, 2]
    """
    winner = np.full(len(hashes), -1, dtype=np.int64)
    leading = np.empty(0, dtype=np.int64)  # leaders among the better hashes
    waiting = [np.arange(len(hashes))]
    while waiting:
        nodes = waiting.pop()
        if len(leading):
            at_leader = first_near(
                (scopes[nodes], hashes[nodes]), (scopes[leading], hashes[leading]), distance
            )
            winner[nodes[at_leader >= 0]] = leading[at_leader[at_leader >= 0]]
            nodes = nodes[at_leader < 0]
        pairs = _few_pairs(scopes[nodes], hashes[nodes], distance)
        if pairs is None:
            waiting += [nodes[len(nodes) // 2 :], nodes[: len(nodes) // 2]]
            continue
        led = leaders(len(nodes), pairs.min(axis=0), pairs.max(axis=0))
        winner[nodes[led >= 0]] = nodes[led[led >= 0]]
        leading = np.concatenate([leading, nodes[led < 0]])
    return winner


def _few_pairs(scopes: Hashes, hashes: Hashes, distance: int) -> Places | None:
    """Returns the near pairs, in two rows; None for many pairs of more than two hashes."""
    near_pairs, number = [np.empty((2, 0), dtype=np.int64)], 0
    for pair in near_hashes(scopes ^ hashes, distance):
        pair_rows = np.stack(pair)
        pair_rows = pair_rows[:, scopes[pair_rows[0]] == scopes[pair_rows[1]]]
        near_pairs.append(pair_rows)
        number += pair_rows.shape[1]
        if number > LED_PAIRS and len(hashes) > 2:
            return None
    return np.concatenate(near_pairs, axis=1)


def stars(edges: pl.DataFrame) -> pl.DataFrame:
    """Returns the connected nodes as one star per component: each node with its smallest node.

    Args:
        edges: Rows (node, other): an edge between two nodes.

    Returns:
        The same columns, a row for each node, ``other``; ``node`` is the smallest of its component.

    >>> edges = pl.DataFrame({"node": [5, 5, 7], "other": [3, 9, 8]})
    >>> stars(edges).rows()
    [(3, 3), (3, 5), (7, 7), (7, 8), (3, 9)]
    """
    nodes = pl.concat([edges["node"], edges["other"].alias("node")]).unique().sort()
    one, other = (nodes.search_sorted(edges[name]).to_numpy() for name in ("node", "other"))
    roots = _roots(len(nodes), one.astype(np.int64), other.astype(np.int64))
    return pl.DataFrame({"node": nodes.gather(roots), "other": nodes})


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
