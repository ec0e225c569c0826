"""A stored graph is the one that was written, block by block; nodes that were purged keep their ids."""

import dataclasses

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linked_tables import random_edges

from nutbeam.io.graph.graph_files import StoredGraph, write_edges, write_nodes
from nutbeam.policy.components.graph_schema import Piece
from nutbeam.policy.graph.graph_blocks import graph_blocks
from nutbeam.policy.graph.link_limits import LinkLimits
from nutbeam.policy.graph.linkrank import PageRank
from nutbeam.policy.graph.ranking import rank_iterations
from nutbeam.web.base.errors import UserError

ALL = LinkLimits(False, False, False, False)


@pytest.fixture(params=[1000, 7])
def graph(request):
    return graph_blocks(random_edges(1), ALL, block_nodes=request.param)


def rows_of_block(graph, number):
    first, end = graph.starts[number : number + 2]
    return graph.nodes.slice(first, end - first)


def write(root, graph):
    nodes, edges = [], []
    for number in range(graph.blocks):
        nodes.append(write_nodes(root, "page", graph.starts[number], rows_of_block(graph, number)))
        pieces = [(at, piece) for at in range(graph.blocks) for piece in graph.pieces(at, number)]
        edges.append(write_edges(root, "page", number, pieces))
    return StoredGraph(root, "page", tuple(nodes), tuple(edges))


def links_of(graph):
    return {
        (source, target): [array.tolist() for piece in graph.pieces(source, target)
                           for array in piece[:2]]
        for source in range(graph.blocks) for target in range(graph.blocks)
    }  # fmt: skip


def test_a_stored_graph_is_the_graph_and_has_its_ranks(tmp_path, graph):
    stored = write(tmp_path, graph)
    assert (stored.blocks, stored.all_nodes) == (graph.blocks, len(graph.nodes))
    keys = pl.concat([stored.keys(number)["key"] for number in range(stored.blocks)])
    assert keys.equals(graph.nodes["key"])
    for number in range(graph.blocks):
        for ours, theirs in zip(stored.block(number), graph.block(number), strict=True):
            assert np.array_equal(ours, theirs)
    assert links_of(stored) == links_of(graph)
    found, expected = (rank_iterations(PageRank(), some, 20) for some in (stored, graph))
    assert found[1] == expected[1]
    assert np.array_equal(found[0]["pagerank"], expected[0]["pagerank"])


def test_nodes_that_were_purged_keep_their_ids_and_have_no_links(tmp_path, graph):
    stored = write(tmp_path, graph)
    rows = rows_of_block(graph, 0)
    file = write_nodes(tmp_path, "page", 0, rows.gather_every(2))
    purged = dataclasses.replace(file, partition=len(rows))
    stored = dataclasses.replace(stored, nodes=(purged, *stored.nodes[1:]))
    block, whole = stored.block(0), graph.block(0)
    assert (block.nodes, stored.all_nodes) == (whole.nodes, len(graph.nodes))
    assert block.out_links[::2].tolist() == whole.out_links[::2].tolist()
    assert not block.out_links[1::2].any()


def test_only_chosen_pieces_are_read(tmp_path):
    graph = graph_blocks(random_edges(2), ALL)
    (whole,) = graph.pieces(0, 0)
    part = Piece(whole.sources[:3], whole.targets[:3])
    stored = write(tmp_path, graph)
    edges = write_edges(tmp_path, "page", 0, [(0, whole), (0, part), (2, whole)])
    stored = dataclasses.replace(stored, edges=(edges,))
    (found,) = stored.stored_pieces(0, 0, [False, True])
    assert found.sources.tolist() == part.sources.tolist()
    assert [len(list(stored.stored_pieces(source, 0))) for source in range(2)] == [2, 0]


@pytest.mark.parametrize(
    ("field", "bad"),
    [("links", 1 << 30), ("source_bytes", 2), ("source_bytes", 0), ("counts", b""), ("key", None)],
)
def test_a_damaged_row_of_links_is_an_error_of_the_file(tmp_path, field, bad):
    graph = graph_blocks(random_edges(2), ALL)
    stored = write(tmp_path, graph)
    path = tmp_path / stored.edges[0].path
    rows = pq.read_table(path)
    at = rows.schema.get_field_index(field)
    column = pa.array([bad] * len(rows), rows.schema.field(at).type)
    pq.write_table(rows.set_column(at, rows.schema.field(at), column), path, row_group_size=1)
    with pytest.raises(UserError, match=rf"^data file cannot be read: {path}: [^\n]+$"):
        list(stored.pieces(0, 0))


@pytest.mark.parametrize("at", [0, 1])
def test_links_to_nodes_beyond_a_block_are_an_error_of_the_file(tmp_path, at):
    stored = write(tmp_path, graph_blocks(random_edges(2), ALL))
    ends = [np.array([0]), np.array([0])]
    ends[at] = np.array([stored.nodes[0].partition])
    edges = write_edges(tmp_path, "page", 0, [(0, Piece(*ends))])
    with pytest.raises(UserError, match="a node that block 0 does not have"):
        list(dataclasses.replace(stored, edges=(edges,)).pieces(0, 0))


def test_a_damaged_end_of_a_file_of_links_is_an_error_of_the_file(tmp_path):
    graph = graph_blocks(random_edges(2), ALL)
    stored = write(tmp_path, graph)
    (edges,) = stored.edges
    whole = (tmp_path / edges.path).read_bytes()
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    errors = []
    for number, at in enumerate(range(end, len(whole), 3)):
        bit = (1, 128)[number % 2]
        path = f"page_edges/{number}.parquet"  # what was read of a file is kept
        (tmp_path / path).write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        damaged = dataclasses.replace(stored, edges=(dataclasses.replace(edges, path=path),))
        try:
            list(damaged.pieces(0, 0))
        except UserError as error:
            errors.append(str(error))
            assert str(tmp_path / path) in errors[-1]
            assert "\n" not in errors[-1]
    assert len(errors) > 100
