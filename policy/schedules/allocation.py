"""Chooses intervals that keep most pages fresh with a given number of fetches.

A page with rate r that is fetched every I days is fresh for (1 - exp(-r I)) / (r I) of the time. If
a page is fetched a little more often, each additional fetch gains some days of freshness. With S(t),
the probability that a page has not changed t days after a fetch, this gain is the integral of S(t) -
S(I) for t from 0 to I; it grows with I. With the best intervals, all pages have the same gain, the
threshold: otherwise a fetch of one page should rather be a fetch of another (Cho and Garcia-Molina,
"Effective Page Refresh Policies for Web Crawlers", 2003; the threshold is the Lagrange multiplier).
So pages that change slowly have long intervals, and pages that change faster than anyone could
follow have the longest one.

The rates are not known exactly: all means are over their gamma distributions.
"""

import functools
from collections.abc import Callable

import numpy as np

from .change_rate import Array, ChangeRate

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

    def demand(threshold: float) -> float:
        return float((1 / best_intervals(threshold, pages, shortest, longest)).mean())

    return _solve(demand, 1 / mean_interval)


def _solve(demand: Callable[[float], float], wanted: float) -> float:
    """Returns the argument at which a decreasing function is ``wanted``, by bisection."""
    low, high = np.log(1e-9), np.log(1e6)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if demand(float(np.exp(middle))) > wanted else (low, middle)
    return float(np.exp((low + high) / 2))
