"""Estimates how often a page changes, from visits at irregular times.

Changes are a Poisson process; its rate (changes a day) has a gamma distribution: ``shape``, and
``days``, its rate parameter. Both grow as more is known; the mean is ``shape / days``. The visits
are those of Cho and Garcia-Molina, "Estimating Frequency of Change" (2003): they show whether a
page has changed since the last visit, not how often, and sometimes the time of its last change.

All functions take and return arrays of equal length; times are days.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
