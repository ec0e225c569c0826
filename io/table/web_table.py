"""The interface of a web table; jobs use it for all kinds of tables.

It is three interfaces in one, so that a function can demand only what it uses: ``TableSnapshots``,
``TableRows`` and ``TableTakedown``. ``FolderTable`` keeps rows in files, in a folder or a store.
``BigtableWebTable`` keeps in Bigtable what ``policy/components/kinds.py`` declares to be in rows,
such as the state, and everything else in files. ``open_table`` chooses the class.
"""

import abc
from collections.abc import Iterator, Sequence

from ..storage.places import Place
from ..tablets.tablets import Tablet
from ..tablets.written import Written
from .edits import Edit, Edited
from .table_rows import TableRows
from .table_snapshots import TableFiles, TableSnapshots


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
