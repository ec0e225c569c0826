"""Runs the pipeline of a job in this process, as a step of another pipeline."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.runners.runner import PipelineResult

from ...policy.components.vocabulary import PHASES
from ...transforms.tickets import Ticket, newest_of
from .beam_internals import quick_building, runs_here
from .runner import make_pipeline, run_pipeline

Build = Callable[[Any, Any], Any]
# The ticket with which the pipeline of a job begins, and the one with which it ends, by number.
_begins: dict[int, Ticket] = {}
_ends: dict[int, Ticket] = {}
_numbers = itertools.count()


@dataclasses.dataclass
class JobHere:
    """A job whose pipeline is built for its first ticket, and runs again for each further one.

    Attributes:
        build: Builds the pipeline of the job.
        options: Options of the job.
        needs: The phase of the batches that wait for the job; empty if it does not ask for one.
    """

    build: Build
    options: Any
    needs: str = ""
    _pipeline: beam.Pipeline | None = None
    _number: int = -1

    def run(self, ticket: Ticket) -> Ticket | None:
        """Runs the job if there is work for it; what it counts, the step counts that calls this.

        Returns:
            The ticket for the next job, if the job makes one.

        Raises:
            UserError: As if the job ran alone.
        """
        if ticket.idle or self._is_done(ticket):
            return ticket
        after, result = self.run_apart(ticket)
        count_again(result)
        return after

    def _is_done(self, ticket: Ticket) -> bool:
        """Returns whether the batch is past the phase: a fetch that parses leaves no work for parse."""
        if not self.needs or ticket.batch is None:
            return False
        batch = newest_of(ticket.address).batches.get(ticket.batch)
        return batch is not None and PHASES.index(batch.phase) > PHASES.index(self.needs)

    def run_apart(self, ticket: Ticket) -> tuple[Ticket | None, PipelineResult]:
        """Runs the job; returns the ticket for the next one, if it makes one, and what Beam says.

        Raises:
            UserError: As if the job ran alone.
        """
        if self._pipeline is None:
            self._number = next(_numbers)
            self._pipeline = self._build_pipeline()
        _begins[self._number] = ticket
        result = run_pipeline(self._pipeline)
        return _ends.pop(self._number, None), result

    def _build_pipeline(self) -> beam.Pipeline:
        pipeline = make_pipeline([])
        with quick_building():
            begin = beam.Map(_take, self._number).with_output_types(Ticket)
            after = self.build(pipeline | beam.Impulse() | "Ticket" >> begin, self.options)
            if isinstance(after, beam.PCollection):
                _ = after | "Return" >> beam.Map(_put, self._number)
        return pipeline


def count_again(result: PipelineResult) -> None:
    """Adds the counters of a pipeline to those of the step that has run it."""
    for counter in result.metrics().query()["counters"]:
        metric = counter.key.metric
        Metrics.counter(metric.namespace, metric.name).inc(counter.result)


def _take(_: bytes, number: int) -> Ticket:
    return _begins[number]


def _put(ticket: Ticket, number: int) -> None:
    _ends[number] = ticket


class RoundPhase(beam.PTransform):
    """A job as a step of a round.

    Input:  the ticket of the job before.
    Output: the ticket for the next job.

    In this process a phase is a pipeline of its own, which is built when its turn comes: a crawl requests
    its first page before it knows how it ends, and a phase without work costs nothing.

    Args:
        name: Name of the step.
        build: Builds the pipeline of the job.
        options: Options of the job.
        needs: As of ``JobHere``.
    """

    def __init__(self, name: str, build: Build, options: Any, needs: str = "") -> None:
        super().__init__(name)
        self._build, self._options, self._needs = build, options, needs

    def expand(self, tickets: beam.PCollection[Ticket]) -> Any:
        if not runs_here(tickets.pipeline):
            return self._build(tickets, self._options)
        job = JobHere(_Steps(self.label, self._build), self._options, self._needs)
        return tickets | "InTurn" >> beam.Map(job.run).with_output_types(Ticket)


@dataclasses.dataclass
class _Steps:
    """Builds a job whose steps have the name of its phase."""

    name: str
    build: Build

    def __call__(self, tickets: beam.PCollection[Ticket], options: Any) -> Any:
        return tickets | self.name >> beam.ptransform_fn(lambda t: self.build(t, options))()
