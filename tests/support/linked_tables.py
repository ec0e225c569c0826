"""Tables whose links are given, and the graph of them in memory."""

import numpy as np
import polars as pl
from crawling import rows_of

from nutbeam.io.graph.graph_files import stored_graph
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.io.snapshots.operations import begin, new_id
from nutbeam.pipelines.views.reading_job import Reading
from nutbeam.policy.components.link_rows import INLINKS, link_keys
from nutbeam.policy.components.schema import STATE, Status, conform, to_frame


def random_edges(seed, nodes=60, links=240):
    """Returns links between pages of a few hosts; some repeat, some are loops."""
    rng = np.random.default_rng(seed)
    keys = np.array([f"com.d{n % 7}.h{n % 3}:http/p{n // 2}?q={n}" for n in range(nodes)])
    # A few nodes get most links, and some have none.
    targets = (rng.pareto(1.0, links) * 3).astype(int) % nodes
    sources = rng.integers(0, nodes - 10, links)
    return pl.DataFrame({"source": keys[sources], "target": keys[targets]})


def link_rows(edges):
    """Returns the rows of the link table: one per pair, in key order."""
    rows = edges.unique()
    rows = rows.with_columns(key=link_keys(rows.get_column("target"), rows.get_column("source")))
    return to_frame(conform(rows.sort("key"), INLINKS))


def make_linked(address, edges, urls=()):
    """Makes a table with links, and with rows of the state for some row keys."""
    operation = begin(str(address), "inject", f"{new_id()}.inject")
    table = operation.table
    written = list(table.load("links", [link_rows(edges)]))
    if len(urls):
        rows = pl.DataFrame({"key": sorted(urls)}).with_columns(
            status=pl.lit(int(Status.DB_FETCHED)), score=pl.lit(7.0), fetch_time=0
        )
        written += table.load("state", [to_frame(conform(rows, STATE))])
    commit(operation, written)
    return address


def in_key_order(edges):
    """Returns links as the link table gives them to the graph."""
    return edges.unique().sort("source", "target")


def graph_in(table, level="page"):
    """Returns the nodes of a table's graph and its links by block, both in order."""
    graph = stored_graph(Reading(str(table), "", newest_manifest(str(table)).snapshot), level)
    blocks = range(graph.blocks)
    nodes = [row for block in blocks for row in graph.keys(block).rows()]
    links = [
        (source, target, *(array.tolist() for array in piece if array is not None))
        for source in blocks
        for target in blocks
        for piece in graph.pieces(source, target)
    ]
    return nodes, links


def ranks_in(table, level="page"):
    """Returns the rows of ranks of a table, in key order."""
    return rows_of(str(table), f"{level}_ranks").sort("key")
