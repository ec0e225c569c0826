"""Makes the blocks of a graph from its links: nodes numbered in key order, links between blocks.

::

    links to others ─ by source ─ limits ─┬─ keys ─ by key range ─ sort ─▶ ranges of nodes
                                          │            └─ numbers, blocks
                                          └─ number the sources ─ by key range of the target
                                               ─ number the targets ─ by block ─▶ blocks
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ...io.snapshots.operations import Operation
from ...io.storage.files import creating, new_name
from ...io.storage.parquet_files import collect, scan
from ...io.storage.places import Place
from ...io.tablets.ranges import Sample, sample_keys
from ...io.tablets.written import Written
from ...policy.components.schema import TEXT, conform, to_frame
from ...policy.generating.selection import groups
from ...policy.graph.graph_blocks import BLOCK_NODES, limits_of_level, number_of
from ...policy.graph.link_limits import (
    LinkLimits,
    count_sources,
    first_links,
    foreign_links,
    group_of,
    page_of,
    thin_out,
    to_level,
)
from ..elements.arguments import check_integer
from ..elements.chunk_flow import GroupChunks
from ..elements.chunks import Chunk, to_chunks
from ..for_each import Spread
from ..operations import Together
from ..tickets import Ticket
from ..wiring.display import Displayed
from .graph_layout import (
    LIMIT,
    NODE_KEYS,
    EdgeFile,
    GraphLayout,
    GraphPlan,
    GraphShape,
    NodeRange,
    divide_blocks,
    lay_out,
    plan_graph,
    ranges_of,
    write_block,
)

# Links as they come in: row keys, and the position of the link in its page.
LINKS_IN = pa.schema([("source", TEXT), ("target", TEXT), ("position", pa.int32())])
# With a hash of the domain of the target.
_FOREIGN = pa.schema([*LINKS_IN, ("domain", pa.uint64())])
_KEPT = pa.schema([("source", TEXT), ("target", TEXT)])
# The domain and the page of the source are hashes: only whether two are equal counts.
# ``first``: whether the link may be the one of its domain that counts.
_NUMBERED = pa.schema(
    [("source", pa.int64()), ("target", TEXT), ("domain", pa.uint64()), ("page", pa.uint64()),
     ("first", pa.bool_())]
)  # fmt: skip
_NODES, _RECEIPTS = "nodes", "receipts"
# Rows of a row group between steps: the links of a range of sources are read from few of them.
_ROW_GROUP_ROWS = 1 << 14


@dataclasses.dataclass
class WriteBlocks(Displayed):
    """Writes the blocks of a graph into a table; GraphBlocks is made of this.

    Input:  (operations, links): one operation, and chunks of ``LINKS_IN``.
    Output: ``Written``: files of nodes and of links, and counts of links by reason.

    Cost: three shuffles: links that are not internal, with both keys; the keys of each chunk, once;
    the links that count, with a number and the key of the target. A key of a shuffle gets about
    32 MB, for any number of links from or to a page. A worker holds that, 64 MB that it gathers
    for a shuffle, or the nodes of a block and a million links. Between steps, links wait in
    files beside the blocks, which the last step deletes.

    Attributes:
        limits: Which links count.
        level: One of ``GRAPH_LEVELS``.
        block_nodes: Approximate number of nodes per block.
    """

    limits: LinkLimits
    level: str = "page"
    block_nodes: int = BLOCK_NODES

    def __post_init__(self) -> None:
        check_integer("block_nodes", self.block_nodes)
        self.limits = limits_of_level(self.limits, self.level)

    def expand(self, inputs: Any) -> beam.PCollection[Written]:
        operations, links = inputs
        how = GraphShape(self.level, self.limits, self.block_nodes)
        foreign = links | "Foreign" >> beam.FlatMap(_foreign, how).with_outputs(
            _RECEIPTS, main="main"
        )
        links = foreign["main"]
        links.element_type = Chunk
        samples = links | "Sample" >> beam.FlatMap(_samples).with_output_types(Sample)
        plans = (
            (operations, samples) | "Samples" >> Together()
            | "Plan" >> beam.Map(plan_graph, self.block_nodes).with_output_types(GraphPlan)
        )  # fmt: skip
        plan = beam.pvalue.AsSingleton(plans)
        limited = _limit_links(links, how, plan)
        ranges = (
            limited[_NODES]
            | "ByKey" >> GroupChunks()
            | "Nodes" >> beam.Map(_node_range, how, plan).with_output_types(NodeRange)
        )
        layouts = (
            (plans, ranges) | "Ranges" >> Together()
            | "Layout" >> beam.Map(lay_out, how).with_output_types(GraphLayout)
        )  # fmt: skip
        edges = _number_links(limited["main"], how, beam.pvalue.AsSingleton(layouts))
        blocks = (
            (layouts, edges) | "Files" >> Together()
            | "Divide" >> beam.FlatMap(divide_blocks).with_output_types(tuple[int, Any])
            | "Spread" >> Spread()
            | "Blocks" >> beam.FlatMap(write_block, how).with_output_types(Written)
        )  # fmt: skip
        return (foreign[_RECEIPTS], limited[_RECEIPTS], blocks) | beam.Flatten()


def _limit_links(
    links: beam.PCollection[Chunk], how: GraphShape, plan: beam.pvalue.AsSideInput
) -> beam.pvalue.DoOutputsTuple:
    """Chooses the links of each source that count; also returns their keys, and counts."""
    split = beam.FlatMap(_links_by_range, how, plan)
    limited = (
        links
        | "Split" >> split.with_output_types(tuple[tuple[int, int], Chunk])
        | "BySource" >> GroupChunks()
        | "Limit"
        >> beam.FlatMap(_limit, how, plan)
        .with_output_types(tuple[int, Chunk])
        .with_outputs(_NODES, _RECEIPTS, main="main")
    )
    limited[_NODES].element_type = beam.typehints.Tuple[int, Chunk]
    return limited


def _number_links(
    links: beam.PCollection[tuple[int, Chunk]], how: GraphShape, layout: beam.pvalue.AsSideInput
) -> beam.PCollection[EdgeFile]:
    """Writes links with the numbers of their nodes, first those of sources, then of targets."""
    sources = beam.FlatMap(_number_sources, how, layout)
    targets = beam.FlatMap(_number_targets, how, layout)
    return (
        links
        | "Sources" >> sources.with_output_types(tuple[tuple[int, int], Chunk])
        | "ByTarget" >> GroupChunks()
        | "Targets" >> targets.with_output_types(EdgeFile)
    )


def _foreign(chunk: Chunk, how: GraphShape) -> Iterator[Any]:
    """Yields the links of a chunk that may count, and the numbers of the others."""
    edges = to_frame(conform(chunk, LINKS_IN))
    if how.level != "page":
        edges = to_level(edges, how.level).unique(maintain_order=True)
        edges = edges.filter(pl.col("source") != pl.col("target"))
        edges = edges.with_columns(position=pl.lit(None, pl.Int32))
    edges, counts = foreign_links(edges, how.limits)
    edges, more = thin_out(edges, how.limits)
    yield beam.pvalue.TaggedOutput(_RECEIPTS, Written(counts={**counts, **more}))
    yield from to_chunks(edges, _FOREIGN)


def _samples(chunk: Chunk) -> Iterator[Sample]:
    for side in ("source", "target"):
        sample = sample_keys(pa.table({"key": chunk[side]}))
        # A range gets the links of its sources, and the keys of both sides.
        each = chunk.nbytes / max(1, len(sample.keys))
        rows = sample.rows_per_key if side == "source" else 0
        yield dataclasses.replace(sample, bytes_per_key=each / 2, rows_per_key=rows)


def _links_by_range(
    chunk: Chunk, how: GraphShape, plan: GraphPlan
) -> Iterator[tuple[tuple[int, int], Chunk]]:
    links = to_frame(chunk)
    links = links.with_columns(ranges_of(links.get_column("source"), plan))
    part = _part(group_of(how.limits), plan.splits)
    for (at, own), rows in links.group_by("range", part, maintain_order=True):
        for part_chunk in to_chunks(rows, chunk.schema):
            yield (int(str(at)), int(str(own))), part_chunk


def _part(group: pl.Expr, parts: Sequence[int]) -> pl.Expr:
    """Returns the number of a part: links of one range and one group are in the same part."""
    if max(parts) == 1:
        return pl.lit(0).alias("part")
    part_counts = pl.Series(parts, dtype=pl.UInt64)
    return (group % pl.lit(part_counts).gather(pl.col("range"))).alias("part")


def _keys_by_range(chunk: Chunk, plan: GraphPlan) -> Iterator[tuple[int, Chunk]]:
    frame = to_frame(chunk)
    number = ranges_of(frame.get_column("key"), plan)
    for (at,), rows in frame.with_columns(number).group_by("range", maintain_order=True):
        for part in to_chunks(rows, chunk.schema):
            yield int(str(at)), part


def _limit(
    grouped: tuple[tuple[int, int], Iterable[Chunk]], how: GraphShape, plan: GraphPlan
) -> Iterator[Any]:
    links = pl.concat(to_frame(chunk) for chunk in grouped[1])
    ordered = links.sort("source", "position", "target", maintain_order=True)
    counted, counts = first_links(ordered, how.limits)
    counts["links"] = len(counted)
    yield beam.pvalue.TaggedOutput(_RECEIPTS, Written(counts=counts, done={LIMIT: len(links)}))
    for chunk in to_chunks(counted, _KEPT):
        yield grouped[0][0], chunk
    sides = [
        counted.group_by(pl.col("source").alias("key"))
        .agg(in_links=pl.lit(0, pl.Int64), out_links=pl.len().cast(pl.Int64)),
        counted.group_by(pl.col("target").alias("key"))
        .agg(in_links=pl.len().cast(pl.Int64), out_links=pl.lit(0, pl.Int64)),
    ]  # fmt: skip
    for keys in sides:
        for chunk in to_chunks(keys, NODE_KEYS):
            for number, part in _keys_by_range(chunk, plan):
                yield beam.pvalue.TaggedOutput(_NODES, (number, part))


def _put(operation: Operation, how: GraphShape, frame: pl.DataFrame) -> str:
    path = f"{how.folder(operation)}/{new_name()}"
    with creating(operation.table / path) as file:
        frame.write_parquet(file, compression="lz4", row_group_size=_ROW_GROUP_ROWS)
    return path


def _node_range(
    grouped: tuple[int, Iterable[Chunk]], how: GraphShape, plan: GraphPlan
) -> NodeRange:
    keys = pl.concat(to_frame(chunk) for chunk in grouped[1])
    nodes = keys.group_by("key").sum().sort("key")
    path = _put(plan.operation, how, nodes)
    sums = nodes.select(pl.sum("in_links"), pl.sum("out_links")).row(0)
    return NodeRange(grouped[0], path, len(nodes), *map(int, sums))


@functools.lru_cache(maxsize=4)
def _ids(path: Place, first: int) -> pl.DataFrame:
    """Returns the keys of a range and their ids."""
    keys = collect(scan([path], NODE_KEYS).select("key"))
    return keys.with_columns(id=first + pl.int_range(pl.len(), dtype=pl.Int64))


def _ids_of(layout: GraphLayout, number: int) -> pl.DataFrame:
    span = layout.ranges[number]
    assert span is not None
    return _ids(layout.plan.operation.table / span.path, layout.firsts[number])


def _number_sources(
    item: tuple[int, Chunk], how: GraphShape, layout: GraphLayout
) -> Iterator[tuple[tuple[int, int], Chunk]]:
    edges = to_frame(item[1])
    sources = edges.get_column("source")
    hashes = {"domain": pl.lit(0, pl.UInt64), "page": pl.lit(0, pl.UInt64)}
    if how.limits_sources:
        edges = edges.with_columns(domain=groups(sources, "domain"))
        hashes = {"domain": pl.col("domain").hash(), "page": page_of(pl.col("source")).hash()}
    numbered = edges.with_columns(**hashes).with_columns(
        number_of(sources, _ids_of(layout, item[0])).alias("source"),
        ranges_of(edges.get_column("target"), layout.plan),
    )
    # Links from one domain or page to a target must meet, but those that are not the first of this
    # chunk cannot count.
    alike = pl.struct("target", "domain" if how.limits.limit_domain else "page")
    first = alike.is_first_distinct() if how.limits_sources else pl.lit(True)
    by = pl.when("first").then(alike.hash()) if how.limits_sources else pl.lit(None, pl.UInt64)
    numbered = numbered.sort("source").with_columns(first=first)
    divided = _part(pl.coalesce(by, pl.col("source").hash()), layout.splits)
    for (at, part), rows in numbered.group_by("range", divided, maintain_order=True):
        for chunk in to_chunks(rows, _NUMBERED):
            yield (int(str(at)), int(str(part))), chunk


def _number_targets(
    grouped: tuple[tuple[int, int], Iterable[Chunk]], how: GraphShape, layout: GraphLayout
) -> Iterator[EdgeFile]:
    number = grouped[0][0]
    edges = pl.concat(to_frame(chunk) for chunk in grouped[1])
    targets = number_of(edges.get_column("target"), _ids_of(layout, number))
    edges = edges.with_columns(target=targets).sort("target", "source")
    firsts = edges.filter("first")
    edges = pl.concat([
        firsts.with_columns(count_sources(firsts, how.limits)),
        edges.filter(~pl.col("first")).with_columns(counts=pl.lit(False)),
    ])  # fmt: skip
    edges = edges.select("source", "target", "counts").sort("source", "target")
    (block,) = [at for at, range_numbers in enumerate(layout.blocks) if number in range_numbers]
    yield EdgeFile(block, _put(layout.plan.operation, how, edges), len(edges))


def tidy_graph(ticket: Ticket, operation: Operation, level: str) -> Ticket:
    """Deletes the files between the steps of an operation, after its commit."""
    (operation.table.files / GraphShape(level, LinkLimits(), 1).folder(operation)).remove_tree()
    return ticket
