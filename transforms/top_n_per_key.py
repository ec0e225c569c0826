"""Keeps the best rows of each key."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import apache_beam as beam
import polars as pl

from ..policy.components.schema import conform, to_frame
from .elements.arguments import (
    DEFAULT_PARTITIONS,
    check_integer,
    check_partitions,
    column_names,
    directions,
)
from .elements.chunks import Chunk, rechunk, split_by_hash
from .elements.rows import check_chunk, through_chunks
from .top_rows import top_n_per_key
from .wiring.display import Displayed

_Element = TypeVar("_Element")  # a row or a chunk


@dataclasses.dataclass
class TopNPerKey(Displayed):
    """Keeps the ``n`` best rows of each key.

    Input:  chunks or rows with at least the columns ``key`` and ``order_by``.
    Output: chunks of the same columns or rows of the same type, at most ``n``
        per key.

    Cost: a combiner, so each bundle is cut to its own best rows before the
    shuffle; a partition holds ``n`` rows for each of its keys in memory.

    Attributes:
        n: Number of rows to keep per key, at least 1.
        key: Column of the group: text, bytes or numbers.
        order_by: A column or several: the row with the largest value is the best, null is the
            worst, NaN is above all numbers. Together they must differ between any two rows of a
            key, or a retried bundle may keep another row.
        descending: Whether the largest value is the best, for all of ``order_by`` or for each; with
            False it is the smallest.
        partitions: How many workers can share the work: at least as many as there are, and one for
            32 MB of the rows that are kept.

    Raises:
        ValueError: An argument or the input's type is not right.
    """

    n: int
    key: str
    order_by: str | Sequence[str]
    descending: bool | Sequence[bool] = True
    partitions: int = DEFAULT_PARTITIONS

    def __post_init__(self) -> None:
        self.order_by = column_names(self.order_by, "order_by")
        self.descending = directions(self.order_by, self.descending)
        check_integer("n", self.n)
        check_partitions(self.partitions)

    def expand(self, elements: beam.PCollection[_Element]) -> beam.PCollection[_Element]:
        return through_chunks(elements, self._keep, "TopNPerKey", self._needed_columns)

    @property
    def _needed_columns(self) -> dict[str, Sequence[str]]:
        return {"key": [self.key], "order_by": self.order_by}

    def _keep(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
        order = (self.n, self.key, tuple(self.order_by), self.descending)
        split = beam.FlatMap(_split, self.key, self.partitions, self._needed_columns)
        return (
            chunks
            | "ByKey" >> split.with_output_types(tuple[int, Chunk])
            # Before the shuffle: a key with half of all rows sends only n of them.
            | "Best" >> beam.CombinePerKey(_Best(*order))
            | beam.Values()
            | "Cut" >> beam.FlatMap(rechunk).with_output_types(Chunk)
        )


def _split(
    chunk: Chunk, key: str, partitions: int, needed: dict[str, Sequence[str]]
) -> Iterator[tuple[int, Chunk]]:
    check_chunk(chunk, needed, "TopNPerKey")
    return split_by_hash(chunk, key, partitions)


class _Best(beam.CombineFn):
    def __init__(self, *args: Any) -> None:
        self._args = args  # those of top_n_per_key

    def create_accumulator(self) -> Chunk | None:
        return None

    def add_input(self, best: Chunk | None, chunk: Chunk) -> Chunk | None:
        return self.merge_accumulators([best, chunk])

    def merge_accumulators(self, parts: Iterable[Chunk | None]) -> Chunk | None:
        present = [part for part in parts if part is not None]
        if not present:
            return None
        # polars, not pa.concat_tables: string and large_string may meet here.
        frame = pl.concat(to_frame(part) for part in present)
        return conform(top_n_per_key(frame, *self._args), present[0].schema)

    def extract_output(self, best: Chunk) -> Chunk:
        return best
