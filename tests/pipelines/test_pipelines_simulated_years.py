"""A short form of ``benchmarks/schedules.py --crawl``: the jobs do, day by day, what its frames do."""

import dataclasses
import importlib

import numpy as np
import pytest
from here import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks are not part of the wheel"
)

# What frames do not know: where bodies and texts are, and how the servers said things.
OF_FILES = ("batch_id", "document", "page", "signature", "parse_status", "content_type")
OF_HTTP = ("etag", "http_code", "protocol_message", "response_ms")
FETCHES = 20


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    found = importlib.import_module("schedules")
    monkeypatch.setitem(found.OPTIONS, "fetch_interval", 2 * 86_400)
    return found


def small_web():
    """Returns 60 pages on 3 hosts: one dies, one forbids all, and of some pages many come and go."""
    web = importlib.import_module("changing_pages")
    pages = web.population(60, 40)
    moves = [
        np.array([2.5, 5.5]) if page % 7 == 0 else some for page, some in enumerate(pages.moves)
    ]
    nothing = np.inf
    dies, forbids = np.array([4.3, nothing, nothing]), np.array([nothing, 3.2, nothing])
    says = np.array(["true", "nothing", "true"])
    return dataclasses.replace(pages, moves=moves, dies=dies, forbids=forbids, says=says)


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["default", "adaptive", "rate"])
def test_rounds_of_the_jobs_are_those_of_the_frames(benchmark, tmp_path, schedule):
    pages = small_web()
    framed = benchmark.run(pages, schedule, FETCHES, at_once=True)
    years = benchmark.Years(pages, benchmark.settings(schedule, FETCHES), FETCHES, tmp_path)
    crawled = years.run()
    assert visits_of(crawled) == visits_of(framed)
    assert set(crawled.answer) == {0, 1, 2, 3}  # each kind of answer came
    state, wanted = (each.state.drop(*OF_FILES, *OF_HTTP) for each in (crawled, framed))
    assert state.columns == wanted.columns
    assert [name for name in state.columns if not state[name].equals(wanted[name])] == []
    assert_fresh_as_visits_say(benchmark, pages, crawled)


def visits_of(run):
    return sorted(zip(run.day, run.page, run.answer, strict=True))


def assert_fresh_as_visits_say(benchmark, pages, crawled):
    """Asserts that the bodies in the table were fresh from each visit to the next change."""
    ok = crawled.answer == 0
    seen = benchmark.successes(pages, crawled.page[ok], crawled.day[ok])
    wanted = benchmark.fresh_times(pages, seen)
    held = crawled.held_page, crawled.held_day, crawled.held_version
    found = benchmark.held_times(pages, *held)
    number = len(pages.classes)
    days = [
        np.bincount(each.page, each.end - each.begin, minlength=number) for each in (found, wanted)
    ]
    assert days[0].sum() > number
    np.testing.assert_allclose(*days, atol=1e-9)
