"""Repairs a table by a new snapshot of its undamaged files. Nothing is deleted or moved.

Lost file lists are rebuilt from the files, their names, and the lists of other snapshots.
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from ...policy.components.declaration import Flushed
from ...policy.components.kinds import folders_of, kind_of
from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..batches.batches import batch_component, describe_file, page_order
from ..disk.record_checks import NewerFormat
from ..snapshots.closed_batches import entries_after
from ..snapshots.manifest import Manifest, load_manifest, readable_manifests, store_manifest
from ..snapshots.operations import seen_snapshots
from ..snapshots.table_clock import clock_notes
from ..storage.file_errors import ConflictError
from ..storage.files import list_files
from ..storage.parquet_files import collect, scan, schema_of
from ..storage.places import Folder, Place
from ..table.table_snapshots import TableSnapshots
from ..table.web_table import WebTable
from ..tablets.file_lists import Component, DataFile, below, load_files, store_files, totals
from ..tablets.tablet_writer import zone
from ..tablets.tablets import ROW_NUMBER, run_schema, tablets
from .batch_repair import with_rebuilt_batches
from .fsck import gaps, list_problem, read_keys

# Number of missing snapshots in a row that no table has.
_MOST_LOST = 100_000


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
        with_batches: Whether ``base`` has entries of batches that were made again.
    """

    base: Manifest
    numbers: range
    lists: Mapping[str, list[DataFile]]
    drop: Mapping[str, frozenset[str]]
    unreadable: Iterable[int] = ()
    changes: Mapping[str, list[DataFile]] = dataclasses.field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    with_batches: bool = False


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
        mended = with_rebuilt_batches(table, manifest)
        rebuilt = rebuilt_lists(table, mended)
        lists = {name: files for name, files in rebuilt.items() if files is not None}
        if len(lists) == len(rebuilt):
            plan = RepairPlan(
                mended, range(top + 1, top + 2), lists, drop, unreadable,
                with_batches=mended is not manifest,
            )  # fmt: skip
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
    idle = not (lists or plan.changes or plan.dropped or plan.counts or plan.with_batches)
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
        components=entries_after(base.components, stored),
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


def rebuilt_lists(table: WebTable, manifest: Manifest) -> dict[str, list[DataFile] | None]:
    """Returns the live files of components with broken lists; None where they are uncertain."""
    return {
        name: _Rebuild(table, manifest, name).files()
        for name, component in manifest.components.items()
        if table.in_files(name) and list_problem(table, component)
    }


@dataclass(frozen=True)
class _Rebuild:
    """Finds the live files of a component whose list is lost."""

    table: WebTable
    manifest: Manifest
    name: str

    def files(self) -> list[DataFile] | None:
        others = self._described_elsewhere()
        files: list[DataFile] = []  # newest first
        runs: list[Place] = []  # runs whose base is in no list
        files_there = [
            file for name in folders_of(self.name) for file in list_files(self.table / name)
        ]
        for file in sorted(files_there, key=lambda file: -file.changed):
            if file.path.suffix != ".parquet" or file.path.name.startswith("."):
                continue
            path = below(self.table, file.path)
            try:
                if path not in others and ROW_NUMBER in schema_of(file.path).names:
                    runs.append(file.path)
                    continue
                description = others.get(path) or self._describe(file.path)
            except UserError:
                continue  # the file is damaged
            if description is None:
                return None
            files.append(description)
        new = [file for file in files if file.path not in others]
        bases = list(_newest([file for file in files if file.base is None]))
        try:
            layered = self._layer_runs(bases, [file for file in files if file.base], runs)
        except UserError:
            return None  # one of the files is damaged
        wanted = self.manifest.components[self.name].totals
        return next((c for c in (files, bases, new, *layered) if totals(c) == wanted), None)

    def _described_elsewhere(self) -> dict[str, DataFile]:
        """Returns the files' descriptions in the lists of other snapshots, by path."""
        others: list[Component | None] = []
        for other in readable_manifests(self.table):
            with contextlib.suppress(UserError):  # a list of closed batches is lost
                others.append(other.components.get(self.name))
        lists = {component.list: component for component in reversed(others) if component}
        lists.pop(self.manifest.components[self.name].list, None)
        descriptions: dict[str, DataFile] = {}
        for component in lists.values():
            with contextlib.suppress(UserError):
                descriptions |= {file.path: file for file in load_files(self.table, component)}
        return descriptions

    def _describe(self, path: Place) -> DataFile | None:
        """Returns a file's description from its content and name; None if these do not suffice."""
        file, kind = describe_file(self.table, path, read_keys(path)), kind_of(self.name)
        if kind.in_tablets:
            return self._with_zone(file)
        if kind.adopted:
            words = path.stem.split("-")
            if len(words) != 4 or not words[0][1:].isdigit():
                return None
            order = (
                page_order(int(words[1]), int(words[3])) if kind.flushed is Flushed.ADOPTED else 0
            )
            return dataclasses.replace(file, partition=int(words[0][1:]), order=order)
        if kind.name == "fetchlist":  # only the list knows the partition of a file
            batch = self.manifest.batches.get(self.name.split("/")[1])
            return file if batch is not None and batch.partitions == 1 else None
        return self._pair_with(file, "pages") if kind.name == "documents" else file

    def _with_zone(self, file: DataFile) -> DataFile:
        if not file.rows:
            return file
        kind = kind_of(self.name)
        columns = ("key", *(kind.zone.columns if kind.zone else ()))
        rows = collect(scan([self.table / file.path], kind.schema).select(columns))
        return dataclasses.replace(file, **zone(rows, kind))  # type: ignore[arg-type]

    def _pair_with(self, file: DataFile, other: str) -> DataFile | None:
        """Sets the order of a file to that of the file of another kind with its first key."""
        others = self.manifest.components.get(batch_component(self.name.split("/")[1], other))
        with contextlib.suppress(UserError):
            files = load_files(self.table, others)
            for candidate in files:
                keys = scan([self.table / candidate.path], kind_of(other).schema).select("key")
                # A file without rows can only belong to the only other file.
                alone = file.first is None and len(files) == 1
                if alone or len(collect(keys.filter(pl.col("key") == file.first))):
                    return dataclasses.replace(
                        file, partition=candidate.partition, order=candidate.order
                    )
        return None

    def _layer_runs(
        self, bases: list[DataFile], known_runs: list[DataFile], runs: list[Place]
    ) -> list[list[DataFile]]:
        """Returns two sets of files: new runs are added to the known runs, or replace them.

        Args:
            bases: Bases that may be live.
            known_runs: Runs that lists of other snapshots describe.
            runs: New runs, at most one per base; their rows show the base.
        """
        new: dict[str, tuple[Place, pl.DataFrame]] = {}
        for path in runs:
            rows = collect(scan([path], run_schema(self.name)).select("key", ROW_NUMBER))
            for base in bases:
                if base.path not in new and self._lies_on(base, rows):
                    new[base.path] = (path, rows)
                    break
        above, alone = list[DataFile](), list[DataFile]()
        for base in bases:
            older = [base, *(run for run in known_runs if run.base == base.path)]
            older.sort(key=lambda file: (file.base is not None, file.order))
            if base.path in new:
                above += [*older, self._run(older, *new[base.path])]
                alone += [base, self._run([base], *new[base.path])]
            else:
                above += older
                alone += older
        return [above, alone]

    def _run(self, older: list[DataFile], path: Place, rows: pl.DataFrame) -> DataFile:
        fresh = int((rows.get_column(ROW_NUMBER) >= totals(older)[1]).sum())
        run, order = describe_file(self.table, path, read_keys(path)), self.manifest.snapshot
        run = dataclasses.replace(run, base=older[0].path, order=order, fresh=fresh)
        return self._with_zone(run)

    def _lies_on(self, base: DataFile, rows: pl.DataFrame) -> bool:
        """Returns whether a run replaces rows of a base; False for a run that only adds rows."""
        changed = rows.filter(pl.col(ROW_NUMBER) < base.rows)
        path = self.table / base.path
        keys = collect(scan([path], kind_of(self.name).schema).select("key")).get_column("key")
        right = keys.gather(changed.get_column(ROW_NUMBER))
        return bool(len(changed)) and right.equals(changed.get_column("key"))


def _newest(files: list[DataFile]) -> Iterator[DataFile]:
    """Yields the files, newest first; skips files whose keys are in a newer file."""
    taken: list[tuple[str, str]] = []
    for file in files:
        low, high = file.first or "", file.last or ""
        if all(high < first or last < low for first, last in taken):
            taken.append((low, high))
            yield file
