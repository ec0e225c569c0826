"""Makes the samples of all metrics: values with labels, from what is known about a command and its table."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ...web.base.dataclass import dataclass
from ...web.base.progress import Phase, Phases
from ...web.engine.request_times import BOUNDS, TimesSoFar
from ..components.table_figures import TableFigures
from .count_labels import labelled_counts, word_label

RUNNING = "nutbeam_command_running"


@dataclass(frozen=True)
class CommandFacts:
    """What a command knows about itself.

    Attributes:
        command: Its name.
        version: The version of nutbeam.
        started: When it began, s since 1970.
        updated: When these facts were taken, s.
        phases: Its phases.
        request_times: The times of its requests.
        disks: (free bytes, bytes) by disk.
        ended: When it ended, s; None while it runs.
        exit_code: Its exit code; None while it runs.
        last_page: When it last got a page, s; 0: it got none.
        read_failures: How often the table could not be read.
    """

    command: str
    version: str
    started: float
    updated: float
    phases: Phases
    request_times: TimesSoFar
    disks: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    ended: float | None = None
    exit_code: int | None = None
    last_page: float = 0.0
    read_failures: int = 0


class MetricSample(NamedTuple):
    """A value of a metric.

    Attributes:
        name: The metric.
        labels: Values of its labels, in the order of the catalogue, without the table.
        value: The value.
        buckets: Of a histogram: (upper bound, number up to it); the value is the sum.
    """

    name: str
    labels: tuple[str, ...]
    value: float
    buckets: tuple[tuple[str, int], ...] = ()


def samples_of(facts: CommandFacts, figures: TableFigures) -> Iterator[MetricSample]:
    """Yields the samples of all metrics that have a value now."""
    yield from _of_command(facts)
    yield from _of_table(figures, facts.last_page)
    yield from _of_jobs(figures)
    if facts.phases.current is not None and facts.ended is None:
        yield from _of_running_phase(facts.phases.current)
    times = ((phase.name, phase.elapsed) for phase in facts.phases.by_phase().values())
    for name, seconds in _by_word(times, sum).items():
        yield MetricSample("nutbeam_phase_seconds_total", (name,), seconds)
    yield _of_requests(facts.request_times)
    for disk, (free, size) in facts.disks.items():
        yield MetricSample("nutbeam_disk_free_bytes", (disk,), free)
        yield MetricSample("nutbeam_disk_size_bytes", (disk,), size)


def _of_command(facts: CommandFacts) -> Iterator[MetricSample]:
    labels = (facts.command,)
    yield MetricSample("nutbeam_command_info", (facts.command, facts.version), 1)
    yield MetricSample(RUNNING, labels, float(facts.ended is None))
    yield MetricSample("nutbeam_command_start_timestamp_seconds", labels, facts.started)
    if facts.ended is not None:
        yield MetricSample("nutbeam_command_end_timestamp_seconds", labels, facts.ended)
    if facts.exit_code is not None:
        yield MetricSample("nutbeam_command_exit_code", labels, facts.exit_code)
    yield MetricSample("nutbeam_updated_timestamp_seconds", (), facts.updated)
    yield MetricSample("nutbeam_table_read_failures_total", (), facts.read_failures)


def _of_table(figures: TableFigures, last_page: float) -> Iterator[MetricSample]:
    yield MetricSample("nutbeam_snapshot", (), figures.snapshot)
    if figures.committed:
        yield MetricSample("nutbeam_snapshot_timestamp_seconds", (), figures.committed)
    if page := max(figures.last_pages, last_page):
        yield MetricSample("nutbeam_last_page_timestamp_seconds", (), page)
    for status, number in figures.urls.items():
        yield MetricSample("nutbeam_urls", (status,), number)
    yield MetricSample("nutbeam_hosts", (), figures.hosts)
    for state, (number, urls) in figures.batches.items():
        yield MetricSample("nutbeam_batches", (state,), number)
        yield MetricSample("nutbeam_batch_urls", (state,), urls)
    for component, (_, rows, size) in figures.sizes.items():
        yield MetricSample("nutbeam_table_bytes", (component,), size)
        yield MetricSample("nutbeam_table_rows", (component,), rows)


def _of_jobs(figures: TableFigures) -> Iterator[MetricSample]:
    for job, number in _by_word(figures.commits.items(), sum).items():
        yield MetricSample("nutbeam_phase_commits_total", (job,), number)
    for job, time_ms in _by_word(figures.last_commits.items(), max).items():
        yield MetricSample("nutbeam_phase_last_commit_timestamp_seconds", (job,), time_ms / 1000)
    for labels, number in sorted(labelled_counts(figures.counts).items()):
        yield MetricSample("nutbeam_counts_total", tuple(labels), number)


def _by_word(
    values: Iterable[tuple[str, float]], fold: Callable[[Iterable[float]], float]
) -> dict[str, float]:
    """Returns values by the label of a name; those of names with the same label are folded."""
    by_label: dict[str, list[float]] = {}
    for name, value in values:
        by_label.setdefault(word_label(name), []).append(value)
    return {label: fold(all_values) for label, all_values in by_label.items()}


def _of_running_phase(phase: Phase) -> Iterator[MetricSample]:
    name = word_label(phase.name)
    yield MetricSample("nutbeam_phase_running", (name,), 1)
    yield MetricSample("nutbeam_phase_elapsed_seconds", (name,), phase.elapsed)
    yield MetricSample("nutbeam_phase_done", (name, phase.unit), phase.done)
    if phase.total is not None:
        yield MetricSample("nutbeam_phase_expected", (name, phase.unit), phase.total)
    if "bytes" in phase.counts:
        yield MetricSample("nutbeam_phase_received_bytes", (name,), phase.counts["bytes"])
    if phase.hosts is not None:
        yield MetricSample("nutbeam_fetch_hosts", ("active",), phase.hosts.active)
        yield MetricSample("nutbeam_fetch_hosts", ("waiting",), phase.hosts.waiting)
        yield MetricSample("nutbeam_fetch_seconds_left", (), phase.hosts.seconds)


def _of_requests(times: TimesSoFar) -> MetricSample:
    bounds = [*map(str, BOUNDS), "+Inf"]
    sums = itertools.accumulate(times.buckets)
    buckets = tuple(zip(bounds, sums, strict=True))
    return MetricSample("nutbeam_request_seconds", (), times.seconds, buckets)
