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
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from ..policy.schema import COMPONENTS
from ..web.errors import UserError
from .bigtable import BigtableTable, connect
from .bigtable_address import BigtableAddress, parse_address
from .bigtable_cells import CELLS, TOMBSTONE, encode
from .bigtable_channel import RETRYABLE, gave_up
from .bigtable_limits import VERSIONS
from .bigtable_pace import back_off
from .bigtable_rows import OwnRows
from .manifest import SnapshotTooOld
from .parquet_files import row_groups
from .places import Place, place_of

FORMAT = 1
HEAD_ROW = b"\0manifest"
_HISTORY = b"\0snapshot/"
_COMMIT, _RECORD, _REDO, _SETTINGS = b"commit", b"record", b"redo", b"settings"
_ATTEMPTS = 20

RowsOf = Callable[["Change"], Iterable[pa.Table]]


@dataclasses.dataclass(frozen=True)
class Change:
    """An immutable file of changes.

    Attributes:
        component: ``state`` or ``hosts``.
        path: Below the place of the table's files.
        deleted: Whether the rows are to vanish; then only keys matter.
    """

    component: str
    path: str
    deleted: bool = False


@dataclasses.dataclass(frozen=True)
class Head:
    """What the manifest row says.

    Attributes:
        snapshot: The newest snapshot that was committed.
        id: Of the attempt that made it.
        applying: Whether its changes may be missing from some rows.
        value: The cell as it was read.
        time: When it was committed, ms, by the clock of who did.
        writes: How many of the snapshots up to this one have changed rows.
    """

    snapshot: int
    id: str
    applying: bool
    value: bytes
    time: int = 0
    writes: int = 0

    @property
    def pinned(self) -> int:
        """The newest snapshot that can be read."""
        return self.snapshot - 1 if self.applying else self.snapshot


@dataclasses.dataclass(frozen=True)
class Settings:
    """What was set when the table was made.

    Attributes:
        files: Where batches and changes are: a folder or the address of one.
        app_profile: Application profile for all who name none.
    """

    files: str
    app_profile: str = ""


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
        return _head_of(cells[_COMMIT])

    def pin(self) -> int:
        """Returns the newest snapshot that can be read."""
        return self.head().pinned

    def settings(self) -> Settings:
        """Returns what was set when the table was made."""
        self.head()
        found = _parsed(self.rows.get(HEAD_ROW, _SETTINGS)[_SETTINGS])
        return Settings(found["files"], found["app_profile"])

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
                Bigtable may have removed versions of it.
        """
        newest = self.head()
        if newest.snapshot - snapshot < VERSIONS:
            return
        then = self._commit_of(snapshot)
        if newest.writes - (then.writes if then is not None else 0) >= VERSIONS:
            raise SnapshotTooOld(
                f"snapshot {snapshot} of {self.table.address} is too old: the table is at "
                f"{newest.snapshot}, and keeps {VERSIONS} versions of a row: run it again"
            )

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
        now, writes = int(time.time() * 1000), head.writes + bool(changes)
        new = _head(head.snapshot + 1, attempt, applying=True, now=now, writes=writes)
        redo = json.dumps([dataclasses.asdict(change) for change in changes]).encode()
        cells = {_COMMIT: new.value, _RECORD: record, _REDO: redo}
        for failed in range(1, _ATTEMPTS + 1):
            try:
                matched = self.rows.swap(HEAD_ROW, _COMMIT, head.value, cells, new.snapshot)
            except RETRYABLE as error:
                # It may have come in or not: the row says which.
                if failed == _ATTEMPTS:
                    raise gave_up(self.table.address, error) from error
                back_off(failed)
                matched = False
            if matched:
                return new
            there = self.head()
            if there.snapshot >= new.snapshot:
                return new if self._made_by(new.snapshot) == attempt else None
        raise UserError(f"{self.table.address} cannot be committed to: it is changed all the time")

    def changes(self, head: Head) -> list[Change]:
        """Returns the files that are to be applied."""
        cells = self.rows.get(HEAD_ROW)
        if _head_of(cells[_COMMIT]).value != head.value:
            return []  # somebody else has finished it
        return [Change(**change) for change in _parsed(cells[_REDO])]

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
        done = _head(head.snapshot, head.id, applying=False, now=head.time, writes=head.writes)
        cells = self.rows.get(HEAD_ROW)
        if cells.get(_COMMIT) == head.value:
            history = {_COMMIT: done.value, _RECORD: cells[_RECORD]}
            self.rows.put(_history_row(head.snapshot), history, head.snapshot)
            for failed in range(1, _ATTEMPTS + 1):
                try:
                    if self.rows.swap(
                        HEAD_ROW, _COMMIT, head.value, {_COMMIT: done.value}, head.snapshot
                    ):
                        return done
                    break
                except RETRYABLE as error:
                    if failed == _ATTEMPTS:
                        raise gave_up(self.table.address, error) from error
                    back_off(failed)
        return self.head()

    def roll_forward(self, head: Head | None = None) -> Head:
        """Applies and finishes what was committed; returns a head that is finished."""
        head = head or self.head()
        while head.applying:
            for change in self.changes(head):
                self.apply(change, head.snapshot)
            head = self.finish(head)
        return head

    def create(self, settings: Settings) -> bool:
        """Makes snapshot 0; False if the table has snapshots already."""
        value = _head(0, "", applying=False, now=int(time.time() * 1000), writes=0).value
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
        return _head_of(cells[_COMMIT]) if _COMMIT in cells else None

    def times(self) -> dict[int, int]:
        """Returns when each snapshot of the history was committed, ms, oldest first."""
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
    return SnapshotLog(connect(address), rows_in(place_of("."))).settings()


def rows_in(root: Place) -> RowsOf:
    """Returns a reader of the changes that lie in a folder, or below an address of a store."""
    return functools.partial(_rows_in, root)


def _rows_in(root: Place, change: Change) -> Iterator[pa.Table]:
    schema = COMPONENTS[change.component]
    return row_groups(root / change.path, schema, ("key",) if change.deleted else None)


def _history_row(snapshot: int) -> bytes:
    return b"%s%08d" % (_HISTORY, snapshot)


def _head(snapshot: int, attempt: str, *, applying: bool, now: int, writes: int) -> Head:
    record = {
        "format": FORMAT, "snapshot": snapshot, "id": attempt, "applying": applying,
        "time": now, "writes": writes,
    }  # fmt: skip
    return Head(snapshot, attempt, applying, json.dumps(record).encode(), now, writes)


def _head_of(value: bytes) -> Head:
    record = _parsed(value)
    return Head(
        record["snapshot"], record["id"], record["applying"], value, record["time"],
        record["writes"],
    )  # fmt: skip


def _parsed(value: bytes) -> Any:
    try:
        record = json.loads(value)
    except ValueError as error:
        raise UserError(f"the manifest row is damaged: {value[:80]!r}: {error}") from error
    if isinstance(record, dict) and record["format"] > FORMAT:
        raise UserError(
            f"the table has format {record['format']!r}, this version reads up to {FORMAT}: "
            "upgrade nutbeam"
        )
    return record
