"""Checks and repairs of rows, for each kind of table.

``fsck`` checks the parts that all tables have: manifests, lists, files. Tablets in files and rows
in Bigtable have different defects. Importing Google's libraries takes a second, so it is done late.
"""

import dataclasses
from collections.abc import Mapping

from ..snapshots.manifest import Manifest
from ..table.bigtable_web_table import BigtableWebTable
from ..table.web_table import WebTable
from .fsck import Rows
from .repair import Repair, repair
from .tablet_fsck import tablet_problems


def _in_bigtable(table: WebTable) -> BigtableWebTable | None:
    return table if isinstance(table, BigtableWebTable) else None


def finish_commit(table: WebTable, drop: bool) -> int | None:
    """Finishes an interrupted commit, and restores missing parts of its record.

    Args:
        table: The table.
        drop: Whether to leave out files of changes that cannot be read.

    Returns:
        Number of the snapshot that was finished, or None.
    """
    if (rows := _in_bigtable(table)) is None:
        return None
    from .bigtable_repair import settle

    return settle(rows, drop)


def can_check_rows(table: WebTable, snapshot: int) -> bool:
    """Returns whether a snapshot's rows can be checked: in Bigtable, only those of the newest."""
    return _in_bigtable(table) is None or snapshot >= table.latest_snapshot()


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
    in_files = tuple(tablet_problems(table, manifest, broken, quick))
    if (rows := _in_bigtable(table)) is None:
        return Rows(in_files)
    from .bigtable_fsck import check_cells

    found = check_cells(rows, manifest, quick, threads)
    return dataclasses.replace(found, problems=found.problems + in_files)


def repair_table(
    table: WebTable,
    operation: str,
    snapshot: int,
    found: Rows,
    drop: Mapping[str, frozenset[str]] | None,
) -> Repair:
    """Makes a new snapshot without damage.

    Args:
        table: The table.
        operation: Id of this operation.
        snapshot: Number of the snapshot that was checked.
        found: The result of checking its rows.
        drop: Paths of data files to leave out, by component; None also keeps damaged rows.
    """
    if (rows := _in_bigtable(table)) is None:
        return repair(table, operation, drop or {})
    from .bigtable_repair import repair_rows

    return repair_rows(rows, operation, snapshot, found, drop)
