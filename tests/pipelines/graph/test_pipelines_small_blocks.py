"""webgraph: small blocks are made as the option says, and advice if most links are internal."""

import polars as pl
import pytest
from crawling import manifest_of, nutbeam, rows_of
from linked_tables import in_key_order, make_linked, random_edges

from nutbeam.pipelines.graph import webgraph
from nutbeam.policy.graph.graph_blocks import graph_blocks
from nutbeam.policy.graph.link_limits import LinkLimits


@pytest.mark.long
@pytest.mark.parametrize("block_nodes", [20, 60])
def test_small_blocks_are_made_as_the_option_says(tmp_path, block_nodes):
    edges = random_edges(5, nodes=200, links=900)
    table = make_linked(tmp_path / "table", edges)
    assert nutbeam("webgraph", table, "--block_nodes", block_nodes) == 0
    graph = graph_blocks(in_key_order(edges), LinkLimits(), "page", 1 << 20)
    found = rows_of(str(table), "page_nodes").sort("key")
    assert found.equals(graph.nodes.select(found.columns))
    files = manifest_of(table).components["page_nodes"].files
    assert len(found) / block_nodes <= files <= 3 * len(found) / block_nodes


@pytest.mark.long
def test_a_graph_of_one_site_says_how_to_keep_its_links(tmp_path, caplog):
    links = [("com.a:http/", f"com.a:http/{n}") for n in range(9)] + [
        ("com.a:http/", "com.b:http/")
    ]
    table = make_linked(tmp_path / "table", pl.DataFrame(links, ["source", "target"], orient="row"))
    assert nutbeam("webgraph", table) == 0
    assert "9 links are internal and left out, 1 are in the graph: --ignore" in caplog.text
    caplog.clear()
    words = ("--ignore_internal_host", "false", "--ignore_internal_domain", "false")
    assert nutbeam("webgraph", table, *words) == 0
    assert not caplog.text
    assert not webgraph.advice({})
