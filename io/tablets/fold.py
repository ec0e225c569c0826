"""Reads tablets: the rows of a base and its runs; of each key, the newest row counts.

No keys are compared: a run has the number of each of its rows in the tablet
(``ROW_NUMBER``). Folding drops a row if a newer run has its number.
Predicates filter each file separately. Superseded rows are removed afterwards, so
they do not reappear if a newer row does not match.
"""

# base (5 rows)     a  b  c  d  e       run 1   b  f       run 2   b  d
# row_number        0  1  2  3  4               1  5               1  3     f is new: after the base
#
# All files one after the other:
#
# rows              a  b  c  d  e     b  f     b  d
# _AT               0  1  2  3  4     5  6     7  8
# all_numbers       0  1  2  3  4     1  5     1  3
# _live             T  F  T  F  T     F  T     T  T     of equal numbers the last one counts

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...policy.components.schema import TEXT, conform, empty, to_frame
from ...web.base.errors import UserError
from ..storage.file_errors import repair_advice
from ..storage.parquet_files import collect, row_count, row_groups, scan, schema_of
from ..storage.places import Folder, Place
from ..storage.table_sizes import table_sizes
from .tablets import ROW_NUMBER, Tablet, with_number

Narrow = Callable[[pl.LazyFrame], pl.LazyFrame]
_AT = "_row_of_files"
_FEW_ROWS = 1_000_000


def read_tablets(
    root: Folder,
    component: str,
    chosen_tablets: Sequence[Tablet],
    columns: Sequence[str],
    narrow: Narrow | None = None,
) -> pl.DataFrame:
    """Returns the newest rows of tablets.

    Args:
        root: The folder of the table.
        component: ``state`` or ``hosts``.
        chosen_tablets: The tablets.
        columns: Names of the columns to return.
        narrow: Filters rows, each independently of the others; it gets all columns.

    Returns:
        The rows, in key order if no tablet has runs. If some have runs, their rows
        come after those of their base.

    Raises:
        UserError: A file is missing or damaged.
    """
    schema = kind_of(component).schema
    paths = [root / path for tablet in chosen_tablets for path in tablet.paths]
    if not paths:
        return empty(schema).select(columns)
    plain = not any(tablet.runs for tablet in chosen_tablets)
    rows = scan(paths, schema, row_index=None if plain else _AT)
    if narrow is not None:
        rows = narrow(rows)
    if plain:
        return collect(rows.select(columns))
    rows_of_files = collect(rows.select(*columns, _AT))
    masks = []
    for tablet in chosen_tablets:
        _check_rows(root, tablet)
        masks.append(_live(tablet, _numbers(root, tablet)))
    live, at = np.concatenate(masks), rows_of_files.get_column(_AT).to_numpy()
    if len(at) and at.max() >= len(live):
        raise _mismatch_error(root, chosen_tablets[0], f"the list names {len(live):,} rows in all")
    return rows_of_files.filter(pl.Series(live[at])).drop(_AT)


def tablets_of_keys(all_tablets: Sequence[Tablet], keys: pl.Series) -> list[Tablet]:
    """Returns the tablets that may have one of the given keys."""
    low, high = keys.min(), keys.max()
    return [
        tablet
        for tablet in all_tablets
        if len(keys) and str(tablet.first) <= str(high) and str(tablet.last) >= str(low)
    ]


def has_keys(keys: pl.Series) -> pl.Expr:
    """Returns the condition for the rows of some keys."""
    return _in_range_of(keys) & pl.col("key").is_in(keys.unique().implode())


def _in_range_of(keys: pl.Series) -> pl.Expr:
    """Returns the condition for the rows in the range of some keys.

    On disk, polars reads only row groups that overlap the range.
    """
    return (pl.col("key") >= keys.min()) & (pl.col("key") <= keys.max())


def rows_with_keys(root: Folder, component: str, tablet: Tablet, keys: pl.Series) -> pl.DataFrame:
    """Returns the rows of some keys, in key order, with their numbers.

    On disk it reads only row groups that overlap the range of the keys.

    Args:
        root: The folder of the table.
        component: ``state`` or ``hosts``.
        tablet: The tablet.
        keys: The keys to find: at least one, and no null.
    """
    paths = [root / path for path in tablet.paths]
    rows = scan(paths, kind_of(component).schema, row_index=_AT)
    # Hashes are compared faster than keys; rows with an equal hash but another key are left out then.
    hashes = pl.col("key").hash().is_in(keys.hash().unique().implode())
    found_rows = collect(rows.filter(_in_range_of(keys) & hashes)).filter(has_keys(keys))
    if not tablet.runs:  # the rows of a base have their own order as numbers
        return found_rows.select(pl.exclude(_AT), pl.col(_AT).cast(pl.UInt32).alias(ROW_NUMBER))
    _check_rows(root, tablet)
    numbers = _numbers(root, tablet)
    at = found_rows.get_column(_AT).to_numpy()
    all_numbers = np.concatenate([np.arange(tablet.base.rows, dtype=np.uint32), *numbers])
    if len(at) and at.max() >= len(all_numbers):
        raise _mismatch_error(root, tablet, f"the list names {tablet.base.rows:,} rows")
    return (
        found_rows.drop(_AT)
        .with_columns(pl.Series(ROW_NUMBER, all_numbers[at], dtype=pl.UInt32))
        .filter(pl.Series(_live(tablet, numbers)[at]))
        .sort("key")
    )


def stored_schema(root: Folder, component: str, *chosen_tablets: Tablet) -> pa.Schema:
    """Returns the declared columns of a component, and further columns of tablets' files.

    A later version of nutbeam has added the further columns. Code that rewrites rows keeps them.
    """
    schema = kind_of(component).schema
    for path in (path for tablet in chosen_tablets for path in tablet.paths):
        for field in schema_of(root / path):
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
    _check_rows(root, tablet)
    groups = _groups(root, schema, tablet, only)
    if not tablet.runs and over is None:
        yield from (rows for _, rows in groups)
        return
    runs = newest_rows(root, schema, tablet, over)
    if runs.get_column(ROW_NUMBER).null_count():
        raise _mismatch_error(root, tablet, "rows of its runs have no numbers")
    numbers = runs.get_column(ROW_NUMBER).to_numpy()
    live = np.ones(tablet.base.rows, dtype=bool)
    live[numbers[numbers < tablet.base.rows]] = False
    runs = runs.drop(ROW_NUMBER)
    keys = runs.get_column("key")
    done = int(keys.search_sorted(only.after, side="right")) if only.after else 0
    for begin, rows in groups:
        if rows.is_empty() or begin + len(rows) > len(live):
            raise _mismatch_error(root, tablet, f"the list names {len(live):,} rows")
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
    _check_rows(root, tablet)
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


def _numbers(root: Folder, tablet: Tablet) -> list[np.ndarray]:
    """Returns the number of each row of each run."""
    schema = pa.schema([pa.field(ROW_NUMBER, pa.uint32())])
    numbers_of_runs = []
    for run in tablet.runs:
        numbers = collect(scan([root / run.path], schema)).get_column(ROW_NUMBER)
        if numbers.null_count() or int(numbers.max() or 0) >= tablet.rows:  # type: ignore[arg-type]
            raise UserError(f"run does not fit the tablet {tablet.base.path}: {root / run.path}")
        numbers_of_runs.append(numbers.to_numpy())
    return numbers_of_runs


def _check_rows(root: Folder, tablet: Tablet) -> None:
    """Checks that large files of a tablet have as many rows as the list says, before memory for them.

    Raises:
        UserError: One has another number of rows.
    """
    for file in (tablet.base, *tablet.runs):
        if file.rows > _FEW_ROWS and row_count(root / file.path) != file.rows:
            raise _mismatch_error(root, tablet, f"the list names {file.rows:,} rows", file.path)


def _mismatch_error(root: Folder, tablet: Tablet, reason: str, path: str = "") -> UserError:
    place = root / (path or tablet.base.path)
    return UserError(f"data file is not as its list says: {place}: {reason}{repair_advice(place)}")


def _live(tablet: Tablet, numbers: Sequence[np.ndarray]) -> np.ndarray:
    """Returns a mask over the rows of the base, then of the runs: True for the newest rows."""
    seen = np.zeros(tablet.rows, dtype=bool)
    parts = []
    for run in reversed(numbers):
        parts.append(~seen[run])
        seen[run] = True
    parts.append(~seen[: tablet.base.rows])
    return np.concatenate(parts[::-1])
