"""Ranks the nodes of a stored graph, in rounds; each round's values are in files."""

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam

from ...io.graph.graph_files import Receipt, RoundFiles, StoredGraph, round_files, stored_graph
from ...io.snapshots.operations import Operation
from ...policy.components.graph_schema import Values
from ...policy.graph.ranking import BlockRound, Ranking, has_converged, one_block, sum_totals
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.memory import keep_free_blocks
from ...web.base.progress import PROGRESS
from ..elements.arguments import check_integer, check_range
from ..wiring.display import Displayed
from ..wiring.phase_logs import logs_of

_LOG = logging.getLogger("nutbeam.linkrank")
# Logged when the change of a round is known, with the changes of all rounds as ``changes``.
ROUND_ENDS = "round %d: change %.3g"
# Most groups of blocks: each reports to all others after each round.
MOST_GROUPS = 32
# Most rounds of a pipeline, in the sense of ``Ranking.steps``: Beam walks a chain of steps by
# recursion, and fails with about 450.
MOST_STEPS = 200


@dataclass(frozen=True)
class RankedBlock:
    """The ranks of a block.

    Attributes:
        operation: The operation.
        number: Number of the block.
        of: Number of blocks.
        ranks: The ranks, by name, in the order of the ids.
        changes: The change of each round.
    """

    operation: Operation
    number: int
    of: int
    ranks: Values
    changes: tuple[float, ...]


@dataclass(frozen=True)
class _Report:
    """What the blocks of a group report to each group."""

    operation: Operation
    receipts: tuple[Receipt, ...] = ()


@dataclasses.dataclass
class RankRounds(Displayed):
    """Ranks the nodes of a graph of a table; RankIterations is made of this.

    Input:  operations, whose snapshot has the graph.
    Output: ``RankedBlock``, one per block.

    Cost: a shuffle of a few small reports per round; the values of each round are in files. A
    worker holds the values of two blocks, a piece of the links between them, and up to 256 MB of
    decoded links. A job that is started again with the same graph, method, rounds and tolerance
    continues after the last complete round.

    Attributes:
        ranking: The method.
        level: One of ``GRAPH_LEVELS``.
        rounds: Most rounds.
        tolerance: Stop after a round that changes no more than this; with 0, one that changes
            nothing.
        steps_limit: Most rounds that this pipeline makes, in the sense of ``Ranking.steps``, if
            pipelines with ``RankSome`` have made the others; None makes all.

    Raises:
        ValueError: The pipeline would have more rounds than ``MOST_STEPS``; or an argument is out
            of its range.
    """

    ranking: Ranking
    level: str = "page"
    rounds: int = 10
    tolerance: float = 0.0
    steps_limit: int | None = None

    def __post_init__(self) -> None:
        check_integer("rounds", self.rounds)
        check_range("tolerance", self.tolerance)
        most = most_rounds(self.ranking)
        if self.steps_limit is None and self.rounds > most:
            raise ValueError(
                f"rounds must be at most {most} for {self.ranking.name} in one pipeline, "
                f"got {self.rounds}"
            )

    def expand(self, operations: beam.PCollection[Operation]) -> beam.PCollection[RankedBlock]:
        steps = self.ranking.steps(self.rounds) if self.steps_limit is None else self.steps_limit
        return (
            _rounds(operations, self.how, steps)
            | "Meet" >> beam.GroupByKey()
            | "Ranks" >> beam.FlatMap(_ranks, self.how).with_output_types(RankedBlock)
        )

    @property
    def how(self) -> "_How":
        """What its steps must know."""
        return _How(self.ranking, self.level, self.rounds, self.tolerance)

    def steps_left(self, operation: Operation) -> int:
        """Returns how many rounds are to be made, from the files of those that are made.

        They are counted in the sense of ``Ranking.steps``; 0 if the last one has converged.
        """
        files, blocks = self.how.files(operation), stored_graph(operation, self.level).blocks
        last, steps = files.last_round(blocks), self.ranking.steps(self.rounds)
        if not last:
            return steps
        receipts = (files.receipt(last, block) for block in range(blocks))
        totals = sum_totals(receipt.totals for receipt in filter(None, receipts))
        change = self.ranking.change(last, totals)
        ended = change is not None and has_converged(change, self.tolerance)
        return 0 if ended else steps - last


@dataclasses.dataclass
class RankSome(Displayed):
    """Makes the next rounds of a ranking, at most ``MOST_STEPS``; they stay in files.

    Input:  operations, whose snapshot has the graph.
    Output: a few reports, for nobody.

    Attributes:
        whole: The ranking. A pipeline with the same operation continues it.
    """

    whole: RankRounds

    def expand(self, operations: beam.PCollection[Operation]) -> beam.PCollection[Any]:
        return _rounds(operations, self.whole.how, MOST_STEPS)


def most_rounds(ranking: Ranking) -> int:
    """Returns the most rounds, as users count them, that one pipeline can make."""
    return MOST_STEPS // ranking.steps(1)


@dataclass(frozen=True)
class _How:
    ranking: Ranking
    level: str
    rounds: int
    tolerance: float

    def files(self, operation: Operation) -> RoundFiles:
        edges = operation.manifest().components[f"{self.level}_edges"]
        parts = (edges.identity, self.ranking, self.rounds, self.tolerance)
        return round_files(operation.table.files, self.level, *parts)


def _rounds(operations: beam.PCollection[Operation], how: _How, steps: int) -> beam.PCollection:
    """Makes at most a number of rounds, and the values before the first one if they are missing."""
    keyed = tuple[int, _Report]
    reports = operations | "Start" >> beam.FlatMap(_start, how).with_output_types(keyed)
    for number in range(steps + 1):
        reports = (
            reports
            | f"Meet{number}" >> beam.GroupByKey()
            | f"Round{number}" >> beam.FlatMap(_round, how).with_output_types(keyed)
        )
    return reports


class _RoundValues(Sequence[Values]):
    """The values of all blocks after a round; reads those of a block when they are needed."""

    def __init__(self, files: RoundFiles, number: int, blocks: int, own: int, names: tuple) -> None:
        self._files, self._number, self._blocks = files, number, blocks
        self._own, self._names = own, names
        self._last: tuple[int, Values] = (-1, {})

    def __len__(self) -> int:
        return self._blocks

    def __getitem__(self, block: Any) -> Any:
        if self._last[0] != block:
            names = None if block == self._own else self._names
            self._last = (block, self._files.values(self._number, block, names))
        return self._last[1]


def _groups(graph: StoredGraph) -> int:
    return min(graph.blocks, MOST_GROUPS)


def _start(operation: Operation, how: _How) -> Iterator[tuple[int, _Report]]:
    if operation.idle:
        return
    graph, files = stored_graph(operation, how.level), how.files(operation)
    last = files.last_round(graph.blocks)
    PROGRESS.start("linkrank", unit="blocks")
    if last is not None:
        _LOG.info("continues after round %d", last)
    for group in range(_groups(graph)):
        if last is None:
            yield group, _Report(operation)
            continue
        receipts = (files.receipt(last, block) for block in range(graph.blocks))
        yield group, _Report(operation, tuple(filter(None, receipts)))


@dataclass(frozen=True)
class _Meeting:
    """The reports of all blocks after a round, and the files with their values, for one group."""

    group: int
    operation: Operation
    graph: StoredGraph
    files: RoundFiles
    receipts: list[Receipt]

    @property
    def blocks(self) -> range:
        """The blocks of the group."""
        return range(self.group, self.graph.blocks, _groups(self.graph))


def _meeting(grouped: tuple[int, Iterable[_Report]], how: _How) -> _Meeting:
    group, reports = grouped[0], list(grouped[1])
    operation = reports[0].operation
    graph, files = stored_graph(operation, how.level), how.files(operation)
    return _Meeting(group, operation, graph, files, _collect_receipts(reports, graph))


def _collect_receipts(reports: list[_Report], graph: StoredGraph) -> list[Receipt]:
    by_block = {receipt.block: receipt for report in reports for receipt in report.receipts}
    if by_block and len(by_block) != graph.blocks:
        raise UserError(
            f"linkrank: {len(by_block)} of {graph.blocks} blocks have reported: run it again"
        )
    return [by_block[block] for block in sorted(by_block)]


def _round(grouped: tuple[int, Iterable[_Report]], how: _How) -> Iterator[tuple[int, _Report]]:
    meeting = _meeting(grouped, how)
    receipts = meeting.receipts
    # Not the number of the step: after a kill, and in a further pipeline, the first step makes the
    # round after the last complete one.
    number = receipts[0].round + 1 if receipts else 0
    if receipts and (receipts[0].ended or number > how.ranking.steps(how.rounds)):
        done = tuple(receipts[block] for block in meeting.blocks)
    else:
        with logs_of(meeting.operation), keep_free_blocks():
            work = _Work(how, meeting.graph, meeting.files, number, receipts)
            done = tuple(work.receipt(block) for block in meeting.blocks)
    for other in range(_groups(meeting.graph)):
        yield other, _Report(meeting.operation, done)


@dataclass(frozen=True)
class _Work:
    """A round, for any block."""

    how: _How
    graph: StoredGraph
    files: RoundFiles
    number: int
    receipts: list[Receipt]

    def receipt(self, number: int) -> Receipt:
        """Makes the round for a block, unless its file is there."""
        receipt = self.files.receipt(self.number, number)
        return receipt if receipt is not None else self._make_round(number)

    def _make_round(self, number: int) -> Receipt:
        ranking, block = self.how.ranking, self.graph.block(number)
        PROGRESS.add()
        if self.number == 0:
            values, totals = ranking.initial_values(block)
            return self._write(Receipt(number, 0, totals), values)
        totals_before = sum_totals(receipt.totals for receipt in self.receipts)
        own = self.receipts[number]
        last = self.number - 1
        change = ranking.change(last, totals_before) if last else None
        changes = own.changes if change is None else (*own.changes, change)
        if change is not None and number == 0:
            _log_round(changes)
        if change is not None and has_converged(change, self.how.tolerance):
            return dataclasses.replace(own, changes=changes, ended=True)
        old = _RoundValues(self.files, last, self.graph.blocks, number, ranking.gathered)
        values, totals = one_block(
            ranking, self.graph, BlockRound(self.number, block, totals_before), old
        )
        self.files.forget(self.number - 2, number)
        return self._write(Receipt(number, self.number, totals, changes), values)

    def _write(self, receipt: Receipt, values: Values) -> Receipt:
        self.files.write(receipt, values)
        return receipt


def _ranks(grouped: tuple[int, Iterable[_Report]], how: _How) -> Iterator[RankedBlock]:
    meeting = _meeting(grouped, how)
    receipts = meeting.receipts
    totals = sum_totals(receipt.totals for receipt in receipts)
    changes = receipts[0].changes
    if not receipts[0].ended:
        last = how.ranking.change(receipts[0].round, totals)
        changes = changes if last is None else (*changes, last)
        if last is not None and meeting.group == 0:
            _log_round(changes)
    for block in meeting.blocks:
        values = meeting.files.values(receipts[block].round, block)
        ranks = how.ranking.ranks(values, totals)
        yield RankedBlock(meeting.operation, block, meeting.graph.blocks, ranks, changes)


def _log_round(changes: tuple[float, ...]) -> None:
    _LOG.info(ROUND_ENDS, len(changes), changes[-1], extra={"changes": changes})
