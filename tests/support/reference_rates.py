"""The schedule ``rate``: exact answers by plain numeric methods, for what the product approximates.

A page changes as a Poisson process with a rate, in changes a day. A visit is (days since the visit
before, whether the page had changed). How often it changed between two visits is unknown: that is
what Cho and Garcia-Molina's estimator for irregular visits accounts for ("Estimating frequency of
change", 2003). Freshness is the time-average chance that the stored body equals the server's.

Where the specification leaves a choice:

- The estimate of a page is the mean of its posterior, from a gamma prior.
- The best intervals are those for known rates, all pages weighing the same.
"""

import math
from collections.abc import Callable, Sequence

Visits = Sequence[tuple[float, bool]]


def likelihood(rate: float, visits: Visits) -> float:
    """Returns how likely the visits are at a rate.

    >>> round(likelihood(1.0, [(1.0, True), (2.0, False)]), 6)
    0.085548
    """
    changed = (1 - math.exp(-rate * days) for days, change in visits if change)
    return math.prod(changed) * math.exp(-rate * sum(days for days, change in visits if not change))


def posterior_mean(shape: float, rate: float, visits: Visits, steps: int = 4_000) -> float:
    """Returns the mean of the rate after the visits, from a gamma prior, by Simpson's rule.

    >>> round(posterior_mean(2.0, 3.0, [(5.0, False)]), 6)  # no change: gamma again, (2, 3 + 5)
    0.25
    """
    # Over the logarithm of the rate, in which the posterior is smooth and falls fast on both sides.
    low, high = math.log(1e-7), math.log(1e4)
    width = (high - low) / steps
    total = first = 0.0
    for step in range(steps + 1):
        at = math.exp(low + step * width)
        weight = (1 if step in (0, steps) else 4 if step % 2 else 2) * at
        weight *= at ** (shape - 1) * math.exp(-rate * at) * likelihood(at, visits)
        total += weight
        first += weight * at
    return first / total


def freshness(rate: float, interval: float) -> float:
    """Returns the expected freshness of a page that is fetched every ``interval`` days.

    >>> round(freshness(1.0, 1.0), 6), freshness(0.0, 9.0)
    (0.632121, 1.0)
    """
    product = rate * interval
    return 1.0 if product < 1e-12 else -math.expm1(-product) / product


def best_intervals(rates: Sequence[float], fetches_a_day: float) -> list[float]:
    """Returns the intervals in days with the best mean freshness for a number of fetches a day.

    One more fetch a day gains the same for all pages that are fetched at all: what a page gains is
    ``(1 - e^-x - x e^-x) / rate`` where x is the product of rate and interval. Pages that change
    faster than that pays for are not fetched: their interval is infinite.

    >>> best_intervals([1.0, 1.0, 0.0], 2.0)[:2] == [1.0, 1.0]
    True
    """

    def at_price(price: float) -> list[float]:
        return [_interval(rate, price) for rate in rates]

    def surplus(logarithm: float) -> float:
        return sum(1 / interval for interval in at_price(math.exp(logarithm))) - fetches_a_day

    return [round(interval, 9) for interval in at_price(math.exp(root(surplus, -40.0, 20.0)))]


def _interval(rate: float, price: float) -> float:
    if price * rate >= 1 or not rate:
        return math.inf

    def missing(x: float) -> float:
        return price * rate - (1 - math.exp(-x) - x * math.exp(-x))

    return root(missing, 1e-12, 700.0) / rate


def root(falling: Callable[[float], float], low: float, high: float, halvings: int = 80) -> float:
    """Returns where a falling function is zero, by halving."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
