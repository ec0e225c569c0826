"""The reference of the schedule ``rate``: its examples, and the product's approximation."""

import doctest
import math
import random

import pytest
import reference_dates
import reference_rate_schedule
import reference_rates
from reference_attached import product_intervals, product_rate
from reference_rate_schedule import after_change, threshold
from reference_rates import (
    best_intervals,
    freshness,
    posterior_mean,
)

from nutbeam.policy.schedules.rate_schedule import best_threshold


@pytest.mark.parametrize("module", [reference_dates, reference_rate_schedule, reference_rates])
def test_examples_of_the_reference(module):
    found = doctest.testmod(module)
    assert found.attempted
    assert found.failed == 0


def visits_of(numbers, rate, count):
    """Returns irregular visits to a page that changes at a rate."""
    gaps = [numbers.choice((0.1, 1.0, 7.0, 30.0)) for _ in range(count)]
    return [(days, numbers.random() < 1 - math.exp(-rate * days)) for days in gaps]


def mean_freshness(rates, often):
    kept = (freshness(r, 1 / f) if f else 0.0 for r, f in zip(rates, often, strict=True))
    return sum(kept) / len(rates)


@pytest.mark.parametrize("seed", range(5))
def test_the_product_estimates_rates_well(seed):
    numbers = random.Random(seed)
    visits = visits_of(numbers, 10 ** numbers.uniform(-2, 0), numbers.choice((1, 5, 40)))
    shape, days = product_rate(visits, (1.0, 30.0))
    assert shape / days == pytest.approx(posterior_mean(1.0, 30.0, visits), rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_the_product_spends_its_fetches_well(seed):
    numbers = random.Random(seed)
    rates = [10 ** numbers.uniform(-3, 1) for _ in range(50)]
    often = [1 / interval for interval in product_intervals(rates, 5.0)]
    best = [1 / interval for interval in best_intervals(rates, sum(often))]
    assert mean_freshness(rates, often) >= 0.999 * mean_freshness(rates, best)
    # Its threshold is that of usual pages: these are other ones, so it misses the budget.
    assert 0.5 * 5.0 <= sum(often) <= 1.5 * 5.0


@pytest.mark.parametrize("longest", [90.0, 365.0])
@pytest.mark.parametrize("every", [0.1, 5.0, 30.0])
def test_the_product_chooses_the_threshold_of_known_rates(every, longest):
    expected = threshold(every, 60 / 86_400, longest)
    assert best_threshold(every, 60 / 86_400, longest) == pytest.approx(expected, rel=1e-7)


def test_two_visits_at_once_count_as_a_second_apart():
    assert product_rate([(0.0, True)], (0.15, 0.7)) == pytest.approx(
        after_change(0.15, 0.7, 1 / 86_400), rel=1e-6
    )
