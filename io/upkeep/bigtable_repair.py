"""Repairs a table in Bigtable: first finishes its last commit, then repairs by a new commit."""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kinds_in_rows
from ...policy.components.schema import to_frame
from ...web.base.errors import UserError
from ..bigtable.cell_layout import CellKind, cell_kind
from ..bigtable.cells import TOMBSTONE, decode
from ..bigtable.client import BigtableTable
from ..bigtable.key_ranges import cut_ranges
from ..bigtable.own_rows import ManifestHead
from ..bigtable.request_parts import history_filter
from ..bigtable.stored_rows import write_changes, write_deletions
from ..snapshots.lineage import lineage
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.operations import seen_snapshots
from ..storage.file_errors import ConflictError
from ..storage.table_sizes import table_sizes
from ..table.bigtable_web_table import BigtableWebTable
from ..tablets.file_lists import DataFile
from .batch_repair import with_rebuilt_batches
from .bigtable_fsck import (
    damaged_cells,
    is_newer,
    read_cells,
    snapshots_without_time,
    why_unreadable,
)
from .fsck import Rows, list_problem
from .repair import Repair, RepairPlan, commit_repair, rebuilt_lists

# Number of rows whose versions are read at a time.
_SOUGHT = 1_000
_PACKED = pa.schema([("key", pa.binary()), ("cell", pa.binary())])
# The versions of a row: (number of the snapshot, cell), newest first.
Versions = list[tuple[int, bytes]]


def settle(table: BigtableWebTable, drop: bool) -> int | None:
    """Finishes an interrupted commit, and restores missing data in the history if it is known.

    It may be repeated, and other jobs may finish the same commit at the same time.

    Args:
        table: The table.
        drop: Whether to leave out files of changes that cannot be read.

    Returns:
        Number of the snapshot that was finished; None if none was unfinished, or if it
        needs a lost file.
    """
    log = table.log
    head = log.head()
    if not head.applying:
        _complete_history(table, head)
        return None
    changes = [change for change in log.changes(head) if not change.lost]
    lost = [change.path for change in changes if why_unreadable(table, change)]
    if lost and not drop:
        return None
    if lost:
        log.leave_out(head, lost)
    _complete_history(table, log.roll_forward())
    return head.snapshot


def _complete_history(table: BigtableWebTable, head: ManifestHead) -> None:
    """Restores the newest snapshot in the history, and the times of older ones."""
    try:
        lost = load_manifest(table, head.snapshot).lost
    except UserError:
        table.log.record_again(head)
        lost = ()
    for number in snapshots_without_time(table.log, lost):
        if number == head.snapshot:
            table.log.record_again(head)
            continue
        with contextlib.suppress(UserError):  # the record is lost
            table.log.time_again(number, load_manifest(table, number).time)


def repair_rows(
    table: BigtableWebTable,
    operation: str,
    snapshot: int,
    rows: Rows,
    drop: Mapping[str, frozenset[str]] | None,
) -> Repair:
    """Makes a new snapshot without damage from the newest snapshot.

    A row that cannot be read is replaced by its newest readable version, if Bigtable
    still has one in the table's lineage. Otherwise the row is deleted.

    Args:
        table: The table; its last commit is finished.
        operation: Id of this operation.
        snapshot: Number of the snapshot that was checked.
        rows: The result of checking its rows.
        drop: Paths of the data files to leave out, by component; None also keeps
            damaged rows.

    Raises:
        UserError: The newest snapshot cannot be read.
        ConflictError: Another operation has committed meanwhile.
    """
    head = table.log.head()
    if head.applying:
        return Repair(None)  # a file is lost, so no commit is possible
    if head.snapshot != snapshot:
        raise ConflictError("another job changed the table: run the command again")
    manifest = load_manifest(table, snapshot)
    mended = with_rebuilt_batches(table, manifest)
    plan = _plan(table, mended, rows, drop)
    plan = dataclasses.replace(plan, with_batches=mended is not manifest)
    return commit_repair(table, operation, plan)


def _plan(
    table: BigtableWebTable, base: Manifest, rows: Rows, drop: Mapping[str, frozenset[str]] | None
) -> RepairPlan:
    """Returns the plan of a repair, and writes the files of changes that it names."""
    head, snapshot = table.log.head(), base.snapshot
    lost = [change for change in table.log.changes(head) if change.lost]
    # Only for files whose number of rows is known.
    counts = Counter[str]()
    for change in lost:
        counts[f"{change.component}/lost"] += change.rows or 0
    lists, gone = dict[str, list[DataFile]](), [change.path for change in lost]
    unknown = table.unknown_rows(base.components)
    for name, files in rebuilt_lists(table, base).items():
        if name in unknown:
            continue  # its list cannot be made again here, and may not be left out
        if files is not None or drop is not None:
            lists[name] = files or []
            gone += [base.components[name].list] if files is None else []
    changes = {}
    for name in kinds_in_rows():
        damaged = rows.damaged.get(name, ()) if drop is not None else ()
        written, numbers = _repair_damaged(table, cell_kind(name), damaged, snapshot)
        counts.update({f"{name}/{what}": number for what, number in numbers.items() if number})
        if written:
            changes[name] = written
        if written or _is_wrong(table, base, name, rows):
            lists[name] = _ranges(table, base, name, rows, numbers["deleted"])
    # Snapshot numbers have no gaps: numbers that operations have seen also become repairs.
    numbers_to_make = range(snapshot + 1, max([snapshot, *seen_snapshots(table)]) + 2)
    files_to_drop = {n: paths for n, paths in (drop or {}).items() if table.in_files(n)}
    return RepairPlan(
        base, numbers_to_make, lists, files_to_drop,
        changes=changes, dropped=tuple(gone), counts=counts,
    )  # fmt: skip


def _is_wrong(table: BigtableWebTable, base: Manifest, name: str, rows: Rows) -> bool:
    """Returns whether the ranges of a component do not match its rows."""
    component = base.components.get(name)
    if component is not None and list_problem(table, component):
        return True
    return any(p.component == name and p.kind in ("rows", "range") for p in rows.problems)


def _ranges(
    table: BigtableWebTable, base: Manifest, name: str, rows: Rows, deleted: int
) -> list[DataFile]:
    """Returns new ranges for a component with a number of rows."""
    total = rows.numbers.get(name)
    if total is None:
        total = read_cells(table.log, name, base.snapshot, 1).rows
    component = base.components.get(name)
    whole = [DataFile(name, total - deleted, component.bytes if component is not None else 0)]
    large = total - deleted > 2 * table_sizes().tablet_rows
    return cut_ranges(name, whole, table.samples()) if large else whole


def _repair_damaged(
    table: BigtableWebTable, kind: CellKind, keys: Sequence[bytes], snapshot: int
) -> tuple[list[DataFile], dict[str, int]]:
    """Writes files of changes for rows that cannot be read.

    Returns:
        (the files, numbers of rows that are ``given_back`` and ``deleted``).
    """
    undone, purges = _past(table)
    cells: dict[bytes, bytes | None] = {}
    for key, versions in _versions(table.log.table, kind, keys, snapshot):
        # Keys that are not text, and cells of a newer version, stay unchanged.
        is_text = key.decode(errors="ignore").encode() == key
        if is_text and versions and not is_newer(versions[0][1], kind):
            cells[key] = _newest_readable(kind, versions, undone, purges)
    back = {key: cell for key, cell in cells.items() if cell is not None}
    gone = [key.decode() for key, cell in cells.items() if cell is None]
    packed = pa.table({"key": list(back), "cell": list(back.values())}, schema=_PACKED)
    rows = to_frame(decode(packed, kind))
    written = (
        write_changes(table.files, kind.component, rows, rows.get_column("key")),
        write_deletions(table.files, kind.component, pl.Series("key", gone, dtype=pl.String)),
    )
    files = [done.file for done in written if done.file is not None]
    return files, {"given_back": len(back), "deleted": len(gone)}


def _newest_readable(
    kind: CellKind, versions: Versions, undone: set[int], purges: set[int]
) -> bytes | None:
    """Returns the newest cell of a row that is readable and may be restored, or None."""
    for snapshot, cell in versions:
        if snapshot in undone:
            continue
        if cell == TOMBSTONE:
            return None
        if not damaged_cells(pa.table({"key": [b"-"], "cell": [cell]}), kind):
            return cell
        if snapshot in purges:
            return None  # older versions were purged
    return None


def _past(table: BigtableWebTable) -> tuple[set[int], set[int]]:
    """Returns the known numbers of (snapshots that a rollback has undone, purges)."""
    undone: set[int] = set()
    purges: set[int] = set()
    with contextlib.suppress(UserError):
        for manifest in lineage(table):
            if manifest.restores is not None:
                undone.update(range(manifest.restores + 1, manifest.snapshot))
            if manifest.job == "purge":
                purges.add(manifest.snapshot)
    return undone, purges


def _versions(
    table: BigtableTable, kind: CellKind, keys: Sequence[bytes], snapshot: int
) -> Iterator[tuple[bytes, Versions]]:
    """Yields all versions of rows, up to a snapshot, that Bigtable has, in key order."""
    keys = sorted(keys)
    for at in range(0, len(keys), _SOUGHT):
        versions_by_key: dict[bytes, Versions] = {}
        rows = table.read_cells(history_filter(kind, snapshot), row_keys=keys[at : at + _SOUGHT])
        for key, _, time, cell in rows:
            versions_by_key.setdefault(key, []).append((time // 1000, cell))
        yield from versions_by_key.items()
