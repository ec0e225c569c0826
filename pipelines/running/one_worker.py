"""Runs a job on a cluster as one step: one worker runs its whole pipeline in its own process.

Each step of a pipeline costs a cluster far more time than a small table costs a worker. The job is the
same: its pipeline is built on the worker, and run by the in-process runner.
"""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import apache_beam as beam

from ...transforms.tickets import Ticket
from ...web.base.dataclass import dataclass
from .arrival import Arrive, check_worker
from .beam_internals import pack_code, unpack_code
from .job_here import Build, JobHere, count_again
from .placement import Workers, workers_of_rows


class Placed(NamedTuple):
    """A job, or parts of one that follow one another, and the workers that run it: one or all."""

    build: Build
    workers: Workers


@dataclass(frozen=True)
class Stages:
    """A job of several parts, each for the workers that it needs.

    It is the build of the whole job, too.

    Attributes:
        parts: Builds of the parts, in order.
        rows: Returns how many rows of a table the work of each part weighs, from the ticket and the
            options; infinite if it is for all workers. None: there is nothing to do.
    """

    parts: tuple[Build, ...]
    rows: Callable[[Ticket, Any], Sequence[float] | None] | None = None

    def __call__(self, tickets: beam.PCollection[Ticket], options: Any) -> Any:
        for build in self.parts:
            tickets = build(tickets, options)
        return tickets

    def place(self, ticket: Ticket, options: Any) -> tuple[Placed, ...]:
        """Returns the parts with their workers; none if there is nothing to do."""
        rows = self.rows(ticket, options) if self.rows else None
        workers = [workers_of_rows(weight, options) for weight in rows or ()]
        placed = zip(workers, self.parts if rows else (), strict=True)
        return tuple(
            Placed(Stages(tuple(build for _, build in group)), needed)
            for needed, group in itertools.groupby(placed, operator.itemgetter(0))
        )


@dataclass(frozen=True)
class Sized:
    """A job that knows more of its work than the manifest does.

    Attributes:
        build: Builds its pipeline.
        rows: About how many rows it reads that are not in the table.
        has_work: Tells, from the table's address and whether the job fits one worker, whether it may have
            something to do.
    """

    build: Build
    rows: int = 0
    has_work: Callable[[str, bool], bool] = lambda _address, _small: True

    def __call__(self, tickets: beam.PCollection[Ticket], options: Any) -> Any:
        return self.build(tickets, options)


def build_placed(
    pipeline: beam.Pipeline, job: Sequence[Placed], options: Any, start: tuple[Ticket, int]
) -> None:
    """Builds a job whose parts run on one worker or on all.

    Args:
        pipeline: An empty pipeline.
        job: The parts.
        options: Options of the job.
        start: The ticket, and the snapshot that the worker must find, see ``check_worker``.
    """
    (first, workers), *others = job
    if workers is Workers.ONE:
        tickets = pipeline | "Job" >> OnOneWorker(first, options, start, alone=bool(others))
    else:
        tickets = first(_arrive(pipeline, first, options, start), options)
    for number, (build, workers) in enumerate(others):
        if workers is Workers.ONE:
            tickets |= f"Part{number}" >> OnOneWorker(build, options)
        else:
            tickets = build(tickets, options)


def _arrive(
    pipeline: beam.Pipeline, build: Build, options: Any, start: tuple[Ticket, int]
) -> beam.PCollection[Ticket]:
    ticket, snapshot = start
    if options.deliver:
        tickets = pipeline | "Ticket" >> beam.Create([ticket]).with_output_types(Ticket)
    else:
        tickets = pipeline | Arrive(ticket, _module_of(build))
    check = beam.Map(check_worker, snapshot, options).with_output_types(Ticket)
    return tickets | "CheckWorker" >> check


def _module_of(build: Build) -> str:
    """Returns the name of the module that builds a job."""
    first = build.parts[0] if isinstance(build, Stages) else build
    return str(getattr(first, "func", first).__module__)


@dataclasses.dataclass
class OnOneWorker(beam.PTransform):
    """Runs the pipeline of a job on one worker, in the process of its step.

    Input:  a pipeline, if there is a ticket; else the ticket of the job before.
    Output: the ticket for the next job.

    The step needs nothing of nutbeam to be read. So a worker that lacks it, or a package, can say so.

    Attributes:
        build: Builds the pipeline of the job.
        options: Options of the job.
        start: The ticket, and the snapshot to find; None if the ticket comes from the job before.
        alone: Whether the steps that follow are kept apart, because they need nutbeam to be read.
    """

    build: Build
    options: Any
    start: tuple[Ticket, int] | None = None
    alone: bool = False

    def expand(self, pipeline: Any) -> beam.PCollection[Any]:
        run = _importing(_module_of(self.build), pack_code((self.build, self.options, self.start)))
        tickets = pipeline | beam.Impulse() if self.start else pipeline
        pairs = tickets | "Run" >> beam.Map(run).with_output_types(tuple[int, Any])
        if self.alone:
            # Not a Reshuffle: Flink would skip the next Reshuffle, which spreads the work.
            pairs |= beam.GroupByKey()
            return pairs | "Give" >> beam.FlatMap(_give).with_output_types(Ticket)
        return pairs if self.start else pairs | "Next" >> beam.Values()


def _importing(module: str, packed: bytes) -> Callable[[Any], tuple[int, Any]]:
    def run(ticket: Any) -> tuple[int, Any]:
        import importlib

        importlib.import_module(module)
        ours = importlib.import_module("nutbeam.pipelines.running.one_worker")
        return 0, ours.run_packed(packed, ticket)

    return run  # an inner function, so that it is pickled by value


def _give(grouped: tuple[int, Iterable[Ticket]]) -> Iterable[Ticket]:
    return grouped[1]


def run_packed(packed: bytes, ticket: Ticket) -> Ticket | None:
    """Runs a packed job in this process; returns the ticket for the next job, if it makes one.

    Args:
        packed: (build, options, start) of ``OnOneWorker``.
        ticket: Its ticket; anything if the step starts the pipeline.

    Raises:
        UserError: As the job does on one machine.
    """
    build, options, start = unpack_code(packed)
    ticket = check_worker(start[0], start[1], options) if start else ticket
    if ticket.idle:
        return ticket
    # A thread of its own: Beam notes for each thread which step it runs.
    with ThreadPoolExecutor(1) as pool:
        after, result = pool.submit(JobHere(build, options).run_apart, ticket).result()
    count_again(result)
    return after
