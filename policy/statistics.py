"""Statistics of the state: those of single tablets, and their sum (readdb -stats)."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from ..web.base.safe_json import read_json
from .schema import STATUS_NAMES
from .vocabulary import iso

QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
# Bins of scores are the upper 16 bits of their float; adjacent bins differ by 0.8 %.
_SHIFT = 16


@dataclasses.dataclass
class Statistics:
    """Statistics of rows; ``merge`` adds those of several parts.

    Attributes:
        rows: Number of rows.
        statuses: Number of rows by status code.
        retries: Number of rows by number of retries.
        intervals: (smallest, sum, largest), s.
        times: (earliest, sum, latest) due time, ms.
        scores: (smallest, sum, largest).
        bins: Number of scores by their leading bits.
        nans: Number of scores that are NaN.
    """

    rows: int = 0
    statuses: Counter[int] = dataclasses.field(default_factory=Counter)
    retries: Counter[int] = dataclasses.field(default_factory=Counter)
    intervals: tuple[float, float, float] | None = None
    times: tuple[float, float, float] | None = None
    scores: tuple[float, float, float] | None = None
    bins: Counter[int] = dataclasses.field(default_factory=Counter)
    nans: int = 0


def statistics_of(rows: pl.DataFrame) -> Statistics:
    """Returns the statistics of STATE rows: status, retries, intervals, due times, scores."""
    numbers = rows.get_column("score").drop_nulls()
    scores = numbers.filter(numbers.is_not_nan())
    bits = scores.cast(pl.Float32).to_numpy().view(np.uint32)
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(0x80000000)) >> _SHIFT
    values, counts = np.unique(ordered, return_counts=True)
    return Statistics(
        rows=len(rows),
        statuses=Counter(dict(rows.get_column("status").value_counts().iter_rows())),
        retries=Counter(dict(rows.get_column("retries").value_counts().iter_rows())),
        intervals=_spread(rows.get_column("fetch_interval")),
        times=_spread(rows.get_column("fetch_time")),
        scores=_spread(scores),
        bins=Counter(dict(zip(values.tolist(), counts.tolist(), strict=True))),
        nans=len(numbers) - len(scores),
    )


def to_json(statistics: Statistics) -> str:
    """Returns statistics as JSON."""
    return json.dumps(vars(statistics))


def from_json(text: str) -> Statistics:
    """Returns the statistics that ``to_json`` wrote."""
    record = read_json(text)
    for name in ("statuses", "retries", "bins"):
        record[name] = Counter({int(key): number for key, number in record[name].items()})
    for name in ("intervals", "times", "scores"):
        record[name] = record[name] and tuple(record[name])
    return Statistics(**record)


def _spread(values: pl.Series) -> tuple[float, float, float] | None:
    known = values.drop_nulls().cast(pl.Float64)
    if not len(known):
        return None
    return float(known.min()), float(known.sum()), float(known.max())  # type: ignore[arg-type]


def merge(parts: Iterable[Statistics]) -> Statistics:
    """Returns the statistics of all parts together."""
    total = Statistics()
    for part in parts:
        total.rows += part.rows
        total.nans += part.nans
        for name in ("statuses", "retries", "bins"):
            getattr(total, name).update(getattr(part, name))
        for name in ("intervals", "times", "scores"):
            setattr(total, name, _widen(getattr(total, name), getattr(part, name)))
    return total


def _widen(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), one[1] + other[1], max(one[2], other[2])


def quantiles(statistics: Statistics) -> dict[float, float]:
    """Returns score quantiles, to within 0.8 %."""
    bins = np.array(sorted(statistics.bins), dtype=np.uint32)
    if not len(bins):
        return {}
    counts = np.cumsum([statistics.bins[int(b)] for b in bins])
    places = np.searchsorted(counts, [q * counts[-1] for q in QUANTILES])
    bits = bins << np.uint32(_SHIFT)
    floats = np.where(bits >> 31, bits & np.uint32(0x7FFFFFFF), ~bits).astype(np.uint32)
    values = floats.view(np.float32)[np.minimum(places, len(bins) - 1)]
    return {q: float(v) for q, v in zip(QUANTILES, values, strict=True)}


def summary(statistics: Statistics) -> dict[str, Any]:
    """Returns the statistics as one record, with names for readers and for scripts."""
    record: dict[str, Any] = {"total_urls": statistics.rows}
    record["status"] = {
        STATUS_NAMES.get(code, f"unknown_{code}"): number
        for code, number in sorted(statistics.statuses.items())
    }
    record["retries"] = {str(n): number for n, number in sorted(statistics.retries.items())}
    for name, spread in (
        ("fetch_interval", statistics.intervals),
        ("fetch_time", statistics.times),
        ("score", statistics.scores),
    ):
        if spread is not None:
            count = statistics.rows if name != "score" else max(1, sum(statistics.bins.values()))
            record[name] = {"min": spread[0], "avg": spread[1] / count, "max": spread[2]}
    if statistics.times is not None:
        record["fetch_time"] = {n: iso(int(time)) for n, time in record["fetch_time"].items()}
    if statistics.bins:
        record["score"]["quantiles"] = {f"{q:g}": v for q, v in quantiles(statistics).items()}
    if statistics.nans:
        record["score_nan"] = statistics.nans
    return record
