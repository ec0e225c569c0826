"""What all interfaces of a table have: its files, and where they are."""

import abc
from pathlib import PurePosixPath
from typing import ClassVar

from ..storage.places import Place


class TableFiles(abc.ABC):
    """The files of a table; ``table / name`` is the place of one.

    Tables at the same address are equal, so a table can be the key of a cache. It can be
    pickled. ``str(table)`` is the address.
    """

    # Whether lists have ranges of rows, besides files.
    in_rows: ClassVar[bool] = False

    def __truediv__(self, name: str | PurePosixPath) -> Place:
        return self.files / name

    @property
    @abc.abstractmethod
    def files(self) -> Place:
        """The place of the table's files."""

    def worker_address(self) -> str:
        """Returns the address in a form that is valid on workers and in another working folder."""
        return str(self)

    @abc.abstractmethod
    def why_unshared(self) -> str:
        """Returns why workers elsewhere may not find the files, for an error; empty if they do."""
