"""Cuts a graph into blocks: ranges of nodes in key order, and the links between each two blocks."""

import itertools
from collections.abc import Iterator

import numpy as np
import polars as pl

from ...web.base.dataclass import dataclass
from ..components.graph_schema import Block, NodeRows, Piece, block_of, pieces_of
from ..generating.selection import groups
from .link_limits import EdgeRows, LinkLimits, count_sources, limit_links, page_of, to_level

# Nodes of a block: its ranks take 8 MB.
BLOCK_NODES = 1 << 20


@dataclass(frozen=True)
class MemoryGraph:
    """A graph in memory.

    Attributes:
        nodes: ``key``, ``id``, ``in_links``, ``out_links``, ``counted_links``, in key order.
        starts: Id of the first node of each block, and the number of nodes.
        links: The links from one block to another.
        counts: Numbers of links that do not count, by reason.
    """

    nodes: pl.DataFrame
    starts: tuple[int, ...]
    links: dict[tuple[int, int], tuple[Piece, ...]]
    counts: dict[str, int]

    @property
    def blocks(self) -> int:
        return len(self.starts) - 1

    def block(self, number: int) -> Block:
        first, end = self.starts[number : number + 2]
        return block_of(number, first, self.starts[-1], self.nodes.slice(first, end - first))

    def pieces(self, sources: int, targets: int) -> Iterator[Piece]:
        yield from self.links.get((sources, targets), ())


def graph_blocks(
    edges: EdgeRows,
    limits: LinkLimits,
    level: str = "page",
    block_nodes: int = BLOCK_NODES,
) -> MemoryGraph:
    """Returns the graph of links.

    Args:
        edges: Columns ``source`` and ``target``: row keys. Links of a source are in their order.
        limits: Which links count.
        level: One of ``GRAPH_LEVELS``. The limits are for pages; all links between two hosts or two
            domains are one.
        block_nodes: Most nodes of a block.

    >>> edges = pl.DataFrame({"source": ["com.b:http/", "com.a:http/"],
    ...     "target": ["com.c:http/", "com.b:http/"]})
    >>> graph = graph_blocks(edges, LinkLimits())
    >>> graph.nodes.select("key", "id", "in_links", "out_links").rows()
    [('com.a:http/', 0, 0, 1), ('com.b:http/', 1, 1, 1), ('com.c:http/', 2, 1, 0)]
    >>> [piece.sources.tolist() for piece in graph.pieces(0, 0)]
    [[0, 1]]
    """
    limits = limits_of_level(limits, level)
    links, counts = limit_links(to_level(edges, level), limits)
    keys = pl.concat([links["source"], links["target"]]).unique().sort().alias("key")
    ids = pl.DataFrame({"key": keys}).with_columns(id=pl.int_range(pl.len(), dtype=pl.Int64))
    numbered = with_counts(links.sort("target", "source"), limits)
    numbered = numbered.select(
        source=number_of(numbered["source"], ids),
        target=number_of(numbered["target"], ids),
        counts="counts",
    )
    nodes = ids.with_columns(
        in_links=_degree(numbered, "target", len(ids)),
        out_links=_degree(numbered, "source", len(ids)),
        counted_links=_degree(numbered.filter("counts"), "source", len(ids)),
    )
    starts = (*range(0, len(ids), block_nodes), len(ids))
    return MemoryGraph(nodes, starts, dict(_cut(numbered, starts)), counts)


def limits_of_level(limits: LinkLimits, level: str) -> LinkLimits:
    """Returns the limits of a level: those of pages say nothing of hosts and domains."""
    return limits if level == "page" else LinkLimits(False, False, False, False)


def with_counts(edges: EdgeRows, limits: LinkLimits) -> EdgeRows:
    """Adds ``counts``: whether LinkRank sums the link. All links to a target must be there."""
    if limits.limit_page:
        edges = edges.with_columns(page=page_of(pl.col("source")))
    if limits.limit_domain:
        edges = edges.with_columns(domain=groups(edges.get_column("source"), "domain"))
    return edges.with_columns(count_sources(edges, limits))


def number_of(keys: pl.Series, ids: NodeRows) -> pl.Series:
    """Returns the ids of keys; ``ids`` has ``key``, sorted, and ``id``."""
    at = ids.get_column("key").search_sorted(keys)
    return ids.get_column("id").gather(at)


def _degree(edges: EdgeRows, side: str, nodes: int) -> pl.Series:
    return pl.Series(
        np.bincount(edges.get_column(side).to_numpy(), minlength=nodes), dtype=pl.Int64
    )


def _cut(
    edges: EdgeRows, starts: tuple[int, ...]
) -> Iterator[tuple[tuple[int, int], tuple[Piece, ...]]]:
    blocks = list(itertools.pairwise(starts))
    for (s, (low, high)), (t, (first, end)) in itertools.product(enumerate(blocks), repeat=2):
        block_edges = edges.filter(
            pl.col("source").is_between(low, high, closed="left"),
            pl.col("target").is_between(first, end, closed="left"),
        )
        if len(block_edges):
            yield (s, t), tuple(pieces_of(local_piece(block_edges, low, first)))


def local_piece(edges: EdgeRows, first_source: int, first_target: int) -> Piece:
    """Returns links between two blocks; ``edges`` has ``source``, ``target``, ``counts``."""
    source, target = (
        (edges.get_column(name).to_numpy() - first).astype(np.int32)
        for name, first in (("source", first_source), ("target", first_target))
    )
    return Piece(source, target, edges.get_column("counts").to_numpy())
