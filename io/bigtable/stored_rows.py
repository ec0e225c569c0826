"""Reads ranges, finds rows and resolves changes of a web table in Bigtable.

This is the counterpart of tablets in a folder. A tablet is a key range here. A file of changes holds
complete rows that are new or changed (``changes/COMPONENT``), or keys of rows to delete
(``changes/deleted/COMPONENT``). It is applied when the operation commits. Files of a purge are in
``changes/purged/COMPONENT``: when such a file is removed, the older versions of its rows are erased.
"""

import dataclasses
import functools
import operator
from collections.abc import Iterator, Mapping, Sequence

import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...policy.components.schema import conform, conform_frame, empty, to_frame
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ..storage.files import new_name
from ..storage.parquet_files import ParquetWriter, row_groups
from ..storage.places import Place
from ..tablets.file_lists import DataFile, close_file
from ..tablets.resolve import Resolver
from ..tablets.tablets import Due
from .cell_layout import CellKind, cell_kind
from .cells import decode
from .key_ranges import KeyRange
from .request_parts import change_filter, split_by_limits
from .snapshot_log import ChangedFile, SnapshotLog

_FOLDER = "changes"
DELETED, PURGED = "deleted", "purged"
_KEYS = pa.schema([pa.field("key", pa.large_string())])


@dataclass(frozen=True)
class WrittenChanges:
    """A file of changes, and counts of the rows that were left out.

    Attributes:
        file: The file; None if nothing changes. For deletions, ``fresh`` is the negative
            number of rows.
        dropped: Rows that Bigtable would refuse, by reason.
    """

    file: DataFile | None = None
    dropped: Mapping[str, int] = dataclasses.field(default_factory=dict)


def rows_to_write(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows that are new or changed.

    >>> old = pl.DataFrame({"key": ["a", "b"], "n": [1, None]})
    >>> rows_to_write(old, pl.DataFrame({"key": ["a", "b", "c"], "n": [1, 2, 3]})).rows()
    [('b', 2), ('c', 3)]
    """
    there = old.with_columns(known=pl.lit(True))
    joined = new.join(there, on="key", how="left", maintain_order="left", suffix="_old")
    names = [name for name in new.columns if name != "key"]
    same = (joined.get_column(name).eq_missing(joined.get_column(f"{name}_old")) for name in names)
    unchanged = functools.reduce(operator.and_, same) & joined.get_column("known").fill_null(False)
    return new.filter(~unchanged)


def write_changes(
    root: Place,
    component: str,
    rows: pl.DataFrame,
    existing: pl.Series | None = None,
    purges: bool = False,
) -> WrittenChanges:
    """Writes a file of changes; leaves out and counts rows that Bigtable would refuse.

    Args:
        root: The place of the table's files.
        component: A component in rows.
        rows: In key order.
        existing: Keys of rows that exist already; None if there are none.
        purges: Whether older versions of the rows are to be erased later.
    """
    kind = cell_kind(component)
    table, dropped = split_by_limits(conform(rows, kind.schema), kind)
    if not len(table):
        return WrittenChanges(dropped=dropped)
    folder = f"{PURGED}/{component}" if purges else component
    keys = to_frame(table.select(["key"])).get_column("key")
    fresh = len(keys) if existing is None else int((~keys.is_in(existing.implode())).sum())
    return WrittenChanges(_write(root, folder, table, fresh), dropped)


def write_deletions(root: Place, component: str, keys: pl.Series) -> WrittenChanges:
    """Writes a file with the keys, in order, of rows to delete."""
    table = pa.table({"key": keys.to_arrow()})
    if not len(table):
        return WrittenChanges()
    return WrittenChanges(_write(root, f"{DELETED}/{component}", table, -len(table)))


def change_of(component: str, file: DataFile) -> ChangedFile:
    """Returns the ``ChangedFile`` that a commit needs for a file."""
    deleted = file.path.startswith(f"{_FOLDER}/{DELETED}/")
    return ChangedFile(component, file.path, deleted, rows=file.rows, crc32=file.crc32)


def purged_component(path: str) -> str:
    """Returns the component of a file whose removal erases old versions of rows; empty for others.

    >>> purged_component("changes/deleted/state/x"), purged_component("changes/state/x")
    ('state', '')

    A killed process may leave an unfinished file. No commit names it, and it cannot be read, so it
    erases nothing.

    >>> purged_component("changes/deleted/state/.x.parquet.0123")
    ''
    """
    parts = path.split("/")
    if len(parts) != 4 or parts[3].startswith("."):
        return ""
    return parts[2] if parts[1] in (DELETED, PURGED) else ""


def _write(root: Place, folder: str, table: pa.Table, fresh: int) -> DataFile:
    path = root / _FOLDER / folder / new_name()
    with ParquetWriter(path, table.schema) as writer:
        writer.write(table)
        keys = table.column("key")
        first, last = keys[0].as_py(), keys[-1].as_py()
        return close_file(root, writer, first=first, last=last, fresh=fresh)


@dataclass(frozen=True)
class BigtableRows:
    """The rows of a component, as of a snapshot.

    All methods raise ``SnapshotTooOld`` if the snapshot is too old. If it became too old while rows
    were read, they raise it after the last rows; then all rows that they have yielded are invalid.

    Attributes:
        log: The table.
        component: A component in rows.
        snapshot: Number of the snapshot, pinned before.
    """

    log: SnapshotLog
    component: str
    snapshot: int

    @property
    def _kind(self) -> CellKind:
        return cell_kind(self.component)

    def read(
        self, part: KeyRange, columns: Sequence[str] | None = None, due: Due | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yields the rows of a range in key order, in pieces.

        Args:
            part: The range.
            columns: The columns to unpack; all if None.
            due: Selects rows that may be due by ``Kind.due``; the caller must filter exactly.
        """
        for cells in self.log.table.scan(self._kind, part, self.snapshot, due):
            yield self._unpack(cells, columns)
        self.log.check_fresh(self.snapshot)

    def _unpack(self, cells: pa.Table, columns: Sequence[str] | None = None) -> pl.DataFrame:
        try:
            return to_frame(decode(cells, self._kind, columns))
        except UserError as error:
            raise UserError(f"{error}: run nutbeam fsck {self.log.table.address}") from error

    def may_have_due(self, part: KeyRange, due: Due) -> bool:
        """Returns whether a range has a row that may be due by ``Kind.due``; reads one at most."""
        found_cells = self.log.table.scan(self._kind, part, self.snapshot, due, limit=1)
        has_rows = any(map(len, found_cells))
        self.log.check_fresh(self.snapshot)
        return has_rows

    def find(self, keys: pl.Series) -> pl.DataFrame:
        """Returns the rows of the given keys, in key order."""
        cells_of_keys = self.log.table.seek(self._kind, keys.unique().to_list(), self.snapshot)
        parts = [empty(self._kind.schema), *map(self._unpack, cells_of_keys)]
        self.log.check_fresh(self.snapshot)
        return pl.concat(parts)

    def resolve(self, changes: pl.DataFrame, resolver: Resolver) -> Iterator[WrittenChanges]:
        """Resolves changes against the rows of their keys; writes the changed rows as a file.

        Keys of rows that the resolver drops are a second file. Rows that have ended are dropped,
        too: that rewrites no others.

        Args:
            changes: In any order, with the column ``key``; all changes of a key.
            resolver: Makes the new rows.
        """
        changes = changes.sort("key", maintain_order=True)
        old = self.find(changes.get_column("key"))
        resolved, kind = resolver(old, changes), kind_of(self.component)
        if kind.ended:
            counting = resolved.rows.filter(kind.counting)
            resolved = dataclasses.replace(resolved, rows=counting, drops=True)
        new, root = conform_frame(resolved.rows, self._kind.schema), self.log.files
        yield write_changes(root, self.component, rows_to_write(old, new), old.get_column("key"))
        yield write_deletions(root, self.component, resolved.deleted_keys(old))

    def changed_keys(self, part: KeyRange) -> Iterator[pl.Series]:
        """Yields the keys of the rows of a range that were changed after the snapshot, in key order."""
        for changed in self.log.table.read_range(change_filter(self._kind, self.snapshot), part):
            yield to_frame(changed.select(["key"]).cast(_KEYS)).get_column("key")

    def way_back(self, part: KeyRange) -> Iterator[WrittenChanges]:
        """Writes files of changes that restore the rows of a range to the snapshot.

        It reads only rows that were changed since then.
        """
        for keys in self.changed_keys(part):
            rows, root = self.find(keys), self.log.files
            stored_keys = rows.get_column("key")
            yield write_changes(root, self.component, rows, stored_keys)
            gone = keys.filter(~keys.is_in(stored_keys.implode()))
            yield write_deletions(root, self.component, gone)
        self.log.check_fresh(self.snapshot)

    def erase_older(self, path: Place) -> None:
        """Erases versions of the rows whose keys are in a file that are older than the snapshot.

        Versions that a kept snapshot needs stay. All versions of deleted rows are erased.
        Repeating it changes nothing.

        Args:
            path: A file with a column ``key``.
        """
        self.log.give_up(self.snapshot)
        for rows in row_groups(path, self._kind.schema, ("key",)):
            keys = to_frame(rows).get_column("key").to_list()
            shown = self.log.table.newest(self._kind, keys, self.snapshot)
            oldest_needed = ((key, last + 1 if gone else last) for key, last, gone in shown)
            self.log.table.erase(self._kind, oldest_needed)
