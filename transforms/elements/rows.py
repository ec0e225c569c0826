"""Converts Beam rows to chunks and back, so that a transform's output has the form of its input.

A row is a ``beam.Row``, a ``NamedTuple`` or a dataclass that Beam treats as a row, in a collection
whose element type declares the fields, as in Beam YAML. Fields are text, bytes, numbers and
booleans, times (``datetime``, Beam's ``Timestamp``), and sequences, mappings and rows of these. Each may be None.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from ..wiring.display import Displayed
from .chunks import MAX_BYTES, MAX_ROWS, Chunk, rechunk
from .field_kinds import rows_to_table, table_to_rows
from .outputs import Outputs
from .row_types import (
    RowType,
    arrow_schema,
    constraint_of,
    field_names,
    is_generated,
    is_unknown,
    kinds_of,
    maker,
)

_ROW_BYTES = MAX_BYTES // MAX_ROWS  # minimum estimate of the size of a row
_GLOBAL = GlobalWindow()


@dataclasses.dataclass
class RowsToChunks(Displayed):
    """Collects rows into chunks.

    Input:  rows, of a type with fields.
    Output: chunks with a column for each field. A chunk has rows of one bundle and
        window; timestamps are not kept.

    Raises:
        ValueError: The input has no fields, or chunks cannot have the type of a field.
    """

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[Chunk]:
        row_type = row_type_of(rows, "RowsToChunks")
        if row_type is None:
            raise ValueError(
                f"RowsToChunks takes rows with fields, got elements of {rows.element_type!r}: "
                "say what they are with with_output_types"
            )
        arrow_schema(row_type)  # a wrong type must fail now, not in a worker
        collect = _Collect if rows.windowing.is_default() else _CollectByWindow
        return rows | "Collect" >> beam.ParDo(collect(row_type)).with_output_types(Chunk)


@dataclasses.dataclass
class ChunksToRows(Displayed):
    """Converts chunks to rows.

    Input:  chunks.
    Output: their rows. Columns without a field are left out; fields without a column are None.

    Attributes:
        row_type: Type of the rows: a ``NamedTuple``, a dataclass, or the ``element_type`` of a
            collection.
    """

    row_type: Any

    def expand(self, chunks: beam.PCollection[Chunk]) -> beam.PCollection[Any]:
        row_type = constraint_of(self.row_type)
        if row_type is None:
            raise ValueError(f"row_type must be a type with fields, got {self.row_type!r}")
        arrow_schema(row_type)
        # If the row type is a class of the user, rows are instances of that class.
        hint = row_type if is_generated(row_type) else row_type.user_type
        return chunks | "Rows" >> beam.ParDo(_Explode(row_type)).with_output_types(hint)


def through_chunks(
    collection: beam.PCollection[Any],
    work: Callable[[beam.PCollection[Chunk]], Any],
    name: str,
    columns: Mapping[str, Iterable[str]],
    outputs: Any = None,
) -> Any:
    """Applies a function on chunks to a collection of chunks or rows.

    The element type of the collection shows whether it has chunks or rows. No other function
    distinguishes them.

    Args:
        collection: Chunks, or rows of a type with fields. A collection of
            unknown type must have chunks.
        work: Function of a collection of chunks; returns a collection of chunks, or a dict of
            collections.
        name: Name of the transform, for messages.
        columns: The columns that the work needs, by the argument that names them.
        outputs: Type of the output rows, or a dict of types; None means the type of the input.

    Returns:
        The result of ``work``, converted to rows if the input has rows; a dict as ``Outputs``.

    Raises:
        ValueError: The collection has neither chunks nor rows, or a column is missing.
    """
    row_type = row_type_of(collection, name)
    if row_type is None:
        done = work(collection)  # it calls check_chunk on each element
        if not isinstance(done, dict):
            return done
        for chunks in done.values():
            chunks.element_type = Chunk  # Beam does not know it of tagged outputs
        return Outputs(done)
    check_columns(field_names(row_type), columns, name)
    done = work(collection | "ToChunks" >> RowsToChunks())
    if isinstance(done, dict):
        kinds = outputs or dict.fromkeys(done, row_type)
        return Outputs(
            {
                tag: chunks | f"ToRows {tag}" >> ChunksToRows(kinds[tag])
                for tag, chunks in done.items()
            }
        )
    return done | "ToRows" >> ChunksToRows(outputs or row_type)


def check_columns(there: Iterable[str], needed: Mapping[str, Iterable[str]], name: str) -> None:
    """Checks that all needed columns exist.

    Raises:
        ValueError: A column is missing; the message names it, and the existing columns.

    >>> check_columns(["host", "n"], {"key": ["hots"]}, "TopNPerKey")
    Traceback (most recent call last):
    ValueError: TopNPerKey needs the column 'hots' (key), there are 'host', 'n'
    """
    existing = list(there)
    for argument, columns in needed.items():
        for column in columns:
            if column not in existing:
                of = f" ({argument})" if argument != column else ""
                listed = ", ".join(map(repr, existing)) or "none"
                raise ValueError(f"{name} needs the column {column!r}{of}, there are {listed}")


def check_chunk(element: Any, needed: Mapping[str, Iterable[str]], name: str) -> None:
    """Checks that an element is a chunk with the needed columns.

    Raises:
        ValueError: The element is not a chunk, or a column is missing.
    """
    if not isinstance(element, pa.Table):
        raise ValueError(  # noqa: TRY004 - as of columns
            f"{name} takes rows with fields or chunks, got a {type(element).__name__} from a "
            "collection of unknown type: say what it holds with with_output_types"
        )
    check_columns(element.schema.names, needed, name)


def check_not_windowed(collection: beam.PCollection[Any], name: str) -> None:
    """Checks that a collection has no windows: its transform works on all of it at once.

    Raises:
        ValueError: It has windows or triggers.
    """
    if not collection.windowing.is_default():
        raise ValueError(f"{name} takes a collection without windows, got {collection.windowing}")


def row_type_of(collection: beam.PCollection[Any], name: str) -> RowType | None:
    """Returns the row type of a collection; None if it has chunks.

    Raises:
        ValueError: The collection has elements of another type.
    """
    element = collection.element_type
    if is_unknown(element) or element is Chunk:
        return None
    row_type = constraint_of(element)
    if row_type is None:
        raise ValueError(
            f"{name} takes rows with fields (beam.Row, NamedTuple) or chunks (pyarrow.Table), "
            f"got elements of type {element!r}"
        )
    return row_type


class _Collect(beam.DoFn):
    """Collects rows of the global window; Beam calls DoFns without parameters faster."""

    def __init__(self, row_type: RowType) -> None:
        self._row_type = row_type

    def setup(self) -> None:
        self._kinds = kinds_of(self._row_type)
        # All but numbers and booleans.
        sized = (n for n, kind in self._kinds.items() if not pa.types.is_primitive(kind.arrow))
        self._sized = list(sized)

    def start_bundle(self) -> None:
        self._rows: dict[Any, list[Any]] = defaultdict(list)
        self._bytes = 0

    def process(self, row: Any) -> list[WindowedValue] | None:
        return self._add(row, _GLOBAL)

    def finish_bundle(self) -> list[WindowedValue]:
        return self._emit()

    def _add(self, row: Any, window: Any) -> list[WindowedValue] | None:
        size = _ROW_BYTES
        for name in self._sized:
            value = getattr(row, name)
            size += len(value) if isinstance(value, str | bytes) else _bytes_of(value)
        full = self._emit() if self._bytes + size > MAX_BYTES else None
        self._rows[window].append(row)
        self._bytes += size
        return full

    def _emit(self) -> list[WindowedValue]:
        windowed_chunks = []
        for window, rows in self._rows.items():
            table = rows_to_table(rows, self._kinds)
            # The sizes of rows were estimates.
            fits = len(table) <= MAX_ROWS and table.nbytes <= MAX_BYTES
            for chunk in [table] if fits else rechunk(table):
                windowed_chunks.append(WindowedValue(chunk, window.max_timestamp(), (window,)))
        self.start_bundle()
        return windowed_chunks


class _CollectByWindow(_Collect):
    def process(self, row: Any, window: Any = beam.DoFn.WindowParam) -> list[WindowedValue] | None:
        return self._add(row, window)


def _bytes_of(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_bytes_of(key) + _bytes_of(item) + 8 for key, item in value.items())
    if isinstance(value, beam.Row):
        value = value.as_dict().values()
    if isinstance(value, Iterable):  # a NamedTuple, too
        return sum(_bytes_of(item) + 8 for item in value)
    return 8


class _Explode(beam.DoFn):
    def __init__(self, row_type: RowType) -> None:
        self._row_type = row_type

    def setup(self) -> None:
        self._kinds = kinds_of(self._row_type)

    def process(self, chunk: Chunk) -> Iterator[Any]:
        yield from table_to_rows(chunk, self._kinds, maker(self._row_type))
