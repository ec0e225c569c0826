"""Sends changes to the tablets that have their keys, and applies them with resolvers."""

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.rows.small_components import HOST_COUNTS_COMPONENT, read_domain_urls
from ..io.snapshots.operations import Operation
from ..io.tablets.ranges import Range, Sample, plan_ranges, sample_keys, split_by_range
from ..io.tablets.resolve import Resolution, Resolved, Resolver, resolving
from ..io.tablets.tablets import tablets
from ..io.tablets.written import Written
from ..policy.components.schema import StateRows, empty, to_frame
from ..policy.hosting.hosts import COUNTED_OF_STATE, changed_counts, merge_hosts
from ..policy.hosting.merit import DomainRoom, Merits, domains_of_new_urls
from ..web.base.dataclass import dataclass
from .elements.chunks import Chunk
from .for_each import REPORTS, ForEach, with_address
from .operations import Commit, Together
from .tickets import Ticket
from .wiring.display import Displayed
from .wiring.in_process import FlatMapInThreads

RESOLVE = "Resolve"  # the step that Commit checks; it counts rows of changes
_ALL = ("", 0)  # key of the whole plan
_Change = tuple[str, Chunk]


@dataclass(frozen=True)
class Target:
    """A component to change, and how changes are applied to it.

    Attributes:
        schema: Schema of the changes; columns that are null may be missing.
        resolver: Function that makes the resolver from the operation, on the worker.
        places: The component of each extra frame of the resolver; ``{batch}`` is replaced by
            the batch's id.
    """

    schema: pa.Schema
    resolver: Callable[[Operation], Resolver]
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The key ranges of each component for one operation."""

    operation: Operation
    ranges: Mapping[str, tuple[Range, ...]]
    rows: int


@dataclasses.dataclass
class ApplyChanges(Displayed):
    """Adds runs with changes to the tablets of components.

    Input:  (operations, changes, ...): one operation; collections of pairs of a component's
        name and a chunk of changes to it.
    Output: ``Written``, one per component and range; and, as the step ``RESOLVE``, the numbers
        with which ``Commit`` checks that all changes were applied.

    Cost: the changes are shuffled once, by range; the table is not shuffled. A
    range gets about 32 MB of changes; samples determine the ranges. A worker holds
    the changes of one range, and the rows that they change; a single process holds
    those of several. So the amount of data that it reads and writes depends on the
    changes, not on the table. A tablet is rewritten if it has no base yet, if it has
    very many changes, or if it exceeds the limits of ``io/tablets/tablets.py``.
    Rewriting is limited per operation.

    Attributes:
        targets: By component, such as ``state`` and ``hosts``.
        trial: Whether to write nothing, and only to count what the resolvers would do.
    """

    targets: Mapping[str, Target]
    trial: bool = False

    def expand(self, inputs: Any) -> beam.PCollection[Written]:
        operations, *changes = inputs
        # Each collection by itself, where it is made: what Flatten returns would be copied for it.
        samples = [
            collection | f"Sample{at}" >> beam.Map(_sample).with_output_types(tuple[str, Sample])
            for at, collection in enumerate(changes)
        ]
        plans = (
            # One small group: samples of the keys.
            (operations, *samples) | Together() | "Plan" >> beam.Map(_plan).with_output_types(Plan)
        )
        plan = beam.pvalue.AsSingleton(plans)
        schemas = {name: target.schema for name, target in self.targets.items()}
        touch = operations | "Touch" >> beam.Map(_no_change, schemas).with_output_types(_Change)
        return (
            (*changes, touch)
            | "Changes" >> beam.Flatten()
            | "Split"
            >> beam.ParDo(FlatMapInThreads(_split), plan, schemas).with_output_types(
                tuple[tuple[str, int], Chunk]
            )
            | "ByRange" >> beam.GroupByKey()
            | "Resolve"
            >> beam.ParDo(
                FlatMapInThreads(_resolve, spare=1), plan, self.targets, self.trial
            ).with_output_types(Written)
        )


def change_rows(
    operations: beam.PCollection[Operation],
    step: str,
    work: tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]],
    targets: Mapping[str, Target],
    others: Iterable[beam.PCollection[Written]] = (),
    **terms: Any,
) -> beam.PCollection[Ticket]:
    """Works on each item of an operation, applies the changes, and commits them.

    Args:
        operations: One operation.
        step: Name of the step that works.
        work: ``divide``, ``work`` and ``args`` of ``ForEach``. The work yields pairs of a component
            and a chunk of changes to it, and ``Written`` with the tag ``REPORTS``.
        targets: By component, see ``ApplyChanges``.
        others: Further ``Written`` to commit.
        terms: Of ``Commit``.
    """
    done = operations | step >> ForEach(*work, _Change, (REPORTS,), step, REPORTS)
    written = (operations, done["main"]) | ApplyChanges(targets)
    commit = Commit(whole=(step, RESOLVE), **terms)
    return (operations, written, done[REPORTS], *others) | commit


def _no_change(_: Operation, schemas: Mapping[str, pa.Schema]) -> _Change:
    """Returns what stands for the whole plan among the changes."""
    # ``empty_table()`` loads pandas where it is installed.
    return _ALL[0], pa.Table.from_batches([], next(iter(schemas.values())))


def _sample(change: _Change) -> tuple[str, Sample]:
    return change[0], sample_keys(change[1])


def _plan(grouped: tuple[int, Iterable[Any]]) -> Plan:
    items = list(grouped[1])
    (operation,) = [item for item in items if isinstance(item, Operation)]
    samples: dict[str, list[Sample]] = defaultdict(list)
    rows = 0
    for name, sample in (item for item in items if not isinstance(item, Operation)):
        samples[name].append(sample)
        rows += round(sample.rows_per_key * len(sample.keys))
    ranges = {
        name: tuple(plan_ranges(tablets(operation.files(name)), component_samples))
        for name, component_samples in samples.items()
    }
    return Plan(operation, ranges, rows)


def _split(
    change: _Change, plan: Plan, schemas: Mapping[str, pa.Schema]
) -> Iterator[tuple[tuple[str, int], Chunk]]:
    name, chunk = change
    if name == _ALL[0]:
        yield _ALL, chunk
        yield from _touch(plan, schemas)
        return
    for number, part in split_by_range(chunk, plan.ranges[name]):
        yield (name, number), part


def _touch(plan: Plan, schemas: Mapping[str, pa.Schema]) -> Iterator[tuple[tuple[str, int], Chunk]]:
    """Yields empty changes for each part of a divided tablet.

    All parts of a divided tablet are rewritten, even without changes.
    """
    for name, ranges in plan.ranges.items():
        for number, part in enumerate(ranges):
            if not part.whole and part.base is not None:
                yield (name, number), schemas[name].empty_table()


def _resolve(
    grouped: tuple[tuple[str, int], Iterable[Chunk]],
    plan: Plan,
    targets: Mapping[str, Target],
    trial: bool,
) -> Iterator[Written]:
    (name, number), chunks = grouped
    if (name, number) == _ALL:
        yield Written(due={RESOLVE: plan.rows})
        return
    operation, part, target = plan.operation, plan.ranges[name][number], targets[name]
    # A chunk may lack columns that are null in all of its rows.
    wide = empty(target.schema)
    changes = pl.concat(
        [wide, *(to_frame(chunk) for chunk in chunks)], how="diagonal", rechunk=True
    )
    places = {extra: place.format(batch=operation.batch) for extra, place in target.places.items()}
    resolver = target.resolver(operation)
    how = Resolution(name, part, resolver, places, operation.snapshot + 1)
    with operation.reading():
        resolved = (
            [_count(operation, how, changes)] if trial else operation.table.resolve(how, changes)
        )
        yield from (with_address(report, operation) for report in resolved)
    yield Written(done={RESOLVE: len(changes)})


def _count(operation: Operation, how: Resolution, changes: pl.DataFrame) -> Written:
    """Returns the counts of a resolver; writes nothing."""
    base_tablets = [how.range.base] if how.range.base is not None else []
    old = operation.table.find(how.component, base_tablets, changes.get_column("key"))
    return Written(counts=how.resolver(old.sort("key"), changes).counts)


# Where the differences that resolvers of the state return belong, for ``Target``.
COUNT_PLACES = {HOST_COUNTS_COMPONENT: HOST_COUNTS_COMPONENT}


def merge_resolver(operation: Operation) -> Resolver:
    """Returns the resolver of host records."""
    return resolving(functools.partial(merge_hosts, now=operation.now))


def counting_hosts(resolver: Resolver) -> Resolver:
    """Returns a resolver of the state that also returns the differences in numbers of URLs."""

    def resolve(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        resolved = resolver(rows, changes)
        counts = changed_counts(
            rows.select(COUNTED_OF_STATE), resolved.rows.select(COUNTED_OF_STATE)
        )
        return with_host_counts(resolved, counts)

    return resolve


def with_host_counts(resolved: Resolved, counts: pl.DataFrame) -> Resolved:
    """Returns the result of a resolver with HOST_COUNTS rows, if there are any."""
    if counts.is_empty():
        return resolved
    extra = {**resolved.extra, HOST_COUNTS_COMPONENT: counts}
    return dataclasses.replace(resolved, extra=extra)


def read_domain_room(
    operation: Operation, rows: StateRows, changes: pl.DataFrame, merits: Merits | None
) -> DomainRoom | None:
    """Reads the room of registered domains for URLs that changes add; None if they have no limit."""
    if merits is None:
        return None
    return DomainRoom(merits, read_domain_urls(operation, domains_of_new_urls(rows, changes)))
