"""Parquet files of a table: rows in, row group by row group, and out."""

import contextlib
import io
import os
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Self

import polars as pl
import polars.io.plugins as pl_plugins
import pyarrow as pa
import pyarrow.parquet as pq

from ...policy.schema import conform, to_frame
from ...web.base.errors import UserError
from . import stores
from .files import cure, first_line, sync, unreadable, writing
from .places import Place, Remote

ROW_GROUP_ROWS = 131_072
BATCH_ROWS = 1_024


def parquet_file(path: Place) -> pq.ParquetFile:
    """Opens a Parquet file; of one in a store only those bytes are read that are asked for."""
    if isinstance(path, Remote):
        return pq.ParquetFile(stores.seekable(path), pre_buffer=True)
    return pq.ParquetFile(path)


def scan(paths: Sequence[Place], schema: pa.Schema, row_index: str | None = None) -> pl.LazyFrame:
    """Returns the rows of Parquet files, lazily, so that only what is asked for is read.

    Args:
        paths: At least one file, each with some of the columns of ``schema``.
        schema: What the rows are declared to be; columns that an older file
            lacks are null, columns that it does not know are ignored.
        row_index: Name of a further column with the number of each row, over
            all files; None is none.

    Raises:
        UserError: A file is missing or damaged (also later, when rows are
            collected: use ``collect``).
    """
    declared = pl.Schema(pl.from_arrow(schema.empty_table()).schema)  # type: ignore[union-attr]
    here = [path for path in paths if not isinstance(path, Remote)]
    if len(here) < len(paths):
        return _scan_remote(paths, schema, declared, row_index)
    for path in here:
        _check_end(path)
    return pl.scan_parquet(
        here,
        schema=declared,
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
        hive_partitioning=False,
        row_index_name=row_index,
    )


def _scan_remote(
    paths: Sequence[Place], schema: pa.Schema, declared: pl.Schema, row_index: str | None
) -> pl.LazyFrame:
    """Reads the columns that are asked for, row group by row group, and filters each."""

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        left, start = most, 0
        wanted = columns if columns is None else [name for name in columns if name != row_index]
        numbered = row_index is not None and (columns is None or row_index in columns)
        for path in paths:
            for group in row_groups(path, schema, wanted):
                rows = to_frame(group)
                if numbered:
                    rows = rows.with_row_index(row_index, start)  # type: ignore[arg-type]
                    start += len(rows)
                rows = rows if predicate is None else rows.filter(predicate)
                rows = rows if left is None else rows.head(left)
                left = None if left is None else left - len(rows)
                yield rows
                if left == 0:
                    return

    if row_index is not None:
        declared = pl.Schema({row_index: pl.get_index_type(), **declared})
    return pl_plugins.register_io_source(read, schema=declared)


def reads_parts(path: Place) -> bool:
    """Returns whether parts of a file are read for nothing: in a store each costs requests."""
    return not isinstance(path, Remote)


def _check_end(path: Path) -> None:
    """Sees whether a file is there and whole: of many, polars does not say which one is not."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4))
            end = file.read()
    except OSError as error:
        raise unreadable(path, error) from error
    if end != b"PAR1":
        raise UserError(
            f"data file cannot be read: {path}: it does not end as Parquet does{cure(path)}"
        )


def collect(rows: pl.LazyFrame) -> pl.DataFrame:
    """Reads what a lazy frame describes; a damaged file is one clear line."""
    try:
        return rows.collect()
    except (OSError, pl.exceptions.ComputeError, pl.exceptions.InvalidOperationError) as error:
        # polars names the file in its plan, but not always in its error.
        names = re.findall(r"PARQUET SCAN \[([^\]]*)\]", rows.explain(), re.IGNORECASE)
        where = f"{names[0]}: " if names and names[0] not in str(error) else ""
        help = cure(Path(names[0].partition(",")[0])) if names else ""
        raise UserError(f"data file cannot be read: {where}{first_line(error)}{help}") from error


def row_groups(
    path: Place, schema: pa.Schema, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yields a Parquet file piece by piece, so that memory holds one row group.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with parquet_file(path) as file:
            wanted = None
            if columns is not None:
                known = set(file.schema_arrow.names)
                wanted = [name for name in columns if name in known]
                schema = pa.schema([schema.field(name) for name in columns])
            for group in range(file.num_row_groups):
                yield conform(file.read_row_group(group, columns=wanted), schema)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def batches(path: Place, schema: pa.Schema, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yields columns of a Parquet file few rows at a time: for long texts, of which few are kept.

    Raises:
        UserError: The file is missing or damaged.
    """
    wanted = pa.schema([schema.field(name) for name in columns])
    try:
        with parquet_file(path) as file:
            known = set(file.schema_arrow.names)
            names = [name for name in columns if name in known]
            for batch in file.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
                yield conform(pa.Table.from_batches([batch]), wanted)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def schema_of(path: Place) -> pa.Schema:
    """Returns the columns that a Parquet file has.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with parquet_file(path) as file:
            return file.schema_arrow
    except (OSError, pa.ArrowInvalid) as error:
        raise unreadable(path, error) from error


def row_group_count(path: Place) -> int:
    """Returns into how many pieces a Parquet file is written.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with parquet_file(path) as file:
            return int(file.num_row_groups)
    except (OSError, pa.ArrowInvalid) as error:
        raise unreadable(path, error) from error


def may_have_values(path: Place, column: str) -> bool:
    """Returns whether a column may have a value that is not null; the file's end says so.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with parquet_file(path) as file:
            known = file.metadata
    except (OSError, pa.ArrowInvalid) as error:
        raise unreadable(path, error) from error
    for group in map(known.row_group, range(known.num_row_groups)):
        for part in map(group.column, range(group.num_columns)):
            if part.path_in_schema.split(".")[0] != column:
                continue
            if part.statistics is None or part.statistics.null_count != part.num_values:
                return True
    return False


class _Summed(io.RawIOBase):
    """A file that is written front to back, and checksum and size of what was written."""

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
        """Takes what may still be written, and writes it nowhere."""
        self._file = None


class ParquetWriter:
    """Writes one Parquet file of a declared schema; it appears when it is complete.

    Attributes:
        path: Where it will be.
        rows: How many rows were written so far.
        crc32: Checksum of what was written so far; of the file, once it is closed.
    """

    # ``plain``: columns whose values hardly repeat. To try a dictionary would cost half the time.
    def __init__(self, path: Place, schema: pa.Schema, plain: Collection[str] = ()) -> None:
        self.path = path
        self.rows = 0
        self._schema = schema
        self._done = False
        self._target = contextlib.ExitStack()  # the file, until it is complete
        self._temporary: Path | None = None
        file: IO[bytes]
        with writing(path):
            if isinstance(path, Remote):
                file = self._target.enter_context(stores.open_new(path))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._temporary = path.with_name(f".{path.name}.writing")
                file = self._target.enter_context(self._temporary.open("wb"))
            self._sink = _Summed(file)
        self._writer = pq.ParquetWriter(  # what it writes at once is in a buffer
            pa.PythonFile(self._sink, "w"),
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[n for n in schema.names if n not in plain] if plain else True,
        )

    def write(self, rows: pa.Table | pl.DataFrame) -> None:
        """Appends rows, in row groups of at most ``ROW_GROUP_ROWS``."""
        table = conform(rows, self._schema)
        self.rows += len(table)
        with writing(self.path):
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)

    @property
    def crc32(self) -> int:
        return self._sink.crc32

    def close(self) -> int:
        """Puts the file in its place and returns its size in bytes."""
        with writing(self.path):
            self._writer.close()
            self._target.close()
            self._done = True
            if self._temporary is None or isinstance(self.path, Remote):
                return self._sink.bytes
            sync(self._temporary)
            self._temporary.rename(self.path)
            sync(self.path.parent)
            return self.path.stat().st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._sink.abandon()
            with contextlib.suppress(OSError, pa.ArrowException):
                self._writer.close()
            with contextlib.suppress(OSError, _Abandoned):
                self._target.__exit__(_Abandoned, _Abandoned(), None)
            with contextlib.suppress(OSError):
                if self._temporary is not None:
                    self._temporary.unlink(missing_ok=True)
        elif not self._done:
            self.close()


class _Abandoned(Exception):
    """Ends an upload so that nothing appears."""
