"""Reads ranges, finds rows and resolves changes of a web table in Bigtable.

This is the counterpart of tablets in a folder. A tablet is a key range here. A
file of changes holds complete rows that are new or changed; it is
applied when the operation commits.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...policy.components.schema import conform_frame, empty, to_frame
from ...web.base.errors import UserError
from ..storage.parquet_files import row_groups
from ..storage.places import Place
from ..tablets.resolve import Resolver
from ..tablets.tablets import Due
from .cell_layout import CellKind, cell_kind
from .cells import decode
from .changes import WrittenChanges, rows_to_write, write_changes, write_deletions
from .key_ranges import KeyRange
from .snapshot_log import SnapshotLog

_KEYS = pa.schema([pa.field("key", pa.large_string())])


def read_range(
    log: SnapshotLog,
    component: str,
    part: KeyRange,
    snapshot: int,
    columns: Sequence[str] | None = None,
    due: Due | None = None,
) -> Iterator[pl.DataFrame]:
    """Yields the rows of a range in key order, in pieces.

    Args:
        log: The table.
        component: A component in rows.
        part: The range.
        snapshot: The snapshot, pinned before.
        columns: The columns to unpack; all if None.
        due: Selects rows that may be due by ``Kind.due``; the caller must filter exactly.

    Raises:
        SnapshotTooOld: The snapshot became too old while rows were read. Raised after the
            last rows; all yielded rows are invalid.
    """
    kind = cell_kind(component)
    for cells in log.table.scan(kind, part, snapshot, due):
        yield _unpack_cells(log, cells, kind, columns)
    log.check_fresh(snapshot)


def _unpack_cells(
    log: SnapshotLog, cells: pa.Table, kind: CellKind, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    try:
        return to_frame(decode(cells, kind, columns))
    except UserError as error:
        raise UserError(f"{error}: run nutbeam fsck {log.table.address}") from error


def any_row(log: SnapshotLog, component: str, part: KeyRange, snapshot: int, due: Due) -> bool:
    """Returns whether a range has a row that may be due by ``Kind.due``; reads at most one row.

    Raises:
        SnapshotTooOld: The snapshot is too old.
    """
    kind = cell_kind(component)
    has_rows = any(len(cells) for cells in log.table.scan(kind, part, snapshot, due, limit=1))
    log.check_fresh(snapshot)
    return has_rows


def stored_rows(log: SnapshotLog, component: str, keys: pl.Series, snapshot: int) -> pl.DataFrame:
    """Returns the rows of the given keys, in key order.

    Raises:
        SnapshotTooOld: The snapshot is too old.
    """
    kind = cell_kind(component)
    parts = [
        _unpack_cells(log, cells, kind)
        for cells in log.table.seek(kind, keys.unique().to_list(), snapshot)
    ]
    log.check_fresh(snapshot)
    return pl.concat(parts) if parts else empty(kind.schema)


def resolve_changes(
    log: SnapshotLog,
    root: Place,
    component: str,
    changes: pl.DataFrame,
    resolver: Resolver,
    snapshot: int,
) -> Iterator[WrittenChanges]:
    """Resolves changes against the rows of their keys; writes the changed rows as a file.

    Keys of rows that the resolver drops are a second file. Rows that have ended are dropped, too:
    that rewrites no others.

    Args:
        log: The table.
        root: The place of its files.
        component: A component in rows.
        changes: In any order, with the column ``key``; all changes of a key.
        resolver: Makes the new rows.
        snapshot: The snapshot to read.
    """
    changes = changes.sort("key", maintain_order=True)
    old = stored_rows(log, component, changes.get_column("key"), snapshot)
    resolved, kind = resolver(old, changes), kind_of(component)
    if kind.ended:
        counting = resolved.rows.filter(kind.counting)
        resolved = dataclasses.replace(resolved, rows=counting, drops=True)
    new = conform_frame(resolved.rows, cell_kind(component).schema)
    yield write_changes(root, component, rows_to_write(old, new), old.get_column("key"))
    yield write_deletions(root, component, resolved.deleted_keys(old))


def way_back(
    log: SnapshotLog, root: Place, component: str, part: KeyRange, snapshot: int
) -> Iterator[WrittenChanges]:
    """Writes files of changes that restore the rows of a range to an older snapshot.

    It reads only rows that were changed since then.

    Args:
        log: The table.
        root: The place of its files.
        component: A component in rows.
        part: The range.
        snapshot: The older snapshot.

    Raises:
        SnapshotTooOld: The snapshot is too old.
    """
    for keys in changed_keys(log, component, part, snapshot):
        rows = stored_rows(log, component, keys, snapshot)
        stored_keys = rows.get_column("key")
        yield write_changes(root, component, rows, stored_keys)
        yield write_deletions(root, component, keys.filter(~keys.is_in(stored_keys.implode())))
    log.check_fresh(snapshot)


def changed_keys(
    log: SnapshotLog, component: str, part: KeyRange, snapshot: int
) -> Iterator[pl.Series]:
    """Yields the keys of the rows of a range that were changed after a snapshot, in key order."""
    for changed in log.table.scan_changed(cell_kind(component), part, snapshot):
        yield to_frame(changed.select(["key"]).cast(_KEYS)).get_column("key")


def erase_below(log: SnapshotLog, component: str, path: Place, oldest: int) -> None:
    """Erases old versions of the rows whose keys are in a file.

    Versions that a kept snapshot needs stay. All versions of deleted rows are erased.
    Repeating it changes nothing.

    Args:
        log: The table.
        component: A component in rows.
        path: A file with a column ``key``.
        oldest: Number of the oldest snapshot that can be read.
    """
    kind = cell_kind(component)
    log.give_up(oldest)
    for rows in row_groups(path, kind.schema, ("key",)):
        keys = to_frame(rows).get_column("key").to_list()
        shown = log.table.newest(kind, keys, oldest)
        log.table.erase(kind, ((key, last + 1 if gone else last) for key, last, gone in shown))
