"""Looks whether what a web table has in Bigtable is whole: the last commit, the ranges, every row.

The twin of ``tablet_fsck``. A cell has no checksum: what is found are cells that
do not fit their layout, not a number in which a bit has flipped.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pyarrow as pa

from ...web.base.errors import UserError
from ...web.base.progress import PROGRESS
from ..bigtable.cells import CELLS, CellKind, decode
from ..bigtable.key_ranges import KeyRange
from ..bigtable.snapshot_log import Change, SnapshotLog
from ..snapshots.manifest import Manifest
from ..table.bigtable_web_table import BigtableWebTable
from ..tablets.file_lists import DataFile, load_files
from .fsck import Problem, Rows, list_problem, without

# Ranges that a thread reads, one after another: they differ in size.
_PER_THREAD = 4
# So many layouts on, a cell may be of a newer nutbeam, and is no damage.
_NEWER = 8


@dataclasses.dataclass(frozen=True)
class Cells:
    """What was read of a component.

    Attributes:
        rows: How many rows there are.
        damaged: What is wrong with those that cannot be read, by key.
    """

    rows: int
    damaged: Mapping[bytes, str]


def check_rows(root: BigtableWebTable, manifest: Manifest, quick: bool, threads: int) -> Rows:
    """Looks at the last commit, and at all rows of a snapshot.

    Args:
        root: The table.
        manifest: The snapshot, the newest that can be read.
        quick: Whether to leave rows unread.
        threads: How many ranges to read at a time.

    Raises:
        SnapshotTooOld: So much was committed meanwhile that nobody can tell.
    """
    unfinished, problems = check_changes(root, quick)
    for number in untimed(root.log, manifest.lost):
        text = "does not say when it was committed"
        problems.append(Problem("manifest", f"snapshot/{number:08d}", text))
    numbers: dict[str, int] = {}
    damaged: dict[str, tuple[bytes, ...]] = {}
    for name in CELLS:
        component = manifest.components.get(name)
        wrong = component is not None and list_problem(root, component)
        if not wrong:
            problems += check_ranges(name, load_files(root, component))
        if quick:
            continue
        known = component.rows if component is not None else 0
        PROGRESS.start(f"fsck {name}", total=known, unit="rows")
        found = read_cells(root.log, name, manifest.snapshot, threads)
        PROGRESS.finish()
        numbers[name], damaged[name] = found.rows, tuple(found.damaged)
        for key, text in found.damaged.items():
            problems.append(Problem("cell", f"{name}/{key_text(key)}", text, name))
        if found.rows != known:
            path = component.list if component is not None else name
            text = f"names {known:,} rows, in Bigtable are {found.rows:,}"
            problems.append(Problem("rows", path, text, name))
    return Rows(tuple(problems), numbers, damaged, unfinished)


def untimed(log: SnapshotLog, lost: Collection[int]) -> list[int]:
    """Returns the snapshots of which the history does not say when they were committed."""
    before, times = log.snapshots(), log.times()
    there = set(log.snapshots())  # what is deleted meanwhile says nothing
    return [n for n in before if n in there and n not in times and n not in lost]


def check_changes(root: BigtableWebTable, quick: bool) -> tuple[int | None, list[Problem]]:
    """Looks at the commit that is the last one.

    Returns:
        (number of the snapshot if it is not wholly applied, what is wrong with its files).
    """
    log = root.log
    while True:
        head = log.head()
        problems = []
        for change in log.changes(head):
            if change.lost:
                text = f"is lost: snapshot {head.snapshot} is without its rows"
                problems.append(Problem("changes", change.path, text, change.component))
            elif head.applying and (text := unreadable(root, change, quick)):
                text = f"{text}: without it snapshot {head.snapshot} cannot be finished"
                problems.append(Problem("changes", change.path, text, change.component))
        # Who has finished it meanwhile may have deleted its files.
        if not problems or log.head().value == head.value:
            return (head.snapshot if head.applying else None), problems


def unreadable(root: BigtableWebTable, change: Change, quick: bool = False) -> str:
    """Returns what is wrong with a file of changes; empty if it can be applied."""
    try:
        # Quickly: whether there is a file that begins and ends as one.
        for _ in root.log.rows_of(dataclasses.replace(change, crc32=None) if quick else change):
            if quick:
                break
    except UserError as error:
        return without(error, root / change.path)
    return ""


def check_ranges(component: str, ranges: Sequence[DataFile]) -> Iterator[Problem]:
    """Finds key ranges that overlap, or leave keys out.

    >>> parts = [DataFile("hosts/", 1, 1, None, "b"), DataFile("hosts/c", 1, 1, "c", None)]
    >>> [problem.message for problem in check_ranges("hosts", parts)]
    ["begins at 'c', the range before ends at 'b'"]
    """
    if not ranges:
        return
    if ranges[0].first is not None:
        text = f"begins at {ranges[0].first!r}, and no range is before"
        yield Problem("range", ranges[0].path, text, component)
    for before, file in pairwise(ranges):
        if before.last is None or file.first != before.last:
            end = "the end" if before.last is None else repr(before.last)
            text = f"begins at {file.first!r}, the range before ends at {end}"
            yield Problem("range", file.path, text, component)
    if ranges[-1].last is not None:
        text = f"ends at {ranges[-1].last!r}, and no range is behind"
        yield Problem("range", ranges[-1].path, text, component)


def read_cells(log: SnapshotLog, component: str, snapshot: int, threads: int) -> Cells:
    """Reads and unpacks all rows of a component, whatever ranges the list names.

    Raises:
        SnapshotTooOld: The snapshot was too old before all were read.
    """
    kind = CELLS[component]

    def read(part: KeyRange) -> Cells:
        rows, damaged = 0, dict[bytes, str]()
        for cells in log.table.scan(kind, part, snapshot):
            rows += len(cells)
            damaged |= damaged_cells(cells, kind)
            PROGRESS.add(len(cells))
        return Cells(rows, damaged)

    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(read, log.table.ranges(threads * _PER_THREAD)))
    log.check_fresh(snapshot)
    damaged = {key: text for part in parts for key, text in part.damaged.items()}
    return Cells(sum(part.rows for part in parts), damaged)


def damaged_cells(cells: pa.Table, kind: CellKind) -> dict[bytes, str]:
    """Returns what is wrong with the cells that cannot be unpacked, by key.

    Args:
        cells: Columns ``key`` and ``cell``.
        kind: Which cells.
    """
    try:
        decode(cells, kind)
        return {}
    except UserError as error:
        if len(cells) > 1:  # it names the first one of them, or none
            half = len(cells) // 2
            halves = (cells.slice(0, half), cells.slice(half))
            return {k: v for some in halves for k, v in damaged_cells(some, kind).items()}
        _, found, reason = str(error).partition(" is damaged: ")
        text = f"its cell is damaged: {reason}" if found else _version_of(str(error))
        return {cells.column("key")[0].as_py(): text}


def _version_of(text: str) -> str:
    return f"its cell has version{text.rpartition(' has version')[2]}"


def is_newer(cell: bytes, kind: CellKind) -> bool:
    """Returns whether a cell that cannot be unpacked may be whole, of a newer nutbeam."""
    at = 8 if kind.newest.due else 0
    if len(cell) <= at or not kind.newest.version < cell[at] <= kind.newest.version + _NEWER:
        return False
    # A bit that has flipped in the version alone leaves a cell of ours.
    as_ours = cell[:at] + bytes([kind.newest.version]) + cell[at + 1 :]
    return bool(damaged_cells(pa.table({"key": [b"-"], "cell": [as_ours]}), kind))


def key_text(key: bytes) -> str:
    """Returns a key as people read it."""
    return key.decode("utf-8", "backslashreplace")
