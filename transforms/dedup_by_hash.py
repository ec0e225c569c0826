"""Divides rows into those to keep and their duplicates."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..policy.components.schema import to_frame
from .elements.arguments import DEFAULT_PARTITIONS, check_partitions, column_names, directions
from .elements.chunk_flow import join_outputs, tagged_chunks
from .elements.chunks import MAX_ROWS, Chunk, to_chunks
from .elements.outputs import DedupByHashOutputs, SeveralOutputs
from .elements.rows import check_chunk, through_chunks
from .partition import grouped_by_hash
from .wiring.display import Displayed

KEPT = "kept"
DUPLICATES = "duplicates"


@dataclasses.dataclass
class DedupByHash(SeveralOutputs, Displayed):
    """Keeps the best row of each hash, and separates its duplicates.

    Input:  chunks or rows with the columns ``hash`` and ``order_by``.
    Output: two collections, ``kept`` and ``duplicates``, of chunks of the same
        columns or of rows of the same type.

    Cost: duplicates within a chunk are removed first, so at most one row for each
    hash and chunk is shuffled, even if many rows have the same hash. A
    partition holds one row for each of its hashes in memory, up to twice, and one
    chunk.

    Attributes:
        hash: Column of bytes, text or numbers. Equal values are duplicates; rows with null have
            none.
        order_by: A column or several: the row with the largest value is the best and stays, null
            is the worst, NaN is above all numbers. Together they must differ between any two rows.
        descending: Whether the largest value is the best, for all of ``order_by`` or for each; with
            False it is the smallest.
        partitions: How many workers can share the work: at least as many as there are, and one for
            32 MB of rows with different hashes. It may be a side input.

    Raises:
        ValueError: An argument or the input's type is not right.
    """

    hash: str
    order_by: str | Sequence[str]
    descending: bool | Sequence[bool] = True
    partitions: int | beam.pvalue.AsSideInput = DEFAULT_PARTITIONS

    def __post_init__(self) -> None:
        self.order_by = column_names(self.order_by, "order_by")
        self.descending = directions(self.order_by, self.descending)
        check_partitions(self.partitions)

    def expand(self, elements: beam.PCollection[Any]) -> DedupByHashOutputs:
        needed = {"hash": [self.hash], "order_by": self.order_by}
        return DedupByHashOutputs(through_chunks(elements, self._divide, "DedupByHash", needed))

    def _divide(self, chunks: beam.PCollection[Chunk]) -> dict[str, beam.PCollection[Chunk]]:
        order = (self.hash, self.order_by, self.descending)
        among = chunks | "AmongChunk" >> beam.FlatMap(_divide_chunk, *order).with_output_types(
            Chunk
        ).with_outputs(DUPLICATES, main=KEPT)
        divide_all = beam.FlatMap(_divide_all, *order).with_output_types(Chunk)
        parts = grouped_by_hash(
            among[KEPT], self.hash, self.partitions
        ) | "AmongAll" >> divide_all.with_outputs(DUPLICATES, main=KEPT)
        lost = join_outputs(among[DUPLICATES], parts[DUPLICATES], "Flatten")
        return {KEPT: parts[KEPT], DUPLICATES: lost}


def dedup_by_hash(
    frame: pl.DataFrame,
    hash: str,
    order_by: Sequence[str],
    descending: bool | Sequence[bool] = True,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns (rows to keep, their duplicates); see ``DedupByHash``.

    >>> frame = pl.DataFrame({"h": [b"x", b"x"], "score": [1.0, 2.0]})
    >>> kept, lost = dedup_by_hash(frame, "h", ("score",))
    >>> kept.rows(), lost.rows()
    ([(b'x', 2.0)], [(b'x', 1.0)])
    """
    ranked = frame.sort(order_by, descending=descending, nulls_last=True)
    hashes = ranked.get_column(hash)
    first = hashes.is_first_distinct() | hashes.is_null()
    return ranked.filter(first), ranked.filter(~first)


def _divide_chunk(chunk: Chunk, *order: Any) -> Iterator[Any]:
    check_chunk(chunk, {"hash": [order[0]], "order_by": order[1]}, "DedupByHash")
    yield from _divide_frame(to_frame(chunk), chunk.schema, *order)


def _divide_all(grouped: tuple[int, Iterable[Chunk]], *order: Any) -> Iterator[Any]:
    best: list[pl.DataFrame] = []
    waiting: list[pl.DataFrame] = []
    schema: pa.Schema | None = None
    for chunk in grouped[1]:
        schema = chunk.schema if schema is None else schema
        waiting.append(to_frame(chunk))
        # Several chunks at a time, because each step sorts the best rows again.
        if _rows(waiting) > max(MAX_ROWS, _rows(best)):
            better, duplicates = dedup_by_hash(pl.concat([*best, *waiting]), *order)
            yield from tagged_chunks(DUPLICATES, duplicates, schema)
            best, waiting = [better], []
    if best or waiting:
        yield from _divide_frame(pl.concat([*best, *waiting]), schema, *order)


def _rows(frames: list[pl.DataFrame]) -> int:
    return sum(len(frame) for frame in frames)


def _divide_frame(frame: pl.DataFrame, schema: pa.Schema, *order: Any) -> Iterator[Any]:
    best, duplicates = dedup_by_hash(frame, *order)
    yield from to_chunks(best, schema)
    yield from tagged_chunks(DUPLICATES, duplicates, schema)
