"""The snapshots of a table in Bigtable; see ``SnapshotLog``.

Google's libraries load slowly, so they are imported only for the first request to Bigtable.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from ...policy.components.kinds import kinds_in_rows
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..bigtable.address import BigtableAddress
from ..storage.files import list_files, names_of_table
from ..storage.place_addresses import root_at
from ..storage.places import Place
from ..tablets.file_lists import DataFile, below
from .table_snapshots import TableSnapshots

if TYPE_CHECKING:
    from ..bigtable.snapshot_log import SnapshotLog


@dataclass(frozen=True)
class BigtableSnapshots(TableSnapshots):
    """The snapshots of a table in Bigtable.

    Attributes:
        address: Address of the table.
    """

    address: BigtableAddress
    in_rows = True

    def __str__(self) -> str:
        return str(self.address)

    @property
    def log(self) -> "SnapshotLog":
        """The snapshots.

        Raises:
            UserError: There is no web table, or Bigtable cannot be reached.
        """
        from ..bigtable.snapshot_log import open_log

        return open_log(self.address)

    @property
    def files(self) -> Place:  # type: ignore[override]
        from ..bigtable.snapshot_log import settings_of_table

        return root_at(settings_of_table(self.address).files)

    def why_unshared(self) -> str:
        local = self.files.needs_shared_path
        return f"the files of {str(self)!r} are in a folder of this machine" if local else ""

    def check_place(self) -> None:
        self.log.head()  # raises an error if there is no table
        names_of_table(self.files, str(self.files))

    def why_empty(self) -> str:
        return f"the web table at {str(self)!r} is empty: inject puts seeds into it"

    def snapshots(self) -> list[int]:
        return self.log.snapshots()

    def latest_snapshot(self) -> int:
        return self.log.pin()

    def begun_snapshot(self) -> int:
        return self.log.head().snapshot

    def settled_snapshot(self) -> int:
        return self.log.roll_forward().snapshot

    def record(self, snapshot: int) -> bytes:
        log = self.log
        try:
            return log.record(snapshot)
        except UserError as error:
            if snapshot > log.pin():
                raise
            label = self.record_label(snapshot)
            raise UserError(f"manifest is missing: {label}: run nutbeam fsck {self}") from error

    def record_version(self, snapshot: int, reader: Hashable = None) -> Hashable:
        return reader  # a table may be created again, but not while it is read

    def record_name(self, snapshot: int) -> str:
        return f"snapshot/{snapshot:08d}"  # in the history, after a zero byte

    def store(
        self, snapshot: int, record: bytes, changes: Mapping[str, Iterable[DataFile]]
    ) -> bool:
        from ..bigtable.stored_rows import change_of

        rows = {name: files for name, files in changes.items() if name in kinds_in_rows()}
        row_changes = [change_of(name, file) for name, files in rows.items() for file in files]
        return self.log.store(snapshot, record, row_changes)

    def commit_times(self) -> list[tuple[int, float]]:
        return [(number, time / 1000) for number, time in self.log.times().items()]

    def written_at(self, snapshot: int, lists: Collection[str]) -> float:
        # The commit comes just after its lists.
        manifest_files = list_files(self / "manifest")
        return max((f.changed for f in manifest_files if below(self, f.path) in lists), default=0.0)

    def forget_snapshots(self, oldest: int) -> tuple[int, int]:
        return self.log.forget(oldest), 0
