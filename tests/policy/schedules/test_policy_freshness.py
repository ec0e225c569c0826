"""A short form of benchmarks/schedules.py: simulated freshness is what the model predicts."""

import importlib
import sys

import numpy as np
import pytest
from here import ROOT

PAGES = 900

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)


def measured(pages, days, fetches, schedules):
    """Returns the result of each schedule."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        benchmark = importlib.import_module("schedules")
        some = importlib.import_module("changing_pages").population(pages, days)
        return {name: benchmark.measure(some, name, fetches) for name in schedules}
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def results():
    return measured(300, 160, 15, ("default", "rate"))


@pytest.fixture(scope="module")
def years():
    """The results of two years, with as many fetches a page as in the benchmark."""
    return measured(PAGES, 730, PAGES // 30, ("default", "adaptive", "rate"))


@pytest.mark.parametrize("schedule", ["default", "rate"])
def test_counts_are_those_of_the_model(results, schedule):
    checks = {check.name: check for check in results[schedule].checks}
    assert len(checks) == 7
    assert {name for name, check in checks.items() if abs(check.errors) >= 3} == set()
    assert checks["fresh days"].found > 1000
    assert checks["changes found, slow"].error > 0


def test_rate_keeps_more_pages_fresh_with_the_same_fetches(results):
    # Both may make 15 fetches a day; neither needs all of them.
    assert len(results["rate"].visits.page) <= 1.01 * len(results["default"].visits.page)
    assert results["rate"].freshness > 1.02 * results["default"].freshness


def test_rate_fetches_pages_that_nobody_could_follow_less_often(results):
    default, rate = (results[name].by_class for name in ("default", "rate"))
    assert rate["slow"] > default["slow"]
    assert rate["never"] > 0.95 * default["never"]


@pytest.mark.long
@pytest.mark.parametrize("other", ["default", "adaptive"])
def test_in_two_years_rate_keeps_a_tenth_more_fresh_than(years, other):
    rate, beside = years["rate"], years[other]
    assert len(rate.visits.page) <= 1.01 * len(beside.visits.page)
    gain, error = gain_of(rate, beside)
    assert error < 0.03  # otherwise these pages are too few to say anything
    # The population of the benchmark has 1.10 or more. These pages are a smaller sample.
    assert gain > 1.10 - 2 * error
    assert gain > 1.03 + error


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["default", "adaptive", "rate"])
def test_in_two_years_counts_are_those_of_the_model(years, schedule):
    assert {c.name for c in years[schedule].checks if abs(c.errors) >= 3} == set()


def gain_of(result, beside):
    """Returns (the ratio of two schedules' freshness, its standard error over pages)."""
    ours, theirs = (
        np.bincount(each.fresh.page, each.fresh.end - each.fresh.begin, minlength=PAGES)
        for each in (result, beside)
    )
    gain = ours.sum() / theirs.sum()
    return gain, np.std(ours - gain * theirs) * PAGES**0.5 / theirs.sum()
