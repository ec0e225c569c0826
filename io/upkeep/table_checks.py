"""Checks and repairs of rows, for each kind of table.

``fsck`` checks the parts that all tables have: manifests, lists, files. Tablets in files and rows
in Bigtable have different defects; ``bigtable_fsck`` checks the latter. Importing Google's libraries
takes a second, so it is done late.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import TypeGuard

import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...policy.components.schema import TEXT
from ...web.base.errors import UserError
from ..snapshots.manifest import Manifest
from ..storage.parquet_files import collect, scan
from ..storage.places import Folder
from ..table.bigtable_web_table import BigtableWebTable
from ..table.web_table import TableRows, WebTable
from ..tablets.file_lists import DataFile
from ..tablets.tablets import ROW_NUMBER, Tablet, tablets, with_number
from .fsck import Problem, Rows, files_to_check
from .repair import Repair, repair

_KEYS = with_number(pa.schema([("key", TEXT)]))


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
