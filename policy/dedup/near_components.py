"""Finds the connected components of pairs of near hashes, in one place or in rounds.

A round hooks each node to its smallest neighbour, and goes on with these labels as nodes::

    nodes 5 ─ 3 ─ 9   7 ─ 8      labels 5→3, 3→3, 9→3, 7→7, 8→7      edges left: none

A component with one label has no edges left. Others have about half of their nodes, at worst. For
that, the order of the nodes must have nothing to do with the edges: labels are mixed after each round.
"""

from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...web.content.signature import mix_bits
from .near_pairs import Hashes, Places

NearEdgeRows: TypeAlias = pl.DataFrame  # (node, other): an edge between two nodes, uint64
LabelRows: TypeAlias = pl.DataFrame  # (node, label): a node, and the node of the next round, uint64
# Nodes whose edges may meet on one worker: 16 bytes for each.
MOST_NODES = 1 << 21


def rounds_for(nodes: int) -> int:
    """Returns the number of rounds that bring a number of nodes down to about ``MOST_NODES``.

    >>> rounds_for(MOST_NODES), rounds_for(MOST_NODES + 1), rounds_for(10**9)
    (0, 1, 9)
    """
    return (max(1, nodes) - 1 >> MOST_NODES.bit_length() - 1).bit_length()


def nodes_of(scopes: Hashes, hashes: Hashes) -> Hashes:
    """Returns the node of each hash. If two hashes have the same node, they only meet."""
    return mix_bits(scopes ^ hashes)


def hook(edges: NearEdgeRows) -> tuple[LabelRows, NearEdgeRows]:
    """Labels nodes by the smallest node near them, itself included.

    Args:
        edges: All edges of some nodes, ``node``; an edge between two of them twice.

    Returns:
        The labels of these nodes; and the edges with the label of the smaller end, which is
        ``other``: each edge of the graph comes from one of its ends.

    >>> edges = pl.DataFrame({"node": [3, 3, 5, 9], "other": [5, 9, 3, 3]},
    ...     schema={"node": pl.UInt64, "other": pl.UInt64})
    >>> labels, halves = hook(edges)
    >>> labels["label"].n_unique(), halves["node"].sort().to_list()
    (1, [5, 9])
    """
    smallest = edges.group_by("node").agg(pl.min("other"))
    low = smallest.select(pl.min_horizontal("node", "other")).to_series().to_numpy()
    labels = smallest.select("node", label=pl.Series(mix_bits(low)))
    upward = edges.filter(pl.col("node") < pl.col("other"))
    halves = upward.join(labels, on="node").select(node="other", other="label")
    return labels, halves.unique()


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
