"""The files of a table, and its snapshots: their records, and commits."""

import abc
from collections.abc import Collection, Hashable, Iterable, Mapping

from ..tablets.file_lists import DataFile, TableFiles


class TableSnapshots(TableFiles):
    """Lists, reads, commits and forgets the snapshots of a table."""

    @abc.abstractmethod
    def check_place(self) -> None:
        """Checks that the place has a web table, or that one can be created there.

        Raises:
            UsageError: The place is a file, or a folder with other content.
            Unavailable: The store does not answer.
            UserError: The rows would be in Bigtable, and no table was created there.
        """

    @abc.abstractmethod
    def why_empty(self) -> str:
        """Returns the reason why the table has no snapshot, and advice, for an error."""

    @abc.abstractmethod
    def snapshots(self) -> list[int]:
        """Returns the numbers of the snapshots that have a record, in order.

        Raises:
            UserError: The snapshots cannot be listed.
        """

    @abc.abstractmethod
    def latest_snapshot(self) -> int:
        """Returns the number of the newest snapshot that can be read; 0 if there is none."""

    def begun_snapshot(self) -> int:
        """Returns the number of the newest snapshot, even if its commit is not finished."""
        return self.latest_snapshot()

    def settled_snapshot(self) -> int:
        """Finishes an interrupted commit; returns the number of the newest snapshot.

        Jobs that change the table call it first: the changes of an unfinished commit cannot be
        read.
        """
        return self.latest_snapshot()

    @abc.abstractmethod
    def record(self, snapshot: int) -> bytes:
        """Returns the record of a snapshot: its manifest, as JSON.

        Raises:
            UserError: There is no record.
        """

    @abc.abstractmethod
    def record_version(self, snapshot: int, reader: Hashable = None) -> Hashable:
        """Returns a value that changes if the record may have changed; None if unknown.

        Args:
            snapshot: Number of the snapshot.
            reader: The operation or export that has pinned the snapshot, or None.
        """

    def stored_version(self, snapshot: int) -> Hashable:
        """Returns ``record_version`` of a record that was just stored; None if it takes a request."""
        return None

    @abc.abstractmethod
    def record_name(self, snapshot: int) -> str:
        """Returns the name of a record, relative to the table."""

    def record_label(self, snapshot: int) -> str:
        """Returns the name of a record in errors."""
        return f"{self}/{self.record_name(snapshot)}"

    @abc.abstractmethod
    def store(
        self, snapshot: int, record: bytes, changes: Mapping[str, Iterable[DataFile]]
    ) -> bool:
        """Commits a snapshot, unless its number is taken.

        Args:
            snapshot: Its number.
            record: Its record.
            changes: Files of changes, by component. The commit applies those of components
                in rows; files of other components are in the lists that the record names.

        Returns:
            False if another commit has taken the number.
        """

    def made_snapshots(self) -> list[int]:
        """Returns the numbers of snapshots known to be made, even if their records are lost."""
        return []

    @abc.abstractmethod
    def commit_times(self) -> list[tuple[int, float]]:
        """Returns (number, time in s at which its record was stored) of the snapshots, oldest first.

        This is the time of files by the clock of their store, as retention needs it. It is later
        in a copy of a table; see ``commit_times`` of the manifests.
        """

    @abc.abstractmethod
    def written_at(self, snapshot: int, lists: Collection[str]) -> float:
        """Returns a snapshot's commit time, s, by the clock of the store with the table's files.

        Args:
            snapshot: Its number.
            lists: Paths of the file lists that it names.
        """

    @abc.abstractmethod
    def forget_snapshots(self, oldest: int) -> tuple[int, int]:
        """Removes the records of snapshots before ``oldest``; returns (number, bytes)."""
