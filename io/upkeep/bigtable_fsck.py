"""Checks a table's rows in Bigtable for damage: the last commit, the ranges, every cell.

``row_checks`` does the same for tablets in files. Cells have no checksums. So this check finds
a cell that does not match its layout, but not a flipped bit in a number.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from ...policy.components.kinds import kinds_in_rows
from ...web.base.errors import UserError
from ...web.base.progress import PROGRESS
from ...web.base.wording import format_count
from ..bigtable.admin import has_family
from ..bigtable.cell_layout import CellKind, cell_kind
from ..bigtable.cells import decode
from ..bigtable.key_ranges import KeyRange
from ..bigtable.snapshot_log import ChangedFile, SnapshotLog
from ..snapshots.manifest import Manifest
from ..table.bigtable_web_table import BigtableWebTable
from ..tablets.file_lists import DataFile, load_files
from .fsck import Problem, Rows, bare_message, list_problem

# Number of ranges per thread: ranges differ in size.
_PER_THREAD = 4
# If a cell's layout is newer by at most this number, a newer nutbeam may have written it.
_NEWER = 8


class CheckedCells(NamedTuple):
    """The cells of a component.

    Attributes:
        rows: Number of rows.
        damaged: Reasons why rows cannot be read, by key.
        newer: Keys of those that a newer version may have written.
    """

    rows: int
    damaged: Mapping[bytes, str]
    newer: frozenset[bytes] = frozenset()


def check_cells(table: BigtableWebTable, manifest: Manifest, quick: bool, threads: int) -> Rows:
    """Checks the last commit, and all rows of a snapshot.

    Args:
        table: The table.
        manifest: The newest snapshot that can be read.
        quick: Whether to skip reading the rows.
        threads: Number of ranges to read at a time.

    Raises:
        SnapshotTooOld: Too many commits have changed rows during the check.
    """
    unfinished, problems = check_changes(table, quick)
    for number in snapshots_without_time(table.log, manifest.lost):
        text = "does not say when it was committed"
        problems.append(Problem("manifest", table.record_name(number), text))
    numbers: dict[str, int] = {}
    damaged: dict[str, tuple[bytes, ...]] = {}
    for name in kinds_in_rows():
        component = manifest.components.get(name)
        if component is None or not list_problem(table, component):
            problems += check_ranges(name, load_files(table, component))
        if quick:
            continue
        path, recorded_rows = (
            (component.list, component.rows) if component is not None else (name, 0)
        )
        PROGRESS.start(f"fsck {name}", total=recorded_rows, unit="rows")
        checked = read_cells(table.log, name, manifest.snapshot, threads)
        PROGRESS.finish()
        numbers[name], damaged[name] = checked.rows, tuple(checked.damaged)
        for key, text in checked.damaged.items():
            shown = key.decode("utf-8", "backslashreplace")
            newer = key in checked.newer
            problems.append(Problem("cell", f"{name}/{shown}", text, name, newer=newer))
        if checked.rows != recorded_rows:
            text = f"names {format_count(recorded_rows, 'rows')}, in Bigtable are {checked.rows:,}"
            problems.append(Problem("rows", path, text, name))
    return Rows(tuple(problems), numbers, damaged, unfinished)


def snapshots_without_time(log: SnapshotLog, lost: Collection[int]) -> list[int]:
    """Returns the snapshots without a commit time in the history."""
    numbers, times = log.snapshots(), log.times()
    there = set(log.snapshots())  # without snapshots that were just deleted
    return [n for n in numbers if n in there and n not in times and n not in lost]


def check_changes(table: BigtableWebTable, quick: bool) -> tuple[int | None, list[Problem]]:
    """Checks the last commit.

    Returns:
        (number of the snapshot if it is not completely applied, problems of its files).
    """
    log = table.log
    while True:
        head = log.head()
        problems = []
        for change in log.changes(head):
            if change.lost:
                text = f"is lost: snapshot {head.snapshot} is without its rows"
                problems.append(Problem("changes", change.path, text, change.component))
            elif head.applying and (text := why_unreadable(table, change, quick)):
                text = f"{text}: without it snapshot {head.snapshot} cannot be finished"
                problems.append(Problem("changes", change.path, text, change.component))
        # Another process may have finished the commit and deleted its files since then.
        if not problems or log.head().value == head.value:
            return (head.snapshot if head.applying else None), problems


def why_unreadable(table: BigtableWebTable, change: ChangedFile, quick: bool = False) -> str:
    """Returns the reason why a file of changes cannot be applied; empty if it can."""
    try:
        # The quick check only reads the beginning and the end of the Parquet file.
        for _ in table.log.rows_of(dataclasses.replace(change, crc32=None) if quick else change):
            if quick:
                break
    except UserError as error:
        return bare_message(error, table / change.path)
    return ""


def check_ranges(component: str, ranges: Sequence[DataFile]) -> Iterator[Problem]:
    """Finds key ranges that overlap, and gaps between them.

    >>> parts = [DataFile("hosts/", 1, 1, None, "b"), DataFile("hosts/c", 1, 1, "c", None)]
    >>> [problem.message for problem in check_ranges("hosts", parts)]
    ["begins at 'c', the range before ends at 'b'"]
    """
    for previous, file in zip([None, *ranges], ranges, strict=False):
        text = ""
        if previous is None and file.first is not None:
            text = f"begins at {file.first!r}, and no range is before"
        elif previous is not None and (previous.last is None or file.first != previous.last):
            end = "the end" if previous.last is None else repr(previous.last)
            text = f"begins at {file.first!r}, the range before ends at {end}"
        if text:
            yield Problem("range", file.path, text, component)
    if ranges and ranges[-1].last is not None:
        text = f"ends at {ranges[-1].last!r}, and no range is after"
        yield Problem("range", ranges[-1].path, text, component)


def read_cells(log: SnapshotLog, component: str, snapshot: int, threads: int) -> CheckedCells:
    """Reads and unpacks all rows of a component; does not use the ranges of its list.

    Raises:
        SnapshotTooOld: The snapshot became too old while rows were read.
    """
    kind = cell_kind(component)
    if not has_family(log.table.address, kind.family):
        return CheckedCells(0, {})

    def read(part: KeyRange) -> CheckedCells:
        rows, damaged, newer = 0, dict[bytes, str](), set[bytes]()
        for cells in log.table.scan(kind, part, snapshot):
            rows += len(cells)
            bad = damaged_cells(cells, kind)
            damaged |= bad
            if bad:
                packed = zip(cells["key"].to_pylist(), cells["cell"].to_pylist(), strict=True)
                newer |= {key for key, cell in packed if key in bad and is_newer(cell, kind)}
            PROGRESS.add(len(cells))
        return CheckedCells(rows, damaged, frozenset(newer))

    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(read, log.table.ranges(threads * _PER_THREAD)))
    log.check_fresh(snapshot)
    damaged = {key: text for part in parts for key, text in part.damaged.items()}
    newer = frozenset(key for part in parts for key in part.newer)
    return CheckedCells(sum(part.rows for part in parts), damaged, newer)


def damaged_cells(cells: pa.Table, kind: CellKind) -> dict[bytes, str]:
    """Returns the reasons why cells cannot be unpacked, by key.

    Args:
        cells: Columns ``key`` and ``cell``.
        kind: The kind of the cells.
    """
    try:
        decode(cells, kind)
        return {}
    except UserError as error:
        if len(cells) > 1:  # the error names only the first of them, or none
            half = len(cells) // 2
            halves = (cells.slice(0, half), cells.slice(half))
            return {
                k: v for half_cells in halves for k, v in damaged_cells(half_cells, kind).items()
            }
        _, separator, reason = str(error).partition(" is damaged: ")
        version = str(error).rpartition(" has version")[2]
        text = f"its cell is damaged: {reason}" if separator else f"its cell has version{version}"
        return {cells.column("key")[0].as_py(): text}


def is_newer(cell: bytes, kind: CellKind) -> bool:
    """Returns whether a cell that cannot be unpacked may be valid for a newer nutbeam."""
    at = 8 if kind.newest.due else 0
    if len(cell) <= at or not kind.newest.version < cell[at] <= kind.newest.version + _NEWER:
        return False
    # If only a bit of the version has flipped, the rest is a valid cell of this version.
    as_ours = cell[:at] + bytes([kind.newest.version]) + cell[at + 1 :]
    return bool(damaged_cells(pa.table({"key": [b"-"], "cell": [as_ours]}), kind))
