"""Checks manifests, lists and data files of a table for damage; ``row_checks`` checks rows."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...policy.components.schema import TEXT, empty, to_frame
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.base.wording import format_count
from ..disk.record_checks import NewerFormat
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import seen_snapshots
from ..snapshots.past_jobs import damaged_history
from ..storage.file_errors import SnapshotTooOld
from ..storage.files import crc32_of, size_of
from ..storage.parquet_files import row_count, row_groups
from ..storage.places import Folder, Place
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import TableRows
from ..tablets.file_lists import Component, DataFile, below, load_files, totals

HISTORY_PROBLEM = "history"
_CHANGED = "is not what was written: its checksum differs"
_KEY = pa.schema([("key", TEXT)])


@dataclass(frozen=True)
class Problem:
    """A defect of a table.

    Attributes:
        kind: Kind of the defect: ``manifest``, ``list``, ``missing``, ``size``,
            ``damaged``, ``rows``, ``order``, ``range``, ``overlap``, ``run``,
            ``batch``, ``clock``, ``history``, ``lost``; in Bigtable ``changes`` and ``cell``, too.
        path: Path of the file, relative to the table; COMPONENT/KEY for a cell;
            FIRST to LAST for consecutive manifests.
        message: Description of the defect.
        component: Component of a data file, or empty.
        newer: Whether a later version of nutbeam wrote the file, so that it is not damaged.
    """

    kind: str
    path: str
    message: str
    component: str = ""
    newer: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True)
class Rows:
    """The result of checking rows; for a table in files it only has ``problems``.

    Attributes:
        problems: The defects.
        numbers: Number of rows by component, if they were read.
        damaged: Keys of the rows that cannot be read, by component.
        unfinished: Number of a committed snapshot that is not completely applied, or None.
    """

    problems: tuple[Problem, ...] = ()
    numbers: Mapping[str, int] = dataclasses.field(default_factory=dict)
    damaged: Mapping[str, tuple[bytes, ...]] = dataclasses.field(default_factory=dict)
    unfinished: int | None = None


def bare_message(error: UserError, path: Place | str) -> str:
    """Returns the message of an error without its path and its advice."""
    text = str(error).partition(": run nutbeam fsck")[0]
    return text.replace(f": {path}", "").replace(f"{path}: ", "").replace(str(path), "it")


def check_manifests(table: TableSnapshots) -> list[Problem]:
    """Finds manifests that are missing or damaged, or have a newer format."""
    # In this order, so that snapshots pinned or committed during the check cause no problem.
    seen = max(seen_snapshots(table), default=0)
    newest = table.latest_snapshot()
    numbers = table.snapshots()
    accepted = _noted_losses(table, numbers)
    problems = []
    for number in numbers:
        try:
            load_manifest(table, number)
        except SnapshotTooOld:
            continue  # deleted since then
        except UserError as error:
            text = bare_message(error, table.record_label(number))
            newer = isinstance(error, NewerFormat)
            if number not in accepted:
                problems.append(Problem("manifest", table.record_name(number), text, newer=newer))
    first = numbers[0] if numbers else max(1, newest)
    there = {*numbers, *accepted}
    problems += _missing(table, gaps(there, first, newest), "")
    beyond = gaps(there, max(first, newest + 1), seen)
    return problems + list(_missing(table, beyond, ": an operation has read or made {}"))


def check_history(table: Folder) -> list[Problem]:
    """Finds damaged files of jobs whose snapshots have expired."""
    return [
        Problem(HISTORY_PROBLEM, below(table, path), bare_message(error, path))
        for path, error in damaged_history(table)
    ]


def _missing(table: TableSnapshots, ranges: list[tuple[int, int]], why: str) -> Iterator[Problem]:
    """Yields missing manifests; three or more consecutive ones are one problem."""
    for first, last in ranges:
        if last - first > 1:
            path = f"{table.record_name(first)} to {PurePosixPath(table.record_name(last)).name}"
            yield Problem("manifest", path, "are missing" + why.format("them"))
        else:
            text = "is missing" + why.format("it")
            for number in range(first, last + 1):
                yield Problem("manifest", table.record_name(number), text)


def gaps(numbers: Iterable[int], first: int, last: int) -> list[tuple[int, int]]:
    """Returns (first, last) of each sequence of numbers that are not there, however long it is.

    Args:
        numbers: The numbers that are there.
        first: The first number of interest.
        last: The last one.

    >>> gaps([2, 5, 9], 1, 99_999_999)
    [(1, 1), (3, 4), (6, 8), (10, 99999999)]
    """
    missing, next_number = [], first
    for number in (*sorted(n for n in numbers if first <= n <= last), last + 1):
        if number > next_number:
            missing.append((next_number, number - 1))
        next_number = max(next_number, number + 1)
    return missing


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Returns (first, last) of each sequence of consecutive numbers.

    >>> runs([7, 1, 2, 3])
    [(1, 3), (7, 7)]
    """
    sequences: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if sequences and sequences[-1][1] == number - 1:
            sequences[-1] = (sequences[-1][0], number)
        else:
            sequences.append((number, number))
    return sequences


def _noted_losses(table: TableSnapshots, numbers: list[int]) -> set[int]:
    """Returns the numbers of the manifests that a repair has noted as lost."""
    with contextlib.suppress(UserError):
        return set(load_manifest(table, numbers[-1]).lost) if numbers else set()
    return set()


def check_lists(table: Folder, manifest: Manifest) -> list[Problem]:
    """Finds lists of a snapshot that are missing, damaged, or differ from the manifest's totals."""
    texts = {
        name: list_problem(table, component) for name, component in manifest.components.items()
    }
    lists = {name: manifest.components[name].list for name, text in texts.items() if text}
    return [Problem("list", path, texts[name], name) for name, path in lists.items()]


def files_to_check(
    table: TableRows, components: Mapping[str, Component]
) -> Iterator[tuple[str, list[DataFile]]]:
    """Yields (name, files) of those of some components that are in files and have intact lists."""
    for name, component in components.items():
        if table.in_files(name) and not list_problem(table, component):
            yield name, load_files(table, component)


def list_problem(root: Folder, component: Component) -> str:
    """Returns the defect of a list; empty if there is none."""
    path = root / component.list
    try:
        if size_of(path) is None:
            return "is missing"
        if component.crc32 not in (None, crc32_of(path)):
            return _CHANGED
        list_totals = totals(load_files(root, component))
    except UserError as error:
        return bare_message(error, path)
    if list_totals == component.totals:
        return ""
    files, rows, _ = component.totals
    named = f"{format_count(list_totals[0], 'files')} with {format_count(list_totals[1], 'rows')}"
    return f"names {named}, the manifest {files:,} with {rows:,}"


def file_problem(
    root: Folder, component: str, file: DataFile, quick: bool = False
) -> Problem | None:
    """Checks that a data file matches its description.

    Args:
        root: The table's folder.
        component: Component of the file.
        file: The description.
        quick: Whether to check only size, end and number of rows. Otherwise it reads the
            whole file and verifies its checksum.
    """
    path = root / file.path

    def problem(kind: str, text: str) -> Problem:
        return Problem(kind, file.path, text, component)

    try:
        size = size_of(path)
        if size is None:
            return problem("missing", "is missing")
        if size != file.bytes:
            return problem("size", f"has {format_count(size, 'bytes')}, should have {file.bytes:,}")
        if not quick and file.crc32 not in (None, crc32_of(path)):
            return problem("damaged", _CHANGED)
        keys = read_keys(path) if not quick else None
        rows = row_count(path) if keys is None else len(keys)
    except UserError as error:
        return problem("damaged", bare_message(error, path))
    if rows != file.rows:
        return problem("rows", f"has {format_count(rows, 'rows')}, should have {file.rows:,}")
    if keys is None or not rows or file.first is None:
        return None
    low, high = keys.min(), keys.max()
    if (low, high) != (file.first, file.last):
        text = f"has keys from {low!r} to {high!r}, should be from {file.first!r}"
        return problem("range", text)
    if kind_of(component).in_order and not keys.is_sorted():
        return problem("order", "its rows are not in key order")
    if kind_of(component).in_tablets and keys.n_unique() < rows:
        return problem("order", "has a key twice")
    return None


def read_keys(path: Place) -> pl.Series:
    """Returns the keys of a Parquet file in their order, null for rows without a key."""
    frames = [to_frame(rows) for rows in row_groups(path, _KEY, _KEY.names)]
    return pl.concat([empty(_KEY), *frames]).get_column("key")
