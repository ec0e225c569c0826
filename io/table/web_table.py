"""The interface of a web table for jobs, wherever its rows are.

``FolderTable`` keeps rows in files, in a folder or a store. ``BigtableWebTable`` keeps the rows of
state and hosts in Bigtable, all else in files. ``open_table`` chooses.
"""

import abc
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import polars as pl

from ...policy.kinds import SEED_HOSTS
from ..storage.places import Place
from ..tablets.file_lists import DataFile
from ..tablets.fold import Narrow
from ..tablets.resolve import Resolution
from ..tablets.tablets import Due, Tablet
from ..tablets.written import Written
from .edits import Edit, Edited


class WebTable(abc.ABC):
    """A web table; ``table / name`` is the place of one of its files.

    Equal tables are at the same address, so a table is the key of a cache, and it is pickled.
    ``str(table)`` is the address.
    """

    def __truediv__(self, name: str | PurePosixPath) -> Place:
        return self.files / name

    @property
    @abc.abstractmethod
    def files(self) -> Place:
        """Where the files of the table are."""

    @property
    def seed_component(self) -> str:
        """Component whose files name the hosts of seeds."""
        return "hosts" if self.in_files("hosts") else SEED_HOSTS

    def at(self, snapshot: int) -> "WebTable":
        """Returns the table whose rows are read as a snapshot has them."""
        return self

    def in_files(self, component: str) -> bool:
        """Returns whether the list of a component names files; else it names ranges of rows."""
        return True

    @abc.abstractmethod
    def check_place(self) -> None:
        """Refuses a place that has no web table and cannot have one.

        Raises:
            UsageError: It is a file, or a folder with something else in it.
            Unavailable: The store does not answer.
            UserError: The rows would be in Bigtable, and no table was created there.
        """

    @abc.abstractmethod
    def why_empty(self) -> str:
        """Returns why the table has no snapshot, and what to do, for an error."""

    # Snapshots.

    @abc.abstractmethod
    def snapshots(self) -> list[int]:
        """Returns the numbers of the snapshots that have a record, in order.

        Raises:
            UserError: They cannot be listed.
        """

    @abc.abstractmethod
    def latest_snapshot(self) -> int:
        """Returns the number of the newest snapshot that can be read, 0 where there is none."""

    def begun_snapshot(self) -> int:
        """Returns the number of the newest snapshot, its commit finished or not."""
        return self.latest_snapshot()

    def settled_snapshot(self) -> int:
        """Finishes a commit that was cut off; returns the number of the newest snapshot.

        Jobs that change the table call it: what such a commit changes cannot be read before.
        """
        return self.latest_snapshot()

    @abc.abstractmethod
    def record(self, snapshot: int) -> bytes:
        """Returns the record of a snapshot: its manifest, as JSON.

        Raises:
            UserError: There is none.
        """

    @abc.abstractmethod
    def record_version(self, snapshot: int, reader: Hashable = None) -> Hashable:
        """Returns a value that differs where the record may differ; None is not known.

        Args:
            snapshot: Number of the snapshot.
            reader: An operation or export that has pinned the snapshot, if one reads it.
        """

    @abc.abstractmethod
    def record_name(self, snapshot: int) -> str:
        """Returns the name of a record below the table."""

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
            changes: Files of changes, by component: those of rows are applied. Files of
                other components are in the lists that the record names.

        Returns:
            False if another commit has taken the number.
        """

    def made_snapshots(self) -> list[int]:
        """Returns the numbers of snapshots known to be made, even where their records are lost."""
        return []

    def is_made(self, snapshot: int) -> bool:
        """Returns whether a snapshot is known to be made, even where its record is lost."""
        return False

    @abc.abstractmethod
    def commit_times(self) -> list[tuple[int, float]]:
        """Returns (number, when it was committed, s) of the snapshots, oldest first."""

    @abc.abstractmethod
    def written_at(self, snapshot: int, lists: Collection[str]) -> float:
        """Returns when a snapshot was committed, s, by the clock of the store that has the files.

        Args:
            snapshot: Its number.
            lists: Paths of the file lists that it names.
        """

    @abc.abstractmethod
    def forget_snapshots(self, before: int) -> tuple[int, int]:
        """Removes the records of snapshots before one; returns (how many, bytes)."""

    # Rows.

    @abc.abstractmethod
    def read(
        self,
        component: str,
        some: Sequence[Tablet],
        columns: Sequence[str],
        narrow: Narrow | None = None,
        due: Due | None = None,
    ) -> pl.DataFrame:
        """Returns rows of tablets, in any order.

        Args:
            component: ``state`` or ``hosts``.
            some: Tablets.
            columns: Which columns.
            narrow: Filters rows, each by itself; it sees all columns.
            due: The due times that ``narrow`` lets pass; other rows need not be received.

        Raises:
            UserError: A file is missing or damaged.
            SnapshotTooOld: The table does not have all rows of the snapshot any more.
        """

    @abc.abstractmethod
    def scan(self, component: str, tablet: Tablet) -> Iterator[pl.DataFrame]:
        """Yields all rows of a tablet in key order, piece by piece; raises as ``read`` does."""

    @abc.abstractmethod
    def find(self, component: str, known: Sequence[Tablet], keys: pl.Series) -> pl.DataFrame:
        """Returns the rows of some keys.

        Args:
            component: ``state`` or ``hosts``.
            known: All of its tablets; those are read that may hold a key.
            keys: Sought keys.
        """

    @abc.abstractmethod
    def find_in_pieces(
        self, component: str, known: Sequence[Tablet], keys: pl.Series
    ) -> Iterator[pl.DataFrame]:
        """Yields rows of some keys in bounded pieces: of a key, the last row counts; see ``find``."""

    def may_have_values(self, tablet: Tablet, column: str) -> bool:
        """Returns whether a row of a tablet may have a value in a column that few rows have."""
        return True

    @abc.abstractmethod
    def may_have_due(self, tablet: Tablet, due: Due) -> bool:
        """Returns whether a row of a tablet of the state may be due."""

    @abc.abstractmethod
    def resting_hosts(self, known: tuple[DataFile, ...], now: int, keys: pl.Series) -> pl.Series:
        """Returns the hosts (reversed) that must not get requests before a time after ``now`` (ms).

        Args:
            known: Live files of the host table.
            now: ms.
            keys: Of URLs. Their hosts count; others may be among those returned.
        """

    @abc.abstractmethod
    def resolve(self, how: Resolution, changes: pl.DataFrame) -> Iterator[Written]:
        """Resolves the changes of one range, and writes what they change; see ``apply_changes``."""

    @abc.abstractmethod
    def load(self, component: str, frames: Iterable[pl.DataFrame]) -> Iterator[Written]:
        """Writes rows, in key order, of a component that has none."""

    @abc.abstractmethod
    def files_after(
        self, component: str, known: Sequence[DataFile], written: Sequence[Written]
    ) -> list[DataFile]:
        """Returns the list of a component after a commit.

        Args:
            component: Its name.
            known: Its list before.
            written: Files that were written.

        Raises:
            ConflictError: A file that was replaced, or the base of a run, is gone.
        """

    def way_back(self, component: str, known: Sequence[Tablet], to: int) -> list[DataFile]:
        """Writes files of changes that make rows as an older snapshot has them; see ``store``.

        Components in files need none: the list of the older snapshot names their files.

        Raises:
            SnapshotTooOld: The table does not have all rows of that snapshot any more.
        """
        return []

    # Takedown.

    @abc.abstractmethod
    def edit(self, component: str, tablet: Tablet, edit: Edit) -> Iterator[Written]:
        """Writes an edited tablet, permanently; nothing where the edit changes nothing.

        Args:
            component: Any component.
            tablet: The tablet; of a component that is not in tablets, one of its files.
            edit: Takes rows out, or changes them.
        """

    @abc.abstractmethod
    def edit_again(
        self, component: str, edit: Edit, before: Edited, now: Sequence[Tablet]
    ) -> Iterator[Written]:
        """Edits a component that was edited in an older snapshot; reads only what has changed since.

        Args:
            component: Any component.
            edit: Takes rows out, or changes them.
            before: The component as it was edited.
            now: Its tablets now.
        """

    def needed_files(self) -> set[str]:
        """Returns the paths of files that no snapshot names and that the table still needs."""
        return set()

    @abc.abstractmethod
    def erase(self, path: Place, oldest: int) -> None:
        """Removes the older versions of edited rows that a file names; most files name none.

        Args:
            path: A file that is about to be deleted.
            oldest: Number of the oldest snapshot that can be read.
        """
