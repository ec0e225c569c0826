"""Files of a table: whole files under new names, Parquet in and out.

Everything that touches storage goes through here and ``io/commit.py``. A file
appears under its name only when it is complete, so a listing never shows half
a file, and no name is ever written twice.
"""

import contextlib
import dataclasses
import errno
import io
import os
import re
import secrets
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

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


@dataclasses.dataclass(frozen=True)
class Found:
    """A file that lies in a folder.

    Attributes:
        path: Where.
        bytes: Its size.
        changed: When it was last written, s, by the store's clock.
    """

    path: Path
    bytes: int
    changed: float


def list_files(folder: Path) -> Iterator[Found]:
    """Yields all files below a folder, hidden ones too; none where there is no folder.

    Raises:
        UserError: A folder may not be read.
    """
    try:
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                yield from list_files(path)
                continue
            with contextlib.suppress(FileNotFoundError):  # it went in the meantime
                known = path.stat()
                yield Found(path, known.st_size, known.st_mtime)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror or error}") from error


def size_of(path: Path) -> int | None:
    """Returns the size of a file in bytes, None where there is none.

    Raises:
        UserError: It may not be looked at.
    """
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error


def crc32_of(path: Path) -> int:
    """Returns the checksum of a whole file.

    Raises:
        UserError: The file is missing, or may not be read.
    """
    total = 0
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                total = zlib.crc32(block, total)
    except OSError as error:
        raise _unreadable(path, error) from error
    return total


def delete_file(path: Path) -> None:
    """Deletes a file; one that is gone already is no error.

    Raises:
        UserError: It may not be deleted.
    """
    with writing(path):
        path.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a new file; it appears under its name when it is on disk."""
    with _appearing(path) as temporary:
        temporary.write_bytes(data)
        sync(temporary)


def overwrite_bytes(path: Path, data: bytes) -> None:
    """Replaces a small file as a whole; for what need not survive a crash of the machine."""
    temporary = path.with_name(f".{path.name}.{new_name('')}")
    with writing(path):
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def scan(paths: Sequence[Path], schema: pa.Schema) -> pl.LazyFrame:
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
    for path in paths:
        _check_end(path)
    return pl.scan_parquet(
        list(paths),
        schema=declared,
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
        hive_partitioning=False,
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
        raise UserError(
            f"data file cannot be read: {path}: it does not end as Parquet does{cure(path)}"
        )


def collect(rows: pl.LazyFrame) -> pl.DataFrame:
    """Reads what a lazy frame describes; a damaged file is one clear line."""
    try:
        return rows.collect()
    except (OSError, pl.exceptions.ComputeError) as error:
        # polars names the file in its plan, but not always in its error.
        names = re.findall(r"PARQUET SCAN \[([^\]]*)\]", rows.explain(), re.IGNORECASE)
        where = f"{names[0]}: " if names and names[0] not in str(error) else ""
        help = cure(Path(names[0].partition(",")[0])) if names else ""
        raise UserError(f"data file cannot be read: {where}{_first_line(error)}{help}") from error


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


def schema_of(path: Path) -> pa.Schema:
    """Returns the columns that a Parquet file has.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
            return file.schema_arrow
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


class _Summed(io.RawIOBase):
    """A file that is written front to back, and the checksum of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self.crc32 = 0
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.crc32 = zlib.crc32(data, self.crc32)
        return self._file.write(data)

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        self._file.close()
        super().close()


class ParquetWriter:
    """Writes one Parquet file of a declared schema; it appears when it is complete.

    Attributes:
        path: Where it will be.
        rows: How many rows were written so far.
        crc32: Checksum of what was written so far; of the file, once it is closed.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.rows = 0
        self._schema = schema
        self._temporary = path.with_name(f".{path.name}.writing")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._sink = _Summed(self._temporary.open("wb"))
            self._writer = pq.ParquetWriter(
                pa.PythonFile(self._sink, "w"), schema, compression="zstd", compression_level=1
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
            self._sink.close()
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
                self._sink.close()
            with contextlib.suppress(OSError):
                self._temporary.unlink(missing_ok=True)
        elif not self.path.exists():
            self.close()


@contextlib.contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{new_name('')}")
        try:
            yield temporary
            temporary.rename(path)
            sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Makes one clear line of what goes wrong while a file is written within.

    Raises:
        UserError: The file cannot be written: no right, no room, no folder.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"cannot write {path}: {reason}{make_room(error)}") from error


def make_room(error: OSError) -> str:
    """Returns what to do about a full disk, for an error's end; empty where it is not full."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    return ": make room, then run the same again" if full else ""


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(path: Path, error: Exception) -> UserError:
    if isinstance(error, FileNotFoundError):
        return UserError(f"data file is missing: {path}{cure(path)}")
    return UserError(f"data file cannot be read: {path}: {_first_line(error)}{cure(path)}")


def cure(path: Path) -> str:
    """Returns what to do about a file of a table that is missing or damaged, for an error's end.

    >>> cure(Path("mine/manifest/lists/state-1.parquet"))
    ': run nutbeam fsck mine'
    >>> cure(Path("seeds.txt"))
    ''
    """
    for folder in path.parents:
        if folder.name in ("manifest", "operations", "state", "hosts", "links", "bars", "batches"):
            return f": run nutbeam fsck {folder.parent}"
    return ""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
