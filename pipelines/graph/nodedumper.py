"""nodedumper: shows the nodes of a graph with a rank or their number of links, the best first."""

import dataclasses
import json
import sys
from pathlib import Path

import polars as pl

from ...io.graph.graph_files import StoredGraph, ranked_files, stored_graph
from ...io.snapshots.manifest import newest_manifest
from ...io.storage.parquet_files import collect, scan
from ...policy.components.kinds import KINDS
from ...policy.graph.rankings import AGGREGATES, best_first, grouped_values, merged_values
from ...web.base.options import option
from ...web.base.wording import format_count
from ...web.urls.key_columns import from_keys
from ...web.urls.row_keys import from_host_key
from ..base.command import TABLE, Invocation
from ..views.reading_job import Reading, output_of
from .scoreupdater import RankOptions
from .webgraph import LevelOptions

ARGUMENTS = (TABLE,)


@dataclasses.dataclass(frozen=True)
class Options(LevelOptions, RankOptions):
    """Options of nodedumper."""

    what: str = option(
        "scores",
        "Value to show: the rank (scores), the number of links to the node (inlinks) or from it "
        "(outlinks).",
        choices=("scores", "inlinks", "outlinks"),
        nutch="nodedumper -scores, -inlinks, -outlinks",
        group="nodedumper",
    )
    top: int = option(
        0, "Number of nodes to show; 0 shows all, and sorts them in memory.", minimum=0,
        nutch="nodedumper -topn", group="nodedumper",
    )  # fmt: skip
    group_by: str = option(
        "none", "Show a value per host or domain.", choices=("none", "host", "domain"),
        nutch="nodedumper -group", group="nodedumper",
    )  # fmt: skip
    aggregate: str = option(
        "sum", "How --group_by combines values: sum or max.", choices=AGGREGATES, group="nodedumper"
    )
    as_eff: bool = option(
        False, "Write = instead of a tab between key and value, as in Solr's external file fields.",
        nutch="nodedumper -asEff", group="nodedumper",
    )  # fmt: skip
    output: str = option("-", "File to write; - is standard output.", short="o", group="nodedumper")

    def __post_init__(self) -> None:
        if self.group_by != "none" and self.level != "page":
            raise ValueError(f"--group_by is for the graph of pages, got --level {self.level!r}")


def run(invocation: Invocation) -> int:
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


def best_nodes(reading: Reading, options: Options) -> pl.DataFrame:
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
    if options.level == "page" and options.group_by == "none":
        names = from_keys(keys)
    else:
        names = pl.Series([from_host_key(key) for key in keys], dtype=pl.String)
    return rows.select(name=names, value="value")


def _values(graph: StoredGraph, number: int, ranks: str | None, options: Options) -> pl.DataFrame:
    if options.what != "scores":
        column = {"inlinks": "in_links", "outlinks": "out_links"}[options.what]
        return graph.keys(number).select("key", value=column)
    schema = KINDS[f"{options.level}_ranks"].schema
    if ranks is None:
        return graph.keys(number).select("key", value=pl.lit(None, pl.Float64))
    return collect(scan([graph.table / ranks], schema).select("key", value=options.rank))


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"
