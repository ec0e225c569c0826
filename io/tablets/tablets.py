"""Tablets: parts of a component by key range, each a base file with runs on it.

A base has the rows of its range in key order. A run is a small file with the
rows of the range that an operation changed or added. If several files have a row of
the same key, the row of the newest run counts. ``ranges`` plans tablets, ``resolve``
writes them, ``fold`` reads whole ones in key order. Here rows of many tablets are read.

No keys are compared: a run has the number of each of its rows in the tablet
(``ROW_NUMBER``). A row is left out if a newer run has its number. Predicates filter each
file separately. Superseded rows are removed afterwards, so they do not reappear if a newer
row does not match.
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

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from ...policy.components.kinds import kind_of
from ...policy.components.schema import empty
from ...web.base.dataclass import dataclass
from ...web.base.errors import UserError
from ...web.urls.row_keys import host_key_of
from ..storage.file_errors import repair_advice
from ..storage.parquet_files import collect, row_count, scan
from ..storage.places import Folder
from .file_lists import DataFile

Narrow = Callable[[pl.LazyFrame], pl.LazyFrame]

# Each row of a tablet has a number: its position in the base. The numbers of rows that runs
# have added follow. A run has the number of each of its rows, so folding compares no keys.
ROW_NUMBER = "row_number"
_AT = "_row_of_files"
_FEW_ROWS = 1_000_000


@dataclass(frozen=True)
class Due:
    """Times at which a row is due, ms: ``until`` or earlier, or later than ``far``."""

    until: int
    far: int | None = None


@dataclass(frozen=True)
class Tablet:
    """A base and its runs, with the zone map of all these files.

    Attributes:
        base: The base.
        runs: Runs on it, oldest first.
    """

    base: DataFile
    runs: tuple[DataFile, ...] = ()

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        return (self.base, *self.runs)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    @property
    def rows(self) -> int:
        """Number of rows; no row is counted twice."""
        return sum(file.live_rows for file in self.files)

    @property
    def run_rows(self) -> int:
        return sum(run.rows for run in self.runs)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @cached_property
    def first(self) -> str | None:
        return min((file.first for file in self.files if file.first is not None), default=None)

    @cached_property
    def last(self) -> str | None:
        return max((file.last for file in self.files if file.last is not None), default=None)

    @cached_property
    def min_time(self) -> int | None:
        """Lower bound of the times of ``Kind.zone``, ms; None if unknown."""
        times = [file.min_time for file in self.files]
        return min(time for time in times if time is not None) if None not in times else None

    @cached_property
    def max_time(self) -> int | None:
        """Upper bound of the times of ``Kind.zone``, ms; None if unknown."""
        times = [file.max_time for file in self.files]
        return max(time for time in times if time is not None) if None not in times else None

    def may_have(self, due: Due) -> bool:
        """Returns whether a row may be due, by the zone map."""
        if self.min_time is None or self.max_time is None:
            return True
        far = due.far is not None and self.max_time > due.far
        return self.min_time <= due.until or far


def tablets(files: Iterable[DataFile]) -> list[Tablet]:
    """Returns the tablets of a component in key order.

    Args:
        files: Its live files, in any order.
    """
    runs: dict[str, list[DataFile]] = {}
    bases = []
    for file in files:
        if file.base is None:
            bases.append(file)
        else:
            runs.setdefault(file.base, []).append(file)
    component_tablets = [
        Tablet(base, tuple(sorted(runs.get(base.path, ()), key=lambda run: run.order)))
        for base in bases
    ]
    return sorted(component_tablets, key=lambda tablet: (tablet.first or "", tablet.last or ""))


def tablets_of_component(component: str, files: Iterable[DataFile]) -> list[Tablet]:
    """Returns the tablets of a component; if it is not in tablets, one tablet per file."""
    return tablets(files) if kind_of(component).in_tablets else [Tablet(file) for file in files]


def rows_of_large_hosts(files: Iterable[DataFile]) -> dict[str, int]:
    """Returns the number of rows of large hosts (reversed) in tablets that have no other host.

    Args:
        files: The state's live files, in any order.
    """
    rows_by_host: dict[str, int] = {}
    for tablet in tablets(files):
        first, last = host_key_of(tablet.first or ""), host_key_of(tablet.last or "")
        if first and first == last:
            rows_by_host[first] = rows_by_host.get(first, 0) + tablet.rows
    return rows_by_host


def with_number(schema: pa.Schema) -> pa.Schema:
    """Returns the columns of a run: those of its rows, and the row's number in the tablet."""
    return schema.append(pa.field(ROW_NUMBER, pa.uint32()))


def run_schema(component: str) -> pa.Schema:
    """Returns the declared columns of a component's runs."""
    return with_number(kind_of(component).schema)


def host_start(key: str) -> str:
    """Returns the smallest key of the host of ``key``.

    >>> host_start("com.foo:http/a"), host_start("[::1]:http/"), host_start("com.foo")
    ('com.foo:', '[::1]:', 'com.foo')
    """
    return key[: len(host_key_of(key)) + 1]


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
        check_row_counts(root, tablet)
        masks.append(_live(tablet, _numbers(root, tablet)))
    live, at = np.concatenate(masks), rows_of_files.get_column(_AT).to_numpy()
    if len(at) and at.max() >= len(live):
        raise mismatch_error(root, chosen_tablets[0], f"the list names {len(live):,} rows in all")
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
    check_row_counts(root, tablet)
    numbers = _numbers(root, tablet)
    at = found_rows.get_column(_AT).to_numpy()
    all_numbers = np.concatenate([np.arange(tablet.base.rows, dtype=np.uint32), *numbers])
    if len(at) and at.max() >= len(all_numbers):
        raise mismatch_error(root, tablet, f"the list names {tablet.base.rows:,} rows")
    return (
        found_rows.drop(_AT)
        .with_columns(pl.Series(ROW_NUMBER, all_numbers[at], dtype=pl.UInt32))
        .filter(pl.Series(_live(tablet, numbers)[at]))
        .sort("key")
    )


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


def check_row_counts(root: Folder, tablet: Tablet) -> None:
    """Checks that large files of a tablet have as many rows as the list says, before memory for them.

    Raises:
        UserError: One has another number of rows.
    """
    for file in (tablet.base, *tablet.runs):
        if file.rows > _FEW_ROWS and row_count(root / file.path) != file.rows:
            raise mismatch_error(root, tablet, f"the list names {file.rows:,} rows", file.path)


def mismatch_error(root: Folder, tablet: Tablet, reason: str, path: str = "") -> UserError:
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
