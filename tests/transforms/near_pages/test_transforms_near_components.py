"""NearComponents in rounds and in one place, against scipy's connected components."""

import itertools

import apache_beam as beam
import numpy as np
import polars as pl
import pytest
from running import apply, run
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from nutbeam.policy.dedup.near_components import MOST_NODES, nodes_of, rounds_for
from nutbeam.transforms.near_pages.near_components import NearComponents, contract

SCHEMA = {"node": pl.UInt64, "other": pl.UInt64}
CHAIN = [(at, at + 1) for at in range(9_999)]
STAR = [(1_500, at) for at in range(3_000) if at != 1_500]
CLIQUES = [
    (first + one, first + other)
    for first in range(0, 600, 30)
    for one, other in itertools.combinations(range(30), 2)
]
PAIRS = [(at, at + 1) for at in range(0, 4_000, 2)]
TREES = [(at, at // 7 * 3) for at in range(1, 2_000) if at % 11]
TWICE = [(1, 2), (2, 1), (1, 2), (5, 4)]


def chunks_of(*graphs, mixed=True):
    """Returns the edges of graphs side by side; unless mixed, their nodes are in adversarial order."""
    edges = [(at * 20_000 + one, at * 20_000 + other) for at, graph in enumerate(graphs) for one, other in graph]  # fmt: skip
    one, other = (np.array([edge[at] for edge in edges], np.uint64) for at in (0, 1))
    if mixed:
        one, other = (nodes_of(np.uint64(0), ends) for ends in (one, other))
    frame = pl.DataFrame({"node": one, "other": other}, schema=SCHEMA)
    return [part.to_arrow() for part in frame.iter_slices(2_000)]


def components(chunks):
    """Returns the components of edges by scipy, as a set of sets of nodes."""
    edges = pl.concat(pl.from_arrow(chunk) for chunk in chunks)
    nodes, ends = np.unique(edges.to_numpy().ravel(), return_inverse=True)
    one, other = ends.reshape(-1, 2).T
    graph = coo_matrix((np.ones(len(one)), (one, other)), shape=(len(nodes),) * 2)
    return grouped(nodes.tolist(), connected_components(graph, directed=False)[1].tolist())


def grouped(nodes, clusters):
    members = {}
    for node, cluster in zip(nodes, clusters, strict=True):
        members.setdefault(cluster, set()).add(node)
    return set(map(frozenset, members.values()))


@pytest.mark.few(2)
@pytest.mark.parametrize("rounds", [3, 0, 1])
@pytest.mark.parametrize("mixed", [False, True])
def test_components_are_those_of_scipy(rounds, mixed):
    chunks = chunks_of(CHAIN, STAR, CLIQUES, PAIRS, TREES, TWICE, mixed=mixed)
    found = apply(chunks, NearComponents(rounds, 5))
    rows = pl.concat(pl.from_arrow(chunk) for chunk in found)
    clusters = grouped(rows["node"].to_list(), rows["cluster"].to_list())
    assert clusters == components(chunks)
    assert len(rows) == sum(map(len, clusters)), "a node comes twice"


def test_no_edges_have_no_components():
    assert apply([], NearComponents(1, 5)) == []


def nodes_left(rounds, *graphs):
    """Returns how many nodes still have edges after some rounds."""

    def contracted(pipeline):
        edges = pipeline | beam.Create(chunks_of(*graphs))
        for number in range(rounds):
            edges = (edges,) | f"Round{number}" >> Contracted()
        return edges

    rest = [pl.from_arrow(chunk) for chunk in run(contracted)]
    return len(set().union(*(set(frame.to_numpy().ravel().tolist()) for frame in rest)))


class Contracted(beam.PTransform):
    def expand(self, edges):
        return contract(edges[0], 5)[1]


def test_each_round_leaves_half_of_the_nodes():
    assert nodes_left(1, CLIQUES, PAIRS) == 0
    assert nodes_left(1, STAR) <= 300
    assert nodes_left(3, CHAIN) <= len(CHAIN) / 8


def test_few_pages_need_no_round_and_many_a_round_for_each_doubling():
    assert [rounds_for(pages) for pages in (0, 50_000, MOST_NODES)] == [0, 0, 0]
    assert [rounds_for(MOST_NODES << doublings) for doublings in (1, 5, 12)] == [1, 5, 12]
