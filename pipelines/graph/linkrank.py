"""linkrank: ranks the nodes of a graph, round by round.

::

    nodes, edges ─ RankRounds ─ ranks known before ─▶ ranks'
"""

import contextlib
import dataclasses
import functools
import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import polars as pl

from ...io.graph.graph_files import remove_rounds, stored_graph, write_ranks
from ...io.snapshots.operations import Operation, find_commit, new_id, pinned_operation
from ...io.storage.files import overwrite_bytes, read_if_there, remove_file
from ...io.storage.parquet_files import collect, scan
from ...io.storage.places import Folder, Place
from ...io.table.opening import open_table
from ...io.tablets.written import Written
from ...policy.components.kinds import KINDS
from ...policy.graph.graph_options import LevelOptions
from ...policy.graph.linkrank import LinkRank
from ...policy.graph.ranking import Ranking, has_converged
from ...policy.graph.rankings import RANKINGS, Harmonic, choose_ranking
from ...transforms.graph.rank_rounds import (
    MOST_STEPS,
    ROUND_ENDS,
    RankedBlock,
    RankRounds,
    RankSome,
    most_rounds,
)
from ...transforms.operations import Begin, Commit
from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from ...web.base.errors import UsageError
from ...web.base.options import option
from ...web.base.safe_json import read_json
from ..base.command import TABLE, Invocation
from ..launch.job import run_job
from ..launch.job_options import JobOptions
from ..running.job_here import Build
from ..running.runner import only_submits

ARGUMENTS = (TABLE,)
RANKS = "Ranks"
RANK_LOG = logging.getLogger("nutbeam.linkrank")
# Default limit of rounds. LinkRank makes all of them, as Nutch does; the others usually end earlier.
_ROUNDS = {"linkrank": 10, "pagerank": 100, "hits": 100, "harmonic": 100}
_TOLERANCE = {"linkrank": 0.0, "pagerank": 1e-6, "hits": 1e-6, "harmonic": 0.0}


@dataclass(frozen=True)
class Options(LevelOptions, JobOptions):
    """Options of linkrank."""

    ranking: str = option(
        "linkrank",
        "Method: LinkRank, PageRank, HITS (hubs and authorities) or harmonic centrality.",
        choices=RANKINGS,
    )
    rank_rounds: int = option(
        0,
        "Most rounds; 0 means 10 for LinkRank and 100 for the others.",
        minimum=0,
        maximum=1000,
        nutch="link.analyze.num.iterations",
    )
    tolerance: float = option(
        -1.0,
        "End after a round that changes no more than this, as a share of all ranks; -1 is the "
        "method's default. 0 ends when nothing changes. The default is 1e-6 for PageRank and "
        "hits, and 0 for LinkRank and harmonic. If the rounds were too few, a warning says so, "
        "for harmonic and for values above 0.",
        minimum=-1.0,
    )
    initial_score: float = option(
        1.0, "LinkRank: the score before the first round.", minimum=0.0,
        nutch="link.analyze.initial.score",
    )  # fmt: skip
    damping_factor: float = option(
        0.85,
        "LinkRank and PageRank: the part of a rank that comes from links.",
        minimum=0.0,
        maximum=1.0,
        nutch="link.analyze.damping.factor",
    )
    formula: str = option(
        "balanced",
        "LinkRank: balanced divides the rank of a page among its links that count, and gives the "
        "rank of pages without such links to all pages, so that the mean stays 1; nutch loses it, exactly as Nutch does.",
        choices=("balanced", "nutch"),
    )
    exact_nodes: int = option(
        10_000,
        "harmonic: up to this number of nodes the result is exact; above, nodes are counted by "
        "HyperLogLog.",
        minimum=0,
        maximum=100_000,
    )
    log2_registers: int = option(
        6,
        "harmonic: registers of a counter, a byte each, as a power of 2. 6 has an error of 13 % "
        "for a node, 10 of 3 %.",
        minimum=4,
        maximum=12,
    )


def run(invocation: Invocation) -> int:
    options = invocation.options
    named = dataclasses.replace(options, operation=options.operation or new_id())
    if only_submits(invocation.beam_args):
        _check_rounds(options)
    rounds, pipelines = _Rounds(shown=invocation.format != "json"), _Pipelines(named)
    with rounds.of_this_process():
        own = dataclasses.replace(invocation, options=named)
        code = run_job(
            own, pipelines.build_last, "linkrank", earlier_builds=pipelines.earlier_builds
        )
    table = open_table(str(invocation.table))
    path = _changes_file(table, f"{named.operation}.linkrank", options.level)
    changes = _changes_in(read_if_there(path) or b"[]")
    rounds.show(changes)
    remove_file(path)
    if code == 0 and (warning := _unfinished_line(options, changes)):
        RANK_LOG.warning("%s", warning)
    return code


def _changes_in(data: bytes) -> list[float]:
    """Returns the changes in a file of the job; a damaged file has none.

    >>> _changes_in(b"[0.5, 1e-9]"), _changes_in(b"[[1]]"), _changes_in(b"{")
    ([0.5, 1e-09], [], [])
    """
    with contextlib.suppress(ValueError, TypeError):
        return [float(change) for change in read_json(data)]
    return []


def _check_rounds(options: Options) -> None:
    """Checks that one pipeline can make all rounds.

    Raises:
        UsageError: It cannot.
    """
    most, (rounds, _) = most_rounds(ranking_of(options)), rounds_of(options)
    if rounds > most:
        raise UsageError(
            f"--rank_rounds must be at most {most} for {options.ranking} if the job is only submitted, "
            f"got {rounds}"
        )


class _Pipelines:
    """The pipelines of a ranking: one, or several one after the other if it has many rounds."""

    def __init__(self, options: Options) -> None:
        self._whole = _iterations(options, steps_left=0)  # it need not fit into one pipeline
        self._left: int | None = None

    def earlier_builds(self, ticket: Ticket) -> Iterator[Build]:
        """Yields the builds of all pipelines but the last, until the ranking has converged."""
        steps = steps_left = self._whole.ranking.steps(self._whole.rounds)
        while steps_left > MOST_STEPS:
            yield self._build_some
            operation = pinned_operation(ticket.address, f"{ticket.operation}.linkrank")
            if operation is None or find_commit(operation) or operation.idle:
                steps_left = 0
            else:
                steps_left = self._whole.steps_left(operation)
        self._left = steps_left if steps_left < steps else None

    def build_last(
        self, tickets: beam.PCollection[Ticket], options: Options
    ) -> beam.PCollection[Ticket]:
        """Builds the last one."""
        return build(tickets, options, self._left)

    def _build_some(self, tickets: beam.PCollection[Ticket], _: Options) -> beam.PCollection[Any]:
        return tickets | "Begin" >> _begin() | RankSome(self._whole)


def _begin() -> Begin:
    return Begin("linkrank", allows=("compact",))


def _iterations(options: Options, steps_left: int | None = None) -> RankRounds:
    return RankRounds(ranking_of(options), options.level, *rounds_of(options), steps_left)


def rounds_of(options: Options) -> tuple[int, float]:
    """Returns the most rounds and the tolerance."""
    tolerance = _TOLERANCE[options.ranking] if options.tolerance < 0 else options.tolerance
    return options.rank_rounds or _ROUNDS[options.ranking], tolerance


def _unfinished_line(options: Options, changes: Sequence[float]) -> str:
    """Returns a line that says that a ranking needs more rounds; empty if it needs none."""
    rounds, tolerance = rounds_of(options)
    ends = options.ranking == "harmonic" or tolerance > 0
    if not ends or len(changes) < rounds or has_converged(changes[-1], tolerance):
        return ""
    return (
        f"{options.ranking} has not ended: round {rounds}, the last one, has changed "
        f"{changes[-1]:.3g}: run linkrank with more --rank_rounds"
    )


class _Rounds(logging.Handler):
    """Prints the change of each round: when it ends, if this process ranks, else at the end."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__()
        self._shown = shown
        self._printed = 0

    @contextlib.contextmanager
    def of_this_process(self) -> Iterator[None]:
        """Prints rounds as they end."""
        log, log_state = RANK_LOG, (RANK_LOG.level, RANK_LOG.propagate)
        if not log.isEnabledFor(logging.INFO):  # then nobody else wants to see them
            log.setLevel(logging.INFO)
            log.propagate = False
        log.addHandler(self)
        try:
            yield
        finally:
            log.removeHandler(self)
            log.setLevel(log_state[0])
            log.propagate = log_state[1]

    def emit(self, record: logging.LogRecord) -> None:
        self.show(getattr(record, "changes", ()))

    def show(self, changes: Sequence[float]) -> None:
        """Prints the changes that are not printed yet."""
        for number in range(self._printed, len(changes) if self._shown else 0):
            print(ROUND_ENDS % (number + 1, changes[number]), flush=True)
        self._printed = max(self._printed, len(changes))


def build(
    tickets: beam.PCollection[Ticket], options: Options, steps_left: int | None = None
) -> beam.PCollection[Ticket]:
    """Ranks the nodes of a graph; returns the ticket for a next job.

    Args:
        tickets: One ticket.
        options: The options.
        steps_left: Most rounds to make if others are made, see ``RankRounds``.
    """
    operations = tickets | "Begin" >> _begin()
    level = options.level
    ranked = operations | _iterations(options, steps_left)
    write = functools.partial(_write, level=level)
    written = ranked | "Write" >> beam.Map(write).with_output_types(Written)
    ended = (operations, written) | Commit(
        reads=(f"{level}_nodes", f"{level}_edges", f"{level}_ranks"), whole=(RANKS,)
    )
    operation = beam.pvalue.AsSingleton(operations)
    return ended | "Tidy" >> beam.Map(_tidy, operation, level).with_output_types(Ticket)


def ranking_of(options: Options) -> Ranking:
    """Returns the method that the options choose."""
    nutch = options.formula == "nutch"
    linkrank = LinkRank(options.damping_factor, options.initial_score, nutch)
    harmonic = Harmonic(options.exact_nodes, options.log2_registers)
    return choose_ranking(options.ranking, linkrank, harmonic)


def _write(block: RankedBlock, level: str) -> Written:
    """Writes the ranks of a block, beside those of other methods for the same graph."""
    operation, component = block.operation, f"{level}_ranks"
    graph, schema = stored_graph(operation, level), KINDS[f"{level}_ranks"].schema
    first = graph.nodes[block.number].order
    rows, ranks = graph.keys(block.number, "key", "id"), pl.DataFrame(block.ranks)
    if len(rows) < len(ranks):  # a purge has removed nodes
        ranks = ranks[rows.get_column("id") - first]
    rows = pl.concat([rows.select("key"), ranks], how="horizontal")
    previous_files = [file for file in operation.files(component) if file.order == first]
    if previous_files:
        stored_ranks = scan([operation.table / previous_files[0].path], schema)
        previous_ranks = collect(stored_ranks.drop(list(block.ranks)))
        if previous_ranks["key"].equals(rows["key"]):
            rows = pl.concat([rows, previous_ranks.drop("key")], how="horizontal")
        else:
            rows = rows.join(previous_ranks, on="key", how="left", maintain_order="left")
    due = {RANKS: block.of} if block.number == 0 else {}
    counts = {"nodes": len(rows)}
    if block.number == 0:
        counts["rounds"] = len(block.changes)
        overwrite_bytes(_changes_file(operation.table, operation.id, level),
                        json.dumps(block.changes).encode())  # fmt: skip
    file = write_ranks(operation.table, level, first, rows)
    replaced = tuple(previous.path for previous in previous_files)
    return Written(component, (file,), replaced, counts, due=due, done={RANKS: 1})


def _changes_file(root: Folder, operation: str, level: str) -> Place:
    return root / f"{level}_ranks/changes-{operation}.json"


def _tidy(ticket: Ticket, operation: Operation, level: str) -> Ticket:
    """Removes the files of the rounds."""
    if not operation.idle:
        remove_rounds(operation.table.files, level)
    return ticket
