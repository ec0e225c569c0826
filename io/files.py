"""Files of a table: whole files under new names, Parquet in and out.

Everything that touches storage goes through here and ``io/commit.py``. A file
appears under its name only when it is complete, so a listing never shows half
a file, and no name is ever written twice.
"""

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Self

import polars as pl
import polars.io.plugins as pl_plugins
import pyarrow as pa
import pyarrow.parquet as pq

from ..policy.schema import conform, to_frame
from ..web.errors import UserError
from . import stores
from .places import Place, Remote

ROW_GROUP_ROWS = 131_072


def new_name(suffix: str = ".parquet") -> str:
    """Returns a file name that nobody else uses."""
    return f"{secrets.token_hex(8)}{suffix}"


def read_bytes(path: Place) -> bytes:
    """Returns the whole file.

    Raises:
        UserError: There is no such file, or it may not be read.
    """
    try:
        return stores.read(path) if isinstance(path, Remote) else path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def read_if_there(path: Place) -> bytes | None:
    """Returns the whole file, or None if there is none."""
    try:
        return stores.read(path) if isinstance(path, Remote) else path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error


def names(folder: Place, called: str = "") -> list[str]:
    """Returns the names in a folder, in order; none if there is no such folder.

    Args:
        folder: The folder.
        called: What an error calls it.

    Raises:
        UserError: It cannot be read, or is a file.
    """
    if isinstance(folder, Remote):
        return sorted(versions(folder, called))
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"cannot read {called or folder}: {error.strerror or error}") from error


def versions(folder: Remote, called: str = "") -> dict[str, str]:
    """Returns the names below a place in a store, with the version of each object.

    Args and errors are those of ``names``.
    """
    try:
        return stores.names(folder)
    except OSError as error:
        raise UserError(f"cannot read {called or folder}: {error.strerror or error}") from error


def file_size(path: Place) -> int:
    """Returns the size of a file, bytes."""
    try:
        return stores.stat(path)[0] if isinstance(path, Remote) else path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error


def file_version(path: Place) -> tuple[int | str, ...]:
    """Returns what tells a file from another one of the same name; empty if there is none.

    Files are never changed, but a table may be removed and made anew.
    """
    try:
        if isinstance(path, Remote):
            return stores.stat(path)
        known = path.stat()
    except OSError:
        return ()
    return known.st_ino, known.st_mtime_ns, known.st_size


def write_bytes(path: Place, data: bytes) -> None:
    """Writes a new file; it appears under its name when it is on disk."""
    if isinstance(path, Remote):
        with _writing(path):
            stores.write(path, data)
        return
    with _appearing(path) as temporary:
        temporary.write_bytes(data)
        sync(temporary)


def overwrite_bytes(path: Place, data: bytes) -> None:
    """Replaces a small file as a whole; for what need not survive a crash of the machine."""
    if isinstance(path, Remote):
        with _writing(path):
            stores.overwrite(path, data)
        return
    temporary = path.with_name(f".{path.name}.{new_name('')}")
    with _writing(path):
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def creating(path: Place) -> Iterator[IO[bytes]]:
    """Opens a new file for writing, one that nobody reads before it is complete."""
    with _writing(path):
        if isinstance(path, Remote):
            with stores.open_new(path) as file:
                yield file
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                yield file


def opened(path: Place) -> IO[bytes]:
    """Opens a file for reading from its beginning to its end.

    Raises:
        OSError: It is not there, or may not be read.
    """
    return stores.opened(path) if isinstance(path, Remote) else path.open("rb")


def remove_tree(folder: Place) -> None:
    """Removes a folder and all that is in it, as far as that can be done."""
    if isinstance(folder, Remote):
        with contextlib.suppress(OSError):
            stores.remove_tree(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def parquet_file(path: Place) -> pq.ParquetFile:
    """Opens a Parquet file; of one in a store only those bytes are read that are asked for."""
    if isinstance(path, Remote):
        return pq.ParquetFile(stores.seekable(path), pre_buffer=True)
    return pq.ParquetFile(path)


def scan(paths: Sequence[Place], schema: pa.Schema) -> pl.LazyFrame:
    """Returns the rows of Parquet files, lazily, so that only what is asked for is read.

    Args:
        paths: At least one file, each with some of the columns of ``schema``.
        schema: What the rows are declared to be; columns that an older file
            lacks are null, columns that it does not know are ignored.

    Raises:
        UserError: A file is missing or damaged (also later, when rows are
            collected: use ``collect``).
    """
    declared = pl.Schema(pl.from_arrow(schema.empty_table()).schema)  # type: ignore[union-attr]
    here = [path for path in paths if not isinstance(path, Remote)]
    if len(here) < len(paths):
        return _scan_remote(paths, schema, declared)
    for path in here:
        _check_end(path)
    return pl.scan_parquet(
        here,
        schema=declared,
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
        hive_partitioning=False,
    )


def _scan_remote(paths: Sequence[Place], schema: pa.Schema, declared: pl.Schema) -> pl.LazyFrame:
    """Reads the columns that are asked for, row group by row group, and filters each."""

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        left = most
        for path in paths:
            for group in row_groups(path, schema, columns):
                rows = to_frame(group)
                rows = rows if predicate is None else rows.filter(predicate)
                rows = rows if left is None else rows.head(left)
                left = None if left is None else left - len(rows)
                yield rows
                if left == 0:
                    return

    return pl_plugins.register_io_source(read, schema=declared)


def _check_end(path: Path) -> None:
    """Sees whether a file is there and whole: of many, polars does not say which one is not."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4))
            end = file.read()
    except OSError as error:
        raise _unreadable(path, error) from error
    if end != b"PAR1":
        raise UserError(f"data file cannot be read: {path}: it does not end as Parquet does")


def collect(rows: pl.LazyFrame) -> pl.DataFrame:
    """Reads what a lazy frame describes; a damaged file is one clear line."""
    try:
        return rows.collect()
    except (OSError, pl.exceptions.ComputeError) as error:
        # polars names the file in its plan, but not always in its error.
        names = re.findall(r"PARQUET SCAN \[([^\]]*)\]", rows.explain(), re.IGNORECASE)
        where = f"{names[0]}: " if names and names[0] not in str(error) else ""
        raise UserError(f"data file cannot be read: {where}{_first_line(error)}") from error


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
    except (OSError, pa.ArrowInvalid) as error:
        raise _unreadable(path, error) from error


def row_group_count(path: Place) -> int:
    """Returns into how many pieces a Parquet file is written.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with parquet_file(path) as file:
            return int(file.num_row_groups)
    except (OSError, pa.ArrowInvalid) as error:
        raise _unreadable(path, error) from error


class ParquetWriter:
    """Writes one Parquet file of a declared schema; it appears when it is complete.

    Attributes:
        path: Where it will be.
        rows: How many rows were written so far.
    """

    def __init__(self, path: Place, schema: pa.Schema) -> None:
        self.path = path
        self.rows = 0
        self._schema = schema
        self._done = False
        self._target = contextlib.ExitStack()  # what is left open in a store
        self._temporary: Path | None = None
        self._where: Any
        with _writing(path):
            if isinstance(path, Remote):
                self._where = self._target.enter_context(stores.open_new(path))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._where = self._temporary = path.with_name(f".{path.name}.writing")
            self._writer = pq.ParquetWriter(
                self._where, schema, compression="zstd", compression_level=1
            )

    def write(self, rows: pa.Table | pl.DataFrame) -> None:
        """Appends rows, in row groups of at most ``ROW_GROUP_ROWS``."""
        table = conform(rows, self._schema)
        self.rows += len(table)
        with _writing(self.path):
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)

    def close(self) -> int:
        """Puts the file in its place and returns its size in bytes."""
        with _writing(self.path):
            self._writer.close()
            self._done = True
            if isinstance(self.path, Remote):
                self._target.close()
                return int(self._where.tell())
            assert self._temporary is not None
            sync(self._temporary)
            self._temporary.rename(self.path)
            sync(self.path.parent)
            return self.path.stat().st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with contextlib.suppress(OSError):
                self._writer.close()
            with contextlib.suppress(OSError):
                if self._temporary is not None:
                    self._temporary.unlink(missing_ok=True)
            with contextlib.suppress(_Abandoned):
                self._target.__exit__(_Abandoned, _Abandoned(), None)
        elif not self._done:
            self.close()


class _Abandoned(Exception):
    """Ends an upload so that nothing appears."""


@contextlib.contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{new_name('')}")
        try:
            yield temporary
            temporary.rename(path)
            sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(path: Place) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"cannot write {path}: {reason}") from error


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(path: Place, error: Exception) -> UserError:
    if isinstance(error, FileNotFoundError):
        return UserError(f"data file is missing: {path}")
    return UserError(f"data file cannot be read: {path}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
