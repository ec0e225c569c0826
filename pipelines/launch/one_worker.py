"""Runs a job on a cluster as one step: one worker runs its whole pipeline in its own process.

Each step of a pipeline costs a cluster far more time than a small table costs a worker. The job is the
same: its pipeline is built on the worker, and run by the in-process runner.
"""

import dataclasses
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apache_beam as beam

from ...transforms.tickets import Ticket
from .arrival import check_worker
from .beam_internals import pack_code, unpack_code
from .job_here import Build, JobHere, count_again


@dataclasses.dataclass(frozen=True)
class Stages:
    """A job with a part that is for all workers, however small the table is.

    It is the build of the whole job, too.

    Attributes:
        before: Builds the part before.
        spread: Builds the part for all workers.
        after: Builds the part after it.
        engines: How many workers the part can use.
    """

    before: Build
    spread: Build
    after: Build
    engines: int = 1

    def __call__(self, tickets: beam.PCollection[Ticket], options: Any) -> Any:
        return self.after(self.spread(self.before(tickets, options), options), options)


@dataclasses.dataclass(frozen=True)
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


def engines_of(build: Build) -> int:
    """Returns how many workers a job on a small table can use."""
    return build.engines if isinstance(build, Stages) else 1


def build_on_one_worker(
    pipeline: beam.Pipeline, build: Build, options: Any, start: tuple[Ticket, int]
) -> None:
    """Builds a job that runs on one worker, except for what can use several.

    Args:
        pipeline: An empty pipeline.
        build: Builds the pipeline of the job.
        options: Options of the job.
        start: The ticket, and the snapshot that the worker must find, see ``check_worker``.
    """
    if not isinstance(build, Stages) or engines_of(build) == 1:
        _ = pipeline | "Job" >> OnOneWorker(build, options, start)
        return
    begun = pipeline | "Begin" >> OnOneWorker(build.before, options, start, alone=True)
    _ = build.spread(begun, options) | "End" >> OnOneWorker(build.after, options)


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
        module = getattr(self.build, "func", self.build).__module__
        run = _importing(module, pack_code((self.build, self.options, self.start)))
        tickets = pipeline | beam.Impulse() if self.start else pipeline
        pairs = tickets | "Run" >> beam.Map(run).with_output_types(tuple[int, Any])
        if self.alone:
            # Not a Reshuffle: Flink would skip the next Reshuffle, which spreads the work.
            pairs |= beam.GroupByKey()
            return pairs | "Give" >> beam.FlatMap(_give).with_output_types(Ticket)
        return pairs


def _importing(module: str, packed: bytes) -> Callable[[Any], tuple[int, Any]]:
    def run(ticket: Any) -> tuple[int, Any]:
        import importlib

        importlib.import_module(module)
        ours = importlib.import_module("nutbeam.pipelines.launch.one_worker")
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
