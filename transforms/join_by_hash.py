"""Adds columns of other rows with the same hash."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import polars as pl
import pyarrow as pa

from ..policy.components.schema import empty, to_frame
from .elements.arguments import DEFAULT_PARTITIONS, check_partitions
from .elements.chunks import MAX_ROWS, Chunk, split_by_hash, to_chunks
from .elements.row_types import arrow_schema, extended_row_type, field_types, optional
from .elements.rows import (
    RowsToChunks,
    check_chunk,
    check_columns,
    row_type_of,
    through_chunks,
)
from .wiring.display import Displayed


@dataclasses.dataclass
class JoinByHash(Displayed):
    """Adds columns of the one row of another collection with the same hash.

    Input:  (rows, others), or a dict of these names: two collections of chunks or rows with the
        column ``hash``. ``others`` has at most one row per hash.
    Output: the chunks or rows of ``rows`` with the additional columns; null where no other row
        has the hash.

    Cost: one shuffle of all rows, and of the used columns of ``others``. A partition is in memory.

    Attributes:
        hash: Column of bytes, text or numbers.
        columns: Names of columns of ``others``, with their names in the output.
        partitions: How many workers can share the work: at least as many as there are, and one for
            32 MB of ``rows``. It may be a side input.
        also: Further columns that must be equal, too. The shuffle does not use them.

    Raises:
        ValueError: An argument or the input's type is not right.
    """

    hash: str
    columns: Mapping[str, str]
    partitions: int | beam.pvalue.AsSideInput = DEFAULT_PARTITIONS
    also: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.also = tuple(self.also)
        check_partitions(self.partitions)

    def expand(self, inputs: Any) -> Any:
        rows, others = _sides(inputs)
        on = {"hash": [self.hash], "also": self.also}
        row_type, other_type = (row_type_of(side, "JoinByHash") for side in (rows, others))
        outputs = schema = None
        if other_type is not None:
            schema = arrow_schema(other_type)
            check_columns(schema.names, {**on, "columns": self.columns}, "JoinByHash")
            others = others | "OthersToChunks" >> RowsToChunks()
        if row_type is not None:
            if other_type is None:
                raise ValueError("JoinByHash takes rows and rows, or chunks, got rows and chunks")
            fields = field_types(other_type)
            more = {new: optional(fields[old]) for old, new in self.columns.items()}
            outputs = extended_row_type(row_type, more, "JoinByHash")

        def work(chunks: beam.PCollection[Chunk]) -> beam.PCollection[Chunk]:
            sides, columns = (chunks, others), (*self.also, *self.columns)
            met = meet_by_hash(sides, self.hash, self.partitions, columns)
            join = beam.FlatMap(_join, (self.hash, *self.also), dict(self.columns), schema)
            return met | "Join" >> join.with_output_types(Chunk)

        return through_chunks(rows, work, "JoinByHash", on, outputs)


def _sides(inputs: Any) -> tuple[Any, Any]:
    """Returns the two collections of the input of JoinByHash."""
    if not isinstance(inputs, Mapping):
        rows, others = inputs
        return rows, others
    if set(inputs) != {"rows", "others"}:
        raise ValueError(f"JoinByHash takes the inputs rows and others, got {sorted(inputs)!r}")
    return inputs["rows"], inputs["others"]


def meet_by_hash(
    inputs: Any, hash: str, partitions: int | beam.pvalue.AsSideInput, columns: Sequence[str]
) -> beam.PCollection[tuple[int, Iterable[tuple[bool, Chunk]]]]:
    """Joins two collections of chunks, (rows, others), by the hash of a column.

    Of the others only that column and ``columns`` come. ``sides_of`` divides what has met.
    """
    sides = tuple(
        side
        | f"By{name}"
        >> beam.FlatMap(_split, hash, partitions, tuple(taken), name == "Others").with_output_types(
            tuple[int, tuple[bool, Chunk]]
        )
        for name, side, taken in zip(("Rows", "Others"), inputs, ((), columns), strict=True)
    )
    return sides | "Sides" >> beam.Flatten() | "Meet" >> beam.GroupByKey()


def sides_of(
    grouped: tuple[int, Iterable[tuple[bool, Chunk]]],
) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
    """Returns (rows, others) of what has met."""
    rows: list[pl.DataFrame] = []
    others: list[pl.DataFrame] = []
    for other, chunk in grouped[1]:
        (others if other else rows).append(to_frame(chunk))
    return rows, others


def join_by_hash(
    rows: pl.DataFrame,
    others: pl.DataFrame,
    hash: str | tuple[str, ...],
    columns: Mapping[str, str],
) -> pl.DataFrame:
    """Returns the rows with the additional columns.

    >>> rows, others = pl.DataFrame({"h": [1, 2]}), pl.DataFrame({"h": [1], "key": ["a"]})
    >>> join_by_hash(rows, others, "h", {"key": "winner"}).rows()
    [(1, 'a'), (2, None)]
    """
    on = [hash] if isinstance(hash, str) else list(hash)
    joined_columns = others.select(*on, *(pl.col(old).alias(new) for old, new in columns.items()))
    return rows.join(joined_columns, on=on, how="left", maintain_order="left")


def _split(
    chunk: Chunk, hash: str, partitions: int, columns: tuple[str, ...], other: bool
) -> Iterator[tuple[int, tuple[bool, Chunk]]]:
    check_chunk(chunk, {"hash": [hash], "columns": list(columns)}, "JoinByHash")
    needed = chunk.select([hash, *columns]) if other else chunk
    for number, part in split_by_hash(needed, hash, partitions):
        yield number, (other, part)


def _join(
    grouped: tuple[int, Iterable[tuple[bool, Chunk]]],
    hash: tuple[str, ...],
    columns: Mapping[str, str],
    schema: pa.Schema | None,
) -> Iterator[Chunk]:
    row_frames, others = sides_of(grouped)
    if not row_frames:
        return
    # Together, because each join makes an index of the others.
    rows = pl.concat(row_frames)
    if not others and schema is not None:
        others = [empty(schema)]
    elif not others:
        nothing = (pl.lit(None, pl.String).alias(column) for column in columns)
        others = [rows.select(*hash, *nothing).clear()]
    other_rows = pl.concat(others)
    for part in rows.iter_slices(MAX_ROWS):
        yield from to_chunks(join_by_hash(part, other_rows, hash, columns))
