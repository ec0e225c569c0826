"""Checks and repairs of rows, for each kind of table.

``fsck`` checks what all tables have: manifests, lists, files. Tablets in files and rows in Bigtable
break in different ways.
"""

import abc
import dataclasses
from collections.abc import Mapping

from ..snapshots.manifest import Manifest
from ..table.bigtable_web_table import BigtableWebTable
from ..table.web_table import WebTable
from .fsck import Rows
from .repair import Repair, repair
from .tablet_fsck import check_tablets


class TableChecks(abc.ABC):
    """Checks and repairs the rows of one table."""

    @abc.abstractmethod
    def finish(self, drop: bool) -> int | None:
        """Finishes a commit that was cut off, and restores what its record lacks.

        Args:
            drop: Whether to leave out files of changes that nobody can read.

        Returns:
            Number of the snapshot that was finished, or None.
        """

    @abc.abstractmethod
    def can_check(self, snapshot: int) -> bool:
        """Returns whether the rows of a snapshot are there to be checked."""

    @abc.abstractmethod
    def check(self, manifest: Manifest, broken: set[str], quick: bool, threads: int) -> Rows:
        """Checks the rows of a snapshot.

        Args:
            manifest: The snapshot.
            broken: Paths of files known to be broken.
            quick: Whether to leave rows unread.
            threads: How many ranges to read at a time.
        """

    @abc.abstractmethod
    def repair(
        self,
        operation: str,
        snapshot: int,
        rows: Rows,
        files: Mapping[str, frozenset[str]],
        drop: bool,
    ) -> Repair:
        """Makes a snapshot that is whole.

        Args:
            operation: Id of this operation.
            snapshot: Number of the snapshot that was checked.
            rows: What was found in its rows.
            files: Paths of data files to leave out, by component.
            drop: Whether damaged rows are left out, too.
        """


def checks_of(table: WebTable) -> TableChecks:
    """Returns the checks for a kind of table."""
    if isinstance(table, BigtableWebTable):
        return _RowChecks(table)
    return _FileChecks(table)


@dataclasses.dataclass(frozen=True)
class _FileChecks(TableChecks):
    table: WebTable

    def finish(self, drop: bool) -> int | None:
        return None

    def can_check(self, snapshot: int) -> bool:
        return True

    def check(self, manifest: Manifest, broken: set[str], quick: bool, threads: int) -> Rows:
        return Rows(tuple(check_tablets(self.table, manifest, broken, quick)))

    def repair(
        self,
        operation: str,
        snapshot: int,
        rows: Rows,
        files: Mapping[str, frozenset[str]],
        drop: bool,
    ) -> Repair:
        return repair(self.table, operation, files)


@dataclasses.dataclass(frozen=True)
class _RowChecks(TableChecks):  # late imports: Google's libraries take a second
    table: BigtableWebTable

    def finish(self, drop: bool) -> int | None:
        from .bigtable_repair import settle

        return settle(self.table, drop)

    def can_check(self, snapshot: int) -> bool:
        # Rows are as the newest snapshot has them, whatever older ones say.
        return snapshot >= self.table.latest_snapshot()

    def check(self, manifest: Manifest, broken: set[str], quick: bool, threads: int) -> Rows:
        from .bigtable_fsck import check_rows

        rows = check_rows(self.table, manifest, quick, threads)
        in_files = tuple(check_tablets(self.table, manifest, broken, quick))
        return dataclasses.replace(rows, problems=rows.problems + in_files)

    def repair(
        self,
        operation: str,
        snapshot: int,
        rows: Rows,
        files: Mapping[str, frozenset[str]],
        drop: bool,
    ) -> Repair:
        from .bigtable_repair import repair

        return repair(self.table, operation, snapshot, rows, files, drop)
