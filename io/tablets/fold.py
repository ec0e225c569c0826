"""Folds tablets: all rows of a base and its runs in key order, one row group at a time.

Of each key, the newest row counts; see ``tablets``. Parts of a tablet are read by the row groups of
its base.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...policy.components.schema import TEXT, conform, empty, to_frame
from ..storage.parquet_files import collect, row_groups, scan, schema_of
from ..storage.places import Folder, Place
from ..storage.table_sizes import table_sizes
from .tablets import ROW_NUMBER, Tablet, check_row_counts, mismatch_error, with_number


def stored_schema(root: Folder, component: str, *chosen_tablets: Tablet) -> pa.Schema:
    """Returns the declared columns of a component, and further columns of tablets' files.

    A later version of nutbeam has added the further columns. Code that rewrites rows keeps them.
    """
    paths = (path for tablet in chosen_tablets for path in tablet.paths)
    stored_fields = [field for path in paths for field in schema_of(root / path)]
    schema = kind_of(component).schema
    for field in stored_fields:
        if field.name not in (*schema.names, ROW_NUMBER):
            schema = schema.append(field)
    return schema


def newest_rows(
    root: Folder, schema: pa.Schema, tablet: Tablet, over: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Returns the rows of a tablet's runs, in key order, with their numbers.

    Args:
        root: The folder of the table.
        schema: Columns to read.
        tablet: The tablet.
        over: Rows of a run that is newer than all runs of the tablet.
    """
    numbered = with_number(schema)
    parts = [empty(numbered)]
    if tablet.runs:
        parts.append(collect(scan([root / run.path for run in tablet.runs], numbered)))
    if over is not None:
        parts.append(to_frame(conform(over, numbered)))
    return pl.concat(parts).unique(ROW_NUMBER, keep="last", maintain_order=True).sort("key")


class Groups(NamedTuple):
    """Some row groups of a base, with the runs' rows in their key range.

    Attributes:
        start: Number of the first row group; a base in a store is read from its beginning.
        stop: Number of the first row group that is not included; None is no limit.
        after: Last key before the row groups; rows up to this key are left out.
    """

    start: int = 0
    stop: int | None = None
    after: str = ""


def fold_tablet(
    root: Folder,
    schema: pa.Schema,
    tablet: Tablet,
    over: pl.DataFrame | None = None,
    only: Groups = Groups(),  # noqa: B008
) -> Iterator[pl.DataFrame]:
    """Yields all rows of a tablet in key order; memory holds one row group and the runs.

    Args:
        root: The folder of the table.
        schema: Columns to read.
        tablet: The tablet.
        over: Rows of a run that is newer than all runs of the tablet.
        only: The row groups to read.

    Yields:
        For each row group of the base: its rows, and the rows of runs up to its
        last key (``group_bounds``). At the end, the remaining rows of runs, if any.
    """
    check_row_counts(root, tablet)
    groups = _groups(root, schema, tablet, only)
    if not tablet.runs and over is None:
        yield from (rows for _, rows in groups)
        return
    runs = newest_rows(root, schema, tablet, over)
    if runs.get_column(ROW_NUMBER).null_count():
        raise mismatch_error(root, tablet, "rows of its runs have no numbers")
    numbers = runs.get_column(ROW_NUMBER).to_numpy()
    live = np.ones(tablet.base.rows, dtype=bool)
    live[numbers[numbers < tablet.base.rows]] = False
    runs = runs.drop(ROW_NUMBER)
    keys = runs.get_column("key")
    done = int(keys.search_sorted(only.after, side="right")) if only.after else 0
    for begin, rows in groups:
        if rows.is_empty() or begin + len(rows) > len(live):
            raise mismatch_error(root, tablet, f"the list names {len(live):,} rows")
        upto = int(keys.search_sorted(rows.get_column("key")[-1], side="right"))
        base_rows = rows.filter(pl.Series(live[begin : begin + len(rows)]))
        yield (
            pl.concat([base_rows, runs.slice(done, upto - done)]).sort("key")
            if upto > done
            else base_rows
        )
        done = upto
    if done < len(runs):
        yield runs.slice(done)


def group_bounds(root: Folder, tablet: Tablet) -> pl.Series:
    """Returns the last key of each piece of the base, as ``fold_tablet`` yields them."""
    check_row_counts(root, tablet)
    base, rows = root / tablet.base.path, tablet.base.rows
    schema = pa.schema([("key", TEXT)])
    if not base.has_cheap_seeks:
        ends = [piece.get_column("key")[-1] for piece in _pieces(base, schema)]
        return pl.Series("key", ends, dtype=pl.String)
    keys = scan([base], schema)
    size = table_sizes().row_group_rows
    stops = range(size, rows + size, size)
    last = [keys.slice(min(end, rows) - 1, 1) for end in stops]
    return collect(pl.concat(last)).get_column("key")


def _groups(
    root: Folder, schema: pa.Schema, tablet: Tablet, only: Groups
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yields (number of the first row, rows) of the row groups of the base."""
    base, end = root / tablet.base.path, tablet.base.rows
    if not base.has_cheap_seeks:
        begin = 0
        for number, piece in enumerate(itertools.islice(_pieces(base, schema), only.stop)):
            if number >= only.start:
                yield begin, piece
            begin += len(piece)
        return
    rows, size = scan([base], schema), table_sizes().row_group_rows
    end = end if only.stop is None else min(only.stop * size, end)
    for at in range(only.start * size, end, size):
        yield at, collect(rows.slice(at, size))


def _pieces(base: Place, schema: pa.Schema) -> Iterator[pl.DataFrame]:
    """Yields whole row groups: reading parts of a file in a store costs requests."""
    for group in row_groups(base, schema, schema.names):
        if len(group):
            yield to_frame(group)


def folded_ranges(
    root: Folder, schema: pa.Schema, tablet: Tablet, ranges: Sequence[tuple[str, str]]
) -> Iterator[pl.DataFrame]:
    """Yields the rows of a tablet in ranges of keys, in key order, and others near them.

    Args:
        root: The folder of the table.
        schema: Columns to read, ``key`` among them.
        tablet: The tablet.
        ranges: (first key, first key after it) of each range, in key order.
    """
    near = [
        (low, high) for low, high in ranges if low <= str(tablet.last) and high > str(tablet.first)
    ]
    if not near:
        return
    bounds = group_bounds(root, tablet)
    lows = bounds.search_sorted(pl.Series([low for low, _ in near]), side="left").to_list()
    highs = bounds.search_sorted(pl.Series([high for _, high in near]), side="left").to_list()
    for start, stop in _unite_ranges(zip(lows, highs, strict=True)):
        after = bounds[start - 1] if start else ""
        groups = Groups(start, min(len(bounds), stop + 1), after)
        last = bounds[stop] if stop < len(bounds) else None
        for rows in fold_tablet(root, schema, tablet, None, groups):
            # It also yields the rows of runs after the row groups; the next range may have them.
            yield rows if last is None else rows.filter(pl.col("key") <= last)


def _unite_ranges(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yields ranges of numbers, both ends included; those that meet are united.

    >>> list(_unite_ranges([(0, 1), (1, 1), (2, 3), (7, 7)]))
    [(0, 3), (7, 7)]
    """
    start = stop = -1
    for low, high in ranges:
        if start >= 0 and low <= stop + 1:
            stop = max(stop, high)
            continue
        if start >= 0:
            yield start, stop
        start, stop = low, high
    if start >= 0:
        yield start, stop
