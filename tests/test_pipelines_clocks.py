"""A clock that was wrong for a while leaves a table as if it had been right, and costs few requests."""

import time
from collections import Counter

import polars as pl
import pytest
from clocks import DAY, WRONG, clock_off
from crawling import asked, manifests_of, nutbeam, reach, state_of
from short_form import first

from nutbeam.policy.schema import Status
from nutbeam.web.simweb.server import SimWeb

LONGEST_MS = 90 * DAY * 1000


def crawl_at(monkeypatch, table, clocks):
    """Crawls a web round by round, each with its clock, then nine rounds with the right one; returns requests."""
    with SimWeb(hosts=1, pages=8, seed=7, crawl_delay=0) as web:
        for at, off in enumerate(clocks):
            with clock_off(monkeypatch, off):
                seeds = [] if at else web.seeds
                assert nutbeam("crawl", table, *seeds, "--rounds", "1", *reach(web)) == 0
        assert nutbeam("crawl", table, "--rounds", "9", *reach(web)) in (0, 1)
        return Counter(asked(web))


def made_of(table):
    """Returns what a crawl came to, by URL: status and content, no matter when or how often."""
    columns = ("url", "status", "retries", "signature", "distance", "content_type")
    rows = state_of(table).select(columns)
    once = rows["status"].replace(int(Status.DB_NOTMODIFIED), int(Status.DB_FETCHED))
    return {row[0]: row[1:] for row in rows.with_columns(status=once).iter_rows()}


def assert_timely(table):
    """Asserts that no time of a row is of the future, or later than the options allow."""
    rows, now = state_of(table), time.time() * 1000
    for name in ("last_fetch_time", "modified_time"):
        assert rows.filter(pl.col(name) > now).select("url", name).rows() == []
        assert rows.filter(pl.col(name) < 0).select("url", name).rows() == []
    due = pl.col("fetch_time")
    assert rows.filter((due > now + LONGEST_MS) | (due < now - DAY * 1000)).rows() == []
    assert rows.filter(pl.col("last_inlink_day") > now // (DAY * 1000)).rows() == []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    table = tmp_path_factory.mktemp("right") / "table"
    with pytest.MonkeyPatch.context() as monkeypatch:
        requests = crawl_at(monkeypatch, table, [0, 0])
    assert set(requests.values()) == {1}
    return made_of(table)


CASES = [
    ("decades_ahead", "second"),
    ("ten_days_ahead", "first"),
    ("before_1970", "second"),
    ("decades_ahead", "first"),
    ("decades_ahead", "both"),
    ("ten_days_ahead", "second"),
    ("ten_days_ahead", "both"),
    ("before_1970", "first"),
    ("before_1970", "both"),
]


@pytest.mark.parametrize(("wrong", "rounds"), first(2, CASES))
def test_a_wrong_clock_leaves_no_trace(monkeypatch, tmp_path, undisturbed, wrong, rounds):
    off = WRONG[wrong]
    clocks = {"first": [off, 0], "second": [0, off], "both": [off, off]}[rounds]
    requests = crawl_at(monkeypatch, tmp_path / "table", clocks)
    assert max(requests.values()) <= 2, requests.most_common(3)
    assert made_of(tmp_path / "table") == undisturbed
    if wrong != "ten_days_ahead":  # of its rows those that nobody touches are right in ten days
        assert_timely(tmp_path / "table")
    left = [m.counts.get("stale_results") for m in manifests_of(tmp_path / "table")]
    assert not any(left)
