"""Reads rows of the state that may differ from those of an older snapshot, beside the older ones."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...policy.components.schema import STATE, StateRows, empty
from ...policy.components.vocabulary import iso
from ...web.base.errors import UsageError, UserError
from ..snapshots.lineage import lineage, undone_by
from ..snapshots.manifest import Manifest, load_manifest
from ..snapshots.pinned import Pinned, Snapshot
from ..table.opening import open_table
from ..table.table_snapshots import TableSnapshots
from ..tablets.tablets import Tablet, tablets

_STATE = "state"
_NO_SNAPSHOT = 0  # the table before its first commit


class StateChange(NamedTuple):
    """Rows of some keys in two snapshots.

    Attributes:
        rows: The rows as they are; removed ones are missing.
        earlier_rows: The rows of these keys, and of removed ones, in the older snapshot.
    """

    rows: StateRows
    earlier_rows: StateRows


def changed_tablets(pinned: Pinned, since: int) -> tuple[list[Tablet], list[Tablet]]:
    """Returns the tablets in which rows may have changed, and older ones that may have lost rows.

    Args:
        pinned: The snapshot that is read.
        since: Number of an older snapshot that it was made from; 0 is the empty table.

    Raises:
        UserError: The older snapshot is gone.
    """
    files = pinned.files(_STATE)
    if not since:
        return tablets(files), []
    earlier_files = Snapshot(pinned.address, since).files(_STATE)
    changed, ranges = pinned.table.changed_tablets(_STATE, earlier_files, files)
    lost = [t for t in tablets(earlier_files) if (str(t.first), str(t.last)) in set(ranges)]
    return changed, lost


def changed_rows(
    pinned: Pinned, since: int, tablet: Tablet, columns: Sequence[str]
) -> Iterator[StateChange]:
    """Yields the rows of a tablet that may have changed since an older snapshot, in frames."""
    if not since:
        for rows in pinned.table.scan(_STATE, tablet):
            yield StateChange(rows.select(columns), empty(STATE).select(columns))
        return
    earlier = Snapshot(pinned.address, since)
    earlier_paths = frozenset(file.path for file in earlier.files(_STATE))
    for keys, rows in pinned.table.changed_since(_STATE, tablet, since, earlier_paths):
        earlier_rows = earlier.find_rows(_STATE, keys, columns)
        yield StateChange(rows.select(columns), earlier_rows.select(columns))


def removed_rows(
    pinned: Pinned, since: int, tablet: Tablet, columns: Sequence[str]
) -> Iterator[StateChange]:
    """Yields the rows of a tablet of an older snapshot that are in the table no more, in frames."""
    earlier = Snapshot(pinned.address, since)
    for rows in earlier.table.scan(_STATE, tablet):
        keys = pinned.find_rows(_STATE, rows.get_column("key"), ("key",))
        removed = rows.select(columns).join(keys, on="key", how="anti")
        if len(removed):
            yield StateChange(empty(STATE).select(columns), removed)


def earlier_snapshot(address: str, manifest: Manifest, since: int | None, time: int = 0) -> int:
    """Returns the number of the snapshot that a reader has seen, of which the newer ones are asked.

    Args:
        address: Address of the table.
        manifest: Its newest snapshot.
        since: Number of the snapshot; 0 is the table before its first commit. None: it is
            the newest of ``time`` or before.
        time: A time, ms.

    Raises:
        UsageError: There was no such snapshot.
        UserError: It is gone: ``compact`` has deleted it, or a rollback has undone it.
    """
    table = open_table(address)
    if since is None:
        return _snapshot_at(table, time)
    if since > manifest.snapshot:
        raise UsageError(
            f"{address!r} has no snapshot {since!r} yet: the newest is {manifest.snapshot}"
        )
    if since == _NO_SNAPSHOT or since == manifest.snapshot:
        return since
    numbers = table.snapshots()
    if since < numbers[0]:
        raise UserError(_gone(table, f"snapshot {since} of {address!r} is gone", numbers[0]))
    if rollback := undone_by(table, since):
        raise UserError(
            f"snapshot {since} of {address!r} was undone by the rollback of snapshot {rollback}: "
            "what has changed since then is not known; name a snapshot of nutbeam history"
        )
    if since not in numbers:
        raise UserError(f"snapshot {since} of {address!r} is missing: run nutbeam fsck {address}")
    return since


def _snapshot_at(table: TableSnapshots, time: int) -> int:
    oldest = None
    for manifest in lineage(table):
        if manifest.time <= time:
            return manifest.snapshot
        oldest = manifest.snapshot
    if oldest in (None, 1):
        return _NO_SNAPSHOT
    numbers = table.snapshots()
    raise UserError(
        _gone(table, f"no snapshot of that time or before is left of {str(table)!r}", numbers[0])
    )


def _gone(table: TableSnapshots, what: str, oldest: int) -> str:
    moment = iso(load_manifest(table, oldest).time, "seconds")
    return (
        f"{what}: compact deletes snapshots some days after they were replaced "
        f"(--snapshot_retention); the oldest that is left is {oldest}, of {moment}"
    )
