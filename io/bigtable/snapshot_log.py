"""Commits snapshots of a table in Bigtable, with a redo log in one row.

The row ``\\0manifest`` holds the number of the newest snapshot, the id of the attempt
that made it, and whether its changes are still being applied. A commit takes these steps:

1. *Write*: the changes (complete new rows) are in immutable files.
2. *Propose*: one CheckAndMutateRow writes the next number, an id of this attempt and
   the files to apply into the manifest row, if this row has not changed since it was read.
3. *Apply*: the rows are written as cells with the timestamp of the snapshot.
4. *Finish*: the record of the snapshot is written into a row of its own, in the history.
   Then another CheckAndMutateRow marks the snapshot as applied.

If an earlier commit is unfinished, the next commit rolls it forward first: it repeats
steps 3 and 4 with the same cells and timestamps. A reader does not wait: it pins the
snapshot before. Late steps of a worker that is believed dead change nothing.
"""

import dataclasses
import functools
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ...web.base.clock import now_ms
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..disk.table_names import checked_name
from ..storage.file_errors import SnapshotTooOld, note_address
from ..storage.parquet_files import row_groups
from ..storage.place_addresses import place_of, root_at
from ..storage.places import Place
from ..tablets.checksums import verify_bytes
from .address import BigtableAddress, parse_address
from .cell_layout import cell_kind
from .cells import TOMBSTONE, encode
from .client import BigtableTable, connect
from .own_rows import (
    HEAD_FORMAT,
    SWAP_ATTEMPTS,
    Cells,
    ManifestHead,
    OwnRows,
    Settings,
    head_of,
    new_head,
    parsed_cell,
)
from .request_parts import VERSIONS

HEAD_ROW = b"\0manifest"
_HISTORY = b"\0snapshot/"
_COMMIT, _RECORD, _REDO, _SETTINGS = b"commit", b"record", b"redo", b"settings"
_OLDEST = b"oldest"


@dataclass(frozen=True)
class ChangedFile:
    """An immutable file of changes.

    Attributes:
        component: A component in rows.
        path: Path relative to the place of the table's files.
        deleted: Whether its rows are to be deleted; then only keys matter.
        lost: Whether the file is unreadable and a repair has left it out.
        rows: Number of its rows; None if unknown.
        crc32: Its checksum; None if unknown.
    """

    component: str
    path: str
    deleted: bool = False
    lost: bool = False
    rows: int | None = None
    crc32: int | None = None


class SnapshotLog:
    """The snapshots of one table.

    Attributes:
        table: The connection.
        files: The place of the table's files.
        rows: The manifest row and the history.
    """

    def __init__(self, table: BigtableTable, files: Place) -> None:
        self.table = table
        self.files = files
        self.rows = OwnRows(table)

    def head(self) -> ManifestHead:
        """Returns the content of the manifest row.

        Raises:
            UserError: There is no web table here, or its format is newer.
        """
        cells = self.rows.get(HEAD_ROW, _COMMIT)
        if _COMMIT not in cells:
            raise UserError(f"no web table at {self.table.address}: nutbeam table create makes it")
        return head_of(cells[_COMMIT])

    def pin(self) -> int:
        """Returns the newest snapshot that can be read."""
        return self.head().pinned_snapshot

    def settings(self) -> Settings:
        """Returns the settings that were chosen when the table was created."""
        self.head()
        value = self.rows.get(HEAD_ROW, _SETTINGS).get(_SETTINGS, b"")
        return parsed_cell(value, lambda record: Settings(record["files"], record["app_profile"]))

    def record(self, snapshot: int) -> bytes:
        """Returns the record of a snapshot; empty for snapshot 0, before the first commit.

        Raises:
            UserError: There is no record, or the snapshot is not finished.
        """
        if snapshot == 0:
            return b""
        cells = self.rows.get(_history_row(snapshot), _RECORD)
        if _RECORD not in cells:
            raise UserError(f"no snapshot {snapshot!r} in {self.table.address}")
        return cells[_RECORD]

    def check_fresh(self, snapshot: int) -> None:
        """Checks that no row of a snapshot has been removed; called after reading rows.

        Raises:
            SnapshotTooOld: Bigtable may have removed versions, because many commits have
                changed rows since; or a purge has erased some.
        """
        newest = self.head()
        if newest.snapshot == snapshot:
            return
        if snapshot < self.oldest():
            raise SnapshotTooOld(
                f"snapshot {snapshot} of {self.table.address} is too old: a purge has erased some of "
                "its rows: run the command again"
            )
        if newest.snapshot - snapshot < VERSIONS:
            return
        then = self._commit_of(snapshot)
        if newest.writes - (then.writes if then is not None else 0) >= VERSIONS:
            raise SnapshotTooOld(
                f"snapshot {snapshot} of {self.table.address} is too old: the table is at "
                f"{newest.snapshot}, and keeps {VERSIONS} versions of a row: run it again"
            )

    def oldest(self) -> int:
        """Returns the oldest snapshot that still has all its rows: no purge has erased any."""
        return int(self.rows.get(HEAD_ROW, _OLDEST).get(_OLDEST, b"0"))

    def give_up(self, oldest: int) -> None:
        """Forbids reading snapshots before the given one, because their rows are being erased."""
        # The number is also the timestamp, so the highest number counts, whatever is written last.
        self.rows.put(HEAD_ROW, {_OLDEST: str(oldest).encode()}, oldest)

    def store(self, snapshot: int, record: bytes, changes: Iterable[ChangedFile]) -> bool:
        """Commits a snapshot and applies its changes.

        Args:
            snapshot: Number of the snapshot: the newest number plus one.
            record: Its manifest.
            changes: Its files of changes; each row is in them at most once.

        Returns:
            False if another commit has made a snapshot with that number; then nothing
            is changed.
        """
        head = self.roll_forward()
        if head.snapshot + 1 != snapshot:
            return False
        proposed = self.propose(head, record, changes, secrets.token_hex(8))
        if proposed is not None:
            self.roll_forward(proposed)
        return proposed is not None

    def propose(
        self, head: ManifestHead, record: bytes, changes: Iterable[ChangedFile], attempt: str
    ) -> ManifestHead | None:
        """Commits the snapshot after ``head`` without applying its changes; ``head`` is finished.

        Returns:
            The new head, or None if another commit was first.
        """
        assert not head.applying
        changes = list(changes)
        now, writes = now_ms(), head.writes + bool(changes)
        new = new_head(head.snapshot + 1, attempt, applying=True, now=now, writes=writes)
        cells = {_COMMIT: new.value, _RECORD: record, _REDO: _redo_of(changes)}
        for _ in range(SWAP_ATTEMPTS):
            if self._swap(head, cells, new.snapshot):
                return new
            there = self.head()
            if there.snapshot >= new.snapshot:
                return new if self._made_by(new.snapshot) == attempt else None
        raise UserError(f"{self.table.address} cannot be committed to: it is changed all the time")

    def changes(self, head: ManifestHead) -> list[ChangedFile]:
        """Returns a snapshot's files of changes if it is not applied yet, lost files included."""
        cells = self.rows.get(HEAD_ROW)
        if cells.get(_COMMIT) != head.value:
            return []  # another process has finished it
        return parsed_cell(
            cells.get(_REDO, b"[]"), lambda records: [_changed_file(record) for record in records]
        )

    def leave_out(self, head: ManifestHead, paths: Collection[str]) -> bool:
        """Marks files of changes as lost, so that ``roll_forward`` skips them.

        Returns:
            False if another process has finished the snapshot.
        """
        changes = self.changes(head)
        noted = [dataclasses.replace(c, lost=c.lost or c.path in paths) for c in changes]
        return self._swap(head, {_REDO: _redo_of(noted)}, head.snapshot)

    def apply(self, change: ChangedFile, snapshot: int) -> int:
        """Applies one file of changes; returns the number of its rows. Can be repeated."""
        kind = cell_kind(change.component)
        number = 0
        for rows in self.rows_of(change):
            cells = encode(rows, kind)
            if change.deleted:
                none = pa.array([TOMBSTONE] * len(cells), pa.large_binary())
                cells = cells.set_column(1, "cell", none)
            self.table.write(kind, cells, snapshot)
            number += len(cells)
        return number

    def rows_of(self, change: ChangedFile) -> Iterator[pa.Table]:
        """Verifies the checksum of a file of changes, then yields its rows."""
        path = self.files / change.path
        verify_bytes(path, change.crc32)
        schema = cell_kind(change.component).schema
        yield from row_groups(path, schema, ("key",) if change.deleted else None)

    def finish(self, head: ManifestHead) -> ManifestHead:
        """Marks a snapshot as applied, when all its files are applied; returns the new head.

        If another process was faster, it returns the present head.
        """
        done = new_head(head.snapshot, head.id, applying=False, now=head.time, writes=head.writes)
        cells = self.rows.get(HEAD_ROW)
        if cells.get(_COMMIT) == head.value:
            history = {_COMMIT: done.value, _RECORD: cells[_RECORD]}
            self.rows.put(_history_row(head.snapshot), history, head.snapshot)
            if self._swap(head, {_COMMIT: done.value}, head.snapshot):
                return done
        return self.head()

    def _swap(self, head: ManifestHead, cells: Cells, snapshot: int) -> bool:
        """Writes cells of the manifest row if its content is still ``head``."""
        return self.rows.swap(HEAD_ROW, _COMMIT, head.value, cells, snapshot)

    def record_again(self, head: ManifestHead) -> None:
        """Restores the newest snapshot in the history from the manifest row."""
        cells = self.rows.get(HEAD_ROW)
        if cells.get(_COMMIT) == head.value and _RECORD in cells and not head.applying:
            history = {name: cells[name] for name in (_COMMIT, _RECORD)}
            self.rows.put(_history_row(head.snapshot), history, head.snapshot)

    def time_again(self, snapshot: int, time: int) -> None:
        """Restores the commit time of a snapshot, ms, in the history.

        The id of its attempt is lost. Its readers may fail with ``SnapshotTooOld`` too early.
        """
        value = new_head(snapshot, "", applying=False, now=time, writes=0).value
        self.rows.put(_history_row(snapshot), {_COMMIT: value}, snapshot)

    def roll_forward(self, head: ManifestHead | None = None) -> ManifestHead:
        """Applies and finishes the newest snapshot if necessary; returns the finished head."""
        head = head or self.head()
        while head.applying:
            for change in self.changes(head):
                if not change.lost:
                    self.apply(change, head.snapshot)
            head = self.finish(head)
        return head

    def create(self, settings: Settings) -> bool:
        """Creates snapshot 0; returns False if the table has snapshots already."""
        value = new_head(0, "", applying=False, now=now_ms(), writes=0).value
        record = {"format": HEAD_FORMAT} | dataclasses.asdict(settings)
        return self.rows.create(HEAD_ROW, {_COMMIT: value, _SETTINGS: json.dumps(record).encode()})

    def snapshots(self) -> list[int]:
        """Returns the numbers of the snapshots in the history, in order."""
        return [int(key.rpartition(b"/")[2]) for key in self.rows.keys(_HISTORY)]

    def forget(self, oldest: int) -> int:
        """Removes older snapshots from the history, never the newest; returns how many."""
        old = [snapshot for snapshot in self.snapshots()[:-1] if snapshot < oldest]
        for snapshot in old:
            self.rows.delete(_history_row(snapshot))
        return len(old)

    def _made_by(self, snapshot: int) -> str:
        """Returns the id of the attempt that made a snapshot."""
        head = self.head()
        commit = head if head.snapshot == snapshot else self._commit_of(snapshot)
        return commit.id if commit is not None else ""

    def _commit_of(self, snapshot: int) -> ManifestHead | None:
        """Returns the head of a snapshot from the history; None for snapshot 0, or if damaged."""
        cells = self.rows.get(_history_row(snapshot), _COMMIT)
        try:
            return head_of(cells[_COMMIT]) if _COMMIT in cells else None
        except UserError:
            return None  # fsck reports it

    def times(self) -> dict[int, int]:
        """Returns the commit times, ms, of the snapshots in the history, in order.

        Snapshots without a known time are left out.
        """
        heads = ((number, self._commit_of(number)) for number in self.snapshots())
        return {number: head.time for number, head in heads if head is not None}


def open_log(address: BigtableAddress | str) -> SnapshotLog:
    """Opens the snapshots of a table, with the table's default application profile.

    Raises:
        UserError: There is no web table.
    """
    address = parse_address(address) if isinstance(address, str) else address
    settings = settings_of_table(address)
    if settings.app_profile and not address.app_profile:
        address = dataclasses.replace(address, app_profile=settings.app_profile)
    return SnapshotLog(connect(address), root_at(settings.files))


@functools.lru_cache(maxsize=16)
def settings_of_table(address: BigtableAddress) -> Settings:
    """Returns the settings of a table; cached, because they never change.

    Raises:
        UserError: There is no web table.
    """
    settings = SnapshotLog(connect(address), place_of(".")).settings()
    # So that errors about its files name the table.
    note_address(place_of(settings.files), str(address))
    return settings


def _changed_file(record: Mapping[str, Any]) -> ChangedFile:
    change = ChangedFile(**record)
    checked_name(change.path)
    return change


def _redo_of(changes: Iterable[ChangedFile]) -> bytes:
    return json.dumps([dataclasses.asdict(change) for change in changes]).encode()


def _history_row(snapshot: int) -> bytes:
    return b"%s%08d" % (_HISTORY, snapshot)
