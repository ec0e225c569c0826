"""The schedule ``rate``: estimates how often each page changes, and keeps most pages fresh.

The estimate of a page's rate of changes is in its row, in ``change_shape`` and ``change_days``
(``ChangeRate``). The intervals follow from a threshold, which follows from the
budget: the fetches a day divided by the pages of the table. An update sees only a part of the
table, so the threshold does not follow from the pages that it sees: it is that of pages with all
kinds of rates (``best_threshold``). If a table has more pages of which each fetch gains much, its
rows are due somewhat earlier than the budget allows; then generate's limit delays them all.

The threshold is also the time in which a page that is worth following hardly changes. So if a page
has changed, or was new at its first visit, and little is known of it, it is fetched again after
that time: then it is clear whether it is worth more fetches.

**The intervals.** A page with rate r that is fetched every I days is fresh for (1 - exp(-r I)) / (r
I) of the time. If a page is fetched a little more often, each additional fetch gains some days of
freshness. With S(t), the probability that a page has not changed t days after a fetch, this gain is
the integral of S(t) - S(I) for t from 0 to I; it grows with I. With the best intervals, all pages
have the same gain, the threshold: otherwise a fetch of one page should rather be a fetch of another
(Cho and Garcia-Molina, "Effective Page Refresh Policies for Web Crawlers", 2003; the threshold is
the Lagrange multiplier). So pages that change slowly have long intervals, and pages that change
faster than anyone could follow have the longest one.

The rates are not known exactly: all means are over their gamma distributions.

**The estimates.** Changes are a Poisson process; its rate (changes a day) has a gamma distribution:
``shape``, and ``days``, its rate parameter. Both grow as more is known; the mean is ``shape /
days``. The visits are those of Cho and Garcia-Molina, "Estimating Frequency of Change" (2003): they
show whether a page has changed since the last visit, not how often, and sometimes the time of its
last change.

Functions on arrays take and return arrays of equal length; times are days.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...web.exchange.status import NOTMODIFIED, SUCCESS
from .schedule import DAY_MS, DAY_S
from .visits import (
    EARLIEST_CHANGE_MS,
    FETCH_TIME,
    ScheduleContext,
    VisitRows,
    last_modified_of_server,
    new_modified_time,
    next_fetch,
)

Array = NDArray[np.float64]
SHORTEST = 1 / 86_400  # days between two visits, at least


class ChangeRate(NamedTuple):
    """Gamma distributions of the rates of pages.

    Attributes:
        shape: Their shapes.
        days: Their rate parameters, days.
    """

    shape: Array
    days: Array

    def take(self, chosen: Any) -> "ChangeRate":
        """Returns those of some pages."""
        return ChangeRate(self.shape[chosen], self.days[chosen])


# Before the first visit: anything from several changes a day to none in years is about as likely.
PRIOR_SHAPE, PRIOR_DAYS = 0.15, 0.7


def learn_no_change(prior: ChangeRate, elapsed: Array) -> ChangeRate:
    """Returns the distributions after pages have not changed for ``elapsed`` days; exact.

    >>> learn_no_change(ChangeRate(np.array([0.2]), np.array([15.0])), np.array([30.0])).days
    array([45.])
    """
    return ChangeRate(prior.shape, prior.days + elapsed)


def learn_change(prior: ChangeRate, elapsed: Array) -> ChangeRate:
    """Returns the distributions after pages have changed at least once in ``elapsed`` days.

    The likelihood is 1 - exp(-rate * elapsed), so the result is a difference of two gamma
    distributions. It is replaced by the gamma distribution with the same mean and variance.

    >>> after = learn_change(ChangeRate(np.array([1.0]), np.array([10.0])), np.array([1e-3]))
    >>> after.shape.round(2), after.days.round(2)  # a change at a known time
    (array([2.]), array([10.]))
    """
    shape, days = prior
    log = np.log1p(np.maximum(elapsed, SHORTEST) / days)
    # With E(k) = 1 - (days / (days + elapsed))^k, the n-th moment has E(shape + n) / E(shape).
    none, first, second = (-np.expm1(-(shape + n) * log) for n in range(3))
    mean = shape / days * first / none
    square = shape * (shape + 1) / days**2 * second / none
    variance = np.maximum(square - mean**2, 1e-12 * square)
    return ChangeRate(mean**2 / variance, mean / variance)


def learn_dated_change(prior: ChangeRate, age: Array) -> ChangeRate:
    """Returns the distributions after pages have changed ``age`` days ago, and not since; exact."""
    return ChangeRate(prior.shape + 1, prior.days + age)


# Rounds of Newton's method: 6 suffice where the gain is not flat. The number is always the same, so
# that a row gets the same interval among any others.
_ROUNDS = 10
_HALVINGS = 36  # of the range of thresholds, to a relative error of 1e-9
# Changes a day of the pages for which the threshold is chosen; and the shape of their distributions,
# so large that their rates are known. Where the gain hardly grows any more, an interval changes by
# a hundred times the share by which the threshold does.
_RAREST, _FASTEST, _KNOWN = 1 / 3000, 24.0, 1e8


def _gain(times: Array, shape: Array) -> tuple[Array, Array]:
    """Returns the gain in units of ``days``, and its slope over the logarithm of the time."""
    log = np.log1p(times)
    same = np.exp(-shape * log)
    excess = shape - 1
    excess = np.where(np.abs(excess) < 1e-6, 1e-6, excess)
    fresh = -np.expm1(-excess * log) / excess
    return fresh - times * same, shape * times**2 * same / (1 + times)


def best_intervals(threshold: float, rates: ChangeRate, shortest: float, longest: float) -> Array:
    """Returns the intervals (days) at which the gain of each page is ``threshold`` days.

    Newton's method on logarithms comes from below and never passes the solution, because the gain
    is concave there and at most ``shape * time**2 / 2``.
    """
    low, high = shortest / rates.days, longest / rates.days
    wanted = threshold / rates.days
    times = np.clip(np.sqrt(2 * wanted / rates.shape), low, high)
    for _ in range(_ROUNDS):
        value, slope = _gain(times, rates.shape)
        step = np.log(wanted / np.maximum(value, 1e-300)) * value / np.maximum(slope, 1e-300)
        times = np.clip(times * np.exp(np.clip(step, -5, 5)), low, high)
    return times * rates.days


@functools.lru_cache(maxsize=64)
def best_threshold(mean_interval: float, shortest: float, longest: float) -> float:
    """Returns the threshold with which a page is fetched once in ``mean_interval`` days on average.

    That holds for pages whose rates are spread evenly over all orders of magnitude from one change
    an hour to one in 3,000 days. So the threshold follows from the budget alone: no job needs to
    see all pages, and a row gets the same interval in whichever part of the table it is.

    Args:
        mean_interval: Days.
        shortest: Shortest interval, days.
        longest: Longest interval, days.

    >>> round(best_threshold(30.0, 0.01, 365.0), 1)
    2.6
    """
    rates = np.exp(np.linspace(np.log(_RAREST), np.log(_FASTEST), 64))
    pages = ChangeRate(np.full(64, _KNOWN), _KNOWN / rates)
    low, high = np.log(1e-9), np.log(1e6)
    for _ in range(_HALVINGS):  # with a larger threshold there are fewer fetches
        middle = (low + high) / 2
        fetches = (1 / best_intervals(float(np.exp(middle)), pages, shortest, longest)).mean()
        low, high = (middle, high) if fetches > 1 / mean_interval else (low, middle)
    return float(np.exp((low + high) / 2))


# A Last-Modified that is less old was probably made for the answer.
_MADE_FOR_ANSWER_MS = 60_000
# From this shape on, a page's rate is known well enough.
_WELL_KNOWN = 2.0
_FIRST_DATED = (pl.col("elapsed").is_null() & pl.col("age").is_not_null()).alias("first")
_FACTS = ("modified", "notmodified", "change_shape", "change_days")


def rate_schedule(visits: VisitRows, context: ScheduleContext) -> VisitRows:
    """Learns from the visits, and sets the best intervals; see ``visits``."""
    options = context.options
    facts = visits.select(
        *_FACTS,
        elapsed=(FETCH_TIME - pl.col("last_fetch_time")) / DAY_MS,
        age=_age(),
        content_seen=pl.col("protocol_status").is_in([SUCCESS, NOTMODIFIED]).fill_null(False),
    )
    rates = _estimates(facts)
    bounds = options.shortest / DAY_S, options.longest / DAY_S
    threshold = best_threshold(options.mean_interval(context.pages), *bounds)
    intervals = best_intervals(threshold, rates, *bounds)
    # Does the page change too fast to be followed? It does if it has changed again this soon. Or it
    # was new at its first visit, and need not change at all.
    new = _FIRST_DATED & (pl.col("age") < threshold)
    changed_once = (pl.col("modified") & pl.col("age").is_null()) | new
    once = facts.select(changed_once.fill_null(False).alias("once")).to_series()
    unclear = once.to_numpy() & (rates.shape < _WELL_KNOWN)
    intervals = np.where(unclear, np.clip(threshold, bounds[0], intervals), intervals) * DAY_S
    return visits.with_columns(
        change_shape=pl.Series(rates.shape, dtype=pl.Float32),
        change_days=pl.Series(rates.days, dtype=pl.Float32),
        modified_time=new_modified_time(pl.coalesce(last_modified_of_server(), FETCH_TIME)),
        **next_fetch(pl.lit(pl.Series(intervals))),
    )


def _age() -> pl.Expr:
    """Returns how old the content is by the server's word, in days; null if that is not usable.

    Before the first visit a sitemap may have told the time of the last change.
    """
    first = pl.col("last_fetch_time").is_null()
    usable = pl.col("modified_time").is_between(EARLIEST_CHANGE_MS, FETCH_TIME)
    age = FETCH_TIME - pl.coalesce(
        last_modified_of_server(), pl.when(first & usable).then("modified_time")
    )
    return pl.when(age >= _MADE_FOR_ANSWER_MS).then(age / DAY_MS)


def _estimates(facts: VisitRows) -> ChangeRate:
    """Returns the estimates of the rates after the visits."""
    shape, days = (_array(facts.get_column(name)) for name in ("change_shape", "change_days"))
    # Another schedule may have left something else in these columns.
    nothing = ~(np.isfinite(shape) & np.isfinite(days) & (shape > 0) & (days > 0))
    shape[nothing], days[nothing] = PRIOR_SHAPE, PRIOR_DAYS
    rates = ChangeRate(shape, days)
    elapsed = _array(facts.get_column("elapsed").fill_null(0.0))
    age = _array(facts.get_column("age").fill_null(0.0))
    modified = facts.get_column("modified")
    has_age = facts.get_column("age").is_not_null()
    # After a failure it is unknown how long the page was not seen.
    cases = (
        (facts.get_column("notmodified"), learn_no_change, elapsed),
        (
            (modified & has_age) | facts.select(_FIRST_DATED).to_series(),
            learn_dated_change,
            age,
        ),
        (modified & ~has_age & facts.get_column("content_seen"), learn_change, elapsed),
    )
    for rows, after_visit, days_of in cases:
        at = rows.fill_null(False).to_numpy()
        if at.any():
            after = after_visit(rates.take(at), days_of[at])
            rates.shape[at], rates.days[at] = after
    return rates


def _array(column: pl.Series) -> Array:
    return np.array(column.cast(pl.Float64).to_numpy())
