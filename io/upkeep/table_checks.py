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


def checks_of(table: WebTable) -> "TableChecks":
    """Returns the checks and repairs of a table's rows."""
    return BigtableChecks(table) if isinstance(table, BigtableWebTable) else TableChecks(table)


@dataclasses.dataclass(frozen=True)
class TableChecks:
    """Checks and repairs of a table that has all rows in files.

    Attributes:
        table: The table.
    """

    table: WebTable

    def finish_commit(self, drop: bool) -> int | None:
        """Finishes an interrupted commit, and restores missing parts of its record.

        Args:
            drop: Whether to leave out files of changes that cannot be read.

        Returns:
            Number of the snapshot that was finished, or None.
        """
        return None

    def can_check(self, snapshot: int) -> bool:
        """Returns whether the rows of a snapshot can be checked."""
        return True

    def check(self, manifest: Manifest, broken: set[str], quick: bool, threads: int) -> Rows:
        """Checks the rows of a snapshot.

        Args:
            manifest: The snapshot.
            broken: Paths of files known to be broken.
            quick: Whether to skip reading the rows.
            threads: Number of ranges to read at a time.
        """
        return Rows(tuple(tablet_problems(self.table, manifest, broken, quick)))

    def repair(
        self,
        operation: str,
        snapshot: int,
        rows: Rows,
        drop: Mapping[str, frozenset[str]] | None,
    ) -> Repair:
        """Makes a new snapshot without damage.

        Args:
            operation: Id of this operation.
            snapshot: Number of the snapshot that was checked.
            rows: The result of checking its rows.
            drop: Paths of data files to leave out, by component; None also keeps damaged rows.
        """
        return repair(self.table, operation, drop or {})


@dataclasses.dataclass(frozen=True)
class BigtableChecks(TableChecks):
    """The same of a table that has rows in Bigtable, too; only those of its newest snapshot."""

    table: BigtableWebTable

    def finish_commit(self, drop: bool) -> int | None:
        from .bigtable_repair import settle

        return settle(self.table, drop)

    def can_check(self, snapshot: int) -> bool:
        return snapshot >= self.table.latest_snapshot()

    def check(self, manifest: Manifest, broken: set[str], quick: bool, threads: int) -> Rows:
        from .bigtable_fsck import check_cells

        in_files = super().check(manifest, broken, quick, threads).problems
        rows = check_cells(self.table, manifest, quick, threads)
        return dataclasses.replace(rows, problems=rows.problems + in_files)

    def repair(
        self,
        operation: str,
        snapshot: int,
        rows: Rows,
        drop: Mapping[str, frozenset[str]] | None,
    ) -> Repair:
        from .bigtable_repair import repair_rows

        return repair_rows(self.table, operation, snapshot, rows, drop)
