"""What jobs do with a web table in Bigtable: read ranges, find rows, resolve changes.

The twin of what is done with the tablets of a folder. A tablet is a key range; a
file of changes holds whole rows, those that are new or not as they were, and is
applied when the operation commits.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import polars as pl

from ..policy.schema import COMPONENTS, conform, empty, to_frame
from .bigtable_cells import CELLS, decode
from .bigtable_commit import Change, SnapshotLog
from .bigtable_limits import split_rows_by_limits
from .bigtable_ranges import KeyRange
from .files import new_name
from .parquet_files import ParquetWriter
from .places import Place
from .tablets import Due

# Decides what changes do to the rows of their keys: (rows, changes) -> rows.
Resolver = Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame]


@dataclasses.dataclass(frozen=True)
class Written:
    """A file of changes, and what was left out of it.

    Attributes:
        change: The file; None if nothing changes.
        rows: How many rows it has.
        fresh: How many of them are new.
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


def read_range(
    log: SnapshotLog,
    component: str,
    part: KeyRange,
    snapshot: int,
    columns: Sequence[str] | None = None,
    due: Due | None = None,
) -> Iterator[pl.DataFrame]:
    """Yields the rows of a range, in key order, piece by piece.

    Args:
        log: The table.
        component: ``state`` or ``hosts``.
        part: Which rows.
        snapshot: Which snapshot, pinned before.
        columns: Those to unpack; all if None.
        due: Only rows of the state that may be due; the caller filters exactly.

    Raises:
        SnapshotTooOld: Behind the last rows, if the snapshot was too old by
            then: what was yielded does not count.
    """
    kind = CELLS[component]
    for cells in log.table.scan(kind, part, snapshot, due):
        yield to_frame(decode(cells, kind, columns))
    log.check_fresh(snapshot)


def any_row(log: SnapshotLog, part: KeyRange, snapshot: int, due: Due) -> bool:
    """Returns whether a range has a row of the state that may be due; receives one at most.

    Raises:
        SnapshotTooOld: The snapshot is too old.
    """
    found = any(len(some) for some in log.table.scan(CELLS["state"], part, snapshot, due, limit=1))
    log.check_fresh(snapshot)
    return found


def find_rows(log: SnapshotLog, component: str, keys: pl.Series, snapshot: int) -> pl.DataFrame:
    """Returns the rows of the given keys, in key order; only those are read.

    Raises:
        SnapshotTooOld: The snapshot is too old.
    """
    kind = CELLS[component]
    parts = [
        to_frame(decode(cells, kind))
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
) -> Written:
    """Resolves changes against the rows of their keys; writes what became other, as a file.

    Args:
        log: The table.
        root: The place of its files.
        component: ``state`` or ``hosts``.
        changes: In any order, with the column ``key``; of a key all or none.
        resolver: Returns what becomes of the rows, and new ones, in key order.
        snapshot: Which snapshot is read.
    """
    changes = changes.sort("key", maintain_order=True)
    old = find_rows(log, component, changes.get_column("key"), snapshot)
    new = to_frame(conform(resolver(old, changes), COMPONENTS[component]))
    return write_changes(root, component, changed_rows(old, new), old.get_column("key"))


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
    root: Place, component: str, rows: pl.DataFrame, known: pl.Series | None = None
) -> Written:
    """Writes rows as a file of changes; leaves out what Bigtable would refuse, and counts it.

    Args:
        root: The place of the table's files.
        component: ``state`` or ``hosts``.
        rows: In key order.
        known: Keys that are there already; None is none.
    """
    kind = CELLS[component]
    table, dropped = split_rows_by_limits(conform(rows, kind.schema), kind)
    if not len(table):
        return Written(None, dropped=dropped)
    path = PurePosixPath("changes") / component / new_name()
    with ParquetWriter(root / path, kind.schema) as writer:
        writer.write(table)
        size = writer.close()
    keys = to_frame(table.select(["key"])).get_column("key")
    fresh = len(keys) if known is None else int((~keys.is_in(known.implode())).sum())
    change = Change(component, str(path))
    return Written(change, len(keys), fresh, size, writer.crc32, keys[0], keys[-1], dropped)
