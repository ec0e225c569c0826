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

from ..policy.schema import conform, to_frame
from .bigtable_cells import CELLS
from .bigtable_commit import Change
from .bigtable_limits import split_rows_by_limits
from .file_lists import DataFile
from .files import new_name
from .parquet_files import ParquetWriter
from .places import Place

FOLDER = "changes"
DELETED, PURGED = "deleted", "purged"


@dataclasses.dataclass(frozen=True)
class Written:
    """A file of changes, and what was left out of it.

    Attributes:
        change: The file; None if nothing changes.
        rows: How many rows it has.
        fresh: How many of them are new; of deleted ones, how many go, as a negative number.
        bytes: Its size.
        crc32: Its checksum.
        first: Smallest row key.
        last: Largest row key.
        dropped: Rows that Bigtable would refuse, by reason.
    """

    change: Change | None
    rows: int = 0
    fresh: int = 0
    bytes: int = 0
    crc32: int | None = None
    first: str | None = None
    last: str | None = None
    dropped: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def data_file(self, base: str | None, order: int = 0) -> DataFile:
        """Returns the file as an operation tells of it.

        Args:
            base: The range that its rows are in; None is the only one.
            order: Number of the snapshot that is being made.
        """
        assert self.change is not None
        return DataFile(
            self.change.path, self.rows, self.bytes, self.first, self.last, base,
            order=order, fresh=self.fresh, crc32=self.crc32,
        )  # fmt: skip


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
    table, dropped = split_rows_by_limits(conform(rows, kind.schema), kind)
    if not len(table):
        return Written(None, dropped=dropped)
    folder = f"{PURGED}/{component}" if purges else component
    keys = to_frame(table.select(["key"])).get_column("key")
    fresh = len(keys) if known is None else int((~keys.is_in(known.implode())).sum())
    return dataclasses.replace(_write(root, folder, component, table), fresh=fresh, dropped=dropped)


def write_deletions(root: Place, component: str, keys: pl.Series) -> Written:
    """Writes the keys of rows that are to be deleted, in key order."""
    table = pa.table({"key": keys.to_arrow()})
    if not len(table):
        return Written(None)
    done = _write(root, f"{DELETED}/{component}", component, table)
    return dataclasses.replace(done, fresh=-len(table))


def change_of(component: str, path: str) -> Change:
    """Returns what a commit is to do with a file."""
    return Change(component, path, deleted=path.startswith(f"{FOLDER}/{DELETED}/"))


def purged_component(path: str) -> str:
    """Returns of which component's rows old versions go with a file; empty if none do.

    >>> purged_component("changes/deleted/state/x"), purged_component("changes/state/x")
    ('state', '')
    """
    parts = path.split("/")
    return parts[2] if len(parts) == 4 and parts[1] in (DELETED, PURGED) else ""


def _write(root: Place, folder: str, component: str, table: pa.Table) -> Written:
    path = PurePosixPath(FOLDER) / folder / new_name()
    with ParquetWriter(root / path, table.schema) as writer:
        writer.write(table)
        size = writer.close()
    change = change_of(component, str(path))
    keys = table.column("key")
    first, last = keys[0].as_py(), keys[-1].as_py()
    return Written(change, len(table), bytes=size, crc32=writer.crc32, first=first, last=last)
