"""Writes files of changes: complete rows for a commit to write, or keys of rows to delete.

Rows are in ``changes/COMPONENT``, and keys to delete are in ``changes/deleted/COMPONENT``.
Files of a purge are in ``changes/purged/COMPONENT``. When such a file is removed, the older
versions of its rows are erased.
"""

import dataclasses
import functools
import operator
from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from ...policy.components.schema import conform, to_frame
from ..storage.files import new_name
from ..storage.parquet_files import ParquetWriter
from ..storage.places import Place
from ..tablets.file_lists import DataFile, close_file
from .cell_layout import cell_kind
from .limits import split_by_limits
from .snapshot_log import ChangedFile

_FOLDER = "changes"
DELETED, PURGED = "deleted", "purged"


@dataclasses.dataclass(frozen=True)
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
