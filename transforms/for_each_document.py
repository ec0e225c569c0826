"""Brings rows to where the documents that they name are read, and works on each file of documents."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import polars as pl

from ..policy.components.schema import to_frame
from .elements.chunks import Chunk
from .wiring.display import Displayed
from .wiring.threads import flat_map


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
        works = flat_map(_work, args, self.element, self.outputs, at_once=self.at_once)
        return rows | "ByDocument" >> beam.GroupByKey() | "Work" >> works


def _work(
    grouped: tuple[Any, Iterable[Chunk]], work: Callable[..., Iterable[Any]], *args: Any
) -> Iterator[Any]:
    file, chunks = grouped
    yield from work(file, pl.concat(to_frame(chunk) for chunk in chunks), *args)
