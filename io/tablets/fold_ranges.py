"""Reads ranges of keys of tablets: only the row groups that may have one of the keys."""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl
import pyarrow as pa

from ..storage.places import Folder
from .fold import Groups, fold_tablet, group_bounds
from .tablets import Tablet


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
