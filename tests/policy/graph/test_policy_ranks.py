"""Ranks of random graphs, compared with networkx and with a transcription of Nutch's formula."""

import dataclasses
from itertools import product

import networkx as nx
import numpy as np
import polars as pl
import pytest
from linked_tables import random_edges

from nutbeam.policy.graph.graph_blocks import graph_blocks
from nutbeam.policy.graph.link_limits import LinkLimits
from nutbeam.policy.graph.linkrank import LinkRank, PageRank
from nutbeam.policy.graph.ranking import rank_iterations
from nutbeam.policy.graph.rankings import Harmonic, Hits

ALL = LinkLimits(False, False, False, False)


def networkx_graph(edges):
    graph = nx.DiGraph()
    graph.add_edges_from(row for row in edges.rows() if row[0] != row[1])
    return graph


def ranks_of(ranking, edges, block_nodes, rounds=200, tolerance=1e-14, limits=ALL):
    graph = graph_blocks(edges, limits, block_nodes=block_nodes)
    ranks, _ = rank_iterations(ranking, graph, rounds, tolerance)
    return [dict(zip(graph.nodes["key"], ranks[name], strict=True)) for name in ranking.results]


@pytest.mark.few(3)
@pytest.mark.parametrize("block_nodes", [1000, 7])
@pytest.mark.parametrize("seed", range(5))
def test_ranks_agree_with_networkx(seed, block_nodes):
    edges = random_edges(seed)
    graph = networkx_graph(edges)
    (found,) = ranks_of(PageRank(), edges, block_nodes)
    assert found == pytest.approx(nx.pagerank(graph, tol=1e-14, max_iter=1000), abs=1e-6)
    (found,) = ranks_of(LinkRank(), edges, block_nodes)
    expected = {key: value * len(graph) for key, value in nx.pagerank(graph, tol=1e-14).items()}
    assert found == pytest.approx(expected, abs=1e-6)
    (found,) = ranks_of(Harmonic(), edges, block_nodes, tolerance=0)
    assert found == pytest.approx(nx.harmonic_centrality(graph), abs=1e-6)
    authorities, hubs = ranks_of(Hits(), edges, block_nodes, rounds=1000)
    hub, authority = nx.hits(graph, max_iter=10_000, tol=1e-12)
    assert authorities == pytest.approx(authority, abs=1e-6)
    assert hubs == pytest.approx(hub, abs=1e-6)


@pytest.mark.parametrize("ranking", [LinkRank(), PageRank(), Hits()])
def test_ranks_are_the_same_without_scipy(ranking, monkeypatch):
    edges = random_edges(7)
    of_scipy = ranks_of(ranking, edges, 7, rounds=10, limits=LinkLimits())
    monkeypatch.setattr("nutbeam.policy.graph.ranking.has_scipy", lambda: False)
    of_numpy = ranks_of(ranking, edges, 7, rounds=10, limits=LinkLimits())
    assert of_scipy == [pytest.approx(ranks, rel=1e-12) for ranks in of_numpy]


def domain(key):
    return ".".join(key.split(":")[0].split(".")[:2])


def page(key):
    return key.split("?")[0].lower()


def host(key):
    return key.split(":")[0]


def nutch_graph(edges, limits):
    """Returns the outlinks of each page as the reducer of Nutch's OutlinkDb collects them."""
    outlinks, pages, domains = {}, {}, {}
    for source, to in edges.rows():
        kept = outlinks.setdefault(source, [])
        pages_of, domains_of = pages.setdefault(source, set()), domains.setdefault(source, set())
        if to in kept or to == source:  # outlinks are a map by URL; a loop never counts here
            continue
        if (
            (not limits.limit_page or page(to) not in pages_of)
            and (not limits.limit_domain or domain(to) not in domains_of)
            and (not limits.ignore_internal_host or host(to) != host(source))
            and (not limits.ignore_internal_domain or domain(to) != domain(source))
        ):
            kept.append(to)
            pages_of.add(page(to))
            domains_of.add(domain(to))
    return {source: targets for source, targets in outlinks.items() if targets}


def nutch_linkrank(outlinks, rounds, limits):
    """Returns the scores of LinkRank's Inverter and Analyzer, transcribed."""
    nodes = sorted({*outlinks, *(target for targets in outlinks.values() for target in targets)})
    scores = dict.fromkeys(nodes, 1.0)
    rank_one = 1 / len(nodes)
    for _ in range(rounds):
        after = {}
        for node in nodes:
            total, pages, domains = rank_one, set(), set()
            for source in sorted(s for s, targets in outlinks.items() if node in targets):
                if limits.limit_page and page(source) in pages:
                    continue
                if limits.limit_domain and domain(source) in domains:
                    continue
                total += scores[source] / len(outlinks[source])
                pages.add(page(source))
                domains.add(domain(source))
            after[node] = (1 - 0.85) + 0.85 * total
        scores = after
    return scores


@pytest.mark.long
@pytest.mark.parametrize("block_nodes", [1000, 7])
@pytest.mark.parametrize("limits", [LinkLimits(*some) for some in product([True, False], repeat=4)])
def test_linkrank_agrees_with_a_transcription_of_nutch(limits, block_nodes):
    edges = random_edges(sum(dataclasses.astuple(limits)) + 1)
    outlinks = nutch_graph(edges, limits)
    (found,) = ranks_of(LinkRank(nutch=True), edges, block_nodes, 10, 0, limits)
    assert found == pytest.approx(nutch_linkrank(outlinks, 10, limits), abs=1e-6)


def test_ranks_that_nutch_loses_stay():
    edges = random_edges(3)
    for limits in (ALL, LinkLimits()):
        (found,) = ranks_of(LinkRank(), edges, 11, rounds=10, tolerance=0, limits=limits)
        assert np.mean(list(found.values())) == pytest.approx(1, abs=1e-9)
    (nutch,) = ranks_of(LinkRank(nutch=True), edges, 11, 10, 0, LinkLimits())
    assert np.mean(list(nutch.values())) < 0.9


def test_hyperball_is_near_the_exact_harmonic_centrality():
    rng = np.random.default_rng(1)
    keys = np.array([f"com.d{n}:http/" for n in range(3000)])
    edges = pl.DataFrame({side: keys[rng.integers(0, 3000, 6000)] for side in ("source", "target")})
    (exact,) = ranks_of(Harmonic(), edges, 1000, tolerance=0)
    (counted,) = ranks_of(Harmonic(exact_nodes=0, log2_registers=8), edges, 1000, tolerance=0)
    large = [key for key, value in exact.items() if value > 50]
    errors = [abs(counted[key] / exact[key] - 1) for key in large]
    assert len(large) > 500
    assert np.mean(errors) < 0.07
    assert max(errors) < 0.4


def test_rounds_end_when_nothing_changes():
    edges = pl.DataFrame({"source": ["com.a:http/", "com.b:http/"],
                          "target": ["com.b:http/", "com.a:http/"]})  # fmt: skip
    graph = graph_blocks(edges, LinkLimits())
    ranks, changes = rank_iterations(LinkRank(), graph, 10)
    assert (ranks["linkrank"].tolist(), changes) == ([1, 1], [0])


@pytest.mark.parametrize("ranking", [LinkRank(), PageRank(), Hits(), Harmonic()])
def test_a_graph_without_links_has_no_ranks(ranking):
    edges = pl.DataFrame({"source": ["com.a:http/"], "target": ["com.a:http/"]})
    graph = graph_blocks(edges, ALL)
    assert graph.counts == {"dropped/self_link": 1}
    assert graph.blocks == 0 or len(graph.nodes) == 0
