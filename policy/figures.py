"""Figures of the state: statistics (readdb -stats), and counts by name (domainstats and its like).

Quantiles of scores are from a t-digest, in bounded memory. A digest has the distinct numbers with their
counts, as long as they are few: then its quantiles are exact. Of more it keeps centroids, small ones at
both ends, so that a quantile is off by at most about 0.2 % of the ranks in the middle, and far less at
the ends.

Ted Dunning, Otmar Ertl: Computing Extremely Accurate Quantiles Using t-Digests, 2019.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from ..web.base.columns import each_once
from ..web.base.dataclass import dataclass
from ..web.base.safe_json import read_json
from ..web.exchange.status import PROTOCOL_STATUS_NAMES
from ..web.urls.domains import registered_domain, suffix_and_domain
from ..web.urls.row_keys import from_host_key
from .base.key_columns import host_keys
from .base.row_status import FETCHED_STATUSES
from .components.schema import STATUS_NAMES, StateRows
from .components.vocabulary import iso, names_of_codes
from .schedules.schedule import DAY_MS

# Twice the number of centroids that a digest has at most.
COMPRESSION = 4_000
KeyCountRows: TypeAlias = pl.DataFrame  # see ``by_name``
# Nutch's words.
FETCHED_PAGES, UNFETCHED_PAGES = "FETCHED", "UNFETCHED"
KEY, WHICH, NUMBER = "key", "which", "number"


@dataclass(frozen=True)
class Digest:
    """Numbers in ascending order, and how often each is there.

    Attributes:
        means: The numbers, or means of adjacent numbers.
        counts: How many numbers each stands for.
        exact: Whether all of ``means`` are numbers themselves.
    """

    means: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    exact: bool = True


def digest_of(values: np.ndarray) -> Digest:
    """Returns the digest of numbers, of which none is NaN.

    >>> digest_of(np.array([2.0, 1.0, 2.0]))
    Digest(means=(1.0, 2.0), counts=(1, 2), exact=True)
    """
    means, counts = np.unique(values.astype(np.float64), return_counts=True)
    return _digest(means, counts, True)


def merge_digests(parts: Sequence[Digest]) -> Digest:
    """Returns the digest of the numbers of several digests."""
    means = np.concatenate([np.array(part.means, np.float64) for part in parts])
    counts = np.concatenate([np.array(part.counts, np.int64) for part in parts])
    distinct, place = np.unique(means, return_inverse=True)
    summed = np.zeros(len(distinct), np.int64)
    np.add.at(summed, place, counts)
    return _digest(distinct, summed, all(part.exact for part in parts))


def quantiles_of(digest: Digest, wanted: Sequence[float]) -> list[float]:
    """Returns quantiles: the smallest number with at least this share of numbers up to it.

    >>> quantiles_of(digest_of(np.array([1.0, 2.0, 3.0, 4.0])), [0.25, 0.5, 0.51])
    [1.0, 2.0, 3.0]
    """
    if not digest.means:
        return []
    means, counts = np.array(digest.means), np.array(digest.counts)
    upto = np.cumsum(counts)
    ranks = np.array(wanted) * upto[-1]
    if digest.exact:
        # A share such as 0.07 is a little more than written: its rank must not round up.
        at = np.searchsorted(upto, ranks - 1e-9 * upto[-1])
        return [float(mean) for mean in means[np.minimum(at, len(means) - 1)]]
    return [float(value) for value in np.interp(ranks, upto - counts / 2, means)]


def _digest(means: np.ndarray, counts: np.ndarray, exact: bool) -> Digest:
    if len(means) > COMPRESSION:
        means, counts, exact = *_compress(means, counts), False
    return Digest(tuple(means.tolist()), tuple(counts.tolist()), exact)


def _compress(means: np.ndarray, counts: np.ndarray) -> tuple[Any, Any]:
    """Joins neighbours whose ranks are in one step of the scale, which is fine at both ends."""
    middles = (np.cumsum(counts) - counts / 2) / counts.sum()
    scale = COMPRESSION / (2 * np.pi) * np.arcsin(2 * middles - 1)
    starts = np.flatnonzero(np.diff(np.floor(scale), prepend=-np.inf))
    summed = np.add.reduceat(counts, starts)
    # inf times a count is inf, as it should be, and a mean of both infinities is none.
    joined = np.add.reduceat(means * counts, starts) / summed
    return joined, summed


# Nutch's db.stats.score.quantiles.
QUANTILES = (0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99)
# When rows are due.
WHEN_DUE = ("now", "within_a_day", "later")


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
        digest: The scores, for quantiles.
        nans: Number of scores that are NaN.
        missing: Number of rows without a score.
        due: Number of rows by when they are due, see ``WHEN_DUE``.
    """

    rows: int = 0
    statuses: Counter[int] = dataclasses.field(default_factory=Counter)
    retries: Counter[int] = dataclasses.field(default_factory=Counter)
    intervals: tuple[float, float, float] | None = None
    times: tuple[float, float, float] | None = None
    scores: tuple[float, float, float] | None = None
    digest: Digest = dataclasses.field(default_factory=Digest)
    nans: int = 0
    missing: int = 0
    due: Counter[str] = dataclasses.field(default_factory=Counter)


def statistics_of(rows: StateRows, now: int | None = None) -> Statistics:
    """Returns the statistics of STATE rows: status, retries, intervals, due times, scores.

    Args:
        rows: The rows.
        now: The time, ms, to count how many rows are due when.
    """
    numbers = rows.get_column("score").drop_nulls()
    scores = numbers.filter(numbers.is_not_nan())
    return Statistics(
        rows=len(rows),
        statuses=_count(rows.get_column("status")),
        retries=_count(rows.get_column("retries")),
        intervals=_spread(rows.get_column("fetch_interval")),
        times=_spread(rows.get_column("fetch_time")),
        scores=_spread(scores),
        digest=digest_of(scores.to_numpy()),
        nans=len(numbers) - len(scores),
        missing=len(rows) - len(numbers),
        due=Counter() if now is None else _due(rows.get_column("fetch_time"), now),
    )


def counts_by_status(rows: StateRows, now: int) -> Statistics:
    """Returns how many STATE rows there are, by status, and how many are due when; nothing else.

    Args:
        rows: Rows with ``status`` and ``fetch_time``.
        now: The time, ms.
    """
    return Statistics(
        rows=len(rows),
        statuses=_count(rows.get_column("status")),
        due=_due(rows.get_column("fetch_time"), now),
    )


def _count(numbers: pl.Series) -> Counter[int]:
    """Returns how often each number occurs; one that is missing, as in a damaged row, is 0.

    >>> _count(pl.Series([2, None, 2])) == {2: 2, 0: 1}
    True
    """
    return Counter(dict(numbers.fill_null(0).value_counts().iter_rows()))


def _due(times: pl.Series, now: int) -> Counter[str]:
    """Returns how many due times are in each part of ``WHEN_DUE``.

    >>> dict(_due(pl.Series([5, 10, 11, 10 + DAY_MS, 11 + DAY_MS, None]), 10))
    {'now': 2, 'within_a_day': 2, 'later': 1}
    """
    ends = [int((times <= now + wait).sum()) for wait in (0, DAY_MS)]
    counts = zip(WHEN_DUE, (ends[0], ends[1] - ends[0], times.count() - ends[1]), strict=True)
    return Counter({name: number for name, number in counts if number})


def to_json(statistics: Statistics) -> str:
    """Returns statistics as JSON."""
    return json.dumps(vars(statistics) | {"digest": vars(statistics.digest)})


def from_json(text: str) -> Statistics:
    """Returns the statistics that ``to_json`` wrote."""
    record = read_json(text)
    digest = record["digest"]
    record["digest"] = Digest(tuple(digest["means"]), tuple(digest["counts"]), digest["exact"])
    for name in ("statuses", "retries"):
        record[name] = Counter({int(key): number for key, number in record[name].items()})
    record["due"] = Counter(record["due"])
    for name in ("intervals", "times", "scores"):
        record[name] = record[name] and tuple(record[name])
    return Statistics(**record)


def _spread(values: pl.Series) -> tuple[float, float, float] | None:
    numbers = values.drop_nulls().cast(pl.Float64)
    if not len(numbers):
        return None
    return float(numbers.min()), float(numbers.sum()), float(numbers.max())  # type: ignore[arg-type]


def merge(parts: Iterable[Statistics]) -> Statistics:
    """Returns the statistics of all parts together."""
    total, parts = Statistics(), list(parts)
    total.digest = merge_digests([part.digest for part in parts]) if parts else Digest()
    for part in parts:
        total.rows += part.rows
        total.nans += part.nans
        total.missing += part.missing
        for name in ("statuses", "retries", "due"):
            getattr(total, name).update(getattr(part, name))
        for name in ("intervals", "times", "scores"):
            setattr(total, name, _widen(getattr(total, name), getattr(part, name)))
    return total


def _widen(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), one[1] + other[1], max(one[2], other[2])


def quantiles(statistics: Statistics) -> dict[float, float]:
    """Returns score quantiles; see above for how exact they are."""
    values = quantiles_of(statistics.digest, QUANTILES)
    return dict(zip(QUANTILES, values, strict=True)) if values else {}


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
            scores = statistics.rows - statistics.nans - statistics.missing
            count = statistics.rows if name != "score" else scores
            record[name] = {"min": spread[0], "avg": spread[1] / count, "max": spread[2]}
    if statistics.times is not None:
        record["fetch_time"] = {n: iso(int(time)) for n, time in record["fetch_time"].items()}
    if statistics.digest.means:
        record["score"]["quantiles"] = {f"{q:g}": v for q, v in quantiles(statistics).items()}
    if statistics.due:
        record["due"] = {name: statistics.due[name] for name in WHEN_DUE}
    if statistics.nans:
        record["score_nan"] = statistics.nans
    return record


def _suffix(host: str) -> str:
    return suffix_and_domain(host)[0] or ""


def _tld(host: str) -> str:
    last = host.rpartition(".")[2]
    return "" if last.isdigit() or host.startswith("[") else last


# The names of a host by which rows are counted; empty if it has none: an address has no suffix.
NAMES: Mapping[str, Callable[[str], str]] = {
    "host": str,
    "domain": registered_domain,
    "suffix": _suffix,
    "tld": _tld,
}


def by_name(rows: StateRows, mode: str) -> KeyCountRows:
    """Returns how many pages of each name are fetched, and how many are not.

    Args:
        rows: Rows of the state: ``key``, ``status``.
        mode: One of ``NAMES``.

    Returns:
        ``key``, the name; ``which``, FETCHED or UNFETCHED; ``number``.

    >>> rows = pl.DataFrame({"key": ["com.a:http/", "com.a.b:http/"], "status": [2, 1]})
    >>> sorted(by_name(rows, "domain").rows())
    [('a.com', 'FETCHED', 1), ('a.com', 'UNFETCHED', 1)]
    """
    fetched = pl.when(pl.col("status").is_in(FETCHED_STATUSES)).then(pl.lit(FETCHED_PAGES))
    return _count_by_name(rows, fetched.otherwise(pl.lit(UNFETCHED_PAGES)), mode)


def by_status(rows: StateRows) -> KeyCountRows:
    """Returns how many rows each host has under each status; columns as of ``by_name``."""
    return _count_by_name(rows, names_of_codes(pl.col("status"), STATUS_NAMES), "host")


def _count_by_name(rows: StateRows, which: pl.Expr, mode: str) -> KeyCountRows:
    hosts = host_keys(rows.get_column("key")).alias(KEY)
    counts = rows.select(which.alias(WHICH)).with_columns(hosts)
    counts = counts.group_by(KEY, WHICH).agg(pl.len().cast(pl.Int64).alias(NUMBER))
    name = NAMES[mode]
    names = each_once(counts.get_column(KEY), lambda key: name(from_host_key(key)))
    return sum_key_counts([counts.with_columns(names.alias(KEY))])


def by_protocol(rows: StateRows) -> KeyCountRows:
    """Returns how many rows had each HTTP code at the last request; columns as of ``by_name``.

    A row without a code counts under the name of its protocol status, such as ``exception``, and
    one that was never requested as UNFETCHED.

    Args:
        rows: Rows of the state: ``http_code``, ``protocol_status``, ``last_fetch_time``.
    """
    name = names_of_codes(pl.col("protocol_status"), PROTOCOL_STATUS_NAMES)
    tried = pl.when(pl.col("last_fetch_time").is_not_null()).then(name)
    key = pl.coalesce(pl.col("http_code").cast(pl.String), tried, pl.lit(UNFETCHED_PAGES))
    counts = rows.group_by(key.alias(KEY)).agg(pl.len().cast(pl.Int64).alias(NUMBER))
    return counts.select(KEY, pl.lit("").alias(WHICH), NUMBER)


def sum_key_counts(parts: list[KeyCountRows]) -> KeyCountRows:
    """Returns the sums of several counts, the largest number first."""
    total = pl.concat(parts).group_by(KEY, WHICH).agg(pl.col(NUMBER).sum())
    return total.sort(NUMBER, KEY, WHICH, descending=[True, False, False])
