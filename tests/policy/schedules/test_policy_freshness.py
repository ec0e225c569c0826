"""Simulated freshness is what the model predicts: benchmarks/schedules.py, and a short form of it."""

import importlib
import sys

import pytest
from here import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)


def measured(schedules, *size):
    """Returns the result of each schedule; without a size, of the benchmark's pages and fetches."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        benchmark, web = (importlib.import_module(name) for name in ("schedules", "changing_pages"))
        pages, days, fetches = size or (web.PAGES, web.DAYS, web.FETCHES_A_DAY)
        some = web.population(pages, days)
        return {name: benchmark.measure(some, name, fetches) for name in schedules}
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def results():
    return measured(("default", "rate"), 300, 160, 15)


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["default", "rate"])
def test_counts_are_those_of_the_model(results, schedule):
    checks = {check.name: check for check in results[schedule].checks}
    assert len(checks) == 7
    assert {name for name, check in checks.items() if abs(check.errors) >= 3} == set()
    assert checks["fresh days"].found > 1000
    assert checks["changes found, slow"].error > 0


@pytest.mark.long
def test_rate_keeps_more_pages_fresh_with_the_same_fetches(results):
    # Both may make 15 fetches a day; neither needs all of them.
    assert len(results["rate"].visits.page) <= 1.01 * len(results["default"].visits.page)
    assert results["rate"].freshness > 1.02 * results["default"].freshness


@pytest.mark.long
def test_rate_fetches_pages_that_change_too_fast_to_follow_less_often(results):
    default, rate = (results[name].by_class for name in ("default", "rate"))
    assert rate["slow"] > default["slow"]
    assert rate["never"] > 0.95 * default["never"]


@pytest.mark.long
def test_in_two_years_rate_keeps_a_tenth_more_pages_fresh_than_other_schedules():
    years = measured(("default", "adaptive", "rate"))
    for result in years.values():
        assert {check.name for check in result.checks if abs(check.errors) >= 3} == set()
    rate = years.pop("rate")
    for other in years.values():
        assert len(rate.visits.page) <= 1.01 * len(other.visits.page)
        assert rate.freshness >= 1.10 * other.freshness
