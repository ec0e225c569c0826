"""Limits of single hosts in generate and in schedules."""

import random

import polars as pl
import pytest
from file_changes import update_state
from frames import frame_of
from status_rows import NOW, A, event, old_row

from nutbeam.policy.components.host_rows import HostSettings
from nutbeam.policy.components.schema import CHANGES, HOSTS, STATE, Status
from nutbeam.policy.generating.selection import GenerateOptions
from nutbeam.policy.hosting.host_settings import (
    NO_LIMIT,
    best_of_hosts,
    blocked_hosts,
    host_expressions,
    host_limits_of,
    interval_bounds,
    with_limits,
    with_own_limits,
    within_bounds,
    without_blocked_hosts,
)
from nutbeam.policy.schedules.reschedule import built_in_schedule
from nutbeam.policy.schedules.schedule import DAY_MS, DAY_S, due
from nutbeam.policy.updating.update_rules import UpdateOptions
from nutbeam.web.base.clock import Clock
from nutbeam.web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_SUCCESS,
)

HOST_ROWS = frame_of(
    HOSTS,
    {"key": "com.a", "fetched": 10, "gone": 20},
    {"key": "com.b", "fetched": 5},
    {"key": "com.c"},
)
SETTINGS = {
    "com.b": HostSettings(max_count=7, delay=2.5, boost=3.0),
    "com.d": HostSettings(blocked=True),
}


def limits(settings=SETTINGS, **options):
    return host_limits_of(settings, HOST_ROWS, host_expressions(GenerateOptions(**options)))


def test_expressions_are_of_hosts_with_a_record_alone_and_settings_have_priority():
    found = limits(max_count_expr="fetched - gone + numRecords", fetch_delay_expr="1000 * fetched")
    # com.a: 10 - 20 + 30; com.c: 0 is no limit, and no pause; com.d has no record, and leaks nothing.
    assert found.max_counts == {"com.a": 20, "com.b": 7, "com.c": 2**31 - 1}
    assert found.delays == {"com.a": 10.0, "com.b": 2.5}
    assert blocked_hosts(SETTINGS) == ["com.d"]


def test_bad_values_are_counted_and_the_usual_applies():
    found = limits({}, max_count_expr="fetched / gone", fetch_delay_expr="-fetched")
    assert found.max_counts == {"com.a": 1}  # a half is rounded up, as Nutch does
    # com.b and com.c have no value, as a host without response times has none.
    assert dict(found.bad) == {"fetch_delay_expr": 2}
    assert found.delays == {}
    assert limits({}, fetch_delay_expr="response_p95 * 10") == ({}, {}, {}, {})


def test_an_expression_knows_the_time():
    options = GenerateOptions(max_count_expr="8 if now() > 1000 else 3")
    found = host_limits_of({}, HOST_ROWS, host_expressions(options, 1_700_000_000_000))
    assert set(found.max_counts.values()) == {8}


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("fetchd", "unknown name 'fetchd'"),
        ("host", "--max_count_expr must be a number for each host, got 'host'"),
        ("fetched >", "wrong syntax at character 10"),
    ],
)
def test_a_wrong_expression_is_quoted(expression, message):
    with pytest.raises(ValueError, match=r".") as caught:
        limits(max_count_expr=expression)
    assert message in str(caught.value)


def test_blocked_hosts_delays_and_boosts():
    rows = pl.DataFrame({
        "key": ["com.a:http/", "com.b:http/1", "com.b:http/2", "com.d:http/"],
        "score": [1.0, 1.0, 2.0, 9.0],
        "delay": [None, None, 0.5, None],
    })  # fmt: skip
    kept, counts = with_limits(rows, limits())
    assert kept["delay"].to_list() == [None, 2.5, 0.5, None]
    assert kept["sort_value"].to_list() == [1.0, 3.0, 6.0, 9.0]
    assert counts == {}
    left, counts = without_blocked_hosts(rows, SETTINGS)
    assert left.equals(rows.head(3))
    assert counts == {"dropped/host_blocked": 1}
    assert with_limits(rows, limits({}))[0].equals(rows)


@pytest.mark.parametrize("seed", range(10))
def test_own_limits_agree_with_a_choice_row_by_row(seed):
    numbers = random.Random(seed)
    rows = [
        {"key": f"com.h{numbers.randint(0, 4)}:http/{n}", "rank": numbers.randint(0, 9)}
        for n in range(60)
    ]
    most = {"com.h1": 3, "com.h2": 0, "com.h4": 100}
    others, free, own = with_own_limits(pl.DataFrame(rows), {**most, "com.h3": NO_LIMIT})
    # Rows of a host without a limit are not compared with one another.
    assert sorted(free["key"]) == sorted(r["key"] for r in rows if r["key"].startswith("com.h3:"))
    right = []
    for host, limit in most.items():
        mine = [row for row in rows if row["key"].startswith(f"{host}:")]
        mine.sort(key=lambda row: (row["rank"], row["key"]), reverse=True)
        right += [row["key"] for row in mine[:limit]]
    assert sorted(best_of_hosts(own)["key"]) == sorted(right)
    assert sorted(others["key"]) == sorted(
        row["key"] for row in rows if row["key"].split(":")[0] not in (*most, "com.h3")
    )


def test_intervals_stay_within_the_bounds_of_their_host():
    bounds = interval_bounds({"com.a": HostSettings(min_interval=60, max_interval=100)})
    rows = pl.DataFrame({
        "key": ["com.a:http/1", "com.a:http/2", "com.a:http/3", "com.a:http/4", "com.b:http/"],
        "visited": [True, True, True, False, True],
        "gone": [False] * 5,
        "fixed_interval": [None, None, 5, None, None],
        "fetch_interval": [10, 500, 5, 10, 10],
        "fetch_time": [1_010_000, 1_500_000, 1_005_000, 1_010_000, 1_010_000],
        "event.fetch_time": [1_000_000] * 5,
    }, schema_overrides={"fixed_interval": pl.Int32, "fetch_interval": pl.Int32})  # fmt: skip
    found = within_bounds(rows, bounds, 1_000)
    assert found["fetch_interval"].to_list() == [60, 100, 5, 10, 10]
    assert found["fetch_time"].to_list() == [
        1_060_000, 1_100_000, 1_005_000, 1_010_000, 1_010_000
    ]  # fmt: skip
    assert within_bounds(rows, {}, 1_000).equals(rows)
    lower = within_bounds(rows, bounds, 50)
    assert lower["fetch_interval"].to_list() == [50, 50, 5, 10, 10]
    # An adaptive schedule has moved the date before the shortest interval.
    early = rows.with_columns(fetch_interval=pl.lit(80, pl.Int32), fetch_time=1_040_000)
    assert within_bounds(early, bounds, 1_000)["fetch_time"].to_list() == [
        1_060_000, 1_060_000, 1_040_000, 1_040_000, 1_040_000
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "days"), [(None, 2, 45), (60, None, 60), (60, 70, 60), (10, 20, 45)]
)
def test_a_gone_page_backs_off_and_keeps_the_shortest_interval_of_its_host(low, high, days):
    """In days; the interval of 30 days of a page that is gone grows to 45."""
    options = UpdateOptions()
    own = HostSettings(min_interval=low and low * DAY_S, max_interval=high and high * DAY_S)
    table = {
        "schedule": built_in_schedule(options),
        "bounds": interval_bounds({"com.example": own}),
    }
    old = old_row(Status.DB_FETCHED, signature=A, fetch_interval=30 * DAY_S)
    rows, *_ = update_state(
        frame_of(STATE, old), frame_of(CHANGES, event(FETCH_GONE)), NOW, options, **table
    )
    assert rows["status"].to_list() == [Status.DB_GONE]
    assert rows["fetch_interval"].to_list() == [days * DAY_S]
    assert rows["fetch_time"].to_list() == [NOW + days * DAY_MS]
    # A failure that will be tried again keeps its date, whatever the bounds are.
    again, *_ = update_state(
        frame_of(STATE, old), frame_of(CHANGES, event(FETCH_RETRY)), NOW, options, **table
    )
    assert again["fetch_time"].to_list() == [NOW + DAY_MS]


@pytest.mark.long
@pytest.mark.few(12)
@pytest.mark.parametrize(("low", "high"), [(200, None), (1, 1), (None, 2), (100, 100), (None, 89)])
@pytest.mark.parametrize("schedule", ["default", "adaptive", "rate"])
@pytest.mark.parametrize("age", [0, 90, 4_000])
def test_settings_of_a_host_never_put_a_date_before_the_fetch_nor_too_late(
    low, high, schedule, age
):
    """In days: bounds of the host, age of the content. The longest interval is 90 days."""
    options = UpdateOptions(schedule=schedule)
    own = HostSettings(*[None] * 3, low and low * DAY_S, high and high * DAY_S)
    table = {
        "schedule": built_in_schedule(options),
        "bounds": interval_bounds({"com.example": own}),
    }
    old = old_row(Status.DB_FETCHED, signature=A, modified_time=NOW - age * DAY_MS,
                  fetch_interval=90 * DAY_S)  # fmt: skip
    for status in (FETCH_SUCCESS, FETCH_NOTMODIFIED, FETCH_REDIR_TEMP):
        changes = frame_of(CHANGES, event(status, signature=A))
        rows, *_ = update_state(frame_of(STATE, old), changes, NOW, options, **table)
        (interval,), (when,) = rows["fetch_interval"], rows["fetch_time"]
        assert min(low or 1, 90) * DAY_S <= interval <= min(high or 90, 90) * DAY_S
        assert NOW < when < NOW + interval * 1000 + 1000  # intervals are whole seconds
        assert not rows.select(due(Clock(NOW), options)).item()
