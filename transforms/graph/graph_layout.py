"""The layout of a graph while its blocks are made, and the blocks, which are written in it.

The layout is key ranges, numbers of nodes, and blocks. The last step of WriteBlocks makes the blocks
from sorted files of links.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ...io.graph.graph_files import write_edges, write_nodes
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import collect, scan
from ...io.tablets.ranges import RANGE_BYTES, Sample, plan_ranges
from ...io.tablets.written import Written
from ...policy.components.graph_schema import Piece, pieces_of, source_ranges
from ...policy.components.schema import TEXT
from ...policy.graph.graph_blocks import local_piece
from ...policy.graph.link_limits import LinkLimits
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError

# Size of a link in a shuffle, bytes: with the key of its target.
_LINK_BYTES = 100
# Most ranges that are made for the sake of small blocks.
MOST_RANGES = 1_000
# Steps whose inputs and outputs are counted.
LIMIT, BLOCKS = "Limit", "Blocks"
# The nodes of a key range.
NODE_KEYS = pa.schema([("key", TEXT), ("in_links", pa.int64()), ("out_links", pa.int64())])


@dataclass(frozen=True)
class GraphPlan:
    """Key ranges.

    Attributes:
        operation: The operation.
        lows: Their first keys, without that of the first range.
        rows: Number of links.
        splits: Into how many parts the links from each range are split.
    """

    operation: Operation
    lows: tuple[str, ...] = ()
    rows: int = 0
    splits: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class NodeRange:
    """The sorted nodes of a key range, in a file."""

    number: int
    path: str
    nodes: int
    in_links: int
    out_links: int


@dataclass(frozen=True)
class GraphLayout:
    """The numbers of nodes: of ranges, and of blocks, which are several ranges.

    Attributes:
        plan: The ranges.
        ranges: The nodes of each range; None for a range without nodes.
        firsts: Id of the first node of each range.
        blocks: Numbers of the ranges of each block.
        starts: Id of the first node of each block, and the number of nodes.
        splits: Into how many parts the links to a range are split.
    """

    plan: GraphPlan
    ranges: tuple[NodeRange | None, ...]
    firsts: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    splits: tuple[int, ...]

    @property
    def links(self) -> int:
        """Number of links."""
        return sum(span.in_links for span in self.ranges if span)


@dataclass(frozen=True)
class EdgeFile:
    """Links to some nodes of a block, sorted by source, in a file."""

    block: int
    path: str
    rows: int


@dataclass(frozen=True)
class GraphShape:
    level: str
    limits: LinkLimits
    block_nodes: int

    @property
    def limits_sources(self) -> bool:
        return self.limits.limit_domain or self.limits.limit_page

    def folder(self, operation: Operation) -> str:
        """Returns the folder of files between steps, below the table."""
        return f"{self.level}_nodes/aside-{operation.id}"


def range_bytes(samples: Iterable[Sample], block_nodes: int) -> float:
    """Returns the size of a key range in bytes: at most about the nodes of a block.

    A block is made of whole ranges. A node has at least one end of a link. So that small blocks of
    a large graph do not make too many ranges, there are at most about ``MOST_RANGES`` for this
    reason.
    """
    total = sum(sample.bytes_per_key * len(sample.keys) for sample in samples)
    return min(RANGE_BYTES, max(block_nodes * _LINK_BYTES / 2, total / MOST_RANGES))


def plan_graph(grouped: tuple[int, Iterable[Any]], block_nodes: int) -> GraphPlan:
    items = list(grouped[1])
    (operation,) = [item for item in items if isinstance(item, Operation)]
    samples = [item for item in items if isinstance(item, Sample)]
    ranges = plan_ranges([], samples, math.ceil(range_bytes(samples, block_nodes)))
    rows = round(sum(sample.rows_per_key * len(sample.keys) for sample in samples))
    plan = GraphPlan(operation, tuple(str(key_range.low) for key_range in ranges[1:]), rows)
    # A range is no smaller than a page, which may have any number of links.
    links = np.zeros(len(ranges))
    for sample in samples:
        if sample.rows_per_key:
            # A link has its size half at its source, half at its target.
            at = ranges_of(pl.Series(sample.keys, dtype=pl.String), plan).to_numpy()
            np.add.at(links, at, 2 * sample.bytes_per_key)
    splits = tuple(max(1, math.ceil(size / RANGE_BYTES)) for size in links)
    return dataclasses.replace(plan, splits=splits)


def ranges_of(keys: pl.Series, plan: GraphPlan) -> pl.Series:
    lows = pl.Series(plan.lows, dtype=pl.String)
    return lows.search_sorted(keys, side="right").cast(pl.Int32).alias("range")


def lay_out(grouped: tuple[int, Iterable[Any]], how: GraphShape) -> GraphLayout:
    items = list(grouped[1])
    (plan,) = [item for item in items if isinstance(item, GraphPlan)]
    node_ranges = {item.number: item for item in items if isinstance(item, NodeRange)}
    if sum(r.in_links - r.out_links for r in node_ranges.values()):
        raise UserError("webgraph: some links are missing; nothing was written: run it again")
    ranges = tuple(node_ranges.get(number) for number in range(len(plan.lows) + 1))
    sizes = [span.nodes if span else 0 for span in ranges]
    firsts = tuple(itertools.accumulate(sizes, initial=0))
    blocks: list[list[int]] = []
    filled = 0
    for number, size in enumerate(sizes):
        if size and (not blocks or filled + size > how.block_nodes):
            blocks.append([])
            filled = 0
        if size:
            blocks[-1].append(number)
            filled += size
    starts = (*(firsts[numbers[0]] for numbers in blocks), firsts[-1])
    splits = [1 + (span.in_links if span else 0) * _LINK_BYTES // RANGE_BYTES for span in ranges]
    return GraphLayout(plan, ranges, firsts[:-1], tuple(map(tuple, blocks)), starts, tuple(splits))


_EDGES = pa.schema([("source", pa.int64()), ("target", pa.int64()), ("counts", pa.bool_())])


@dataclass(frozen=True)
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
