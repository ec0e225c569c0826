"""Snapshots of a table in Bigtable: a redo log in one row.

The row ``\\0manifest`` says which snapshot is the newest, who made it, and
whether its changes are still being applied. A commit takes these steps:

1. The changes (whole new rows) lie in immutable files.
2. *Propose*: one CheckAndMutateRow on that row, provided that it is exactly as it
   was read: the next number, an id of this attempt, the files to apply.
3. *Apply*: the rows are written as cells with the timestamp of the snapshot.
4. *Finish*: the record of the snapshot goes into a row of its own, the history;
   another CheckAndMutateRow says that nothing is left to apply.

Whoever finds an apply unfinished and wants to commit rolls it forward (3 and 4
again: the same cells at the same timestamps). A reader does not wait: it pins the
snapshot before. Late steps of a worker that is believed dead change nothing.
"""

import dataclasses
import functools
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa

from ...policy.kinds import KINDS
from ...web.base.clock import now_ms
from ...web.base.errors import UserError
from ..storage.errors import SnapshotTooOld
from ..storage.file_errors import note_address
from ..storage.parquet_files import row_groups
from ..storage.places import Place, place_of
from ..tablets.checksums import check_bytes
from .address import BigtableAddress, parse_address
from .cells import CELLS, TOMBSTONE, encode
from .channel import RETRYABLE, gave_up
from .client import BigtableTable, connect
from .limits import VERSIONS
from .manifest_row import FORMAT, Head, Settings, head_of, new_head, parsed
from .own_rows import Cells, OwnRows
from .pace import back_off

HEAD_ROW = b"\0manifest"
_HISTORY = b"\0snapshot/"
_COMMIT, _RECORD, _REDO, _SETTINGS = b"commit", b"record", b"redo", b"settings"
_OLDEST = b"oldest"
_ATTEMPTS = 20

RowsOf = Callable[["Change"], Iterable[pa.Table]]


@dataclasses.dataclass(frozen=True)
class Change:
    """An immutable file of changes.

    Attributes:
        component: ``state`` or ``hosts``.
        path: Below the place of the table's files.
        deleted: Whether the rows are to vanish; then only keys matter.
        lost: Whether nobody can read it, and a repair has left it out.
        rows: How many it has; None where nobody has noted it.
        crc32: Its checksum; None where nobody has noted it.
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
        rows: Where the manifest row and the history are.
        rows_of: Reads a file of changes, as tables of the component's schema.
    """

    def __init__(self, table: BigtableTable, rows_of: RowsOf) -> None:
        self.table = table
        self.rows = OwnRows(table)
        self.rows_of = rows_of

    def head(self) -> Head:
        """Returns what the manifest row says now.

        Raises:
            UserError: There is no web table here, or one of a newer format.
        """
        cells = self.rows.get(HEAD_ROW, _COMMIT)
        if _COMMIT not in cells:
            raise UserError(f"no web table at {self.table.address}: nutbeam table create makes it")
        return head_of(cells[_COMMIT])

    def pin(self) -> int:
        """Returns the newest snapshot that can be read."""
        return self.head().pinned

    def settings(self) -> Settings:
        """Returns what was set when the table was made."""
        self.head()
        value = self.rows.get(HEAD_ROW, _SETTINGS).get(_SETTINGS, b"")
        return parsed(value, lambda found: Settings(found["files"], found["app_profile"]))

    def record(self, snapshot: int) -> bytes:
        """Returns the record of a snapshot; empty for 0, the table before its first commit.

        Raises:
            UserError: There is none, or it is not finished.
        """
        if snapshot == 0:
            return b""
        cells = self.rows.get(_history_row(snapshot), _RECORD)
        if _RECORD not in cells:
            raise UserError(f"no snapshot {snapshot!r} in {self.table.address}")
        return cells[_RECORD]

    def check_fresh(self, snapshot: int) -> None:
        """Sees whether what was read of a snapshot is whole; to be called after reading.

        Raises:
            SnapshotTooOld: So many commits have changed rows since that
                Bigtable may have removed versions of it; or we have erased some.
        """
        newest = self.head()
        if newest.snapshot == snapshot:
            return
        if snapshot < self.oldest():
            raise SnapshotTooOld(
                f"snapshot {snapshot} of {self.table.address} is too old: what a purge took out of "
                "it was erased since: run it again"
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
        """Returns the number of the first snapshot of which nothing was erased."""
        return int(self.rows.get(HEAD_ROW, _OLDEST).get(_OLDEST, b"0"))

    def give_up(self, before: int) -> None:
        """Says that snapshots before one may no longer be read: some of what they show is erased."""
        # By its timestamp the highest number counts, whoever comes last.
        self.rows.put(HEAD_ROW, {_OLDEST: str(before).encode()}, before)

    def store(
        self, snapshot: int, record: bytes, changes: Iterable[Change], attempt: str = ""
    ) -> bool:
        """Commits a snapshot and applies its changes.

        Args:
            snapshot: Its number: one more than that of the newest.
            record: What is to be known of it.
            changes: What is to be written, one row at most once.
            attempt: Id of the attempt; a new one if empty.

        Returns:
            False if somebody else has made a snapshot of that number; nothing is
            changed then.
        """
        attempt = attempt or new_attempt()
        head = self.roll_forward()
        if head.snapshot + 1 != snapshot:
            return head.snapshot >= snapshot and self._made_by(snapshot) == attempt
        proposed = self.propose(head, record, changes, attempt)
        if proposed is None:
            return False
        self.roll_forward(proposed)
        return True

    def propose(
        self, head: Head, record: bytes, changes: Iterable[Change], attempt: str
    ) -> Head | None:
        """Commits the snapshot after ``head``, which is finished; its changes are still to apply.

        Returns:
            The new head, or None if somebody else was first.
        """
        assert not head.applying
        changes = list(changes)
        now, writes = now_ms(), head.writes + bool(changes)
        new = new_head(head.snapshot + 1, attempt, applying=True, now=now, writes=writes)
        redo = json.dumps([dataclasses.asdict(change) for change in changes]).encode()
        cells = {_COMMIT: new.value, _RECORD: record, _REDO: redo}
        for _ in range(_ATTEMPTS):
            if self._swap(head, cells, new.snapshot):
                return new
            there = self.head()
            if there.snapshot >= new.snapshot:
                return new if self._made_by(new.snapshot) == attempt else None
        raise UserError(f"{self.table.address} cannot be committed to: it is changed all the time")

    def changes(self, head: Head) -> list[Change]:
        """Returns the files of a snapshot's changes: those to be applied, and those that are lost."""
        cells = self.rows.get(HEAD_ROW)
        if cells.get(_COMMIT) != head.value:
            return []  # somebody else has finished it
        return parsed(cells.get(_REDO, b"[]"), lambda found: [Change(**change) for change in found])

    def leave_out(self, head: Head, paths: Collection[str]) -> bool:
        """Notes that files of changes are lost: who rolls forward passes over them.

        Returns:
            False if somebody else has finished the snapshot.
        """
        changes = self.changes(head)
        noted = [dataclasses.replace(c, lost=c.lost or c.path in paths) for c in changes]
        redo = json.dumps([dataclasses.asdict(change) for change in noted]).encode()
        return self._swap(head, {_REDO: redo}, head.snapshot)

    def apply(self, change: Change, snapshot: int) -> int:
        """Writes the rows of one file; returns how many. Again, it changes nothing."""
        kind = CELLS[change.component]
        number = 0
        for rows in self.rows_of(change):
            cells = encode(rows, kind)
            if change.deleted:
                none = pa.array([TOMBSTONE] * len(cells), pa.large_binary())
                cells = cells.set_column(1, "cell", none)
            self.table.write(kind, cells, snapshot)
            number += len(cells)
        return number

    def finish(self, head: Head) -> Head:
        """Says that nothing is left to apply of a snapshot; returns the new head.

        To be called when all of its files were applied. If somebody else was
        faster, it returns what they have made.
        """
        done = new_head(head.snapshot, head.id, applying=False, now=head.time, writes=head.writes)
        cells = self.rows.get(HEAD_ROW)
        if cells.get(_COMMIT) == head.value:
            history = {_COMMIT: done.value, _RECORD: cells[_RECORD]}
            self.rows.put(_history_row(head.snapshot), history, head.snapshot)
            if self._swap(head, {_COMMIT: done.value}, head.snapshot):
                return done
        return self.head()

    def _swap(self, head: Head, cells: Cells, snapshot: int) -> bool:
        """Writes cells of the manifest row, provided that it says what was read.

        Where it says something else, that may be what an earlier attempt has written.
        """
        for failed in range(1, _ATTEMPTS + 1):
            try:
                return self.rows.swap(HEAD_ROW, _COMMIT, head.value, cells, snapshot)
            except RETRYABLE as error:
                if failed == _ATTEMPTS:
                    raise gave_up(self.table.address, error) from error
                back_off(failed)
        raise AssertionError

    def record_again(self, head: Head) -> None:
        """Writes what the history says of the newest snapshot again, from the manifest row."""
        cells = self.rows.get(HEAD_ROW)
        if cells.get(_COMMIT) == head.value and _RECORD in cells and not head.applying:
            history = {name: cells[name] for name in (_COMMIT, _RECORD)}
            self.rows.put(_history_row(head.snapshot), history, head.snapshot)

    def time_again(self, snapshot: int, time: int) -> None:
        """Writes when a snapshot was committed, ms, into the history again.

        Who has made it is lost. Its readers may be told too early that it is too old.
        """
        value = new_head(snapshot, "", applying=False, now=time, writes=0).value
        self.rows.put(_history_row(snapshot), {_COMMIT: value}, snapshot)

    def roll_forward(self, head: Head | None = None) -> Head:
        """Applies and finishes what was committed; returns a head that is finished."""
        head = head or self.head()
        while head.applying:
            for change in self.changes(head):
                if not change.lost:
                    self.apply(change, head.snapshot)
            head = self.finish(head)
        return head

    def create(self, settings: Settings) -> bool:
        """Makes snapshot 0; False if the table has snapshots already."""
        value = new_head(0, "", applying=False, now=now_ms(), writes=0).value
        record = {"format": FORMAT} | dataclasses.asdict(settings)
        return self.rows.create(HEAD_ROW, {_COMMIT: value, _SETTINGS: json.dumps(record).encode()})

    def snapshots(self) -> list[int]:
        """Returns the numbers of the snapshots in the history, in order."""
        return [int(key.rpartition(b"/")[2]) for key in self.rows.keys(_HISTORY)]

    def forget(self, before: int) -> int:
        """Removes the records of old snapshots, not the newest, from the history; returns how many."""
        old = [snapshot for snapshot in self.snapshots()[:-1] if snapshot < before]
        for snapshot in old:
            self.rows.delete(_history_row(snapshot))
        return len(old)

    def _made_by(self, snapshot: int) -> str:
        """Returns the id of the attempt that made a snapshot."""
        head = self.head()
        made = head if head.snapshot == snapshot else self._commit_of(snapshot)
        return made.id if made is not None else ""

    def _commit_of(self, snapshot: int) -> Head | None:
        """Returns what the manifest row said of a snapshot, from the history; 0 is not there."""
        cells = self.rows.get(_history_row(snapshot), _COMMIT)
        try:
            return head_of(cells[_COMMIT]) if _COMMIT in cells else None
        except UserError:
            return None  # fsck tells of it

    def times(self) -> dict[int, int]:
        """Returns when each snapshot of the history was committed, ms, as far as that is known.

        The oldest comes first.
        """
        found = ((number, self._commit_of(number)) for number in self.snapshots())
        return {number: head.time for number, head in found if head is not None}


def new_attempt() -> str:
    """Returns an id that nobody else uses."""
    return secrets.token_hex(8)


def open_log(address: BigtableAddress | str) -> SnapshotLog:
    """Returns the snapshots of a table, over the application profile that it was made with.

    Raises:
        UserError: There is no web table.
    """
    address = parse_address(address) if isinstance(address, str) else address
    settings = settings_of(address)
    if settings.app_profile and not address.app_profile:
        address = dataclasses.replace(address, app_profile=settings.app_profile)
    return SnapshotLog(connect(address), rows_in(place_of(settings.files)))


@functools.lru_cache(maxsize=16)
def settings_of(address: BigtableAddress) -> Settings:
    """Returns what was set when a table was made; asked for once, as nobody changes it.

    Raises:
        UserError: There is no web table.
    """
    settings = SnapshotLog(connect(address), rows_in(place_of("."))).settings()
    # Errors about its files name the table.
    note_address(place_of(settings.files), str(address))
    return settings


def rows_in(root: Place) -> RowsOf:
    """Returns a reader of the changes that lie in a folder, or below an address of a store."""
    return functools.partial(_rows_in, root)


def _rows_in(root: Place, change: Change) -> Iterator[pa.Table]:
    schema = KINDS[change.component].schema
    check_bytes(root / change.path, change.crc32)
    yield from row_groups(root / change.path, schema, ("key",) if change.deleted else None)


def _history_row(snapshot: int) -> bytes:
    return b"%s%08d" % (_HISTORY, snapshot)
