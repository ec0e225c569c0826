"""The schedule rate: what it learns of a page's changes, and the intervals that it chooses."""

import numpy as np
import polars as pl
import pytest
from reference_rate_schedule import gain
from visits import MODIFIED, NOTMODIFIED, NOW, UNKNOWN, visit, visits_of

from nutbeam.policy.schedules.rate_schedule import (
    PRIOR_DAYS,
    PRIOR_SHAPE,
    ChangeRate,
    best_intervals,
    best_threshold,
    learn_change,
    learn_dated_change,
    learn_no_change,
    rate_schedule,
)
from nutbeam.policy.schedules.schedule import DAY_MS, RescheduleOptions
from nutbeam.policy.schedules.visits import ScheduleContext
from nutbeam.web.exchange.status import EXCEPTION


def known(shape=PRIOR_SHAPE, days=PRIOR_DAYS, number=1):
    return ChangeRate(np.full(number, float(shape)), np.full(number, float(days)))


def most_likely(elapsed, was_changed):
    """The maximum-likelihood estimator for irregular visits (Cho and Garcia-Molina 2003, 5.1)."""
    low, high = 1e-9, 1e6
    for _ in range(200):
        rate = np.sqrt(low * high)
        with np.errstate(over="ignore"):
            seen = (elapsed[was_changed] / np.expm1(rate * elapsed[was_changed])).sum()
        low, high = (rate, high) if seen > elapsed[~was_changed].sum() else (low, rate)
    return rate


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_long_histories_give_the_most_likely_rate(rate):
    random = np.random.default_rng(7)
    elapsed = random.exponential(8.0, 3000) + 0.1
    was_changed = random.random(3000) < -np.expm1(-rate * elapsed)
    estimate = known()
    for days, change in zip(elapsed, was_changed, strict=True):
        estimate = (learn_change if change else learn_no_change)(estimate, np.array([days]))
    mean = (estimate.shape / estimate.days).item()
    assert mean == pytest.approx(most_likely(elapsed, was_changed), rel=0.03)
    assert mean == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize("elapsed", [1e-4, 0.1, 10.0, 1e4])
@pytest.mark.parametrize(("shape", "days"), [(0.5, 15.0), (1.0, 1.0), (300.0, 20.0)])
def test_a_change_keeps_mean_and_variance_of_the_exact_result(shape, days, elapsed):
    # The exact density, in numbers: gamma times the likelihood.
    rates = np.exp(np.linspace(-25, 12, 400_000)) * shape / days
    density = shape * np.log(rates) - days * rates
    weights = np.exp(density - density.max()) * -np.expm1(-rates * elapsed)
    mean = np.average(rates, weights=weights)
    variance = np.average((rates - mean) ** 2, weights=weights)
    after = learn_change(known(shape, days), np.array([elapsed]))
    assert (after.shape / after.days).item() == pytest.approx(mean, rel=1e-4)
    assert (after.shape / after.days**2).item() == pytest.approx(variance, rel=1e-3)


@pytest.mark.parametrize(("shape", "days"), [(0.3, 10.0), (1.0, 5.0), (4.0, 40.0), (1e4, 1e5)])
def test_at_the_best_interval_one_more_fetch_gains_the_threshold(shape, days):
    def freshness(fetches):  # a day
        times = np.linspace(0, 1 / fetches, 200_001)
        return fetches * np.trapezoid((1 + times / days) ** -shape, times)

    step = 1e-4
    slope = (freshness(0.1 + step) - freshness(0.1 - step)) / (2 * step)
    best = best_intervals(slope, known(shape, days), 1e-3, 1e4).item()
    assert best == pytest.approx(10.0, rel=1e-3)


@pytest.mark.parametrize("threshold", [1e-4, 0.05, 1.0, 20.0])
def test_best_intervals_have_the_gain_of_the_threshold(threshold):
    random = np.random.default_rng(3)
    pages = ChangeRate(np.exp(random.uniform(-2, 9, 2000)), np.exp(random.uniform(-5, 9, 2000)))
    intervals = best_intervals(threshold, pages, 1 / 1440, 90.0)
    each = zip(intervals, pages.shape, pages.days, strict=True)
    found = np.array([gain(interval, (shape, days)) for interval, shape, days in each])
    within = (intervals > 1 / 1440 * 1.01) & (intervals < 90 * 0.99)
    assert within.sum() >= 100
    assert found[within] == pytest.approx(threshold, rel=0.02)
    assert (found[intervals <= 1 / 1440] >= threshold * 0.98).all()
    assert (found[intervals >= 90.0] <= threshold * 1.02).all()


def test_intervals_are_the_best_that_the_budget_allows():
    """No other division of the same fetches has more freshness."""
    rates = np.exp(np.linspace(np.log(0.005), np.log(5), 60))
    pages = ChangeRate(np.full(60, 1e6), 1e6 / rates)

    def freshness(intervals):
        return np.mean(-np.expm1(-rates * intervals) / (rates * intervals))

    best = best_intervals(3.0, pages, 0.01, 1000.0)
    fetches, random = 1 / best, np.random.default_rng(1)
    for _ in range(300):
        other = fetches * np.exp(random.normal(0, 0.2, 60))
        other *= fetches.sum() / other.sum()
        assert freshness(1 / other) <= freshness(best) + 1e-6
    assert best[-1] == 1000.0  # nobody could follow it
    assert freshness(best) > 1.1 * freshness(np.full(60, 60 / fetches.sum()))


def test_the_threshold_spends_the_budget_on_pages_of_all_rates():
    random = np.random.default_rng(5)
    rates = np.exp(random.uniform(np.log(1 / 3000), np.log(24), 20_000))
    pages = ChangeRate(np.full(20_000, 50.0), 50 / rates)
    for mean_interval in (1.0, 20.0, 200.0):
        threshold = best_threshold(mean_interval, 1e-3, 365.0)
        spent = (1 / best_intervals(threshold, pages, 1e-3, 365.0)).mean()
        assert spent == pytest.approx(1 / mean_interval, rel=0.05)


def test_one_page_that_is_new_has_the_mean_interval_within_a_factor():
    interval, due, row = visit(rate_schedule, UNKNOWN, {"last_fetch_time": None})
    assert interval == pytest.approx(due, abs=1e-5)  # whole seconds, and ms
    assert 10 < interval < 60
    assert (row["change_shape"], row["change_days"]) == pytest.approx((PRIOR_SHAPE, PRIOR_DAYS))


def test_the_budget_is_fetches_of_all_pages():
    options = {"fetches_per_day": 100.0}
    few, many = (visit(rate_schedule, UNKNOWN, pages=n, **options)[0] for n in (1_000, 6_000))
    assert few < 0.5 * many
    assert visit(rate_schedule, UNKNOWN, pages=3_000, **options)[0] == pytest.approx(
        visit(rate_schedule, UNKNOWN)[0]  # once in 30 days
    )


@pytest.mark.parametrize(
    ("state", "row", "event", "expected"),
    [
        (NOTMODIFIED, {}, {}, learn_no_change(known(), np.array([30.0]))),
        (MODIFIED, {}, {}, learn_change(known(), np.array([30.0]))),
        (MODIFIED, {"protocol_status": EXCEPTION}, {}, known()),  # for how long was it not seen?
        (MODIFIED, {}, {"last_modified": "Fri, 10 Nov 2023 22:13:20 GMT"},
         learn_dated_change(known(), np.array([4.0]))),
        (UNKNOWN, {"last_fetch_time": None}, {"last_modified": "Fri, 10 Nov 2023 22:13:20 GMT"},
         learn_dated_change(known(), np.array([4.0]))),
        (NOTMODIFIED, {}, {"last_modified": "Fri, 10 Nov 2023 22:13:20 GMT"},
         learn_no_change(known(), np.array([30.0]))),
        # A time of the answer itself.
        (MODIFIED, {}, {"last_modified": "Tue, 14 Nov 2023 22:13:20 GMT"},
         learn_change(known(), np.array([30.0]))),
        (MODIFIED, {}, {"last_modified": "Thu, 10 Nov 2033 22:13:20 GMT"},
         learn_change(known(), np.array([30.0]))),
        (UNKNOWN, {}, {}, known()),
    ],
)  # fmt: skip
def test_a_visit_updates_the_estimate_of_the_change_rate(state, row, event, expected):
    done = visit(rate_schedule, state, row, event)[2]
    assert done["change_shape"] == pytest.approx(expected.shape.item(), rel=1e-5)
    assert done["change_days"] == pytest.approx(expected.days.item(), rel=1e-5)


def test_pages_that_change_less_have_longer_intervals_and_hopeless_ones_the_longest():
    rows = visits_of(*(
        (NOTMODIFIED, {"change_shape": 20.0, "change_days": days}, {})
        for days in (20.0 * 200, 20.0 * 20, 20.0 * 10, 20.0 * 0.1)
    ))  # fmt: skip
    done = rate_schedule(rows, ScheduleContext(RescheduleOptions()))
    rare, slow, medium, fast = done["fetch_interval"]
    assert medium < slow < rare < 7_776_000
    assert fast == 7_776_000


def test_a_page_that_was_new_at_its_first_visit_is_looked_at_again_soon():
    """It may have been published then, and need not change at all."""
    first = {"last_fetch_time": None, "modified_time": None}
    minutes = ("Tue, 14 Nov 2023 22:10:00 GMT", "Tue, 14 Nov 2023 21:13:20 GMT")
    usual = visit(rate_schedule, UNKNOWN, first)[0]
    for date in minutes:
        assert visit(rate_schedule, UNKNOWN, first, {"last_modified": date})[0] <= usual


def test_a_fixed_interval_has_priority_over_the_rate():
    assert visit(rate_schedule, NOTMODIFIED, {"fixed_interval": 86_400})[:2] == (1, 1)


def test_each_row_keeps_its_place():
    rows = visits_of(*(
        (state, {"key": f"com.example:http/{n}", "last_fetch_time": NOW - n * DAY_MS}, {})
        for n, state in enumerate([MODIFIED, NOTMODIFIED, UNKNOWN, NOTMODIFIED], start=1)
    ))  # fmt: skip
    context = ScheduleContext(RescheduleOptions())
    together = rate_schedule(rows, context).select("key", "change_shape", "change_days")
    alone = [rate_schedule(rows[n], context).select(together.columns) for n in range(4)]
    assert together.equals(pl.concat(alone))


@pytest.mark.parametrize("days", [1, 400])
def test_the_date_of_a_sitemap_counts_as_that_of_a_server(days):
    """Before the first visit; later the date is that of nutbeam's own visits."""
    said = NOW - days * DAY_MS
    date = pl.Series([said]).cast(pl.Datetime("ms")).dt.strftime("%a, %d %b %Y %H:%M:%S GMT").item()
    new = {"last_fetch_time": None, "modified_time": None}
    by_server = visit(rate_schedule, UNKNOWN, new, {"last_modified": date})
    by_sitemap = visit(rate_schedule, UNKNOWN, new | {"modified_time": said})
    assert by_sitemap[0] == pytest.approx(by_server[0], rel=1e-6)
    neither = visit(rate_schedule, UNKNOWN, new)
    assert by_sitemap[0] != neither[0]
    for useless in (0, NOW + DAY_MS, -5):
        assert visit(rate_schedule, UNKNOWN, new | {"modified_time": useless})[0] == neither[0]
    seen = visit(rate_schedule, UNKNOWN, {"modified_time": said})
    assert seen[2]["change_shape"] == visit(rate_schedule, UNKNOWN, {})[2]["change_shape"]
