"""Makes the graph of a collection of links, in a folder."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ...io.snapshots.manifest import newest_manifest
from ...io.snapshots.operations import new_id
from ...policy.components.graph_schema import GRAPH_LEVELS
from ...policy.components.schema import TEXT, to_frame
from ...policy.graph.graph_blocks import BLOCK_NODES
from ...policy.graph.link_limits import LinkLimits
from ...web.urls.row_keys import parse_url, to_key
from ..elements.chunks import Chunk, to_chunks
from ..elements.rows import check_chunk, check_not_windowed, through_chunks
from ..operations import Begin, Commit
from ..tickets import Ticket
from ..wiring.display import Displayed
from ..wiring.metrics import count
from .graph_layout import BLOCKS, LIMIT
from .write_blocks import LINKS_IN, WriteBlocks, tidy_graph

_NEEDED = {"the input": ["source", "target"]}
_OUTPUT = pa.schema([("folder", TEXT), ("level", TEXT), ("nodes", pa.int64())])


class LinkGraph(NamedTuple):
    """A graph in a folder, as a row."""

    folder: str
    level: str
    nodes: int


@dataclasses.dataclass
class GraphBlocks(Displayed):
    """Makes the blocks of a graph from links; ``graph_blocks`` does the same in memory.

    Input:  chunks or rows of links: ``source`` and ``target``, both URLs; perhaps ``position``, the
        place of the link in its page. A link whose URL is malformed is left out, and counted.
    Output: one row, or a chunk with one: ``folder``, ``level`` and ``nodes`` (their number), for
        RankIterations.

    Cost: three shuffles of the links that may count, see WriteBlocks. The graph stays in the
    folder, which is a table for ``nodedumper`` and ``graphfiles``; you may delete it.

    Attributes:
        folder: Where the graph is stored: a folder, or a place in a store, that all workers can
            access.
        level: What the nodes are: page, host or domain.
        ignore_internal_host: Whether to leave out links within a host.
        ignore_internal_domain: Whether to leave out links within a registered domain.
        limit_page: Whether to count one link from a page to a URL without its query.
        limit_domain: Whether to count one link from a page to each registered domain.
        block_nodes: Approximate number of nodes per block; memory depends on it.

    Raises:
        ValueError: An argument or the input's type is not right.
    """

    folder: str
    level: str = "page"
    ignore_internal_host: bool = True
    ignore_internal_domain: bool = True
    limit_page: bool = True
    limit_domain: bool = True
    block_nodes: int = BLOCK_NODES

    def __post_init__(self) -> None:
        check_choice("level", self.level, GRAPH_LEVELS)
        self._write()  # it checks what it gets

    def expand(self, links: beam.PCollection[Any]) -> Any:
        check_not_windowed(links, "GraphBlocks")
        return through_chunks(links, self._make, "GraphBlocks", _NEEDED, LinkGraph)

    def _write(self) -> WriteBlocks:
        return WriteBlocks(LinkLimits.of(self), self.level, self.block_nodes)

    def _make(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        links = chunks | "Keys" >> beam.FlatMap(_to_keys).with_output_types(Chunk)
        operations = (
            chunks.pipeline
            | "Ticket" >> beam.Create([Ticket(self.folder, new_id())])
            | Begin("webgraph")
        )
        written = (operations, links) | self._write()
        reads = tuple(f"{self.level}_{kind}" for kind in ("nodes", "edges", "ranks"))
        tickets = (operations, written) | Commit(reads, whole=(LIMIT, BLOCKS))
        operation = beam.pvalue.AsSingleton(operations)
        return (
            tickets
            | "Tidy" >> beam.Map(tidy_graph, operation, self.level).with_output_types(Ticket)
            | "Graph" >> beam.Map(_graph, self.level).with_output_types(Chunk)
        )


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Checks that an argument is one of its values.

    Raises:
        ValueError: It is not.
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _to_keys(chunk: Chunk) -> Iterator[Chunk]:
    """Yields links with row keys instead of URLs."""
    check_chunk(chunk, _NEEDED, "GraphBlocks")
    links = to_frame(chunk)
    if "position" not in links.columns:
        links = links.with_columns(position=pl.lit(None, pl.Int32))
    keyed_links = links.select("source", "target", pl.col("position").cast(pl.Int32))
    for name in ("source", "target"):
        urls = keyed_links.get_column(name).unique().drop_nulls()
        keys = pl.Series([_key(url) for url in urls], dtype=pl.String)
        url_keys = pl.DataFrame({name: urls, "key": keys})
        keyed_links = keyed_links.join(url_keys, on=name, how="left", maintain_order="left")
        keyed_links = keyed_links.drop(name).rename({"key": name})
    good = keyed_links.drop_nulls(["source", "target"])
    count("webgraph", {"dropped/malformed": len(keyed_links) - len(good)})
    yield from to_chunks(good, LINKS_IN)


def _key(url: str) -> str | None:
    parsed = parse_url(url)
    return None if parsed is None else to_key(parsed.partition("#")[0])


def _graph(ticket: Ticket, level: str) -> Chunk:
    nodes = newest_manifest(ticket.address).components.get(f"{level}_nodes")
    graph = LinkGraph(ticket.address, level, nodes.rows if nodes is not None else 0)
    return pa.Table.from_pylist([graph._asdict()], schema=_OUTPUT)
