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
import shutil
import zlib
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


def size_of(path: Place) -> int | None:
    """Returns the size of a file, bytes, None where there is none.

    Raises:
        UserError: It may not be looked at.
    """
    try:
        return stores.stat(path)[0] if isinstance(path, Remote) else path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error


def file_size(path: Place) -> int:
    """Returns the size of a file that must be there, bytes; see ``size_of``."""
    size = size_of(path)
    if size is None:
        raise _unreadable(path, FileNotFoundError(str(path)))
    return size


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


@dataclasses.dataclass(frozen=True)
class Found:
    """A file that lies in a folder.

    Attributes:
        path: Where.
        bytes: Its size.
        changed: When it was last written, s, by the store's clock.
    """

    path: Place
    bytes: int
    changed: float


def list_files(folder: Place) -> Iterator[Found]:
    """Yields all files below a folder, hidden ones too; none where there is no folder.

    Raises:
        UserError: A folder may not be read.
    """
    try:
        if isinstance(folder, Remote):
            for name, (size, changed) in stores.tree(folder).items():
                yield Found(folder / name, size, changed)
            return
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


def crc32_of(path: Place) -> int:
    """Returns the checksum of a whole file.

    Raises:
        UserError: The file is missing, or may not be read.
    """
    total = 0
    try:
        with opened(path) as file:
            while block := file.read(1 << 20):
                total = zlib.crc32(block, total)
    except OSError as error:
        raise _unreadable(path, error) from error
    return total


def write_bytes(path: Place, data: bytes) -> None:
    """Writes a new file; it appears under its name when it is on disk."""
    if isinstance(path, Remote):
        with writing(path):
            stores.write(path, data)
        return
    with _appearing(path) as temporary:
        temporary.write_bytes(data)
        sync(temporary)


def overwrite_bytes(path: Place, data: bytes) -> None:
    """Replaces a small file as a whole; for what need not survive a crash of the machine."""
    if isinstance(path, Remote):
        with writing(path):
            stores.overwrite(path, data)
        return
    temporary = path.with_name(f".{path.name}.{new_name('')}")
    with writing(path):
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def creating(path: Place) -> Iterator[IO[bytes]]:
    """Opens a new file for writing, one that nobody reads before it is complete."""
    with writing(path):
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


def schema_of(path: Place) -> pa.Schema:
    """Returns the columns that a Parquet file has.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        with parquet_file(path) as file:
            return file.schema_arrow
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
def writing(path: Place) -> Iterator[None]:
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


def _unreadable(path: Place, error: Exception) -> UserError:
    if isinstance(error, FileNotFoundError):
        return UserError(f"data file is missing: {path}{cure(path)}")
    return UserError(f"data file cannot be read: {path}: {_first_line(error)}{cure(path)}")


def cure(path: Place) -> str:
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


def store_time(folder: Place) -> float:
    """Returns what the store's clock says, s since the epoch: when a file is written now.

    Ages of files are told by that clock alone, not by this machine's.
    """
    probe = folder / f".{new_name('')}"
    with writing(probe):
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
