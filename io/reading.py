"""Reads tablets as what they mean: the newest row of each key.

All that shows, checks, exports or purges a component of the table reads it
here, so that there is one place which knows of what files a tablet is made.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from ..policy.schema import COMPONENTS, to_frame
from .files import row_groups
from .manifest import DataFile
from .places import Place

# The components that are kept in tablets; the others are plain lists of files.
TABLETS = ("state", "hosts", "links")


@dataclasses.dataclass(frozen=True)
class Tablet:
    """The files that hold one range of keys: a base."""

    base: DataFile

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files of the tablet."""
        return (self.base,)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all files of the tablet."""
        return tuple(file.path for file in self.files)


def tablets_of(files: Iterable[DataFile]) -> list[Tablet]:
    """Returns the tablets that the live files of a component make up, in key order."""
    return [Tablet(file) for file in files]


def tablet_rows(
    root: Place, component: str, tablet: Tablet, columns: Sequence[str] | None = None
) -> Iterator[pl.DataFrame]:
    """Yields the rows of a tablet in key order, piece by piece.

    Args:
        root: The table's folder.
        component: Name of the component: its schema is what is yielded.
        tablet: Which.
        columns: Which columns; None is all.
    """
    for group in row_groups(root / tablet.base.path, COMPONENTS[component], columns):
        yield to_frame(group)
