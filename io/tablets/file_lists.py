"""Reads and writes file lists: the live files of each component, in Parquet, a row per file.

A changed list is written under a new name; the manifest contains that name.
"""

import abc
import io
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, ClassVar

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ...policy.components.declaration import RowLayout
from ...policy.components.kinds import kind_of
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.mappings import SizeCache
from ..disk.parquet_growth import check_growth
from ..disk.record_checks import (
    Check,
    check_count,
    check_fields,
    check_number,
    check_text,
    unless_none,
)
from ..disk.table_names import checked_name
from ..storage.file_errors import first_line, repair_advice
from ..storage.files import new_name, read_bytes, sync_names, write_bytes
from ..storage.parquet_files import ParquetWriter
from ..storage.places import Folder, Place


class TableFiles(abc.ABC):
    """The files of a table; ``table / name`` is the place of one.

    Tables at the same address are equal, so a table can be the key of a cache. It can be
    pickled. ``str(table)`` is the address.

    Attributes:
        in_rows: Whether lists have ranges of rows, besides files.
        files: The place of the table's files.
    """

    in_rows: ClassVar[bool] = False
    files: Place

    def __truediv__(self, name: str | PurePosixPath) -> Place:
        return self.files / name

    def worker_address(self) -> str:
        """Returns the address in a form that is valid on workers and in another working folder."""
        return str(self)

    @abc.abstractmethod
    def why_unshared(self) -> str:
        """Returns why workers elsewhere may not find the files, for an error; empty if they do."""


@dataclass(frozen=True)
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


_TEXTS = [name for name, kind in FILE_LIST.items() if kind == pl.String]
# Limits of lists: no table comes near them.
_MOST_FILES, _MOST_BYTES, _LONGEST_TEXT = 5_000_000, 1 << 30, 64 << 10
_ROWS = 1_024


def file_of_record(record: Mapping[str, Any], *, in_rows: bool = False) -> DataFile:
    """Returns the description of a file from its stored form, in a list or a receipt.

    Args:
        record: The stored form.
        in_rows: Whether the table has rows in Bigtable, so that lists have ranges of keys, too.

    Raises:
        TypeError: It has an unknown name, or lacks one.
        ValueError: It names a file outside of the table, or has a value that cannot be.
    """
    file = DataFile(**{_FIELDS.get(name, name): value for name, value in record.items()})
    is_range = in_rows and _is_range(file)
    if not is_range:
        checked_name(file.path)
        for name in (file.base, file.formerly):
            if name is not None:
                checked_name(name)
    # The rows of a range are counted from an estimate, so they may be below zero.
    check_fields(file, _CHECKS | ({"rows": check_number} if is_range else {}))
    return file


def _check_score(value: Any) -> None:
    if type(value) not in (int, float):  # NaN is the best of a file with no other
        raise ValueError(f"is no score: {value!r}"[:100])


def _check_order(value: Any) -> None:
    if type(value) is not int or not 0 <= value < 1 << 62:  # it is only compared
        raise ValueError(f"is no number that can be: {value!r}"[:100])


# The fields of a description, besides names of files.
_CHECKS: dict[str, Check] = {
    **dict.fromkeys(("rows", "bytes", "partition"), check_count),
    "order": _check_order,
    **dict.fromkeys(("statuses", "crc32"), unless_none(check_count)),
    # In Bigtable a change may take rows away: then ``fresh`` is below zero.
    **dict.fromkeys(("fresh", "min_time", "max_time"), unless_none(check_number)),
    **dict.fromkeys(("first", "last"), unless_none(check_text)),
    "max_score": unless_none(_check_score),
}


def _is_range(file: DataFile) -> bool:
    """Returns whether a description is of a range of keys: its path has the first key."""
    component, _, key = str(file.path).partition("/")
    return kind_of(component).layout is RowLayout.ROWS and key == (file.first or "")


@dataclass(frozen=True)
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


_LISTS = PurePosixPath("manifest") / "lists"
# The lists that this process has read or written last.
_FILES: SizeCache[Hashable, tuple[DataFile, ...]] = SizeCache(64)


def load_files(root: Folder, component: Component | None) -> list[DataFile]:
    """Returns the live files of a component, tablets in key order.

    Raises:
        UserError: The list is missing or damaged.
    """
    if component is None:
        return []
    path = root / component.list
    in_rows = getattr(root, "in_rows", False)  # of a table; a folder alone has only files
    files = _FILES.get(key := _key_of_list(path, component.crc32, in_rows=in_rows))
    if files is None:
        files = _parse_files(path, component.crc32, in_rows=in_rows)
        _FILES.put(key, files)
    return list(files)


def _key_of_list(path: Place, crc32: int | None, *, in_rows: bool) -> Hashable:
    version = path.version(path.name)  # in a store no name is reused: the name is a version
    return path, crc32, version, in_rows


def _parse_files(path: Place, crc32: int | None, *, in_rows: bool) -> tuple[DataFile, ...]:
    data = read_bytes(path)
    if crc32 not in (None, zlib.crc32(data)):
        raise _damage_error(path, "its checksum differs")
    try:
        files = [file_of_record(row, in_rows=in_rows) for row in _rows_of_list(data)]
        if len({file.path for file in files}) < len(files):
            raise ValueError("it names a file twice")  # reading it often would take for ever
    except (pa.ArrowException, LookupError, TypeError, ValueError, OSError, MemoryError) as error:
        raise _damage_error(path, first_line(error)[:200]) from error
    return _in_order(files)


def _in_order(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    return tuple(sorted(files, key=lambda file: (file.first or "", file.partition, file.order)))


def _rows_of_list(data: bytes) -> Iterator[dict[str, Any]]:
    """Yields the rows of a list; polars would end the process for some damage.

    Raises:
        ValueError: The list is made to fill the memory.
    """
    # In dictionaries a text of many rows takes its place once.
    metadata = pq.read_metadata(pa.BufferReader(data))
    check_growth(metadata, len(data), _MOST_BYTES)
    if metadata.num_rows > _MOST_FILES:
        raise ValueError(f"it names {metadata.num_rows:,} files")
    names = [name for name in metadata.schema.to_arrow_schema().names if name in FILE_LIST]
    texts = [name for name in _TEXTS if name in names]
    with pq.ParquetFile(pa.BufferReader(data), metadata=metadata, read_dictionary=texts) as file:
        characters_left = _MOST_BYTES
        for batch in file.iter_batches(_ROWS, columns=names, use_threads=False):
            columns = {name: _values_of(batch.column(name)) for name in names}
            for name in texts:
                lengths = [len(text) for text in {*columns[name]} if isinstance(text, str)]
                if max(lengths, default=0) > _LONGEST_TEXT:
                    raise ValueError(f"it has a {name} of {max(lengths):,} characters")
                characters_left -= sum(lengths)
            if characters_left < 0:
                raise ValueError("its texts are too long")
            for row in zip(*columns.values(), strict=True):
                yield dict(zip(names, row, strict=True))


def _values_of(column: pa.Array) -> list[Any]:
    """Returns the values of a column; rows share a text that they repeat.

    It needs no ``pyarrow.compute``, whose import takes as long as that of pyarrow.
    """
    if not isinstance(column, pa.DictionaryArray):
        return column.to_pylist()
    texts, numbers = column.dictionary, column.indices.to_pylist()
    used = sorted({*numbers} - {None})
    if used and used[-1] - used[0] <= _ROWS:  # mostly each row has a new text
        new_texts = texts.slice(used[0], _ROWS + 1).to_pylist()
        values = dict(enumerate(new_texts, used[0]))
    else:
        values = {number: texts[number].as_py() for number in used}
    return [values.get(number) for number in numbers]


def _damage_error(path: Place, reason: str) -> UserError:
    return UserError(f"file list is damaged: {path}: {reason}{repair_advice(path)}")


def below(folder: Folder, place: Place) -> str:
    """Returns the path of a place relative to the folder of a table, as in file lists.

    >>> from nutbeam.io.storage.place_addresses import place_of
    >>> [below(place_of(table), place_of(table) / "state/x") for table in ("/t", "t", "gs://b/t")]
    ['state/x', 'state/x', 'state/x']
    """
    return str(place.relative_to((folder / "_").parent))


def close_file(root: Folder, writer: ParquetWriter, **facts: Any) -> DataFile:
    """Completes a file of a table, and describes it; ``facts`` are more fields of that."""
    size = writer.close()
    return DataFile(below(root, writer.path), writer.rows, size, crc32=writer.crc32, **facts)


def totals(files: Sequence[DataFile]) -> tuple[int, int, int]:
    """Returns the totals of files: (number of files, rows, bytes)."""
    return len(files), sum(file.live_rows for file in files), sum(file.bytes for file in files)


def store_files(
    root: Folder, name: str, files: Iterable[DataFile], *, named: bool = True
) -> Component:
    """Writes the list of a component's live files under a new name.

    Args:
        root: The table.
        name: The component.
        files: Its live files.
        named: Whether the name of the list is on disk when this returns; else ``sync_lists`` follows.
    """
    files = list(files)
    path = _LISTS / f"{name.replace('/', '.')}-{new_name()}"
    sink = io.BytesIO()
    rows = pl.DataFrame([file_record(file) for file in files], schema=FILE_LIST)
    rows.write_parquet(sink, compression="zstd")
    data = sink.getvalue()
    write_bytes(root / path, data, named=named)
    crc32, in_rows = zlib.crc32(data), getattr(root, "in_rows", False)
    _FILES.put(_key_of_list(root / path, crc32, in_rows=in_rows), _in_order(files))
    return Component(str(path), *totals(files), crc32=crc32)


def sync_lists(root: Folder) -> None:
    """Waits until the names of all lists are on disk: a manifest that names them may follow."""
    sync_names(root / _LISTS)
