"""Names the connected component of each node of pairs of near hashes."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ...policy.components.schema import to_frame
from ...policy.dedup.near_components import hook, stars
from ..elements.chunks import MAX_ROWS, Chunk, to_chunks
from ..join_by_hash import JoinByHash
from ..partition import grouped_by_hash
from ..wiring.display import Displayed

_LABELS = "labels"
_NODE = pa.uint64()
_LABELLED = pa.schema([("node", _NODE), ("label", _NODE)])


@dataclasses.dataclass
class NearComponents(Displayed):
    """Names the connected component of each node.

    Input:  chunks (node, other): edges between nodes, uint64, mixed as ``nodes_of`` does.
    Output: chunks (node, cluster): each node once; nodes of one component have the same cluster.

    Cost: one worker gets 16 bytes for each node that has edges after the rounds. A round shuffles
    the edges twice and the labels of their nodes twice; its keys have the edges of a partition of
    nodes, and the nodes of one label.

    Attributes:
        rounds: How often the graph is made smaller before: each time about half of the nodes are
            left, at most. ``rounds_for`` says how many a number of nodes needs.
        partitions: How many workers can share a round.
    """

    rounds: int
    partitions: int | beam.pvalue.AsSideInput

    def expand(self, edges: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        if not self.rounds:
            return (
                edges
                | "Stars" >> beam.CombineGlobally(_Stars()).without_defaults()  # type: ignore[no-untyped-call]
                | "Clusters" >> beam.FlatMap(_clusters).with_output_types(Chunk)
            )
        labels, rest = contract(edges, self.partitions)
        clusters = (
            rest
            | "Round" >> NearComponents(self.rounds - 1, self.partitions)
            | "OfLabels" >> beam.Map(_name_labels).with_output_types(Chunk)
        )
        return (
            (labels, clusters)
            | "OfNodes" >> JoinByHash("label", {"cluster": "cluster"}, self.partitions)
            | "Named" >> beam.Map(_name_nodes).with_output_types(Chunk)
        )


def contract(
    edges: beam.PCollection[Chunk], partitions: int | beam.pvalue.AsSideInput
) -> tuple[beam.PCollection[Chunk], beam.PCollection[Chunk]]:
    """Makes a graph smaller; returns the labels of its nodes, and the edges between labels."""
    ends = edges | "BothEnds" >> beam.FlatMap(_both_ends).with_output_types(Chunk)
    hooked = grouped_by_hash(ends, "node", partitions) | "Hook" >> beam.FlatMap(
        _hook
    ).with_output_types(Chunk).with_outputs(_LABELS, main="halves")
    labels = hooked[_LABELS]
    rest = (
        (hooked["halves"], labels)
        | "OtherEnd" >> JoinByHash("node", {"label": "label"}, partitions)
        | "Relabel" >> beam.FlatMap(_relabel).with_output_types(Chunk)
    )
    return labels, rest


def _both_ends(chunk: Chunk) -> Iterator[Chunk]:
    """Yields each edge from both of its ends, without edges that connect nothing new in this chunk."""
    edges = to_frame(chunk)
    forest = stars(edges).filter(pl.col("node") != pl.col("other"))
    yield from to_chunks(pl.concat([forest, forest.select(node="other", other="node")]))


def _hook(grouped: tuple[int, Iterable[Chunk]]) -> Iterator[Any]:
    labels, halves = hook(pl.concat([to_frame(chunk) for chunk in grouped[1]]))
    for chunk in to_chunks(labels, _LABELLED):
        yield beam.pvalue.TaggedOutput(_LABELS, chunk)
    yield from to_chunks(halves)


def _relabel(chunk: Chunk) -> Iterator[Chunk]:
    edges = to_frame(chunk).select(node="label", other="other")
    yield from to_chunks(edges.filter(pl.col("node") != pl.col("other")))


def _name_labels(chunk: Chunk) -> Chunk:
    return chunk.rename_columns({"node": "label"})


def _name_nodes(chunk: Chunk) -> Chunk:
    """Returns (node, cluster); a label without edges is a cluster."""
    cluster = pl.coalesce(pl.col("cluster").cast(pl.UInt64), "label")
    return to_frame(chunk).select("node", cluster=cluster).to_arrow()


class _Stars(beam.CombineFn):
    """Combines pairs into stars: each row with the smallest one that it is connected to."""

    def create_accumulator(self) -> list[Chunk]:
        return []

    def add_input(self, chunks: list[Chunk], chunk: Chunk) -> list[Chunk]:
        # Several chunks at a time: the first one is the stars so far.
        chunks = [*chunks, chunk]
        waiting = sum(len(part) for part in chunks[1:])
        return self.compact(chunks) if waiting > max(MAX_ROWS, len(chunks[0])) else chunks

    def merge_accumulators(self, parts: Iterable[list[Chunk]]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for part in parts:
            chunks = self.compact([*chunks, *part])
        return chunks

    def compact(self, chunks: list[Chunk]) -> list[Chunk]:
        if not chunks:
            return chunks
        return [stars(pl.concat([to_frame(chunk) for chunk in chunks])).to_arrow()]

    def extract_output(self, chunks: list[Chunk]) -> list[Chunk]:
        return self.compact(chunks)


def _clusters(chunks: list[Chunk]) -> Iterator[Chunk]:
    """Yields the rows (node, cluster). A cluster is named by its smallest node."""
    for chunk in chunks:
        yield from to_chunks(to_frame(chunk).select(cluster="node", node="other"))
