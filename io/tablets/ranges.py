"""Plans the key ranges into which the changes of an operation are cut, and the tablets to fold.

The table is neither sorted nor shuffled: changes find their range by binary
search among the tablets.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from ...policy.schema import conform, to_frame
from .tablets import MOST_RUNS, RUN_SHARE, Tablet, host_start

# Of the changes that one worker gets for one range: a GroupByKey's values stay
# under 64 MB a key, and what a sample promises may be off by half.
RANGE_BYTES = 32 << 20
SAMPLES_PER_CHUNK = 256

# Limits of folding by one operation, in bytes of the tablets: a constant, or the size of its own
# changes (in memory, about four times as on disk) times a factor, or a share of the table; the
# largest counts. So no round costs much more than the last one, and all tablets are folded in turn.
FOLD_BYTES = 64 << 20
FOLD_FACTOR = 4
FOLD_SHARE = 0.02
# A tablet past this multiple of the limits is folded, whatever it costs.
OVERDUE = 2


@dataclasses.dataclass(frozen=True)
class Sample:
    """A sample of the keys of a chunk of changes, at even distances."""

    keys: tuple[str, ...]
    bytes_per_key: float
    rows_per_key: float = 0.0


@dataclasses.dataclass(frozen=True)
class Range:
    """Keys from ``low`` (inclusive) to ``high`` (exclusive); None is open.

    Attributes:
        base: The tablet that holds them now, or None.
        whole: Whether the range is all that the tablet answers for. Parts of
            a tablet are rewritten even if nothing changes in some of them.
        fold: Whether the tablet is folded if it is past the limits.
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
    # Taken as they come, then sorted: to sort all of them costs more than to resolve them.
    taken = keys.gather_every(every).sort().to_list()
    each = 1 / max(1, len(taken))
    return Sample(tuple(taken), chunk.nbytes * each, len(keys) * each)


def plan_ranges(
    tablets: Sequence[Tablet], samples: Iterable[Sample], range_bytes: int = RANGE_BYTES
) -> list[Range]:
    """Cuts the key space where the tablets begin, and finer where changes would swamp one.

    Args:
        tablets: In key order, with disjoint ranges.
        samples: Of the changes to come.
        range_bytes: How many bytes of changes a range may get, about.

    Returns:
        Ranges in key order that cover all keys. No cut goes through a host
        that is smaller than a range. Those tablets may be folded that need it
        most.
    """
    samples = list(samples)
    keys = np.array([key for sample in samples for key in sample.keys], dtype=object)
    weights = np.array([sample.bytes_per_key for sample in samples for _ in sample.keys])
    numbers = np.array([sample.rows_per_key for sample in samples for _ in sample.keys])
    order = np.argsort(keys, kind="stable")
    keys, weights, numbers = keys[order], weights[order], numbers[order]
    lows = [None, *(_low(*pair) for pair in itertools.pairwise(tablets))]
    ranges: list[Range] = []
    coming: list[float] = []  # rows of changes, by range
    for at, (low, high) in enumerate(itertools.pairwise([*lows, None])):
        base = tablets[at] if tablets else None
        start = 0 if low is None else int(np.searchsorted(keys, low))
        end = len(keys) if high is None else int(np.searchsorted(keys, high))
        cuts = _cuts(keys[start:end], weights[start:end], low, range_bytes)
        edges = [low, *cuts, high]
        ranges += [Range(*pair, base, whole=not cuts) for pair in itertools.pairwise(edges)]
        coming += [float(numbers[start:end].sum())] * (len(edges) - 1)
    budget = max(
        FOLD_BYTES,
        FOLD_FACTOR * float(weights.sum()),
        FOLD_SHARE * sum(tablet.bytes for tablet in tablets),
    )
    chosen = _folds(ranges, coming, budget)
    return [dataclasses.replace(r, fold=n in chosen) for n, r in enumerate(ranges)]


def past_limits(tablet: Tablet, coming: float, times: float = 1) -> bool:
    """Returns whether a tablet has too many runs, or too large ones, for another one.

    Args:
        tablet: The tablet.
        coming: How many rows the next run has.
        times: Factor of the limits.
    """
    most = RUN_SHARE * tablet.base.rows
    return len(tablet.runs) >= MOST_RUNS * times or tablet.run_rows + coming > most * times


def merges(tablet: Tablet, coming: float) -> bool:
    """Returns whether runs are many, but small: then they become one, and the base stays."""
    return tablet.run_rows + coming <= RUN_SHARE * tablet.base.rows


def _folds(ranges: Sequence[Range], coming: Sequence[float], budget: float) -> set[int]:
    """Chooses what may be folded: those that are overdue, and of the others the heaviest."""
    waiting = []
    for number, part in enumerate(ranges):
        tablet, rows = part.base, coming[number]
        if tablet is None or not part.whole or not rows or not tablet.runs:
            continue
        if past_limits(tablet, rows):
            share = (tablet.run_rows + rows) / max(1, RUN_SHARE * tablet.base.rows)
            weight = max(share, len(tablet.runs) / MOST_RUNS)
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
    filled = of_host = 0.0  # bytes of the range, and of its last host
    for key, weight in zip(keys, weights, strict=True):
        start = host_start(key)
        if start != host:
            host, of_host = start, 0.0
        if filled + weight > limit and of_host < filled and start > last:
            last, filled = start, of_host
            cuts.append(last)
        # A host that is larger than a range is cut itself.
        if filled and filled + weight > limit and key > last:
            last, filled, of_host = key, 0.0, 0.0
            cuts.append(last)
        filled += weight
        of_host += weight
    return cuts


def _low(before: Tablet, tablet: Tablet) -> str | None:
    """Returns where the range of a tablet begins: with its first host, if that is its alone."""
    if before.last is None or tablet.first is None:
        return tablet.first
    start = host_start(tablet.first)
    return start if before.last < start else tablet.first


def route(keys: pl.Series, ranges: Sequence[Range]) -> pl.Series:
    """Returns the number of each key's range."""
    lows = pl.Series("low", [r.low for r in ranges[1:]], dtype=pl.String)
    return lows.search_sorted(keys, side="right").cast(pl.Int32).alias("range")


def split_by_range(chunk: pa.Table, ranges: Sequence[Range]) -> Iterator[tuple[int, pa.Table]]:
    """Cuts a chunk of changes into parts of one range each."""
    frame = to_frame(chunk)
    if len(ranges) == 1:
        yield 0, chunk
        return
    number = route(frame.get_column("key"), ranges)
    for (at,), rows in frame.with_columns(number).group_by("range"):
        yield int(str(at)), conform(rows, chunk.schema)
