"""nodedumper and graphfiles: show the nodes of a graph, and write it in Common Crawl's files.

The files are those that Common Crawl publishes for its web graphs:
``NAME-vertices.txt.gz`` has ``id``, reversed name (and the number of hosts, for domains);
``NAME-edges.txt.gz`` has the ids of source and target; ``NAME-ranks.txt.gz`` has positions and
values of harmonic centrality and PageRank. Columns are separated by tabs. cc-webgraph reads them.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from ...io.graph.graph_files import StoredGraph, ranked_files, stored_graph
from ...io.snapshots.manifest import newest_manifest
from ...io.storage.parquet_files import collect, scan
from ...policy.base.key_columns import from_keys, host_names
from ...policy.components.graph_schema import source_ranges
from ...policy.components.kinds import KINDS
from ...policy.generating.selection import groups
from ...policy.graph.graph_options import LevelOptions, RankOptions
from ...policy.graph.rankings import (
    AGGREGATES,
    HOSTS_HEADER,
    RANKS_HEADER,
    best_first,
    grouped_values,
    merged_values,
    ranks_table,
)
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError, UserError
from ...web.base.options import option
from ...web.base.wording import format_count
from ..base.command import CommandParts, Invocation
from ..outputs.output_files import Output, output_of
from ..views.reading_job import Reading


@dataclass(frozen=True)
class GraphFileOptions(LevelOptions):
    """Options of graphfiles."""

    level: str = option(
        "host",
        "The graph to write: of hosts or of domains.",
        choices=("host", "domain"),
        group="graphfiles",
    )
    output: str = option(
        "", "Start of the names of the files, such as web/mine-host.", short="o", group="graphfiles"
    )

    def __post_init__(self) -> None:
        if not self.output:
            raise ValueError("--output must be the start of the files' names, got ''")


def write_files(invocation: Invocation) -> int:
    """Runs graphfiles: writes a graph in the files of Common Crawl."""
    options, address = invocation.options, str(invocation.table)
    if not Path(options.output).absolute().parent.is_dir():
        raise UsageError(f"no folder for --output {options.output!r}")
    reading = Reading(address, "", newest_manifest(address).snapshot)
    with reading.reading():
        graph = stored_graph(reading, options.level)
        hosts = _hosts(reading) if options.level == "domain" else None
        ranks = _ranks(reading, options.level)
        names = write_graph(graph, ranks, hosts, options.output)
    record = {"nodes": graph.all_nodes, "files": names}
    print(json.dumps(record) if invocation.format == "json" else "\n".join(names))
    return 0


def write_graph(
    graph: StoredGraph, ranks: pl.DataFrame, hosts: pl.DataFrame | None, start: str
) -> list[str]:
    """Writes the files of a graph; returns their names.

    Args:
        graph: The graph.
        ranks: Columns ``key``, ``harmonic``, ``pagerank``, in the order of the ids.
        hosts: Columns ``key`` and ``n_hosts`` of domains; None for hosts.
        start: Start of the names.
    """
    paths = [f"{start}-{kind}.txt.gz" for kind in ("vertices", "edges", "ranks")]
    with _packed(paths[0]) as file:
        for number in range(graph.blocks):
            rows = graph.keys(number, "id", "key")
            file.write(_tabs(rows if hosts is None else _with_hosts(rows, hosts)))
    with _packed(paths[1]) as file:
        for edges in sorted_edges(graph):
            file.write(_tabs(edges))
    table = ranks_table(ranks)
    with _packed(paths[2]) as file:
        header = RANKS_HEADER if hosts is None else f"{RANKS_HEADER}\t{HOSTS_HEADER}"
        file.write(f"{header}\n".encode())
        file.write(_tabs(table if hosts is None else _with_hosts(table, hosts)))
    return paths


def sorted_edges(graph: StoredGraph) -> Iterator[pl.DataFrame]:
    """Yields the links by source, then by target: columns ``source`` and ``target``, as ids.

    Memory holds the links of a range of sources, which is about a piece, and a piece.
    """
    for number, file in enumerate(graph.nodes):
        links = np.zeros(file.partition, np.int64)
        bounds: list[list[tuple[int, int]]] = []
        for target in range(graph.blocks):
            bounds.append([])
            for piece in graph.stored_pieces(number, target):
                links += np.bincount(piece.sources, minlength=len(links))
                bounds[-1].append((int(piece.sources[0]), int(piece.sources[-1])))
        for low, high in source_ranges(links):
            edges = pl.concat(_between(graph, number, bounds, (low, high)))
            yield edges.with_columns(pl.col("source") + file.order).sort("source", "target")


def _between(
    graph: StoredGraph, source: int, bounds: list[list[tuple[int, int]]], wanted: tuple[int, int]
) -> Iterator[pl.DataFrame]:
    """Yields the links of a block from some of its nodes; ``source`` is a position in the block.

    Args:
        graph: The graph.
        source: Number of the block of the sources.
        bounds: First and last source of each piece, for each block of targets.
        wanted: The first source, and the one after the last.
    """
    for target, file in enumerate(graph.nodes):
        there = [last >= wanted[0] and first < wanted[1] for first, last in bounds[target]]
        for piece in graph.stored_pieces(source, target, there):
            in_range = slice(*np.searchsorted(piece.sources, wanted))
            yield pl.DataFrame({"source": piece.sources[in_range].astype(np.int64),
                                "target": piece.targets[in_range].astype(np.int64) + file.order})  # fmt: skip


def _hosts(reading: Reading) -> pl.DataFrame:
    """Returns the number of hosts of each domain, from the graph of hosts."""
    try:
        graph = stored_graph(reading, "host")
    except UserError as error:
        raise UserError(f"the files of domains have their number of hosts: {error}") from error
    parts = [
        groups(graph.keys(number, "key").get_column("key"), "domain").alias("key").value_counts()
        for number in range(graph.blocks)
    ]
    return pl.concat(parts).group_by("key").agg(n_hosts=pl.col("count").sum())


def _ranks(reading: Reading, level: str) -> pl.DataFrame:
    for rank in ("harmonic", "pagerank"):
        files = ranked_files(reading, level, rank)
    paths = [reading.table / file.path for file in files]
    rows = scan(paths, KINDS[f"{level}_ranks"].schema)
    return collect(rows.select("key", "harmonic", "pagerank"))


def _with_hosts(rows: pl.DataFrame, hosts: pl.DataFrame) -> pl.DataFrame:
    node_rows = rows.join(hosts, on="key", how="left", maintain_order="left")
    return node_rows.with_columns(pl.col("n_hosts").fill_null(1))


def _packed(path: str) -> AbstractContextManager[IO[bytes]]:
    return Output(Path(path), ".txt", compressed=True).open_file()


def _tabs(rows: pl.DataFrame) -> bytes:
    return rows.write_csv(separator="\t", include_header=False).encode()


@dataclass(frozen=True)
class NodeOptions(LevelOptions, RankOptions):
    """Options of nodedumper."""

    GROUP = "nodedumper"

    what: str = option(
        "scores",
        "Value to show: the rank (scores), the number of links to the node (inlinks) or from it "
        "(outlinks).",
        choices=("scores", "inlinks", "outlinks"),
        nutch="nodedumper -scores, -inlinks, -outlinks",
    )
    top: int = option(
        0, "Number of nodes to show; 0 shows all, and sorts them in memory.", minimum=0,
        nutch="nodedumper -topn",
    )  # fmt: skip
    group_by: str = option(
        "none", "Show a value per host or domain.", choices=("none", "host", "domain"),
        nutch="nodedumper -group",
    )  # fmt: skip
    aggregate: str = option(
        "sum", "How --group_by combines values: sum or max.", choices=AGGREGATES
    )
    as_eff: bool = option(
        False, "Write = instead of a tab between key and value, as in Solr's external file fields.",
        nutch="nodedumper -asEff",
    )  # fmt: skip
    output: str = option("-", "File to write; - is standard output.", short="o")

    def __post_init__(self) -> None:
        if self.group_by != "none" and self.level != "page":
            raise ValueError(f"--group_by is for the graph of pages, got --level {self.level!r}")


def dump_nodes(invocation: Invocation) -> int:
    """Runs nodedumper: shows nodes with a rank or their number of links, the best first."""
    options, address = invocation.options, str(invocation.table)
    path = output_of(options.output, "--output", ".tsv").path
    reading = Reading(address, "", newest_manifest(address).snapshot)
    with reading.reading():
        rows = best_nodes(reading, options)
    as_json = invocation.format == "json"
    sign = "=" if options.as_eff else "\t"
    lines = (
        json.dumps({"node": name, "value": value}) if as_json else f"{name}{sign}{_number(value)}"
        for name, value in rows.iter_rows()
    )
    if path is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return 0
    with Path(path).open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    print(f"{format_count(len(rows), 'nodes')} in {path}")
    return 0


def best_nodes(reading: Reading, options: NodeOptions) -> pl.DataFrame:
    """Returns the chosen nodes: URL or name, and value."""
    graph = stored_graph(reading, options.level)
    best: pl.DataFrame | None = None
    ranks = {}
    if options.what == "scores":
        files = ranked_files(reading, options.level, options.rank)
        ranks = {file.order: file.path for file in files}
    for number, file in enumerate(graph.nodes):
        nodes = _values(graph, number, ranks.get(file.order), options)
        values = [grouped_values(nodes, options.group_by, options.aggregate)]
        values += [] if best is None else [best]
        if options.group_by != "none":
            best = merged_values(values, options.aggregate)
        else:
            best = best_first(pl.concat(values), options.top)
    assert best is not None
    rows = best_first(best, options.top)
    keys = rows.get_column("key")
    is_page = options.level == "page" and options.group_by == "none"
    names = from_keys(keys) if is_page else host_names(keys)
    return rows.select(name=names, value="value")


def _values(
    graph: StoredGraph, number: int, ranks: str | None, options: NodeOptions
) -> pl.DataFrame:
    if options.what != "scores":
        column = {"inlinks": "in_links", "outlinks": "out_links"}[options.what]
        return graph.keys(number).select("key", value=column)
    schema = KINDS[f"{options.level}_ranks"].schema
    if ranks is None:
        return graph.keys(number).select("key", value=pl.lit(None, pl.Float64))
    return collect(scan([graph.table / ranks], schema).select("key", value=options.rank))


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"


NODEDUMPER = CommandParts(NodeOptions, dump_nodes)
GRAPHFILES = CommandParts(GraphFileOptions, write_files)
