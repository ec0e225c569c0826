"""Plans key ranges for the changes of an operation, and the tablets to fold.

The table is neither sorted nor shuffled: a binary search among the tablets finds
the range of each change.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from ...policy.components.schema import conform, to_frame
from ...web.base.columns import gather, stable_order
from ...web.base.dataclass import dataclass
from ..storage.table_sizes import table_sizes
from .tablets import Tablet, host_start

# Size of the changes of one range, for one worker. The values of a key in a GroupByKey
# must stay under 64 MB, and an estimate from samples may be wrong by half.
RANGE_BYTES = 32 << 20
SAMPLES_PER_CHUNK = 256

# Limits of the tablets that one operation folds, in bytes. The largest of three counts: a constant;
# the size of the operation's changes times a factor (in memory they are about four times as large
# as on disk); a share of the table. So rounds cost about the same, and each tablet has its turn.
FOLD_FACTOR = 4
# A tablet that exceeds this multiple of the limits is always folded.
OVERDUE = 2


@dataclass(frozen=True)
class Sample:
    """An evenly spaced sample of the keys of a chunk of changes."""

    keys: tuple[str, ...]
    bytes_per_key: float
    rows_per_key: float = 0.0


@dataclass(frozen=True)
class Range:
    """Keys from ``low`` (inclusive) to ``high`` (exclusive); None is no limit.

    Attributes:
        base: The tablet that has these keys now, or None.
        whole: Whether the range covers the whole tablet. If not, all parts of the tablet
            are rewritten, even those without changes.
        fold: Whether to fold the tablet if it exceeds the limits.
    """

    low: str | None
    high: str | None
    base: Tablet | None
    whole: bool = True
    fold: bool = False


def sample_keys(chunk: pa.Table) -> Sample:
    """Returns about ``SAMPLES_PER_CHUNK`` keys, each with its share of the chunk's bytes."""
    keys = to_frame(chunk.select(["key"])).get_column("key")
    every = max(1, len(keys) // SAMPLES_PER_CHUNK)
    # Only the sample is sorted: sorting all keys costs more than resolving the changes.
    taken = keys.gather_every(every).sort().to_list()
    each = 1 / max(1, len(taken))
    return Sample(tuple(taken), chunk.nbytes * each, len(keys) * each)


def plan_ranges(
    tablets: Sequence[Tablet], samples: Iterable[Sample], range_bytes: int = RANGE_BYTES
) -> list[Range]:
    """Makes a range for each tablet, and several ranges for a tablet with very many changes.

    Args:
        tablets: Tablets in key order, with disjoint key ranges.
        samples: Samples of the keys of the changes.
        range_bytes: Approximate limit of the changes in a range, bytes.

    Returns:
        Ranges in key order that cover all keys. A host that is smaller than a range is
        in one range. The tablets with the greatest need may be folded.
    """
    samples = list(samples)
    keys = np.array([key for sample in samples for key in sample.keys], dtype=object)
    weights = np.array([sample.bytes_per_key for sample in samples for _ in sample.keys])
    numbers = np.array([sample.rows_per_key for sample in samples for _ in sample.keys])
    order = np.argsort(keys, kind="stable")
    keys, weights, numbers = keys[order], weights[order], numbers[order]
    lows = [None, *(_low(*pair) for pair in itertools.pairwise(tablets))]
    ranges: list[Range] = []
    coming: list[float] = []  # number of changed rows, by range
    for at, (low, high) in enumerate(itertools.pairwise([*lows, None])):
        base = tablets[at] if tablets else None
        start = 0 if low is None else int(np.searchsorted(keys, low))
        end = len(keys) if high is None else int(np.searchsorted(keys, high))
        cuts = _cuts(keys[start:end], weights[start:end], low, range_bytes)
        edges = [low, *cuts, high]
        ranges += [Range(*pair, base, whole=not cuts) for pair in itertools.pairwise(edges)]
        coming += [float(numbers[start:end].sum())] * (len(edges) - 1)
    sizes = table_sizes()
    budget = max(
        sizes.fold_bytes,
        FOLD_FACTOR * float(weights.sum()),
        sizes.fold_share * sum(tablet.bytes for tablet in tablets),
    )
    chosen = _folds(ranges, coming, budget)
    return [dataclasses.replace(r, fold=n in chosen) for n, r in enumerate(ranges)]


def past_limits(tablet: Tablet, coming: float, times: float = 1) -> bool:
    """Returns whether one more run would exceed a tablet's limits on runs.

    Args:
        tablet: The tablet.
        coming: Number of rows of the next run.
        times: Factor by which the limits are multiplied.
    """
    sizes = table_sizes()
    most_runs, most_rows = sizes.most_runs * times, sizes.run_share * tablet.base.rows * times
    return len(tablet.runs) >= most_runs or tablet.run_rows + coming > most_rows


def merges(tablet: Tablet, coming: float) -> bool:
    """Returns whether to merge the runs into one and keep the base: many, but small runs."""
    return tablet.run_rows + coming <= table_sizes().run_share * tablet.base.rows


def _folds(ranges: Sequence[Range], coming: Sequence[float], budget: float) -> set[int]:
    """Chooses the tablets that may be folded: overdue ones, then those with the greatest need."""
    waiting, sizes = [], table_sizes()
    for number, part in enumerate(ranges):
        tablet, rows = part.base, coming[number]
        if tablet is None or not part.whole or not rows or not tablet.runs:
            continue
        if past_limits(tablet, rows):
            share = (tablet.run_rows + rows) / max(1, sizes.run_share * tablet.base.rows)
            weight = max(share, len(tablet.runs) / sizes.most_runs)
            cost = tablet.bytes - merges(tablet, rows) * tablet.base.bytes
            overdue = past_limits(tablet, rows, OVERDUE)
            waiting.append((not overdue, -weight, number, cost))
    chosen = set()
    for in_time, _, number, cost in sorted(waiting):
        if not in_time or cost <= budget:
            chosen.add(number)
            budget -= cost
    return chosen


def _cuts(keys: np.ndarray, weights: np.ndarray, low: str | None, limit: int) -> list[str]:
    last, host = low or "", ""
    cuts: list[str] = []
    filled = of_host = 0.0  # bytes of the range so far, and of its last host
    for key, weight in zip(keys, weights, strict=True):
        start = host_start(key)
        if start != host:
            host, of_host = start, 0.0
        if filled + weight > limit and of_host < filled and start > last:
            last, filled = start, of_host
            cuts.append(last)
        # Only a host that is larger than a range is cut.
        if filled and filled + weight > limit and key > last:
            last, filled, of_host = key, 0.0, 0.0
            cuts.append(last)
        filled += weight
        of_host += weight
    return cuts


def _low(previous: Tablet, tablet: Tablet) -> str | None:
    """Returns the start of a tablet's range: that of its first host, if no other tablet has it."""
    if previous.last is None or tablet.first is None:
        return tablet.first
    start = host_start(tablet.first)
    return start if previous.last < start else tablet.first


def range_numbers(keys: pl.Series, ranges: Sequence[Range]) -> pl.Series:
    """Returns the index of the range of each key."""
    lows = pl.Series("low", [r.low for r in ranges[1:]], dtype=pl.String)
    return lows.search_sorted(keys, side="right").cast(pl.Int32).alias("range")


def split_by_range(chunk: pa.Table, ranges: Sequence[Range]) -> Iterator[tuple[int, pa.Table]]:
    """Splits a chunk of changes by range; yields (index of the range, changes)."""
    frame = to_frame(chunk)
    if len(ranges) == 1:
        yield 0, chunk
        return
    number = range_numbers(frame.get_column("key"), ranges)
    order = stable_order(number)
    firsts = pl.Series(range(len(ranges) + 1), dtype=pl.Int32)
    bounds = number.gather(order).search_sorted(firsts).to_list()
    table = conform(gather([frame], order), chunk.schema)
    for at, (start, end) in enumerate(itertools.pairwise(bounds)):
        if start < end:
            yield at, table.slice(start, end - start)
