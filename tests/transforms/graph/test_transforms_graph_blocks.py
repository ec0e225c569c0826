"""GraphBlocks and RankIterations give the ranks of their twins in memory, over chunks and rows."""

from typing import NamedTuple

import apache_beam as beam
import polars as pl
import pytest
from linked_tables import in_key_order, random_edges
from running import STEP_FAILED, apply, run

from nutbeam.policy.base.key_columns import from_keys
from nutbeam.policy.graph.graph_blocks import graph_blocks
from nutbeam.policy.graph.link_limits import LinkLimits
from nutbeam.policy.graph.linkrank import LinkRank
from nutbeam.policy.graph.ranking import rank_iterations
from nutbeam.policy.graph.rankings import Hits
from nutbeam.transforms.graph.graph_blocks import GraphBlocks, LinkGraph
from nutbeam.transforms.graph.rank_iterations import RankIterations
from nutbeam.web.urls.row_keys import from_host_key


class Link(NamedTuple):
    source: str
    target: str


def urls_of(edges):
    return edges.select(pl.col("source", "target").map_batches(from_keys))


def twin(edges, ranking, level="page"):
    """Returns rank and numbers of links by node, computed in memory."""
    graph = graph_blocks(in_key_order(edges), LinkLimits(), level)
    ranks, _ = rank_iterations(ranking, graph, 10)
    keys = graph.nodes.get_column("key")
    names = from_keys(keys) if level == "page" else [from_host_key(key) for key in keys]
    degrees = graph.nodes.select("in_links", "out_links").rows()
    name = next(name for name in ranks if name != "hub")
    return {
        n: (pytest.approx(rank), *d)
        for n, rank, d in zip(names, ranks[name], degrees, strict=True)
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(("level", "ranking", "method"),
                         [("page", "linkrank", LinkRank()), ("host", "hits", Hits())])  # fmt: skip
def test_chunks_get_the_ranks_of_the_twins(tmp_path, level, ranking, method):
    edges = random_edges(3, nodes=25, links=90)
    chunks = [part.to_arrow() for part in urls_of(edges).iter_slices(50)]
    (graph,) = apply(chunks, GraphBlocks(str(tmp_path / "graph"), level, block_nodes=9))
    found = apply([graph], RankIterations(ranking, level))
    rows = pl.concat(pl.DataFrame(pl.from_arrow(chunk)) for chunk in found)
    right = twin(edges, method, level)
    assert {row[0]: (row[1], *row[3:]) for row in rows.rows()} == right
    assert rows.get_column("hub").null_count() == (0 if ranking == "hits" else len(rows))


@pytest.mark.long
def test_rows_and_bad_links(tmp_path):
    edges = random_edges(4, nodes=20, links=60)
    links = [Link(*row) for row in urls_of(edges).rows()]
    links += [Link("nonsense", "http://a.com/"), Link("http://a.com/", "http://")]

    def build(pipeline):
        given = pipeline | beam.Create(links).with_output_types(Link)
        return given | GraphBlocks(str(tmp_path / "graph")) | RankIterations()

    found = run(build)
    assert {row.node: (row.rank, row.in_links, row.out_links) for row in found} == twin(
        edges, LinkRank()
    )
    assert {row.hub for row in found} == {None}


def test_no_links_have_no_ranks(tmp_path):
    chunk = pl.DataFrame({"source": ["http://a.com/"], "target": ["http://a.com/"]}).to_arrow()
    (graph,) = apply([chunk], GraphBlocks(str(tmp_path / "graph")))
    assert graph.to_pylist() == [{"folder": str(tmp_path / "graph"), "level": "page", "nodes": 0}]
    assert apply([graph], RankIterations()) == []


@pytest.mark.parametrize(
    ("transform", "how", "message"),
    [
        (GraphBlocks, {"level": "site"}, "level must be one of page, host, domain, got 'site'"),
        (GraphBlocks, {"block_nodes": 0}, "block_nodes must be at least 1, got 0"),
        (RankIterations, {"ranking": "best"}, "ranking must be one of linkrank, .*, got 'best'"),
        (RankIterations, {"level": "site"}, "level must be one of page, .*, got 'site'"),
        (RankIterations, {"damping_factor": 2}, "damping_factor must be from 0 to 1, got 2"),
        (RankIterations, {"tolerance": -1}, "tolerance must be at least 0, got -1"),
    ],
)
def test_invalid_parameters_are_refused_at_once(transform, how, message):
    folder = {"folder": "graph"} if transform is GraphBlocks else {}
    with pytest.raises(ValueError, match=message):
        transform(**folder, **how)


def test_rank_iterations_ranks_one_graph_of_its_level():
    graphs = [pl.DataFrame([LinkGraph(name, "host", 2)]).to_arrow() for name in ("a", "b")]
    with pytest.raises(STEP_FAILED, match="RankIterations ranks one graph, got 2: a, b"):
        apply(graphs, RankIterations(level="host"))
    with pytest.raises(
        STEP_FAILED, match="level must be that of the graph in a, 'host', got 'page'"
    ):
        apply(graphs[:1], RankIterations())
