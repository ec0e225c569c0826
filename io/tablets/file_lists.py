"""Reads and writes file lists: the live files of each component, in Parquet, a row per file.

A changed list is written under a new name; the manifest contains that name.
"""

import dataclasses
import functools
import io
import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...web.base.errors import UserError
from ..storage.file_errors import first_line, repair_advice
from ..storage.files import new_name, read_bytes, write_bytes
from ..storage.parquet_files import ParquetWriter
from ..storage.places import Folder, Place, below
from ..storage.reach import list_version


@dataclasses.dataclass(frozen=True)
class DataFile:
    """The description of an immutable data file, as in file lists.

    Attributes:
        path: Path relative to the table's folder.
        rows: Number of rows.
        bytes: Size on disk.
        first: Smallest row key, or None if rows are not in key order.
        last: Largest row key.
        base: Path of the file that this one is a run on; None for a base.
        partition: Number of the partition that wrote it.
        order: Position among the files of a component without key order. For a run,
            the number of its snapshot: the rows of the newest run count.
        fresh: Number of rows of a run that neither its base nor older runs have.
        min_time: Zone map: earliest time of ``Kind.zone``, ms; of ``state`` when a row is due.
        max_time: Zone map: latest time.
        max_score: Zone map: best score.
        statuses: Zone map: one bit per status that occurs.
        formerly: Path of the file that this one replaces. Rows of the state may still
            have that path; it means this file. None if it replaces no file.
        crc32: Checksum of the whole file; None in older lists.
    """

    path: str
    rows: int
    bytes: int
    first: str | None = None
    last: str | None = None
    base: str | None = None
    partition: int = 0
    order: int = 0
    min_time: int | None = None
    max_time: int | None = None
    max_score: float | None = None
    statuses: int | None = None
    fresh: int | None = None
    formerly: str | None = None
    crc32: int | None = None

    @property
    def live_rows(self) -> int:
        """Number of rows that the file adds; other rows of a run replace older rows."""
        return self.rows if self.base is None else self.fresh or 0


# Names of the columns in lists; ``STORED_NAMES`` has those that differ from the fields.
FILE_LIST = {
    "path": pl.String, "rows": pl.Int64, "bytes": pl.Int64, "first": pl.String,
    "last": pl.String, "base": pl.String, "partition": pl.Int32, "order": pl.Int64,
    "min_fetch_time": pl.Int64, "max_fetch_time": pl.Int64, "max_score": pl.Float64, "statuses": pl.Int64,
    "fresh": pl.Int64, "formerly": pl.String, "crc32": pl.Int64,
}  # fmt: skip
# They are older than the zone maps of components that are not due.
STORED_NAMES = {"min_time": "min_fetch_time", "max_time": "max_fetch_time"}
_FIELDS = {stored: name for name, stored in STORED_NAMES.items()}


def file_record(file: DataFile) -> dict[str, Any]:
    """Returns the description of a file under the names that lists and receipts store.

    >>> record = file_record(DataFile("state/a", 1, 10, min_time=5))
    >>> record["min_fetch_time"], file_of_record(record).min_time
    (5, 5)
    """
    return {STORED_NAMES.get(name, name): value for name, value in vars(file).items()}


def file_of_record(record: Mapping[str, Any]) -> DataFile:
    """Returns the description of a file from its stored form.

    Raises:
        TypeError: It has an unknown name, or lacks one.
    """
    return DataFile(**{_FIELDS.get(name, name): value for name, value in record.items()})


@dataclasses.dataclass(frozen=True)
class Component:
    """A manifest's entry for a component: its list of live files, and their totals.

    Attributes:
        list: Path of the list; a changed list has a new path.
        files: Number of files.
        rows: Number of rows of all files; no row is counted twice.
        bytes: Size of all files.
        content: Path of the list at the last change of any row. It differs from ``list``
            if files were only folded since then; None means ``list``.
        crc32: Checksum of the list; None in older manifests.
    """

    list: str
    files: int
    rows: int
    bytes: int
    content: str | None = None
    crc32: int | None = None

    @property
    def totals(self) -> tuple[int, int, int]:
        """(files, rows, bytes)."""
        return self.files, self.rows, self.bytes

    @property
    def identity(self) -> str:
        """Value that stays the same while no row changes, even if files are folded."""
        return self.content or self.list


def load_files(root: Folder, component: Component | None) -> list[DataFile]:
    """Returns the live files of a component, tablets in key order.

    Raises:
        UserError: The list is missing or damaged.
    """
    if component is None:
        return []
    path = root / component.list
    return list(_parse_files(path, component.crc32, list_version(path)))


@functools.lru_cache(maxsize=64)
def _parse_files(path: Place, crc32: int | None, version: Hashable) -> tuple[DataFile, ...]:
    data = read_bytes(path)
    if crc32 not in (None, zlib.crc32(data)):
        raise _damaged(path, "its checksum differs")
    try:
        # polars ends the process where a damaged number makes it ask for too much memory.
        rows = pq.read_table(pa.BufferReader(data), use_threads=False)
        known = rows.select([name for name in rows.column_names if name in FILE_LIST])
        files = [file_of_record(row) for row in known.to_pylist()]
        files.sort(key=lambda file: (file.first or "", file.partition, file.order))
    except (pa.ArrowException, LookupError, TypeError, ValueError, OSError) as error:
        raise _damaged(path, first_line(error)[:200]) from error
    return tuple(files)


def _damaged(path: Place, reason: str) -> UserError:
    return UserError(f"file list is damaged: {path}: {reason}{repair_advice(path)}")


def close_file(root: Folder, writer: ParquetWriter, **facts: Any) -> DataFile:
    """Completes a file of a table, and describes it; ``facts`` are more fields of that."""
    size = writer.close()
    return DataFile(below(root, writer.path), writer.rows, size, crc32=writer.crc32, **facts)


def totals(files: Sequence[DataFile]) -> tuple[int, int, int]:
    """Returns the totals of files: (number of files, rows, bytes)."""
    return len(files), sum(file.live_rows for file in files), sum(file.bytes for file in files)


def store_files(root: Folder, name: str, files: Iterable[DataFile]) -> Component:
    """Writes the list of a component's live files under a new name."""
    files = list(files)
    path = PurePosixPath("manifest") / "lists" / f"{name.replace('/', '.')}-{new_name()}"
    sink = io.BytesIO()
    rows = pl.DataFrame([file_record(file) for file in files], schema=FILE_LIST)
    rows.write_parquet(sink, compression="zstd")
    data = sink.getvalue()
    write_bytes(root / path, data)
    return Component(str(path), *totals(files), crc32=zlib.crc32(data))
