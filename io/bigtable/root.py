"""A web table whose state and hosts are rows in Bigtable: what stands where others have a folder.

Nothing here loads Google's libraries before Bigtable is asked for something.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from .address import BigtableAddress

if TYPE_CHECKING:
    import polars as pl

    from ..storage.places import Place
    from ..tablets.file_lists import DataFile
    from ..tablets.tablets import Due, Tablet
    from .changes import Written
    from .snapshot_log import SnapshotLog


@dataclasses.dataclass(frozen=True)
class BigtableRoot:
    """A table in Bigtable; ``root / name`` is the place of one of its files.

    Attributes:
        address: Where its rows are.
        snapshot: Which snapshot's rows are read; None reads none.
    """

    address: BigtableAddress
    snapshot: int | None = None

    def __truediv__(self, name: str | PurePosixPath) -> "Place":
        return self.files / name

    def __str__(self) -> str:
        return str(self.address)

    @property
    def log(self) -> "SnapshotLog":
        """The table's snapshots.

        Raises:
            UserError: There is no web table, or Bigtable cannot be reached.
        """
        from .snapshot_log import open_log

        return open_log(self.address)

    @property
    def files(self) -> "Place":
        """Where all is that is no row; set when the table was made."""
        from ..storage.places import place_of
        from .snapshot_log import settings_of

        return place_of(settings_of(self.address).files)

    def at(self, snapshot: int) -> "BigtableRoot":
        """Returns the same table, as a snapshot has it."""
        return dataclasses.replace(self, snapshot=snapshot)

    def scan(
        self,
        component: str,
        tablet: "Tablet",
        columns: Sequence[str] | None = None,
        due: "Due | None" = None,
    ) -> "Iterator[pl.DataFrame]":
        """Yields the rows of a tablet in key order; see ``bigtable_table.read_range``."""
        from .key_ranges import KeyRange
        from .web_table import read_range

        part = KeyRange(tablet.first, tablet.last)
        return read_range(self.log, component, part, self._pinned, columns, due)

    def has_due(self, tablet: "Tablet", due: "Due") -> bool:
        """Returns whether a tablet of the state has a row that may be due; receives one at most."""
        from .key_ranges import KeyRange
        from .web_table import any_row

        return any_row(self.log, KeyRange(tablet.first, tablet.last), self._pinned, due)

    def find(self, component: str, keys: "pl.Series") -> "pl.DataFrame":
        """Returns the rows of some keys in key order; see ``bigtable_table.find_rows``."""
        from .web_table import find_rows

        return find_rows(self.log, component, keys, self._pinned)

    def resolve(
        self,
        component: str,
        changes: "pl.DataFrame",
        resolver: "Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame]",
    ) -> "Written":
        """Writes what changes do to the rows of their keys as a file; see ``resolve_changes``."""
        from .web_table import resolve_changes

        return resolve_changes(self.log, self.files, component, changes, resolver, self._pinned)

    def samples(self) -> list[tuple[bytes, int]]:
        """Returns (key, bytes before it) of some rows, in key order."""
        return self.log.table.samples()

    def store(
        self, snapshot: int, record: bytes, changes: "Mapping[str, Iterable[DataFile]]"
    ) -> bool:
        """Commits a snapshot, and brings in its files of changes, given by component.

        Returns:
            False if somebody else has made a snapshot of that number.
        """
        from .changes import change_of

        files = [change_of(name, file) for name, some in changes.items() for file in some]
        return self.log.store(snapshot, record, files)

    def check_fresh(self) -> None:
        """Sees whether what was read of the pinned snapshot is whole.

        Raises:
            SnapshotTooOld: Bigtable may have removed versions that it shows.
        """
        self.log.check_fresh(self._pinned)

    def changed_keys(self, component: str, tablet: "Tablet", since: int) -> "Iterator[pl.Series]":
        """Yields the keys of the rows of a tablet that were changed after a snapshot."""
        from .key_ranges import KeyRange
        from .web_table import changed_keys

        return changed_keys(self.log, component, KeyRange(tablet.first, tablet.last), since)

    def way_back(self, component: str, tablet: "Tablet", to: int) -> "Iterator[DataFile]":
        """Writes what makes rows what they were in an older snapshot; yields files of changes.

        Raises:
            SnapshotTooOld: Bigtable may have removed versions that it shows.
        """
        from .key_ranges import KeyRange
        from .web_table import way_back

        part = KeyRange(tablet.first, tablet.last)
        for done in way_back(self.log, self.files, component, part, to):
            if done.file is not None:
                yield done.file

    def erase(self, path: str, oldest: int) -> None:
        """Removes what snapshots before the oldest kept one show of rows that a purge has changed.

        Args:
            path: Of a file below the table; without such rows, nothing is done.
            oldest: Number of that snapshot.
        """
        from .changes import purged_component
        from .web_table import erase_below

        component = purged_component(path)
        if component:
            erase_below(self.log, component, self.files / path, oldest)

    @property
    def _pinned(self) -> int:
        assert self.snapshot is not None
        return self.snapshot
