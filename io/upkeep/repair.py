"""Repairs a table by a new snapshot of its undamaged files. Nothing is deleted or moved."""

import dataclasses
from collections.abc import Iterable, Mapping

from ...policy.components.kinds import kind_of
from ...web.base.clock import now_ms
from ...web.base.errors import UserError
from ..disk.formats import NewerFormat
from ..snapshots.manifest import Manifest, load_manifest, readable_manifests, store_manifest
from ..snapshots.operations import seen_snapshots
from ..snapshots.table_clock import clock_notes
from ..storage.errors import ConflictError
from ..storage.places import Folder
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import WebTable
from ..tablets.file_lists import DataFile, load_files, store_files
from ..tablets.tablets import tablets
from .fsck import gaps
from .list_repair import rebuilt_lists

# Number of missing snapshots in a row that no table has.
_MOST_LOST = 100_000


@dataclasses.dataclass(frozen=True)
class Repair:
    """The result of a repair.

    Attributes:
        manifest: The new snapshot; None if there was nothing to repair.
        base: Number of the snapshot that the new one is made from.
        rebuilt: Components whose lists were rebuilt.
        dropped: Files that are no longer part of the table.
        lost: Numbers of the snapshots that cannot be read.
        rows: Counts of repaired rows in Bigtable, as COMPONENT/WHAT.
    """

    manifest: Manifest | None
    base: int = 0
    rebuilt: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    lost: tuple[int, ...] = ()
    rows: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RepairPlan:
    """The snapshot that a repair makes.

    Attributes:
        base: The snapshot that it is made from.
        numbers: Numbers of the snapshots to make, all with the same content. Numbers before
            the last one are used because operations have seen them.
        lists: New lists, by component.
        drop: Paths of data files to leave out, by component.
        unreadable: Numbers of snapshots after ``base`` that are lost.
        changes: Files of changes of rows in Bigtable, by component.
        dropped: Files of changes, and lists, that cannot be read and are left out.
        counts: Counts of repaired rows in Bigtable, as COMPONENT/WHAT.
    """

    base: Manifest
    numbers: range
    lists: Mapping[str, list[DataFile]]
    drop: Mapping[str, frozenset[str]]
    unreadable: Iterable[int] = ()
    changes: Mapping[str, list[DataFile]] = dataclasses.field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


def repair(table: WebTable, operation: str, drop: Mapping[str, frozenset[str]]) -> Repair:
    """Makes a snapshot of undamaged files, from the newest snapshot for which that is possible.

    A lost list is rebuilt from the files in its folder, if the undamaged files there
    have exactly the totals (files, rows, bytes) of the manifest. Otherwise the
    table returns to an older snapshot.

    Args:
        table: The table.
        operation: Id of this operation.
        drop: Paths of data files to leave out, by component.

    Raises:
        UserError: No snapshot can be repaired, or a newer version of nutbeam is needed.
        ConflictError: Another operation has committed during the repair.
    """
    numbers = table.snapshots()
    top = max([*numbers, *seen_snapshots(table)], default=0)
    _check_gaps(table, numbers, top)
    unreadable: list[int] = []
    for number in range(top, numbers[0] - 1 if numbers else 0, -1):
        try:
            manifest = load_manifest(table, number)
        except NewerFormat:
            raise
        except UserError:
            unreadable.append(number)
            continue
        rebuilt = rebuilt_lists(table, manifest)
        lists = {name: files for name, files in rebuilt.items() if files is not None}
        if len(lists) == len(rebuilt):
            plan = RepairPlan(manifest, range(top + 1, top + 2), lists, drop, unreadable)
            return commit_repair(table, operation, plan)
    raise UserError(f"no snapshot of {table} can be repaired: restore manifest/ from a copy")


def _check_gaps(table: Folder, numbers: list[int], top: int) -> None:
    """Checks that so few snapshots are lost that a new one can name them.

    Raises:
        UserError: A number is so far beyond the others that it is not of this table.
    """
    widest = max(gaps(numbers, numbers[0] if numbers else 1, top), default=(0, -1), key=_length)
    if _length(widest) >= _MOST_LOST:
        first, last = widest
        raise UserError(
            f"snapshots {first} to {last} of {table} are missing, which cannot be: remove the files "
            f"with larger numbers, such as {last + 1:08d}, from manifest/ and manifest/made/"
        )


def _length(gap: tuple[int, int]) -> int:
    return gap[1] - gap[0] + 1


def commit_repair(table: TableSnapshots, operation: str, plan: RepairPlan) -> Repair:
    """Commits the planned snapshots after all others."""
    base, top = plan.base, plan.numbers[-1] - 1
    older = set(range(table.snapshots()[0], base.snapshot))  # these were not read yet
    older -= {manifest.snapshot for manifest in readable_manifests(table)}
    lost = tuple(sorted({*base.lost, *plan.unreadable, *older}))
    lists, left_out = _leave_out_files(table, plan)
    dropped = [*plan.dropped, *left_out]
    idle = not (lists or plan.changes or plan.dropped or plan.counts)
    if idle and base.snapshot == top and lost == base.lost:
        return Repair(None)
    stored = {name: store_files(table, name, files) for name, files in lists.items()}
    counts = {"rebuilt": len(lists), "dropped": len(dropped), "lost": len(lost)}
    repaired = dataclasses.replace(
        base,
        operation=operation,
        job="fsck",
        batch=None,
        time=now_ms(base.latest_time),
        counts=counts | dict(plan.counts),
        components={**base.components, **stored},
        restores=base.snapshot if base.snapshot < top else None,
        lost=lost,
        **clock_notes(base),
    )
    for number in plan.numbers:
        repaired = dataclasses.replace(repaired, snapshot=number)
        if not store_manifest(table, repaired, plan.changes if number > top else {}):
            raise ConflictError("another job changed the table: run the command again")
    names = tuple(name for name in lists if name not in plan.drop)
    return Repair(repaired, base.snapshot, names, tuple(dropped), lost, plan.counts)


def _leave_out_files(
    table: Folder, plan: RepairPlan
) -> tuple[dict[str, list[DataFile]], list[str]]:
    """Returns (the new lists without the files to drop, the paths that were left out)."""
    lists, left_out = dict(plan.lists), []
    for name, paths in plan.drop.items():
        component = plan.base.components.get(name)
        files = lists[name] if name in lists else load_files(table, component)
        gone = _with_runs(name, files, paths)
        remaining_files = [file for file in files if file.path not in gone]
        left_out += [file.path for file in files if file.path in gone]
        if len(remaining_files) < len(files):
            lists[name] = remaining_files
    return lists, left_out


def _with_runs(component: str, files: list[DataFile], paths: frozenset[str]) -> set[str]:
    """Returns files to leave out, together with the runs that need them.

    A run needs its base and all older runs, because its row numbers refer to them.
    """
    gone = set(paths)
    for tablet in tablets(files) if kind_of(component).in_tablets else ():
        broken = [number for number, path in enumerate(tablet.paths) if path in paths]
        gone.update(tablet.paths[min(broken) :] if broken else ())
    return gone
