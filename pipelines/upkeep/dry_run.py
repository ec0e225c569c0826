"""Runs a job as a dry run: it pins no operation, commits nothing, and reports its counts."""

import dataclasses
import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.metrics import Metrics, MetricsFilter

from ...io.snapshots.manifest import Manifest
from ...io.snapshots.operations import Operation, new_id
from ...io.tablets.written import Written, sum_counts
from ...policy.components.rule_counts import cap_rule_counts
from ...transforms.operations import Finish
from ...transforms.tickets import Ticket, dry_operation
from ...transforms.wiring.display import Displayed
from ...web.base.progress import PROGRESS
from ...web.urls.row_keys import from_key
from ..base.command import Invocation
from ..base.live import live_view
from ..launch.earlier_jobs import missing_rules_line
from ..launch.job import check_launch, prepare
from ..launch.job_reports import report
from ..running.job_here import Build
from ..running.runner import run_pipeline, waits

_LOG = logging.getLogger("nutbeam.dry_run")
# The runner brings counts back as counters, in a namespace that no real run has.
_NAMESPACE = "nutbeam_dry_run"
_SHOWN = 3  # examples of each reason


class Example(NamedTuple):
    """A row that would be changed.

    Attributes:
        reason: The reason why it would be dropped; None if it would move.
        key: Its key.
        target: The key that it would move to.
    """

    reason: str | None
    key: str
    target: str | None


@dataclasses.dataclass
class BeginDryRun(Displayed):
    """Begins a dry run of a job: pins the newest snapshot, and records nothing.

    Input:  one ticket.
    Output: one operation.

    Attributes:
        job: Name of the job.
    """

    job: str

    def expand(self, tickets: beam.PCollection[Ticket]) -> beam.PCollection[Operation]:
        return tickets | "Pin" >> beam.Map(dry_operation, self.job).with_output_types(Operation)


@dataclasses.dataclass
class EndDryRun(Displayed):
    """Ends a dry run: sums the counts, and logs examples.

    Input:  (operations, made, ...): one operation, ``Written``, ``Example``.
    Output: one ticket.

    Attributes:
        whole: Steps whose work must be complete.
    """

    whole: tuple[str, ...] = ()

    def expand(self, inputs: Any) -> beam.PCollection[Ticket]:
        return inputs | Finish(_report_counts, self.whole)


def _report_counts(operation: Operation, written: list[Written], examples: list[Any]) -> Manifest:
    counts = cap_rule_counts(sum_counts(part.counts for part in written))
    for name, number in counts.items():
        Metrics.counter(_NAMESPACE, name).inc(number)
    for example in _few_of_each_reason(examples):
        url, target = from_key(example.key), example.target
        what = f"move to {from_key(target)}" if target and not example.reason else "be dropped"
        _LOG.warning("would %s: %s%s", what, url, f": {example.reason}" if example.reason else "")
    return dataclasses.replace(operation.manifest(), counts=counts)


def _few_of_each_reason(examples: Iterable[Example]) -> list[Example]:
    """Returns a few examples of each reason."""
    ordered = sorted(examples, key=lambda one: (one.reason or "", one.key))
    seen: dict[str | None, int] = {}
    chosen = []
    for example in ordered:
        seen[example.reason] = seen.get(example.reason, 0) + 1
        if seen[example.reason] <= _SHOWN:
            chosen.append(example)
    return chosen


def run_dry(invocation: Invocation, build: Build, job: str) -> int:
    """Runs a job dry, and reports what it would do."""
    options = invocation.options
    ticket = Ticket(str(invocation.table), options.operation or new_id())
    check_launch(invocation, begins_table=False, dry=True)
    with live_view(invocation.progress):
        pipeline = prepare(ticket, build, options, invocation.beam_args, job)
        result = run_pipeline(pipeline)
        PROGRESS.finish()
    if line := missing_rules_line(invocation):
        _LOG.warning("%s", line)
    record: dict[str, Any] = {"job": job, "dry_run": True}
    if not waits(pipeline):
        return report(invocation, {**record, "operation": ticket.operation, "submitted": True})
    counters = result.metrics().query(MetricsFilter().with_namespace(_NAMESPACE))["counters"]
    counts = sorted((counter.key.metric.name, counter.result) for counter in counters)
    return report(invocation, {**record, "counts": dict(counts), "changed": False})
