"""The interface of a web table; jobs use it for all kinds of tables.

It is three interfaces in one, so that a function can demand only what it uses: ``TableSnapshots``,
``TableRows`` and ``TableTakedown``. ``FolderTable`` keeps rows in files, in a folder or a store.
``BigtableWebTable`` keeps in Bigtable what ``policy/components/kinds.py`` declares to be in rows,
such as the state, and everything else in files. ``open_table`` chooses the class.
"""

import abc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Self

import polars as pl

from ...policy.components.kinds import KINDS, SEED_HOSTS
from ...web.base.errors import UserError
from ..storage.places import Place
from ..tablets.file_lists import Component, DataFile, TableFiles
from ..tablets.resolve import Resolution
from ..tablets.tablets import Due, Narrow, Tablet
from ..tablets.written import Written
from .edits import Edit, Edited
from .table_snapshots import TableSnapshots


class TableRows(TableFiles):
    """Reads and changes the rows of a table, as of a snapshot (``at``).

    Attributes:
        seed_component: Component whose files name the hosts of seeds. All workers of a job read these
            files. It is the host table if that is in files. If the host table is in rows of Bigtable,
            each commit repeats its rows of seeds in files of ``seed_hosts``.
    """

    seed_component: ClassVar[str] = KINDS[SEED_HOSTS].made_from

    def at(self, snapshot: int) -> Self:
        """Returns the same table, with rows read as of a snapshot."""
        return self

    def in_files(self, component: str) -> bool:
        """Returns whether a component is in files; if not, its list has ranges of rows."""
        return True

    def unknown_rows(self, components: Mapping[str, Component]) -> list[str]:
        """Returns the components in rows that only a newer nutbeam declares, of a snapshot's."""
        return []

    def check_rows_known(self, components: Mapping[str, Component], job: str) -> None:
        """Checks that this version can read the components of a snapshot that are in rows.

        Raises:
            UserError: A newer version keeps a component in rows; ``job`` begins the message.
        """
        if unknown := self.unknown_rows(components):
            raise UserError(
                f"{job}: {unknown[0]} belongs to a newer nutbeam, which keeps it in rows that "
                "this one cannot read: upgrade nutbeam"
            )

    def prepare_components(self) -> None:
        """Makes room for each declared component, called when an operation begins.

        Raises:
            UserError: The table lacks it, and this account may not add it.
        """
        return

    @abc.abstractmethod
    def read(
        self,
        component: str,
        tablets_to_read: Sequence[Tablet],
        columns: Sequence[str],
        narrow: Narrow | None = None,
        due: Due | None = None,
    ) -> pl.DataFrame:
        """Returns rows of tablets, in any order.

        Args:
            component: A component in tablets.
            tablets_to_read: The tablets.
            columns: Names of the columns to return.
            narrow: Filters rows, each independently of the others; it gets all columns.
            due: The due times that ``narrow`` accepts, so that other rows need not be read.

        Raises:
            UserError: A file is missing or damaged.
            SnapshotTooOld: The table does not have all rows of the snapshot any more.
        """

    def read_in_frames(
        self, component: str, tablet: Tablet, columns: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        """Yields some columns of all rows of a tablet in bounded frames; raises as ``read``."""
        yield self.read(component, [tablet], columns)

    @abc.abstractmethod
    def scan(self, component: str, tablet: Tablet) -> Iterator[pl.DataFrame]:
        """Yields all rows of a tablet in key order, in frames; raises the errors of ``read``."""

    @abc.abstractmethod
    def find(
        self,
        component: str,
        all_tablets: Sequence[Tablet],
        keys: pl.Series,
        columns: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Returns the rows of some keys.

        Args:
            component: A component in tablets.
            all_tablets: All its tablets; only tablets that may have one of the keys are read.
            keys: The keys to find.
            columns: Names of the columns to return; None for all.
        """

    @abc.abstractmethod
    def find_in_frames(
        self, component: str, all_tablets: Sequence[Tablet], keys: pl.Series, columns: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        """Yields columns of the rows of keys, in bounded frames; see ``find``.

        The last row of a key counts.
        """

    @abc.abstractmethod
    def read_ranges(
        self,
        component: str,
        all_tablets: Sequence[Tablet],
        ranges: Sequence[tuple[str, str]],
        columns: Sequence[str],
    ) -> Iterator[pl.DataFrame]:
        """Yields columns of the rows in ranges of keys, in key order, in frames.

        Other rows may be among them. Raises the errors of ``read``.

        Args:
            component: A component in tablets.
            all_tablets: All its tablets; only parts that may have such rows are read.
            ranges: (first key, first key after it) of each range, in key order.
            columns: Names of the columns to yield, ``key`` among them.
        """

    @abc.abstractmethod
    def changed_since(
        self, component: str, tablet: Tablet, since: int, old_paths: Collection[str]
    ) -> Iterator[tuple[pl.Series, pl.DataFrame]]:
        """Yields the rows of a tablet that may have changed after a snapshot, in frames.

        Args:
            component: A component in tablets.
            tablet: One of its tablets in the snapshot that is read.
            since: Number of the older snapshot.
            old_paths: Paths of the component's files in that snapshot.

        Yields:
            (keys, the rows with these keys). Keys without a row were removed; rows that were
            removed by a new base have no key here.

        Raises:
            SnapshotTooOld: The table does not have all rows of the snapshot any more.
        """

    @abc.abstractmethod
    def changed_tablets(
        self, component: str, old_files: Sequence[DataFile], now: Sequence[DataFile]
    ) -> tuple[list[Tablet], list[tuple[str, str]]]:
        """Compares the list of a component with an older one.

        Args:
            component: A component in tablets.
            old_files: Its list in an older snapshot; empty: all its rows are new.
            now: Its list in the snapshot that is read.

        Returns:
            (the tablets for which ``changed_since`` may yield something, the ranges of keys, both
            ends included, that may have lost rows whose keys it does not yield).
        """

    def columns_with_values(self, tablet: Tablet, columns: Collection[str]) -> set[str]:
        """Returns which of some columns may have values in a tablet; the others have none."""
        return set(columns)

    @abc.abstractmethod
    def may_have_due(self, component: str, tablet: Tablet, due: Due) -> bool:
        """Returns whether a row of a tablet may be due by ``Kind.due``; True without that column."""

    @abc.abstractmethod
    def resting_hosts(
        self,
        component: str,
        live_files: tuple[DataFile, ...],
        now: int,
        hosts: Callable[[], pl.Series],
    ) -> pl.Series:
        """Returns the hosts (reversed) that must not get requests yet at ``now``.

        Args:
            component: The host table.
            live_files: Its live files.
            now: Time in ms.
            hosts: Returns the reversed hosts that are checked; a table that finds all of them at
                once does not call it. The result may have other hosts, too.
        """

    @abc.abstractmethod
    def resolve(self, how: Resolution, changes: pl.DataFrame) -> Iterator[Written]:
        """Resolves the changes of one range, and writes the changed rows; see ``apply_changes``."""

    @abc.abstractmethod
    def load(self, component: str, frames: Iterable[pl.DataFrame]) -> Iterator[Written]:
        """Writes the first rows, in key order, of an empty component."""

    @abc.abstractmethod
    def files_after(
        self, component: str, files_before: Sequence[DataFile], written: Sequence[Written]
    ) -> list[DataFile]:
        """Returns the list of a component after a commit.

        Args:
            component: Name of the component.
            files_before: Its list before the commit.
            written: The new files.

        Raises:
            ConflictError: A file to replace, or the base of a run, is not in the list any more.
        """

    def way_back(self, component: str, all_tablets: Sequence[Tablet], to: int) -> list[DataFile]:
        """Writes files of changes that restore rows to an older snapshot; see ``store``.

        Components in files need no changes: the older snapshot's list has their files.

        Raises:
            SnapshotTooOld: The table does not have all rows of that snapshot any more.
        """
        return []


class TableTakedown(TableFiles):
    """Edits rows permanently, and erases their older versions."""

    @abc.abstractmethod
    def edit(self, component: str, tablet: Tablet, edit: Edit) -> Iterator[Written]:
        """Edits a tablet permanently and writes the result; writes nothing if nothing changes.

        Args:
            component: A component in tablets.
            tablet: The tablet.
            edit: Removes or changes rows.
        """

    @abc.abstractmethod
    def edit_again(
        self, component: str, edit: Edit, earlier: Edited, now: Sequence[Tablet]
    ) -> Iterator[Written]:
        """Edits again a component that was edited in an older snapshot; reads only later changes.

        Args:
            component: A component in tablets.
            edit: Removes or changes rows.
            earlier: The result of the earlier edit.
            now: The component's present tablets.
        """

    def needed_files(self) -> set[str]:
        """Returns the paths of files that the table still needs though no snapshot names them."""
        return set()

    @abc.abstractmethod
    def erase(self, path: Place, oldest: int) -> None:
        """Removes older versions of the edited rows in a file; most files have no such rows.

        Args:
            path: A file that is about to be deleted.
            oldest: Number of the oldest snapshot that can be read.
        """


class WebTable(TableSnapshots, TableRows, TableTakedown):
    """A web table: its snapshots, its rows, and their takedown."""
