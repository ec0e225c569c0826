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
from collections.abc import Collection, Iterator, Sequence
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

    # ``plain``: columns whose values hardly repeat. To try a dictionary would cost half the time.

    def __init__(self, path: Place, schema: pa.Schema, plain: Collection[str] = ()) -> None:
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
                self._where,
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[n for n in schema.names if n not in plain] if plain else True,
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


def store_time(folder: Place) -> float:
    """Returns what the store's clock says, s since the epoch: when a file is written now.

    Ages of files are told by that clock alone, not by this machine's.
    """
    probe = folder / f".{new_name('')}"
    with _writing(probe):
        if isinstance(probe, Remote):
            stores.overwrite(probe, b"-")
            try:
                return stores.time_written(probe)
            finally:
                stores.remove(probe)
        try:
            probe.parent.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"")
            return float(probe.stat().st_mtime)
        finally:
            probe.unlink(missing_ok=True)


def files_below(folder: Place) -> Iterator[tuple[Place, float]]:
    """Yields all files in a folder and its folders, and when each was written, as ``store_time``.

    Raises:
        UserError: The folder may not be read.
    """
    try:
        if isinstance(folder, Remote):
            yield from stores.times_below(folder).items()
            return
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # somebody else removes, too
                if path.is_file():
                    yield path, float(path.stat().st_mtime)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(folder, error) from error


def remove_file(path: Place) -> int:
    """Removes a file; returns how many bytes that frees, 0 where it is gone already.

    Raises:
        UserError: It may not be removed.
    """
    try:
        if isinstance(path, Remote):
            size = stores.stat(path)[0]
            stores.remove(path)
        else:
            size = path.stat().st_size
            path.unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise UserError(f"cannot remove {path}: {error.strerror or error}") from error
    return int(size)


def remove_empty_folders(folder: Place) -> None:
    """Removes a folder and those below it, as far as there are no files in them."""
    with contextlib.suppress(OSError):
        if isinstance(folder, Remote):
            stores.remove_empty_folders(folder)
            return
        for path in folder.iterdir():
            if path.is_dir():
                remove_empty_folders(path)
        folder.rmdir()
