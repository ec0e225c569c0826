"""A short form of benchmarks/schedules.py: simulated freshness is what the model predicts."""

import importlib
import sys

import pytest
from here import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)


@pytest.fixture(scope="module")
def results():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        benchmark = importlib.import_module("schedules")
        pages = importlib.import_module("changing_pages").population(300, 160)
        return {name: benchmark.measure(pages, name, 15) for name in ("default", "rate")}
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


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
