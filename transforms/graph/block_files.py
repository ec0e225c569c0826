"""Writes the blocks of a graph from sorted files of its links: the last step of GraphBlocks."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ...io.graph.graph_files import write_edges, write_nodes
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import collect, scan
from ...io.tablets.written import Written
from ...policy.components.graph_schema import Piece, pieces_of, source_ranges
from ...policy.graph.graph_blocks import local_piece
from ...web.base.errors import UserError
from .graph_layout import BLOCKS, LIMIT, NODE_KEYS, EdgeFile, GraphLayout, GraphShape

_EDGES = pa.schema([("source", pa.int64()), ("target", pa.int64()), ("counts", pa.bool_())])


@dataclasses.dataclass(frozen=True)
class BlockWork:
    """One block to write. ``files`` has the edges of all blocks."""

    layout: GraphLayout
    number: int
    files: tuple[EdgeFile, ...]

    @property
    def operation(self) -> Operation:
        return self.layout.plan.operation


def divide_blocks(grouped: tuple[int, Iterable[Any]]) -> Iterator[tuple[int, Any]]:
    items = list(grouped[1])
    (layout,) = [item for item in items if isinstance(item, GraphLayout)]
    files = sorted((i for i in items if isinstance(i, EdgeFile)), key=lambda f: (f.block, f.path))
    if sum(file.rows for file in files) != layout.links:
        raise UserError("webgraph: some links are missing; nothing was written: run it again")
    if not layout.plan.operation.idle:
        # Also without links: the graph before is replaced by an empty one.
        works = [BlockWork(layout, n, tuple(files)) for n in range(len(layout.blocks))]
        yield from enumerate(works or [BlockWork(layout, -1, ())])


def write_block(item: tuple[int, BlockWork], how: GraphShape) -> Iterator[Written]:
    work = item[1]
    operation, layout = work.operation, work.layout
    if item[0] == 0:
        due = {BLOCKS: max(1, len(layout.blocks)), LIMIT: layout.plan.rows}
        counts = {"nodes": layout.starts[-1]}
        for kind in ("nodes", "edges", "ranks"):
            name = f"{how.level}_{kind}"
            old = tuple(file.path for file in operation.files(name))
            yield Written(name, replaced=old, due=due, counts=counts)
            due, counts = {}, {}
    if work.number >= 0:
        table, first = operation.table, layout.starts[work.number]
        nodes = write_nodes(table, how.level, first, _nodes_of(work, how))
        edges = write_edges(table, how.level, work.number, _pieces_of(work))
        yield Written(f"{how.level}_nodes", (nodes,))
        yield Written(f"{how.level}_edges", (edges,), done={BLOCKS: 1})
    else:
        yield Written(done={BLOCKS: 1})


def _nodes_of(work: BlockWork, how: GraphShape) -> pl.DataFrame:
    layout, table = work.layout, work.operation.table
    first, end = layout.starts[work.number : work.number + 2]
    paths = [span.path for n in layout.blocks[work.number] if (span := layout.ranges[n])]
    nodes = collect(scan([table / path for path in paths], NODE_KEYS))
    counted = nodes.get_column("out_links")
    if how.limits_sources:
        sums = np.zeros(end - first, np.int64)
        for edges in _slices(work, work.files, (first, end)):
            positions = edges.filter("counts").get_column("source").to_numpy() - first
            sums += np.bincount(positions, minlength=len(sums))
        counted = pl.Series(sums)
    ids = pl.int_range(first, end, dtype=pl.Int64)
    return nodes.with_columns(id=ids, counted_links=counted)


def _slices(
    work: BlockWork,
    files: Sequence[EdgeFile],
    ids: tuple[int, int],
    columns: Sequence[str] = tuple(_EDGES.names),
) -> Iterator[pl.DataFrame]:
    """Yields the links of each file whose sources are in a range of ids, from ``ids[0]`` on."""
    for file in files:
        rows = scan([work.operation.table / file.path], _EDGES)
        yield collect(rows.filter(pl.col("source").is_between(*ids, closed="left")).select(columns))


def _pieces_of(work: BlockWork) -> Iterator[tuple[int, Piece]]:
    """Yields the links to a block, sorted by source; memory holds one piece at a time."""
    starts, own = work.layout.starts, [f for f in work.files if f.block == work.number]
    for source, (first, end) in enumerate(itertools.pairwise(starts)):
        links = np.zeros(end - first, np.int64)
        for sources in _slices(work, own, (first, end), ("source",)):
            positions = sources.get_column("source").to_numpy() - first
            links += np.bincount(positions, minlength=len(links))
        for low, high in source_ranges(links):
            edges = pl.concat(_slices(work, own, (first + low, first + high)))
            piece = local_piece(edges, first, starts[work.number])
            yield from ((source, part) for part in pieces_of(piece))
