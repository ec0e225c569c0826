"""Ranks the nodes of a graph that GraphBlocks has made."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ...io.graph.graph_files import stored_graph
from ...io.snapshots.operations import new_id
from ...policy.base.key_columns import from_keys, host_names
from ...policy.components.graph_schema import GRAPH_LEVELS
from ...policy.components.schema import TEXT
from ...policy.graph.linkrank import LinkRank
from ...policy.graph.rankings import RANKINGS, choose_ranking
from ..elements.arguments import check_range
from ..elements.chunks import Chunk, to_chunks
from ..elements.rows import check_chunk, check_not_windowed, through_chunks
from ..operations import Begin
from ..tickets import Ticket
from ..wiring.display import Displayed
from .graph_blocks import check_choice
from .rank_rounds import RankedBlock, RankRounds

_NEEDED = {"the input": ["folder", "level", "nodes"]}
_OUTPUT = pa.schema(
    [("node", TEXT), ("rank", pa.float64()), ("hub", pa.float64()), ("in_links", pa.int64()),
     ("out_links", pa.int64())]
)  # fmt: skip


class RankedNode(NamedTuple):
    """A page, host or domain with its rank, as a row."""

    node: str
    rank: float
    hub: float | None
    in_links: int
    out_links: int


@dataclasses.dataclass
class RankIterations(Displayed):
    """Ranks the nodes of a graph, in rounds; ``rank_iterations`` does the same in memory.

    Input:  one row, or a chunk with one: the output of GraphBlocks.
    Output: chunks or rows ``node`` (a URL, or a host or domain), ``rank`` (with hits the
        authority), ``hub`` (with hits; else null), ``in_links`` and ``out_links``.

    Cost: a shuffle of a few small reports per round, see RankRounds. The values of the last rounds
    stay in the folder of the graph.

    Attributes:
        ranking: The method: linkrank, pagerank, hits or harmonic.
        level: What the nodes are, as in GraphBlocks: page, host or domain.
        rounds: Most rounds.
        tolerance: End after a round that changes no more than this; with 0, nothing.
        damping_factor: Of linkrank and pagerank: the part of a rank that comes from links.

    Raises:
        ValueError: An argument or the input's type is not right, or there are several graphs.
    """

    ranking: str = "linkrank"
    level: str = "page"
    rounds: int = 10
    tolerance: float = 0.0
    damping_factor: float = 0.85

    def __post_init__(self) -> None:
        check_choice("ranking", self.ranking, RANKINGS)
        check_choice("level", self.level, GRAPH_LEVELS)
        check_range("damping_factor", self.damping_factor, most=1)
        self._rounds()  # they check what they get

    def expand(self, graphs: beam.PCollection[Any]) -> Any:
        check_not_windowed(graphs, "RankIterations")
        return through_chunks(graphs, self._rank, "RankIterations", _NEEDED, RankedNode)

    def _rounds(self) -> RankRounds:
        ranking = choose_ranking(self.ranking, LinkRank(self.damping_factor))
        return RankRounds(ranking, self.level, self.rounds, self.tolerance)

    def _rank(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        return (
            chunks
            | "Together" >> beam.GroupBy(lambda _: 0)
            | "Ticket" >> beam.FlatMap(_tickets, self.level, new_id()).with_output_types(Ticket)
            | Begin("linkrank")
            | self._rounds()
            | "Nodes" >> beam.FlatMap(_nodes, self.level).with_output_types(Chunk)
        )


def _tickets(grouped: tuple[int, Iterable[Chunk]], level: str, operation: str) -> Iterator[Ticket]:
    """Yields a ticket for the graph, unless it is empty."""
    graphs: list[dict[str, Any]] = []
    for chunk in grouped[1]:
        check_chunk(chunk, _NEEDED, "RankIterations")
        graphs += chunk.to_pylist()
    if len(graphs) > 1:
        listed = ", ".join(sorted(str(graph["folder"]) for graph in graphs))
        raise ValueError(f"RankIterations ranks one graph, got {len(graphs)}: {listed}")
    for graph in graphs:
        if graph["level"] != level:
            raise ValueError(
                f"level must be that of the graph in {graph['folder']}, "
                f"{graph['level']!r}, got {level!r}"
            )
        if graph["nodes"]:
            yield Ticket(graph["folder"], operation)


def _nodes(block: RankedBlock, level: str) -> Iterator[Chunk]:
    rows = stored_graph(block.operation, level).keys(block.number)
    keys = rows.get_column("key")
    nodes = from_keys(keys) if level == "page" else host_names(keys)
    ranks = list(block.ranks)
    first = next(name for name in ranks if name != "hub")
    hub = pl.Series(block.ranks["hub"]) if "hub" in ranks else pl.lit(None, pl.Float64)
    ranked = rows.with_columns(node=nodes, rank=pl.Series(block.ranks[first]), hub=hub)
    yield from to_chunks(ranked.select(_OUTPUT.names), _OUTPUT)
