"""The reference of the schedule ``rate``: known results, and the product's approximation."""

import doctest
import math
import random

import pytest
import reference_dates
import reference_rate_schedule
import reference_rates
from reference_attached import product_intervals, product_rate
from reference_rate_schedule import after_change, best_interval, gain, threshold
from reference_rates import (
    best_intervals,
    freshness,
    likelihood,
    most_likely_rate,
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


@pytest.mark.parametrize("rate", [0.02, 0.2, 2.0])
def test_the_most_likely_rate_is_near_the_true_one(rate):
    visits = visits_of(random.Random(1), rate, 3000)
    assert most_likely_rate(visits) == pytest.approx(rate, rel=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_no_other_rate_is_more_likely(seed):
    visits = visits_of(random.Random(seed), 0.2, 20)
    best = most_likely_rate(visits)
    assert likelihood(best, visits) >= max(likelihood(best * f, visits) for f in (0.9, 0.99, 1.01))


def test_the_mean_forgets_the_prior():
    visits = visits_of(random.Random(3), 0.2, 400)
    assert posterior_mean(1.0, 30.0, visits) == pytest.approx(most_likely_rate(visits), rel=0.05)
    assert posterior_mean(1.0, 30.0, []) == pytest.approx(1 / 30, rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_no_exchange_of_fetches_betters_the_best_intervals(seed):
    numbers = random.Random(seed)
    rates = [10 ** numbers.uniform(-3, 1) for _ in range(8)]
    often = [1 / interval for interval in best_intervals(rates, 2.0)]
    assert sum(often) == pytest.approx(2.0)
    for giver, taker in ((i, j) for i in range(8) for j in range(8) if i != j):
        amount = 1e-4
        if often[giver] <= amount:
            continue
        other = list(often)
        other[giver] -= amount
        other[taker] += amount
        assert mean_freshness(rates, other) <= mean_freshness(rates, often) + 1e-9


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


@pytest.mark.parametrize("elapsed", [0.01, 1.0, 200.0])
@pytest.mark.parametrize(("shape", "days"), [(0.5, 0.7), (1.0, 30.0), (20.0, 5.0)])
def test_a_change_leaves_mean_and_variance_of_the_exact_posterior(shape, days, elapsed):
    after_shape, after_days = after_change(shape, days, elapsed)
    visits = [(elapsed, True)]
    mean = posterior_mean(shape, days, visits)
    assert after_shape / after_days == pytest.approx(mean, rel=1e-4)
    # The mean of the square is that of the rate, times that of the rate weighted with the rate.
    square = mean * posterior_mean(shape + 1, days, visits)
    assert after_shape / after_days**2 == pytest.approx(square - mean**2, rel=1e-3)


@pytest.mark.parametrize(("shape", "days"), [(0.3, 10.0), (1.0, 5.0), (1 + 1e-9, 5.0), (4.0, 40.0)])
def test_the_best_interval_gains_the_price_of_a_fetch(shape, days):
    """What one more fetch gains is how the freshness of a page grows with the fetches a day."""

    def kept(often, steps=20_000):  # the mean of S(t) between two fetches
        width = 1 / often / steps
        return sum((1 + (at + 0.5) * width / days) ** -shape for at in range(steps)) / steps

    interval = best_interval(0.8, (shape, days), 1e-3, 1e4)
    often, step = 1 / interval, 1e-3 / interval
    slope = (kept(often + step) - kept(often - step)) / (2 * step)
    assert gain(interval, (shape, days)) == pytest.approx(0.8)
    assert slope == pytest.approx(0.8, rel=1e-3)


@pytest.mark.parametrize("every", [1.0, 30.0])
def test_the_threshold_hardly_depends_on_the_number_of_its_pages(every):
    bounds = (60 / 86_400, 365.0)
    assert threshold(every, *bounds) == pytest.approx(threshold(every, *bounds, 800), rel=0.03)


@pytest.mark.parametrize("longest", [90.0, 365.0])
@pytest.mark.parametrize("every", [0.1, 5.0, 30.0])
def test_the_product_chooses_the_threshold_of_known_rates(every, longest):
    expected = threshold(every, 60 / 86_400, longest)
    assert best_threshold(every, 60 / 86_400, longest) == pytest.approx(expected, rel=1e-7)


def test_two_visits_at_once_count_as_a_second_apart():
    assert product_rate([(0.0, True)], (0.15, 0.7)) == pytest.approx(
        after_change(0.15, 0.7, 1 / 86_400), rel=1e-6
    )
