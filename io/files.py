"""Files of a table: whole files under new names, Parquet in and out.

Everything that touches storage goes through here and ``io/commit.py``. A file
appears under its name only when it is complete, so a listing never shows half
a file, and no name is ever written twice.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Self

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ..policy.schema import conform
from ..web.errors import UserError

ROW_GROUP_ROWS = 131_072


def new_name(suffix: str = ".parquet") -> str:
    """Returns a file name that nobody else uses."""
    return f"{secrets.token_hex(8)}{suffix}"


def read_bytes(path: Path) -> bytes:
    """Returns the whole file.

    Raises:
        UserError: There is no such file, or it may not be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def file_version(path: Path) -> tuple[int, ...]:
    """Returns what tells a file from another one of the same name; empty if there is none.

    Files are never changed, but a table may be removed and made anew.
    """
    try:
        known = path.stat()
    except OSError:
        return ()
    return known.st_ino, known.st_mtime_ns, known.st_size


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a new file; it appears under its name when it is on disk."""
    with _appearing(path) as temporary:
        temporary.write_bytes(data)
        sync(temporary)


def overwrite_bytes(path: Path, data: bytes) -> None:
    """Replaces a small file as a whole; for what need not survive a crash of the machine."""
    temporary = path.with_name(f".{path.name}.{new_name('')}")
    with _writing(path):
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def scan(paths: Sequence[Path], schema: pa.Schema, row_index: str | None = None) -> pl.LazyFrame:
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
    for path in paths:
        _check_end(path)
    return pl.scan_parquet(
        list(paths),
        schema=declared,
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
        hive_partitioning=False,
        row_index_name=row_index,
    )


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
    path: Path, schema: pa.Schema, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yields a Parquet file piece by piece, so that memory holds one row group.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
            wanted = None
            if columns is not None:
                known = set(file.schema_arrow.names)
                wanted = [name for name in columns if name in known]
                schema = pa.schema([schema.field(name) for name in columns])
            for group in range(file.num_row_groups):
                yield conform(file.read_row_group(group, columns=wanted), schema)
    except (OSError, pa.ArrowInvalid) as error:
        raise _unreadable(path, error) from error


def row_group_count(path: Path) -> int:
    """Returns into how many pieces a Parquet file is written.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
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

    def __init__(self, path: Path, schema: pa.Schema, plain: Collection[str] = ()) -> None:
        self.path = path
        self.rows = 0
        self._schema = schema
        self._temporary = path.with_name(f".{path.name}.writing")
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(
                self._temporary,
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
                self._temporary.unlink(missing_ok=True)
        elif not self.path.exists():
            self.close()


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
def _writing(path: Path) -> Iterator[None]:
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


def _unreadable(path: Path, error: Exception) -> UserError:
    if isinstance(error, FileNotFoundError):
        return UserError(f"data file is missing: {path}")
    return UserError(f"data file cannot be read: {path}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def store_time(folder: Path) -> float:
    """Returns what the store's clock says, s since the epoch: when a file is written now.

    Ages of files are told by that clock alone, not by this machine's.
    """
    probe = folder / f".{new_name('')}"
    with _writing(probe):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"")
            return float(probe.stat().st_mtime)
        finally:
            probe.unlink(missing_ok=True)


def files_below(folder: Path) -> Iterator[tuple[Path, float]]:
    """Yields all files in a folder and its folders, and when each was written, as ``store_time``.

    Raises:
        UserError: The folder may not be read.
    """
    try:
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):  # somebody else removes, too
                if path.is_file():
                    yield path, float(path.stat().st_mtime)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(folder, error) from error


def remove_file(path: Path) -> int:
    """Removes a file; returns how many bytes that frees, 0 where it is gone already.

    Raises:
        UserError: It may not be removed.
    """
    try:
        size = path.stat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise UserError(f"cannot remove {path}: {error.strerror or error}") from error
    return int(size)


def remove_empty_folders(folder: Path) -> None:
    """Removes a folder and those below it, as far as there are no files in them."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir():
                remove_empty_folders(path)
        folder.rmdir()
