"""Reads and writes Parquet files of a table, one row group at a time."""

import contextlib
import io
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

import polars as pl
import polars.io.plugins as pl_plugins
import pyarrow as pa
import pyarrow.parquet as pq

from ...policy.components.schema import conform
from ...web.base.errors import UserError
from ..disk.parquet_growth import check_growth
from .file_errors import MissingFile, errors_as, first_line, repair_advice, unreadable
from .files import creating
from .local_place import LocalPlace
from .places import Place
from .table_sizes import table_sizes

BATCH_ROWS = 1_024


@contextlib.contextmanager
def parquet_file(path: Place) -> Iterator[pq.ParquetFile]:
    """Opens a Parquet file; in a store, it reads only the bytes that are needed.

    Raises:
        UserError: The file is missing or damaged, which reading in the context may show.
    """
    try:
        source, size = path.parquet_source()
        with pq.ParquetFile(source, pre_buffer=not path.has_cheap_seeks) as file:
            check_growth(file.metadata, size)
            path.check_repeated_texts()
            yield file
    # A column's name may be no UTF-8, a number too large.
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        raise unreadable(path, error) from error


def scan(paths: Sequence[Place], schema: pa.Schema, row_index: str | None = None) -> pl.LazyFrame:
    """Returns a lazy frame of the rows of Parquet files, so that only used columns are read.

    Args:
        paths: Files, each with some of the columns of ``schema``; without files there are no rows.
        schema: The declared columns. Columns that a file lacks are null; further
            columns of a file are ignored.
        row_index: Name of an additional column with the number of each row, counted
            over all files; None adds no column.

    Raises:
        UserError: A file is missing or damaged. Some damage is only found when the rows
            are collected: use ``collect``.
    """
    declared = pl.Schema(schema)
    if not paths:
        no_rows = pl.LazyFrame(schema=declared)
        return no_rows if row_index is None else no_rows.with_row_index(row_index)
    if not all(path.opens_by_name for path in paths):
        return _scan_groups(paths, schema, declared, row_index)
    for path in paths:
        check_before_opening(path)
    return pl.scan_parquet(
        [str(path) for path in paths],
        schema=declared,
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
        hive_partitioning=False,
        row_index_name=row_index,
    )


def _scan_groups(
    paths: Sequence[Place], schema: pa.Schema, declared: pl.Schema, row_index: str | None
) -> pl.LazyFrame:
    """Reads the columns that polars needs, one row group at a time, and filters each group."""

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        remaining, start = most, 0
        wanted = columns if columns is None else [name for name in columns if name != row_index]
        numbered = row_index is not None and (columns is None or row_index in columns)
        for path in paths:
            for group in row_groups(path, schema, wanted):
                rows = pl.DataFrame(group)
                if numbered:
                    rows = rows.with_row_index(row_index, start)  # type: ignore[arg-type]
                    start += len(rows)
                rows = rows if predicate is None else rows.filter(predicate)
                rows = rows if remaining is None else rows.head(remaining)
                remaining = None if remaining is None else remaining - len(rows)
                yield rows
                if remaining == 0:
                    return

    if row_index is not None:
        declared = pl.Schema({row_index: pl.get_index_type(), **declared})
    return pl_plugins.register_io_source(read, schema=declared)


def check_before_opening(path: Place) -> None:
    """Checks a Parquet file before a library opens it by its name.

    polars does not say which of many files is damaged, and ends the process where a file unpacks
    to more than the memory.

    Raises:
        UserError: It is missing, no regular file, or no Parquet file of a table.
    """
    with parquet_file(path):
        pass


def collect(rows: pl.LazyFrame) -> pl.DataFrame:
    """Collects a lazy frame of ``scan``; raises a one-line error for a damaged file."""
    try:
        return rows.collect()
    except (
        OSError,
        pl.exceptions.ComputeError,
        pl.exceptions.InvalidOperationError,
        pl.exceptions.SchemaError,
        pl.exceptions.PanicException,  # no Exception: some damage polars finds in its assertions
    ) as error:
        # The query plan of polars always has the file names, its error does not.
        names = re.findall(r"PARQUET SCAN \[([^\]]*)\]", rows.explain(), re.IGNORECASE)
        where = f"{names[0]}: " if names and names[0] not in str(error) else ""
        help = repair_advice(LocalPlace(names[0].partition(",")[0])) if names else ""
        kind = MissingFile if isinstance(error, FileNotFoundError) else UserError
        raise kind(f"data file cannot be read: {where}{first_line(error)}{help}") from error


def row_groups(
    path: Place, schema: pa.Schema, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yields the row groups of a Parquet file, so that memory holds only one.

    Raises:
        UserError: The file is missing or damaged.
    """
    with parquet_file(path) as file:
        wanted, there = _wanted_columns(file, schema, columns)
        for group in range(file.num_row_groups):
            yield _check_utf8(conform(file.read_row_group(group, columns=there), wanted))


def row_group_with(path: Place, schema: pa.Schema, row: int) -> tuple[pa.Table, int]:
    """Returns the row group that has a row, and the number of its first row.

    Args:
        path: A Parquet file.
        schema: The declared columns.
        row: Number of the row in the file.

    Raises:
        UserError: The file is missing or damaged.
        IndexError: It has fewer rows.
    """
    with parquet_file(path) as file:
        wanted, there = _wanted_columns(file, schema, None)
        start = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if row < start + rows:
                table = conform(file.read_row_group(group, columns=there), wanted)
                return _check_utf8(table), start
            start += rows
    raise IndexError(f"{path} has no row {row}")


def batches(path: Place, schema: pa.Schema, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yields columns of a Parquet file in small tables, for long texts that are mostly dropped.

    Raises:
        UserError: The file is missing or damaged.
    """
    with parquet_file(path) as file:
        wanted, there = _wanted_columns(file, schema, columns)
        for batch in file.iter_batches(BATCH_ROWS, columns=there, use_threads=False):
            yield _check_utf8(conform(pa.Table.from_batches([batch]), wanted))


def _check_utf8(rows: pa.Table) -> pa.Table:
    """Returns rows that were read, if their texts are UTF-8; pyarrow's reader does not check that.

    Raises:
        pa.ArrowInvalid: A text is not: the file is damaged.
    """
    rows.validate(full=True)
    return rows


def _wanted_columns(
    file: pq.ParquetFile, schema: pa.Schema, columns: Sequence[str] | None
) -> tuple[pa.Schema, list[str] | None]:
    """Returns the schema of the wanted columns, and those of them that a file has (None: all)."""
    if columns is None:
        return schema, None
    there = set(file.schema_arrow.names)
    return pa.schema([schema.field(n) for n in columns]), [n for n in columns if n in there]


def schema_of(path: Place) -> pa.Schema:
    """Returns the schema of a Parquet file.

    Raises:
        UserError: The file is missing or damaged.
    """
    with parquet_file(path) as file:
        return file.schema_arrow


def row_count(path: Place) -> int:
    """Returns the number of rows of a Parquet file, by its end.

    Raises:
        UserError: The file is missing or damaged.
    """
    with parquet_file(path) as file:
        return int(file.metadata.num_rows)


def row_group_count(path: Place) -> int:
    """Returns the number of row groups of a Parquet file.

    Raises:
        UserError: The file is missing or damaged.
    """
    with parquet_file(path) as file:
        return int(file.num_row_groups)


def columns_with_values(path: Place, columns: Collection[str]) -> set[str]:
    """Returns those columns that may have a value.

    A column of nulls, empty lists and empty maps has none. It is the columns that are read, until
    a row group has a value: pyarrow ends the process for some damage to a file's statistics.

    Raises:
        UserError: The file is missing or damaged.
    """
    filled_columns: set[str] = set()
    with parquet_file(path) as file:
        there = [name for name in file.schema_arrow.names if name in columns]
        for group in range(file.num_row_groups):
            unread_columns = [name for name in there if name not in filled_columns]
            if not unread_columns:
                break
            rows = file.read_row_group(group, columns=unread_columns)
            filled_columns |= {name for name in unread_columns if _has_values(rows.column(name))}
    return filled_columns


def _has_values(column: pa.ChunkedArray) -> bool:
    if pa.types.is_map(column.type):
        return any(len(chunk.items) for chunk in column.chunks)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return any(len(chunk.flatten()) for chunk in column.chunks)
    return bool(column.null_count < len(column))


class _Summed(io.RawIOBase):
    """A file that is written sequentially and computes the checksum and size of its content."""

    def __init__(self, file: IO[bytes]) -> None:
        self.crc32 = self.bytes = 0
        self._file: IO[bytes] | None = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._file is None:
            return memoryview(data).nbytes
        self.crc32 = zlib.crc32(data, self.crc32)
        size = self._file.write(data)
        self.bytes += size
        return size

    def flush(self) -> None:
        if self._file is not None and not self._file.closed:
            self._file.flush()

    def abandon(self) -> None:
        """Discards all further data."""
        self._file = None


class ParquetWriter(contextlib.AbstractContextManager["ParquetWriter"]):
    """Writes one Parquet file of a declared schema; it appears when it is complete.

    Attributes:
        path: Its place.
        rows: Number of rows written so far.
        crc32: Checksum of the bytes written so far; after ``close``, of the whole file.
    """

    # ``plain``: columns whose values rarely repeat. Trying a dictionary would take half the time.
    def __init__(self, path: Place, schema: pa.Schema, plain: Collection[str] = ()) -> None:
        self.path = path
        self.rows = 0
        self._schema = schema
        self._done = False
        self._target = contextlib.ExitStack()  # the file, until it is complete
        self._sink = _Summed(self._target.enter_context(creating(path, durable=True)))
        self._writer = pq.ParquetWriter(  # it buffers its first bytes
            pa.PythonFile(self._sink, "w"),
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[n for n in schema.names if n not in plain] if plain else True,
        )

    def write(self, rows: pa.Table | pl.DataFrame) -> None:
        """Appends rows, in row groups of a limited size, see ``TableSizes``."""
        table = conform(rows, self._schema)
        self.rows += len(table)
        with errors_as(f"cannot write {self.path}"):
            self._writer.write_table(table, row_group_size=table_sizes().row_group_rows)

    @property
    def crc32(self) -> int:
        return self._sink.crc32

    def close(self) -> int:
        """Completes the file under its name; returns its size in bytes."""
        with errors_as(f"cannot write {self.path}"):
            self._writer.close()
            self._target.close()
        self._done = True
        return self._sink.bytes

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abandon()
        elif not self._done:
            self.close()

    def abandon(self) -> None:
        """Stops writing, and leaves no file."""
        self._sink.abandon()
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()
        with contextlib.suppress(UserError):
            error = UserError(f"{self.path} is abandoned")
            self._target.__exit__(UserError, error, None)
