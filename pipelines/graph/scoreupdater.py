"""scoreupdater: writes the ranks of pages into the table, as the scores of its URLs.

::

    state[key, score], ranks of the same keys ─ those that differ ─ by tablet ─▶ state'
"""

import functools
from collections.abc import Iterator

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ...io.graph.graph_files import ranked_files
from ...io.snapshots.operations import Operation
from ...io.storage.parquet_files import collect, scan
from ...io.tablets.resolve import Resolver, resolving
from ...io.tablets.tablets import Tablet, tablets
from ...policy.components.kinds import KINDS
from ...policy.components.schema import STATE
from ...policy.graph.graph_options import RankOptions
from ...policy.graph.rankings import new_scores, set_scores
from ...transforms.apply_changes import Target, change_rows
from ...transforms.elements.chunks import Chunk, named_chunks
from ...transforms.operations import Begin
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.options import option
from ...web.base.progress import PROGRESS
from ..base.command import TABLE, Invocation
from ..launch.job import run_job
from ..launch.job_options import JobOptions

ARGUMENTS = (TABLE,)
SCORES = pa.schema([STATE.field("key"), STATE.field("score")])


@dataclass(frozen=True)
class Options(RankOptions, JobOptions):
    """Options of scoreupdater."""

    clear_score: float = option(
        0.0,
        "Score of a URL that is not in the graph.",
        nutch="link.score.updater.clear.score",
    )


@dataclass(frozen=True)
class ScoredTablet:
    """A tablet of the state, with the files of ranks that may have its keys."""

    operation: Operation
    tablet: Tablet
    ranks: tuple[str, ...]


def run(invocation: Invocation) -> int:
    return run_job(invocation, build, "scoreupdater")


def build(tickets: beam.PCollection[Ticket], options: Options) -> beam.PCollection[Ticket]:
    """Writes ranks into the state; returns the ticket for a next job."""
    operations = tickets | "Begin" >> Begin("scoreupdater")
    return change_rows(
        operations, "Tablets", (functools.partial(_tablets, rank=options.rank), _changes, (options,)),
        {"state": Target(SCORES, score_resolver)}, reads=("state", "page_ranks"),
    )  # fmt: skip


def _tablets(operation: Operation, rank: str) -> Iterator[ScoredTablet]:
    ranks = ranked_files(operation, "page", rank)
    state_tablets = tablets(operation.files("state"))
    PROGRESS.start("scoreupdater", total=len(state_tablets), unit="tablets")
    for tablet in state_tablets:
        low, high = tablet.first or "", tablet.last or "\x7f"
        rank_files = (f for f in ranks if (f.first or "") <= high and (f.last or "") >= low)
        yield ScoredTablet(operation, tablet, tuple(file.path for file in rank_files))


def _changes(item: ScoredTablet, options: Options) -> Iterator[tuple[str, Chunk]]:
    table, column = item.operation.table, options.rank
    rows = table.read("state", [item.tablet], ("key", "score"))
    paths = [table / path for path in item.ranks]
    schema = KINDS["page_ranks"].schema
    ranks = pl.DataFrame(schema={"key": pl.String, column: pl.Float64})
    if paths:
        ranks = collect(scan(paths, schema).select("key", column))
    changed = new_scores(rows, ranks.rename({column: "rank"}), options.clear_score)
    PROGRESS.add()
    yield from named_chunks("state", changed, SCORES)


def score_resolver(operation: Operation) -> Resolver:
    """Returns the resolver that sets scores."""
    return resolving(set_scores)
