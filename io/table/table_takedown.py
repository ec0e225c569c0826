"""The takedown of rows: removing them from a table permanently."""

import abc
from collections.abc import Iterator, Sequence

from ..storage.places import Place
from ..tablets.tablets import Tablet
from ..tablets.written import Written
from .edits import Edit, Edited
from .table_files import TableFiles


class TableTakedown(TableFiles):
    """Edits rows permanently, and erases their older versions."""

    @abc.abstractmethod
    def edit(self, component: str, tablet: Tablet, edit: Edit) -> Iterator[Written]:
        """Edits a tablet permanently and writes the result; writes nothing if nothing changes.

        Args:
            component: Any component.
            tablet: The tablet. If the component is not in tablets, it stands for a single file.
            edit: Removes or changes rows.
        """

    @abc.abstractmethod
    def edit_again(
        self, component: str, edit: Edit, before: Edited, now: Sequence[Tablet]
    ) -> Iterator[Written]:
        """Edits again a component that was edited in an older snapshot; reads only later changes.

        Args:
            component: Any component.
            edit: Removes or changes rows.
            before: The result of the earlier edit.
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
