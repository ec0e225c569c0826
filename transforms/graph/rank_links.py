"""Ranks the pages, hosts or domains of a collection of links."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ...io.graph.stored_graph import stored_graph
from ...io.snapshots.operations import Operation, new_id
from ...policy.components.schema import TEXT, to_frame
from ...policy.graph.graph_blocks import BLOCK_NODES
from ...policy.graph.link_limits import GRAPH_LEVELS, LinkLimits
from ...policy.graph.linkrank import LinkRank
from ...policy.graph.rankings import RANKINGS, choose_ranking
from ...web.urls.key_columns import from_keys
from ...web.urls.row_keys import from_host_key, parse_url, to_key
from ..elements.chunks import Chunk, to_chunks
from ..elements.rows import check_chunk, through_chunks
from ..operations import Begin, Commit, Ticket
from ..wiring.display import Displayed
from ..wiring.metrics import count
from .graph_blocks import LINKS_IN, GraphBlocks, tidy_graph
from .graph_layout import BLOCKS, LIMIT
from .rank_iterations import RankedBlock, RankIterations

_NEEDED = {"the input": ["source", "target"]}
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
class RankLinks(Displayed):
    """Ranks the pages, hosts or domains of links: GraphBlocks, then RankIterations.

    Input:  chunks or rows of links: ``source`` and ``target``, both URLs; perhaps ``position``, the
        place of the link in its page. A link whose URL is malformed is left out, and counted.
    Output: chunks or rows ``node`` (a URL, or a host or domain), ``rank`` (with hits the
        authority), ``hub`` (with hits; else null), ``in_links`` and ``out_links``.

    Cost: those of GraphBlocks and RankIterations. The graph stays in the folder, which is a table
    for ``nodedumper`` and ``graphfiles``; you may delete it.

    Attributes:
        folder: Where the graph and the values of rounds are stored: a folder, or a place in a
            store, that all workers can access.
        ranking: The method: linkrank, pagerank, hits or harmonic.
        level: What the nodes are: page, host or domain.
        rounds: Most rounds.
        tolerance: End after a round that changes no more than this; with 0, nothing.
        damping_factor: Of linkrank and pagerank: the part of a rank that comes from links.
        ignore_internal_host: Whether to leave out links within a host.
        ignore_internal_domain: Whether to leave out links within a registered domain.
        limit_page: Whether to count one link from a page to a URL without its query.
        limit_domain: Whether to count one link from a page to each registered domain.
        block_nodes: About the number of nodes of a block; memory depends on it.

    Raises:
        ValueError: An argument or the input's type is not right.
    """

    folder: str
    ranking: str = "linkrank"
    level: str = "page"
    rounds: int = 10
    tolerance: float = 0.0
    damping_factor: float = 0.85
    ignore_internal_host: bool = True
    ignore_internal_domain: bool = True
    limit_page: bool = True
    limit_domain: bool = True
    block_nodes: int = BLOCK_NODES

    def __post_init__(self) -> None:
        for name, known in (("ranking", RANKINGS), ("level", GRAPH_LEVELS)):
            if getattr(self, name) not in known:
                listed = ", ".join(known)
                raise ValueError(f"{name} must be one of {listed}, got {getattr(self, name)!r}")
        if not 0 <= self.damping_factor <= 1:
            raise ValueError(f"damping_factor must be from 0 to 1, got {self.damping_factor}")
        self._blocks()  # they check what they get
        self._iterations()

    def expand(self, given: beam.PCollection[Any]) -> Any:
        return through_chunks(given, self._rank, "RankLinks", _NEEDED, RankedNode)

    def _blocks(self) -> GraphBlocks:
        return GraphBlocks(LinkLimits.of(self), self.level, self.block_nodes)

    def _iterations(self) -> RankIterations:
        ranking = choose_ranking(self.ranking, LinkRank(self.damping_factor))
        return RankIterations(ranking, self.level, self.rounds, self.tolerance)

    def _rank(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        links = chunks | "Keys" >> beam.FlatMap(_keyed).with_output_types(Chunk)
        operations = (
            chunks.pipeline
            | "Ticket" >> beam.Create([Ticket(self.folder, new_id())])
            | "BeginGraph" >> Begin("webgraph")
        )
        written = (operations, links) | "Graph" >> self._blocks()
        reads = tuple(f"{self.level}_{kind}" for kind in ("nodes", "edges", "ranks"))
        made = (operations, written) | "CommitGraph" >> Commit(reads, whole=(LIMIT, BLOCKS))
        operation = beam.pvalue.AsSingleton(operations)
        return (
            made
            | "Tidy" >> beam.Map(tidy_graph, operation, self.level).with_output_types(Ticket)
            | "BeginRanks" >> Begin("linkrank")
            | "WithNodes" >> beam.Filter(_has_nodes, self.level)
            | "Rounds" >> self._iterations()
            | "Nodes" >> beam.FlatMap(_nodes, self.level).with_output_types(Chunk)
        )


def _keyed(chunk: Chunk) -> Iterator[Chunk]:
    """Yields links with row keys instead of URLs."""
    check_chunk(chunk, _NEEDED, "RankLinks")
    links = to_frame(chunk)
    if "position" not in links.columns:
        links = links.with_columns(position=pl.lit(None, pl.Int32))
    found = links.select("source", "target", pl.col("position").cast(pl.Int32))
    for name in ("source", "target"):
        urls = found.get_column(name).unique().drop_nulls()
        keys = pl.Series([_key(url) for url in urls], dtype=pl.String)
        known = pl.DataFrame({name: urls, "key": keys})
        found = found.join(known, on=name, how="left", maintain_order="left")
        found = found.drop(name).rename({"key": name})
    good = found.drop_nulls(["source", "target"])
    count("webgraph", {"dropped/malformed": len(found) - len(good)})
    yield from to_chunks(good, LINKS_IN)


def _key(url: str) -> str | None:
    parsed = parse_url(url)
    return None if parsed is None else to_key(parsed.partition("#")[0])


def _has_nodes(operation: Operation, level: str) -> bool:
    return bool(operation.files(f"{level}_nodes"))


def _nodes(block: RankedBlock, level: str) -> Iterator[Chunk]:
    rows = stored_graph(block.operation, level).keys(block.number)
    keys = rows.get_column("key")
    if level == "page":
        nodes = from_keys(keys)
    else:
        nodes = pl.Series([from_host_key(key) for key in keys], dtype=pl.String)
    ranks = list(block.ranks)
    first = next(name for name in ranks if name != "hub")
    hub = pl.Series(block.ranks["hub"]) if "hub" in ranks else pl.lit(None, pl.Float64)
    found = rows.with_columns(node=nodes, rank=pl.Series(block.ranks[first]), hub=hub)
    yield from to_chunks(found.select(_OUTPUT.names), _OUTPUT)
