"""Divides the work of an operation, spreads it over the workers, and works on each part."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import apache_beam as beam
import polars as pl

from ..io.snapshots.operations import Operation
from ..io.tablets.tablets import Tablet, tablets
from ..io.tablets.written import Written
from ..policy.components.schema import to_frame
from ..web.base.dataclass import dataclass
from ..web.base.progress import PROGRESS
from .elements.chunks import Chunk
from .wiring.display import Displayed
from .wiring.in_process import flat_map
from .wiring.phase_logs import logs_of

# The tag of the ``Written`` of work that also yields other elements.
REPORTS = "reports"
_RESHUFFLE = "beam:transform:reshuffle:v1"  # as Beam's protocol names it


@dataclasses.dataclass
class ForEach(Displayed):
    """Divides an operation into items, spreads them over the workers, and works on each.

    Input:  operations; an idle one has no items.
    Output: the elements that ``work`` yields; with ``outputs``, one collection per tag, and
        ``main`` for elements without a tag.

    Cost: a shuffle of the items, which are small descriptions of work. There are few
    steps on purpose: each costs milliseconds at every start of a pipeline.

    Attributes:
        divide: ``divide(operation)`` yields its items.
        work: ``work(item, *args)`` yields elements.
        args: Further arguments of ``work``, which may be side inputs.
        element: Type of the elements.
        outputs: Tags.
        step: Name under which ``Commit`` gets the numbers of items and of items done; empty
            means that it gets no numbers.
        reports: Tag of the output with these numbers.
        at_once: Whether one process may work on several items at once. The elements of an item
            are then held until it is done.
        processes: How many child processes work on items at once, if all steps are in one process.
    """

    divide: Callable[[Operation], Iterable[Any]]
    work: Callable[..., Iterable[Any]]
    args: tuple[Any, ...] = ()
    element: Any = Any
    outputs: tuple[str, ...] = ()
    step: str = ""
    reports: str = "main"
    at_once: bool = False
    processes: int = 1

    def expand(self, operations: beam.PCollection[Operation]) -> Any:
        numbered = tuple[int, Any]
        args = ((self.step, self.reports), self.work, *self.args)
        works = flat_map(
            _work, args, self.element, self.outputs, at_once=self.at_once, processes=self.processes
        )
        return (
            operations
            | "Divide" >> beam.FlatMap(_number, self.divide).with_output_types(numbered)
            | Spread()
            | "Work" >> works
        )


class Spread(beam.PTransform):
    """Spreads numbered items over the workers.

    Input:  (number, item), each number once.
    Output: the same.

    Cost: a shuffle of the items. A runner that knows Beam's Reshuffle distributes
    them in turn: with two items and two workers, each gets one.
    """

    def expand(self, numbered: beam.PCollection[tuple[int, Any]]) -> Any:
        return (
            numbered
            | beam.GroupByKey()
            | "Items" >> beam.FlatMap(_ungroup).with_output_types(tuple[int, Any])
        )

    def to_runner_api_parameter(self, _: Any) -> tuple[str, None]:
        return _RESHUFFLE, None


def _ungroup(grouped: tuple[int, Iterable[Any]]) -> Iterator[tuple[int, Any]]:
    for item in grouped[1]:
        yield grouped[0], item


@dataclass(frozen=True)
class _Part:
    """An item; the first has the number of items, which is 0 if there are none."""

    item: Any
    of: int | None = None


def _number(operation: Operation, divide: Callable[[Operation], Iterable[Any]]) -> Iterator[Any]:
    if not operation.idle:
        with logs_of(operation), operation.reading():
            items = list(divide(operation))
        first = _Part(items[0] if items else None, len(items))
        yield from enumerate([first, *map(_Part, items[1:])])


def _work(
    numbered: tuple[int, _Part], step_and_tag: tuple[str, str], work: Callable[..., Any], *args: Any
) -> Iterator[Any]:
    part, (step, tag) = numbered[1], step_and_tag
    operation = getattr(part.item, "operation", None)
    reading = operation.reading() if isinstance(operation, Operation) else nullcontext()
    with logs_of(_operation_of(part.item)), reading:
        if part.of != 0:
            yield from _with_addresses(work(part.item, *args), _operation_of(part.item))
    if step:
        due = {} if part.of is None else {step: part.of}
        report = Written(due=due, done={step: int(part.of != 0)})
        yield report if tag == "main" else beam.pvalue.TaggedOutput(tag, report)


def _with_addresses(elements: Iterable[Any], operation: Operation | None) -> Iterator[Any]:
    for element in elements:
        if operation is None:
            yield element
        elif isinstance(element, beam.pvalue.TaggedOutput):
            yield beam.pvalue.TaggedOutput(element.tag, with_address(element.value, operation))
        else:
            yield with_address(element, operation)


def with_address(element: Any, operation: Operation) -> Any:
    """Adds the address of the table to a report with files, so that a list can have these."""
    if isinstance(element, Written) and (element.files or element.replaced):
        return dataclasses.replace(element, address=operation.address)
    return element


def _operation_of(item: Any) -> Operation | None:
    """Returns the operation that an item of work names, if it names one."""
    first = item[0] if isinstance(item, tuple) and item else item
    operation = first if isinstance(first, Operation) else getattr(item, "operation", None)
    return operation if isinstance(operation, Operation) else None


@dataclass(frozen=True)
class TabletItem:
    """A tablet of a component, as an item of work."""

    operation: Operation
    component: str
    tablet: Tablet


def tablet_items(operation: Operation, *components: str, phase: str = "") -> list[TabletItem]:
    """Returns the tablets of components; they are the work of a phase that is shown, if it is named."""
    items = [
        TabletItem(operation, component, tablet)
        for component in components
        for tablet in tablets(operation.files(component))
    ]
    if phase:
        PROGRESS.start(phase, total=len(items), unit="tablets")
    return items


@dataclasses.dataclass
class ForEachDocument(Displayed):
    """Groups rows by the file that has their documents, and works on each file.

    Input:  pairs of the name of a file of documents and a chunk of rows. A job that works on
        several files together gives the number of the part instead of a name.
    Output: the elements that ``work`` returns; with ``outputs``, one collection per tag, and
        ``main`` for elements without a tag.

    Cost: a shuffle of the rows. They are small, so they are sent to the workers that read the
    documents, and not the other way round. All rows of a file are in memory at once.

    Attributes:
        work: ``work(file, rows, *args)`` returns elements; ``rows`` is a frame.
        args: Further arguments of ``work``, which may be side inputs.
        element: Type of the elements without a tag.
        outputs: Tags.
        at_once: Whether one process may work on several files at once. The elements of a file
            are then held until it is done.
    """

    work: Callable[..., Iterable[Any]]
    args: tuple[Any, ...] = ()
    element: Any = Any
    outputs: tuple[str, ...] = ()
    at_once: bool = False

    def expand(self, rows: beam.PCollection[tuple[Any, Chunk]]) -> Any:
        args = (self.work, *self.args)
        works = flat_map(_work_on_file, args, self.element, self.outputs, at_once=self.at_once)
        return rows | "ByDocument" >> beam.GroupByKey() | "Work" >> works


def _work_on_file(
    grouped: tuple[Any, Iterable[Chunk]], work: Callable[..., Iterable[Any]], *args: Any
) -> Iterator[Any]:
    file, chunks = grouped
    yield from work(file, pl.concat(to_frame(chunk) for chunk in chunks), *args)
