"""The outputs of transforms that have several, by name."""

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from .chunks import Chunk
from .records import OUTPUT_RECORDS, DeadLetter, FetchedPage, ParsedPage

for _record in OUTPUT_RECORDS:
    beam.coders.registry.register_coder(_record, beam.coders.RowCoder)


class Outputs(dict[str, beam.PCollection[Any]]):
    """Collections by name, as an item or an attribute, and in order, as Beam's ``with_outputs`` gives them.

    It is a dict, because Beam names the outputs of other transforms by dicts only, in YAML and on runners.
    Unlike that of a dict, its iterator yields the values.

    >>> outputs = Outputs(kept="rows", duplicates="other rows")
    >>> outputs["kept"], outputs.duplicates
    ('rows', 'other rows')
    >>> kept, duplicates = outputs
    >>> kept
    'rows'
    >>> outputs.copies
    Traceback (most recent call last):
    AttributeError: there is no output 'copies', there are 'kept', 'duplicates'
    """

    def __iter__(self) -> Iterator[beam.PCollection[Any]]:  # type: ignore[override]
        return iter(self.values())

    def __getattr__(self, name: str) -> beam.PCollection[Any]:
        if name not in self:
            raise AttributeError(_describe_missing(name, self.keys()))
        return self[name]

    def __missing__(self, name: str) -> Any:
        raise KeyError(_describe_missing(name, self.keys()))


class FetchPagesOutputs(Outputs):
    """What FetchPages returns.

    Attributes:
        pages: The answers of servers.
        dead_letters: The URLs without an answer; ``error_handling`` may rename this output.
    """

    pages: beam.PCollection[FetchedPage | Chunk]
    dead_letters: beam.PCollection[DeadLetter | Chunk]


class ParsePagesOutputs(Outputs):
    """What ParsePages returns.

    Attributes:
        documents: The content of pages.
        dead_letters: Rows that are no page; ``error_handling`` may rename this output.
    """

    documents: beam.PCollection[ParsedPage | Chunk]
    dead_letters: beam.PCollection[DeadLetter | Chunk]


class DedupByHashOutputs(Outputs):
    """What DedupByHash returns: elements of the type of its input.

    Attributes:
        kept: The best row of each hash, and rows without a hash.
        duplicates: The other rows.
    """

    kept: beam.PCollection[Any]
    duplicates: beam.PCollection[Any]


class SeveralOutputs(beam.PTransform):
    """A transform whose ``expand`` is annotated with its outputs.

    Beam understands only the annotation of one collection, and warns of others.
    """

    def default_type_hints(self) -> None:
        """Returns nothing: the annotation says none of Beam's types."""


def _describe_missing(name: str, names: Iterable[str]) -> str:
    return f"there is no output {name!r}, there are {', '.join(map(repr, names))}"
