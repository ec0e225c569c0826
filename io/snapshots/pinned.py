"""Readers of one snapshot of a table, whatever is committed meanwhile."""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import ClassVar

import polars as pl

from ...policy.components.kinds import kind_of
from ...policy.components.schema import empty
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..storage.file_errors import MissingFile, PurgedMeanwhile
from ..table.opening import open_table
from ..table.web_table import WebTable
from ..tablets.file_lists import DataFile, load_files
from ..tablets.tablets import tablets
from .lineage import purged_since
from .manifest import Manifest, check_kept, load_manifest


class Pinned:
    """A reader of one snapshot of a table: an operation, or an export.

    Attributes:
        address: The address of the table.
        snapshot: Number of the snapshot.
        is_unique: Whether no other reader is equal to it, not even after the table was made again.
    """

    address: str
    snapshot: int
    is_unique: ClassVar[bool] = False

    @property
    def table(self) -> WebTable:
        """The table, with its rows as of the snapshot."""
        return _table_at(self.address, self.snapshot)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Raises the cause if a file is missing: an expired snapshot, or a purge.

        A purge also deletes files that are being written, because their rows may be purged ones.
        """
        try:
            yield
        except UserError as error:
            check_kept(self.table, self.snapshot)
            if isinstance(error, MissingFile) and purged_since(self.table, self.snapshot):
                self.note_purge()
                raise PurgedMeanwhile(
                    f"a purge has deleted data of snapshot {self.snapshot}, which this job reads: "
                    "run it again"
                ) from error
            raise

    def note_purge(self) -> None:
        """Notes that a purge has deleted data which this reader needs."""

    def manifest(self) -> Manifest:
        """Returns the manifest of the snapshot."""
        return load_manifest(self.table, self.snapshot, self)

    def files(self, component: str) -> list[DataFile]:
        """Returns the live files of a component in the snapshot."""
        with self.reading():
            return load_files(self.table, self.manifest().components.get(component))

    def find_rows(
        self, component: str, keys: pl.Series, columns: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Returns the rows of some keys, see ``TableRows.find``; without keys it reads nothing."""
        if not len(keys):
            no_rows = empty(kind_of(component).schema)
            return no_rows if columns is None else no_rows.select(columns)
        return self.table.find(component, tablets(self.files(component)), keys, columns)


@functools.lru_cache(maxsize=16)
def _table_at(address: str, snapshot: int) -> WebTable:
    """Returns a table with its rows as of a snapshot; each process opens it once."""
    return open_table(address).at(snapshot)


@dataclass(frozen=True)
class Snapshot(Pinned):
    """A snapshot that is read in one process."""

    address: str
    snapshot: int
