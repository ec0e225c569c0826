import polars as pl
import pytest
from frames import frame_of

from nutbeam.policy.components.schema import STATE, Status
from nutbeam.policy.generating.selection import (
    GenerateOptions,
    add_ranks,
    eligible_rows,
    groups,
    spans_tablets,
)
from nutbeam.policy.schedules.schedule import DAY_MS
from nutbeam.web.base.clock import Clock
from nutbeam.web.urls.row_keys import to_key

NOW = 1_700_000_000_000


def row(**columns):
    due = {"key": "com.a:http/", "status": 1, "fetch_time": NOW, "score": 1.0, "distance": 0}
    return due | columns


@pytest.mark.parametrize(
    ("columns", "options", "taken"),
    [
        ({}, {}, True),
        ({"fetch_time": NOW + 1}, {}, False),
        ({"fetch_time": NOW + DAY_MS}, {"add_days": 1.0}, True),
        ({"fetch_time": NOW + DAY_MS + 1}, {"add_days": 1.0}, False),
        ({"fetch_time": NOW + 7_776_000_001}, {}, True),
        ({"status": int(Status.DB_GONE)}, {}, True),  # only the time matters
        ({"status": int(Status.DB_GONE)}, {"restrict_status": "db_gone"}, True),
        ({"status": int(Status.DB_FETCHED)}, {"restrict_status": "db_gone"}, False),
        ({"distance": 3}, {"max_distance": 3}, True),
        ({"distance": 4}, {"max_distance": 3}, False),
        ({"distance": 4}, {"max_distance": -1}, True),
        ({"distance": None}, {"max_distance": 0}, True),
        ({"score": 0.0}, {}, True),
        ({"score": -0.1}, {}, False),
        ({"score": 0.5}, {"min_score": 0.5}, True),
        ({"score": 0.4}, {"min_score": 0.5}, False),
        ({"score": float("nan")}, {}, False),
        ({"score": float("inf")}, {}, True),
        ({"score": None}, {}, False),
    ],
)
def test_eligible(columns, options, taken):
    state = frame_of(STATE, row(**columns)).lazy()
    assert len(eligible_rows(state, Clock(NOW), GenerateOptions(**options)).collect()) == taken


@pytest.mark.parametrize(
    ("columns", "taken"),
    [
        ({"last_fetch_time": NOW - 1}, True),
        ({"last_fetch_time": None}, True),
        ({"last_fetch_time": NOW}, False),
        ({"last_fetch_time": NOW + 5}, False),
        ({"last_fetch_time": NOW + 9 * DAY_MS}, True),  # a clock was wrong
        ({"last_fetch_time": NOW + 5, "fetch_time": NOW + 9}, True),  # due without add_days, too
    ],
)
def test_add_days_brings_nothing_forward_that_this_run_has_fetched(columns, taken):
    state = frame_of(STATE, row(**{"fetch_time": NOW + DAY_MS} | columns)).lazy()
    clock, options = Clock(NOW + 10, began=NOW), GenerateOptions(add_days=2.0)
    assert len(eligible_rows(state, clock, options).collect()) == taken
    # generate by itself is a run that begins now.
    assert len(eligible_rows(state, clock._replace(began=None), options).collect()) == 1


def test_ranked_rows_have_a_group_only_where_there_is_a_limit():
    rows = frame_of(STATE, row(), row(key="com.a.b:https/x")).select("key", "score")
    assert add_ranks(rows, GenerateOptions()).columns == ["key", "score", "rank"]
    limited = add_ranks(rows, GenerateOptions(max_count=1))
    assert limited["group"].to_list() == ["com.a", "com.a.b"]
    limited = add_ranks(rows, GenerateOptions(max_count=1, count_mode="domain"))
    assert limited["group"].to_list() == ["com.a", "com.a"]


@pytest.mark.parametrize(
    ("url", "host", "domain"),
    [
        ("http://www.foo.com/", "com.foo.www", "com.foo"),
        ("http://a.b.foo.co.uk:8080/", "uk.co.foo.b.a", "uk.co.foo"),
        ("http://10.0.0.1/", "1.0.0.10", "1.0.0.10"),
        ("http://[::1]/", "[::1]", "[::1]"),
        ("http://localhost/", "localhost", "localhost"),
    ],
)
def test_groups(url, host, domain):
    keys = pl.Series([to_key(url)] * 2)
    assert groups(keys, "host").to_list() == [host] * 2
    assert groups(keys, "domain").to_list() == [domain] * 2


@pytest.mark.parametrize("mode", ["host", "domain"])
def test_groups_of_no_keys(mode):
    assert len(groups(pl.Series([], dtype=pl.String), mode)) == 0


URLS = [
    "http://a.com/", "http://a.com/x", "https://a.com:444/", "http://b.a.com/", "http://b.a.com/z",
    "http://a-b.com/", "http://a1.com/", "http://z.com/", "http://[::1]/", "http://[::1]:81/x",
    "http://[::2]/", "http://10.0.0.1/", "http://10.0.0.1/x",
]  # fmt: skip


@pytest.mark.parametrize("mode", ["host", "domain"])
@pytest.mark.parametrize("cut", range(len(URLS) + 1))
def test_a_group_in_two_tablets_is_known_to_span_in_both(mode, cut):
    keys = pl.Series(URLS).map_elements(to_key, pl.String).sort()
    low, high = keys[:cut], keys[cut:]
    names = {side: set(groups(part, mode)) for side, part in (("low", low), ("high", high))}
    both = names["low"] & names["high"]
    for part, before, after in ((low, None, high.min()), (high, low.max(), None)):
        known = groups(part, mode).unique()
        found = set(known.filter(spans_tablets(known, mode, before, after)))
        assert both <= found
        # Few others are suspected: those of the keys next to the cut.
        assert len(found) <= len(both) + 1


def test_a_tablet_alone_has_no_group_that_spans():
    assert spans_tablets(pl.Series(["com.a"]), "host", None, None).to_list() == [False]
