"""Checks and repairs of rows, for each kind of table.

``fsck`` checks what all tables have: manifests, lists, files. Tablets in files and rows in Bigtable
break in different ways.
"""

import dataclasses
from collections.abc import Mapping

from ..snapshots.manifest import Manifest
from ..table.bigtable_web_table import BigtableWebTable
from ..table.web_table import WebTable
from .fsck import Rows
from .repair import Repair, repair
from .tablet_fsck import check_tablets


class TableChecks:
    """Checks and repairs the rows of a table: those in files."""

    def __init__(self, table: WebTable) -> None:
        self._table = table

    def finish(self, drop: bool) -> int | None:
        """Finishes a commit that was cut off, and restores missing parts of its record.

        Args:
            drop: Whether to leave out files of changes that cannot be read.

        Returns:
            Number of the snapshot that was finished, or None.
        """
        return None

    def can_check(self, snapshot: int) -> bool:
        """Returns whether the rows of a snapshot are there to be checked."""
        return True

    def check(self, manifest: Manifest, broken: set[str], quick: bool, threads: int) -> Rows:
        """Checks the rows of a snapshot.

        Args:
            manifest: The snapshot.
            broken: Paths of files known to be broken.
            quick: Whether to leave rows unread.
            threads: How many ranges to read at a time.
        """
        return Rows(tuple(check_tablets(self._table, manifest, broken, quick)))

    def repair(
        self,
        operation: str,
        snapshot: int,
        rows: Rows,
        drop: Mapping[str, frozenset[str]] | None,
    ) -> Repair:
        """Makes a snapshot that is whole.

        Args:
            operation: Id of this operation.
            snapshot: Number of the snapshot that was checked.
            rows: The result of checking its rows.
            drop: Paths of data files to leave out, by component; None also keeps damaged rows.
        """
        return repair(self._table, operation, drop or {})


class _BigtableChecks(TableChecks):  # late imports: Google's libraries take a second
    def __init__(self, table: BigtableWebTable) -> None:
        super().__init__(table)
        self._rows = table

    def finish(self, drop: bool) -> int | None:
        from .bigtable_repair import settle

        return settle(self._rows, drop)

    def can_check(self, snapshot: int) -> bool:
        # Rows are as the newest snapshot has them, whatever older ones say.
        return snapshot >= self._rows.latest_snapshot()

    def check(self, manifest: Manifest, broken: set[str], quick: bool, threads: int) -> Rows:
        from .bigtable_fsck import check_rows

        found = check_rows(self._rows, manifest, quick, threads)
        in_files = super().check(manifest, broken, quick, threads).problems
        return dataclasses.replace(found, problems=found.problems + in_files)

    def repair(
        self,
        operation: str,
        snapshot: int,
        rows: Rows,
        drop: Mapping[str, frozenset[str]] | None,
    ) -> Repair:
        from .bigtable_repair import repair

        return repair(self._rows, operation, snapshot, rows, drop)


def checks_of(table: WebTable) -> TableChecks:
    """Returns the checks for a kind of table."""
    return _BigtableChecks(table) if isinstance(table, BigtableWebTable) else TableChecks(table)
