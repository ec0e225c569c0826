"""Checks and repairs of rows, for each kind of table, and of times that a wrong clock has made.

``fsck`` checks the parts that all tables have: manifests, lists, files. Tablets in files and rows
in Bigtable have different defects; ``bigtable_fsck`` checks the latter. Importing Google's libraries
takes a second, so it is done late.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from operator import methodcaller
from typing import TypeGuard

import polars as pl
import pyarrow as pa

from ...policy.components.clocks import COUNT, RightTimes, set_right, wrong_times
from ...policy.components.kinds import KINDS, components_of, kind_of
from ...policy.components.schema import TEXT
from ...web.base.clock import TOLERANCE_MS
from ...web.base.errors import UserError
from ...web.base.wording import format_count
from ..snapshots.commit import CommitTerms, commit
from ..snapshots.manifest import Manifest
from ..snapshots.operations import begin
from ..snapshots.table_clock import date_of, oldest_open
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder
from ..table.bigtable_web_table import BigtableWebTable
from ..table.web_table import TableRows, WebTable
from ..tablets.file_lists import DataFile, load_files
from ..tablets.ranges import Range
from ..tablets.resolve import Resolution, Resolved
from ..tablets.tablets import ROW_NUMBER, Tablet, tablets, with_number
from .fsck import Problem, Rows, files_to_check
from .repair import Repair, repair

_KEYS = with_number(pa.schema([("key", TEXT)]))
CLOCK_PROBLEM = "clock"


def _tablet_problems(
    table: TableRows, manifest: Manifest, broken: set[str], quick: bool
) -> Iterator[Problem]:
    """Finds inconsistent tablets whose files are undamaged.

    Args:
        table: The table.
        manifest: The snapshot.
        broken: Paths of damaged or missing files; their tablets are skipped.
        quick: Whether to skip reading runs.
    """
    in_tablets = {
        n: component for n, component in manifest.components.items() if kind_of(n).in_tablets
    }
    for name, files in files_to_check(table, in_tablets):
        yield from _check_overlaps(name, files)
        for tablet in tablets(files) if not quick else ():
            if tablet.runs and not broken.intersection(tablet.paths):
                problem = _check_runs(table, name, tablet)
                yield from [problem] if problem else []


def _check_overlaps(component: str, files: list[DataFile]) -> Iterator[Problem]:
    """Finds tablets whose key ranges overlap, and runs without a base."""
    last, previous_path = "", ""
    all_tablets = tablets(files)
    for tablet in all_tablets:
        if tablet.first is None or tablet.last is None:
            continue
        path = tablet.base.path
        if previous_path and tablet.first <= last:
            yield Problem("overlap", path, f"its keys meet those of {previous_path}", component)
        last, previous_path = max(last, tablet.last), path
    whole = {path for tablet in all_tablets for path in tablet.paths}
    for file in files:
        if file.path not in whole:
            text = f"is a run on {file.base}, which is not part of the table"
            yield Problem("run", file.path, text, component)


def _check_runs(root: Folder, component: str, tablet: Tablet) -> Problem | None:
    """Checks that the runs of a tablet match its base and each other; all files are undamaged.

    Args:
        root: The table's folder.
        component: Component of the tablet.
        tablet: The tablet.
    """
    base = tablet.base.path
    with contextlib.suppress(UserError):  # the check of files reports it
        keys = collect(scan([root / base], _KEYS).select("key")).get_column("key")
        for run in tablet.runs:
            rows = collect(scan([root / run.path], _KEYS)).sort(ROW_NUMBER)
            numbers = rows.get_column(ROW_NUMBER)
            changed = rows.filter(numbers < len(keys))
            every = pl.concat([keys, rows.slice(len(changed)).get_column("key")])
            text = ""
            if not _follows(numbers, len(keys), run.fresh or 0):
                text = f"does not number its rows as {base} and older runs do"
            elif not changed.get_column("key").equals(keys.gather(changed.get_column(ROW_NUMBER))):
                text = f"has other keys than the rows of {base} that it replaces"
            elif every.n_unique() < len(every):
                text = f"has rows as new that {base} or older runs have"
            if text:
                return Problem("run", run.path, text, component)
            keys = every
    return None


def _follows(numbers: pl.Series, base_rows: int, fresh: int) -> bool:
    """Returns whether the numbers of a run are valid: old rows first, then new rows."""
    if numbers.null_count() or numbers.n_unique() < len(numbers):
        return False
    return numbers.filter(numbers >= base_rows).to_list() == list(
        range(base_rows, base_rows + fresh)
    )


def _has_rows(table: WebTable) -> TypeGuard[BigtableWebTable]:
    """Returns whether a table has rows in Bigtable; only those of its newest snapshot are checked."""
    return isinstance(table, BigtableWebTable)


def finish_commit(table: WebTable, drop: bool) -> int | None:
    """Finishes an interrupted commit, and restores missing parts of its record.

    Args:
        table: The table.
        drop: Whether to leave out files of changes that cannot be read.

    Returns:
        Number of the snapshot that was finished, or None.
    """
    if not _has_rows(table):
        return None
    from .bigtable_repair import settle

    return settle(table, drop)


def can_check(table: WebTable, snapshot: int) -> bool:
    """Returns whether the rows of a snapshot can be checked."""
    return not _has_rows(table) or snapshot >= table.latest_snapshot()


def check_rows(
    table: WebTable, manifest: Manifest, broken: set[str], quick: bool, threads: int
) -> Rows:
    """Checks the rows of a snapshot.

    Args:
        table: The table.
        manifest: The snapshot.
        broken: Paths of files known to be broken.
        quick: Whether to skip reading the rows.
        threads: Number of ranges to read at a time.
    """
    in_files = tuple(_tablet_problems(table, manifest, broken, quick))
    if not _has_rows(table):
        return Rows(in_files)
    from .bigtable_fsck import check_cells

    rows = check_cells(table, manifest, quick, threads)
    return dataclasses.replace(rows, problems=rows.problems + in_files)


def repair_table(
    table: WebTable,
    operation: str,
    snapshot: int,
    rows: Rows,
    drop: Mapping[str, frozenset[str]] | None,
) -> Repair:
    """Makes a new snapshot without damage.

    Args:
        table: The table.
        operation: Id of this operation.
        snapshot: Number of the snapshot that was checked.
        rows: The result of checking its rows.
        drop: Paths of data files to leave out, by component; None also keeps damaged rows.
    """
    if not _has_rows(table):
        return repair(table, operation, drop or {})
    from .bigtable_repair import repair_rows

    return repair_rows(table, operation, snapshot, rows, drop)


def check_clock(
    table: WebTable, manifest: Manifest, right: RightTimes, quick: bool
) -> Iterator[Problem]:
    """Finds impossible times: of the manifest, of batches, and of rows.

    Args:
        table: The table.
        manifest: The snapshot.
        right: Which times are right.
        quick: Whether to skip reading the rows.
    """
    late, says = right.now + TOLERANCE_MS, f"the clock says {date_of(right.now)}"
    if manifest.latest_time > late:
        text = f"{date_of(manifest.latest_time)} has counted as now, {says}"
        yield Problem(CLOCK_PROBLEM, table.record_name(manifest.snapshot), text)
    for name, batch in manifest.batches.items():
        if batch.created > late:
            text = f"was made at {date_of(batch.created)}, {says}"
            yield Problem(CLOCK_PROBLEM, f"batches/{name}", text)
    if not quick:
        for component, tablet, keys in _wrong_rows(table, manifest, right):
            text = f"{format_count(len(keys), 'rows')} of {component} with times that cannot be, {says}"
            yield Problem(CLOCK_PROBLEM, tablet.base.path, text)


def _wrong_rows(
    table: TableRows, manifest: Manifest, right: RightTimes
) -> Iterator[tuple[str, Tablet, pl.DataFrame]]:
    """Yields (component, tablet, keys of its rows with impossible times)."""
    table = table.at(manifest.snapshot)
    for name in _with_times(manifest):
        wrong = wrong_times(kind_of(name).columns, right.now, right.options)
        with contextlib.suppress(UserError):  # other checks report damage
            for tablet in tablets(load_files(table, manifest.components.get(name))):
                with contextlib.suppress(UserError):
                    keys = table.read(name, [tablet], ["key"], methodcaller("filter", wrong))
                    if len(keys):
                        yield name, tablet, keys


def _with_times(manifest: Manifest) -> list[str]:
    """Returns the components in tablets whose rows have times."""
    kinds = [kind for kind in KINDS.values() if kind.in_tablets and kind.columns.times]
    return [name for kind in kinds for name in components_of(kind, manifest.components)]


def repair_clock(address: str, operation: str, right_at: Callable[[int], RightTimes]) -> Repair:
    """Makes a snapshot in which no row has an impossible time.

    Args:
        address: The address of the table.
        operation: Id of this operation.
        right_at: Returns which times are right at a time, ms.

    Raises:
        ConflictError: Another operation has changed rows during the repair.
    """
    pinned = begin(address, "fsck", operation)
    base = pinned.manifest()
    since = oldest_open(base, pinned.now)
    right = right_at(pinned.now)._replace(since=since)
    written = [
        part
        for name, tablet, keys in _wrong_rows(pinned.table, base, right)
        for how in [_resolution(name, tablet, right, pinned.snapshot + 1)]
        for part in pinned.table.resolve(how, keys)
    ]
    manifest = commit(
        pinned, written, CommitTerms(reads=frozenset(_with_times(base)), past=Manifest())
    )
    return Repair(manifest, base.snapshot, rows=manifest.counts)


def _resolution(name: str, tablet: Tablet, right: RightTimes, order: int) -> Resolution:
    columns = kind_of(name).columns

    def correct(rows: pl.DataFrame, changes: pl.DataFrame) -> Resolved:
        fixed, number = set_right(columns, rows, right)
        return Resolved(fixed, counts={COUNT: number})

    return Resolution(name, Range(None, None, tablet), correct, order=order)
