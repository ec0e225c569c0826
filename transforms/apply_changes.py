"""Bring changes to the tablets that they fall into, and resolve them there."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..io.operations import Operation, Written
from ..io.tablets import (
    Range,
    Resolver,
    Sample,
    plan_ranges,
    resolve_range,
    sample_keys,
    split_by_range,
)
from ..policy.schema import to_frame
from .chunks import Chunk
from .operations import Together


@dataclasses.dataclass(frozen=True)
class Plan:
    """How the key space of a component is cut for one operation."""

    operation: Operation
    ranges: tuple[Range, ...]


@dataclasses.dataclass
class ApplyChanges(beam.PTransform):
    """Rewrites those tablets of a component into which changes fall.

    Input:  (operations, changes): one operation; chunks of ``schema``.
    Output: ``Written``, one per component and range.

    Cost: the changes cross one shuffle, by range; the table crosses none. A
    range gets about 32 MB of changes, cut by sampling. A worker holds the
    changes of one range and one row group.

    Attributes:
        component: ``state`` or ``hosts``.
        schema: What a chunk of changes is.
        resolver: Makes the resolver from the operation, on the worker.
        places: Where the resolver's extra frames belong, ``{batch}`` filled in.
    """

    component: str
    schema: pa.Schema
    resolver: Callable[[Operation], Resolver]
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def expand(self, inputs: tuple[Any, Any]) -> beam.PCollection[Written]:
        operations, changes = inputs
        samples = changes | "Sample" >> beam.Map(sample_keys).with_output_types(Sample)
        plans = (
            # One small group: where the keys lie, not the keys.
            (operations, samples)
            | Together()
            | "Plan" >> beam.Map(_plan, self.component).with_output_types(Plan)
        )
        plan = beam.pvalue.AsSingleton(plans)
        parts = tuple[int, Chunk]
        return (
            (
                changes | "Route" >> beam.FlatMap(_route, plan).with_output_types(parts),
                plans | "Touch" >> beam.FlatMap(_touch, self.schema).with_output_types(parts),
            )
            | "Join" >> beam.Flatten()
            | "ByRange" >> beam.GroupByKey()
            | "Resolve"
            >> beam.FlatMap(_resolve, plan, self.component, self.resolver, self.places)
            .with_output_types(Written)
        )


def _plan(grouped: tuple[int, Iterable[Any]], component: str) -> Plan:
    items = list(grouped[1])
    (operation,) = [item for item in items if isinstance(item, Operation)]
    samples = [item for item in items if isinstance(item, Sample)]
    if not samples:
        return Plan(operation, ())
    return Plan(operation, tuple(plan_ranges(operation.files(component), samples)))


def _route(chunk: Chunk, plan: Plan) -> Iterator[tuple[int, Chunk]]:
    yield from split_by_range(chunk, plan.ranges)


def _touch(plan: Plan, schema: pa.Schema) -> Iterator[tuple[int, Chunk]]:
    """Names the parts of tablets that are cut: each is rewritten, changed or not."""
    for number, part in enumerate(plan.ranges):
        if not part.whole and part.base is not None:
            yield number, schema.empty_table()


def _resolve(
    grouped: tuple[int, Iterable[Chunk]],
    plan: Plan,
    component: str,
    resolver: Callable[[Operation], Resolver],
    places: Mapping[str, str],
) -> Iterator[Written]:
    number, chunks = grouped
    operation, part = plan.operation, plan.ranges[number]
    changes = pl.concat(to_frame(chunk) for chunk in chunks)
    named = {name: place.format(batch=operation.batch) for name, place in places.items()}
    written = resolve_range(
        operation.root, component, part, changes, resolver(operation), named
    )
    for place, files, counts in written:
        replaced = (part.base.path,) if part.base and place == component else ()
        yield Written(place, tuple(files), replaced, counts)
