"""Operations as steps of a pipeline: pinned by its first step, committed by its last."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
from apache_beam.utils.windowed_value import WindowedValue

from ..io.snapshots.commit import CommitTerms, commit
from ..io.snapshots.entries import Batch
from ..io.snapshots.manifest import Manifest
from ..io.snapshots.operations import Operation
from ..io.table.opening import open_table
from ..io.tablets.report_files import load_reports, store_reports
from ..io.tablets.written import Written, check_whole, gather_written, sum_counts
from ..io.upkeep.over_purges import commit_over_purges
from ..policy.purging import Purge
from ..web.base.progress import PROGRESS
from .tickets import Ticket, begin_job, newest_of
from .wiring.display import Displayed
from .wiring.in_process import in_window
from .wiring.metrics import count
from .wiring.phase_logs import log_end, logs_of


@dataclasses.dataclass
class Begin(Displayed):
    """Pins the operation of a job.

    Input:  one ticket.
    Output: one operation.

    Attributes:
        job: Name of the job.
        needs: The phase that its batch must have reached; None if the job works on no batch;
            empty if the job makes a batch.
        allows: Upkeep jobs, ``compact`` and ``purge``, that may commit before this job does. A job
            that changes tablets allows none; a job that only reads them allows ``compact``.
        takes: An earlier phase that is enough for a batch that the user names.
        takes_in: The component that takes in the batch, as in ``Commit``. Without a named batch the
            job gets the oldest that the component has not taken in yet. Empty: none.
    """

    job: str
    needs: str | None = None
    allows: tuple[str, ...] = ()
    takes: str | None = None
    takes_in: str = ""

    def expand(self, tickets: beam.PCollection[Ticket]) -> beam.PCollection[Operation]:
        begins = beam.Map(begin_job, self.job, self.needs, self.allows, self.takes, self.takes_in)
        return tickets | "Begin" >> begins.with_output_types(Operation)


Opens = Callable[[Operation, dict[str, int]], Batch | None]


@dataclasses.dataclass
class Commit(Displayed):
    """Commits the next snapshot of the table from the files of the workers.

    Input:  (operations, written): one operation, any number of ``Written``.
    Output: one ticket for the next job.

    Cost: that of ``Finish``.

    Attributes:
        reads: Components that must not have changed since the operation was
            pinned; ``{batch}`` is replaced by the batch's id.
        phase: Phase of the batch after this commit, or None.
        takes_in: Name that is added to ``Batch.taken_in`` of the batch; empty adds none.
        takes_all: Whether to add it also to all other batches that wait for it.
        opens: Function that makes the record of a new batch from the operation and the counts; it
            returns None if the batch would have no URLs. None if the job makes no batch.
        whole: Steps whose work must be complete.
        over_purges: Whether a purge may commit during the job; see ``io/upkeep/over_purges.py``.
        tally: Function that makes the counts of the snapshot from the sums of the workers' counts;
            None takes the sums.
        options: Options that the snapshot names, for ``explain`` and for the same work again.
        rules: Rules for links that the snapshot names, see ``recorded_rules``.
    """

    reads: tuple[str, ...] = ()
    phase: str | None = None
    takes_in: str = ""
    takes_all: bool = False
    opens: Opens | None = None
    whole: tuple[str, ...] = ()
    over_purges: bool = False
    tally: Callable[[dict[str, int]], dict[str, int]] | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    rules: Mapping[str, Any] | None = None

    def expand(self, inputs: Any) -> beam.PCollection[Ticket]:
        # A copy: this object also holds what Beam notes of a step, its inputs among it.
        commit = functools.partial(_commit, how=dataclasses.replace(self))
        return inputs | Finish(commit, self.whole, makes_batch=self.opens is not None)


@dataclasses.dataclass
class Finish(Displayed):
    """Ends a job: calls a function that makes the next snapshot from the results of the workers.

    Input:  (operations, made, ...): one operation, any number of ``Written``, other elements.
    Output: one ticket for the next job.

    Cost: a shuffle of small elements to one key. Nothing is committed before
    all elements have arrived, and a retried commit finds its id in the history.
    After a failure Prism continues for a moment with only some of the elements;
    then nothing is committed.

    Attributes:
        commit: ``commit(operation, written, others)`` returns the manifest of the snapshot.
        whole: Steps whose work must all have been done.
        makes_batch: Whether the job makes the batch. If it made none, the next job has no work.
        repeats: Whether to call ``commit`` again for an operation that is already committed,
            because it does more than committing.
    """

    commit: Callable[[Operation, list[Written], list[Any]], Manifest]
    whole: tuple[str, ...] = ()
    makes_batch: bool = False
    repeats: bool = False

    def expand(self, inputs: Any) -> beam.PCollection[Ticket]:
        finish = beam.Map(_finish, self.commit, self.whole, self.makes_batch, self.repeats)
        return inputs | Together(gathers=True) | "Commit" >> finish.with_output_types(Ticket)


@dataclasses.dataclass
class Together(beam.PTransform):
    """Gathers a few small elements of several collections on one worker.

    Input:  collections.
    Output: one element (0, all their elements), or none if there are no elements.

    Attributes:
        gathers: Whether to unite the ``Written`` of each bundle, see ``GatherReports``.
    """

    gathers: bool = False

    def expand(self, inputs: Any) -> beam.PCollection[tuple[int, Any]]:
        on_key = beam.ParDo(GatherReports()) if self.gathers else beam.Map(_on_one_key)
        on_key = on_key.with_output_types(tuple[int, Any])
        keyed = tuple(items | f"Key{at}" >> on_key for at, items in enumerate(inputs))
        # All collections have the same coder, because Flink groups encoded elements.
        return keyed | beam.Flatten() | beam.GroupByKey()


def _on_one_key(item: Any) -> tuple[int, Any]:
    return 0, item


class GatherReports(beam.DoFn):
    """Puts elements on one key, the ``Written`` of a bundle as few small reports.

    Input:  elements.
    Output: (0, element).
    """

    def __init__(self) -> None:
        self._reports: list[Written] = []

    def start_bundle(self) -> None:
        self._reports = []

    def process(self, element: Any) -> Iterator[tuple[int, Any]]:
        if isinstance(element, Written):
            self._reports.append(element)
        else:
            yield _on_one_key(element)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        reports = gather_written(self._reports)
        address = max((report.address for report in reports), default="")
        for report in store_reports(open_table(address).files, reports) if address else reports:
            yield in_window(_on_one_key(report))


def _split_elements(
    grouped: tuple[int, Iterable[Any]], whole: Iterable[str]
) -> tuple[Operation, list[Written], list[Any]]:
    """Returns the elements of ``Together``: the operation, all ``Written``, all others.

    Args:
        grouped: The element of ``Together``.
        whole: Steps whose work must be complete, unless the operation is idle.

    Raises:
        UserError: Some work is missing.
    """
    items = list(grouped[1])
    (operation,) = [item for item in items if isinstance(item, Operation)]
    written = [item for item in items if isinstance(item, Written)]
    if not operation.idle:
        with operation.reading():
            written = list(load_reports(operation.table.files, written))
        check_whole(operation.job, written, whole)
    return operation, written, [i for i in items if not isinstance(i, Operation | Written)]


def _ticket_after(operation: Operation, *, nothing: bool) -> Ticket:
    """Returns the ticket for the next job; without a batch if there is nothing to do."""
    launch = operation.id.removesuffix(f".{operation.job}")
    batch = None if nothing else operation.batch
    return Ticket(
        operation.address, launch, batch, idle=nothing, round=operation.round,
        began=operation.began, until=operation.until,
    )  # fmt: skip


def _finish(
    grouped: tuple[int, Iterable[Any]],
    commit: Callable[[Operation, list[Written], list[Any]], Manifest],
    whole: tuple[str, ...],
    makes_batch: bool,
    repeats: bool,
) -> Ticket:
    operation, written, others = _split_elements(grouped, whole)
    if operation.idle and not (repeats and operation.idle == "done"):
        nothing = operation.idle == "nothing" or (
            makes_batch and operation.batch not in newest_of(operation.address).batches
        )
        return _ticket_after(operation, nothing=nothing)
    with logs_of(operation):
        manifest = commit(operation, written, others)
    count(operation.job, manifest.counts)
    log_end(operation, manifest)
    PROGRESS.finish()
    return _ticket_after(operation, nothing=makes_batch and operation.batch not in manifest.batches)


def _commit(operation: Operation, written: list[Written], _: list[Any], how: Commit) -> Manifest:
    return commit_job(operation, written, how)


def commit_job(operation: Operation, written: list[Written], how: Commit) -> Manifest:
    """Commits one job's work; see ``Commit``."""
    batch: Batch | None = None
    if how.tally is not None:
        counts = how.tally(sum_counts(part.counts for part in written))
        written = [*(dataclasses.replace(w, counts={}) for w in written), Written(counts=counts)]
    operation = dataclasses.replace(operation, options=how.options, rules=how.rules)
    if how.opens is not None:
        batch = how.opens(operation, sum_counts(part.counts for part in written))
        if batch is None:  # no URL was chosen: commit only the counts
            written = [dataclasses.replace(w, component="", files=()) for w in written]
    elif how.phase is not None and operation.batch is not None:
        open_batch = operation.manifest().batches[operation.batch]
        batch = dataclasses.replace(open_batch, phase=how.phase)
        if how.phase == "updated":
            batch = dataclasses.replace(batch, updated=operation.snapshot)
    names = frozenset(name.format(batch=operation.batch) for name in how.reads)
    waiting = operation.manifest().waiting_for(how.takes_in) if how.takes_all else ()
    taken = {str(operation.batch), *waiting} if how.takes_in else ()
    terms = CommitTerms(names, batch, takes_in=dict.fromkeys(taken, how.takes_in))
    if how.over_purges:
        return commit_over_purges(operation, written, terms, Purge)
    return commit(operation, written, terms)
