"""Files of changes: whole rows that a commit brings into a table in Bigtable, or keys of rows to delete.

They lie in ``changes/COMPONENT``, keys of rows to delete in ``changes/deleted/COMPONENT``.
Versions below what a purge has written go with its file, which is therefore in
``changes/purged/COMPONENT``.
"""

import dataclasses
import functools
import operator
from collections.abc import Mapping
from pathlib import PurePosixPath

import polars as pl
import pyarrow as pa

from ...policy.schema import conform, to_frame
from ..storage.files import new_name
from ..storage.parquet_files import ParquetWriter
from ..storage.places import Place
from ..tablets.file_lists import DataFile
from .cells import CELLS
from .limits import split_by_limits
from .snapshot_log import Change

FOLDER = "changes"
DELETED, PURGED = "deleted", "purged"


@dataclasses.dataclass(frozen=True)
class Written:
    """A file of changes, and what was left out of it.

    Attributes:
        file: The file; None if nothing changes. Of deletions, it counts how many rows go
            as fresh ones below zero.
        dropped: Rows that Bigtable would refuse, by reason.
    """

    file: DataFile | None = None
    dropped: Mapping[str, int] = dataclasses.field(default_factory=dict)


def changed_rows(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Returns those rows that are new, or not as they were.

    >>> old = pl.DataFrame({"key": ["a", "b"], "n": [1, None]})
    >>> changed_rows(old, pl.DataFrame({"key": ["a", "b", "c"], "n": [1, 2, 3]})).rows()
    [('b', 2), ('c', 3)]
    """
    there = old.with_columns(known=pl.lit(True))
    both = new.join(there, on="key", how="left", maintain_order="left", suffix="_old")
    names = [name for name in new.columns if name != "key"]
    same = (both.get_column(name).eq_missing(both.get_column(f"{name}_old")) for name in names)
    unchanged = functools.reduce(operator.and_, same) & both.get_column("known").fill_null(False)
    return new.filter(~unchanged)


def write_changes(
    root: Place,
    component: str,
    rows: pl.DataFrame,
    known: pl.Series | None = None,
    purges: bool = False,
) -> Written:
    """Writes rows as a file of changes; leaves out what Bigtable would refuse, and counts it.

    Args:
        root: The place of the table's files.
        component: ``state`` or ``hosts``.
        rows: In key order.
        known: Keys that are there already; None is none.
        purges: Whether what the rows were like before is to be erased in time.
    """
    kind = CELLS[component]
    table, dropped = split_by_limits(conform(rows, kind.schema), kind)
    if not len(table):
        return Written(dropped=dropped)
    folder = f"{PURGED}/{component}" if purges else component
    keys = to_frame(table.select(["key"])).get_column("key")
    fresh = len(keys) if known is None else int((~keys.is_in(known.implode())).sum())
    return Written(_write(root, folder, table, fresh), dropped)


def write_deletions(root: Place, component: str, keys: pl.Series) -> Written:
    """Writes the keys of rows that are to be deleted, in key order."""
    table = pa.table({"key": keys.to_arrow()})
    if not len(table):
        return Written()
    return Written(_write(root, f"{DELETED}/{component}", table, -len(table)))


def change_of(component: str, file: DataFile) -> Change:
    """Returns what a commit is to do with a file."""
    deleted = file.path.startswith(f"{FOLDER}/{DELETED}/")
    return Change(component, file.path, deleted, rows=file.rows, crc32=file.crc32)


def purged_component(path: str) -> str:
    """Returns of which component's rows old versions go with a file; empty if none do.

    >>> purged_component("changes/deleted/state/x"), purged_component("changes/state/x")
    ('state', '')
    """
    parts = path.split("/")
    return parts[2] if len(parts) == 4 and parts[1] in (DELETED, PURGED) else ""


def _write(root: Place, folder: str, table: pa.Table, fresh: int) -> DataFile:
    path = PurePosixPath(FOLDER) / folder / new_name()
    with ParquetWriter(root / path, table.schema) as writer:
        writer.write(table)
        size = writer.close()
    keys = table.column("key")
    first, last = keys[0].as_py(), keys[-1].as_py()
    return DataFile(str(path), len(table), size, first, last, fresh=fresh, crc32=writer.crc32)
