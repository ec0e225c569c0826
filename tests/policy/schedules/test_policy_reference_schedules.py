"""The reference of the schedules: worked examples of nutch.md 2.5, and properties of all dates."""

import dataclasses
import doctest
import random

import pytest
import reference_schedules
import reference_update
from reference_attached import product_dates
from reference_schedules import (
    DAY_S,
    MODIFIED,
    NOTMODIFIED,
    UNKNOWN,
    Adaptive,
    Limits,
    adaptive_schedule,
    read_hosts,
    read_mimes,
)
from reference_update import Rules, update_url

NOW = 1_790_000_000_000
DAY_MS = DAY_S * 1000
YEAR = Limits(max_fetch_interval=366 * DAY_S)
KEY = "com.example:http/"
SHIPPED = read_mimes(
    ["text/html\t0.2\t0.2", "application/xhtml+xml\t0.2\t0.2", "application/pdf\t0.1\t0.4"]
)


@pytest.mark.parametrize("module", [reference_schedules, reference_update])
def test_examples_of_the_reference(module):
    assert doctest.testmod(module).failed == 0


def days(change, interval, since=0.0, settings=None, limits=YEAR, key=KEY, **columns):
    """Returns (interval, days until due) for an interval and a time since the last change in days."""
    row = {"key": key, "fetch_interval": interval * DAY_S, "fixed_interval": None} | columns
    row["modified_time"] = NOW - round(since * DAY_MS)
    seconds, due = adaptive_schedule(settings or Adaptive(), limits)(row, NOW, change)
    return round(seconds / DAY_S, 6), round((due - NOW) / DAY_MS, 6)


@pytest.mark.parametrize(
    ("change", "interval", "since", "expected"),
    [
        (MODIFIED, 30, 0, (24, 24)),
        (MODIFIED, 30, 90, (24, 24)),  # the change is of now, whatever was before
        (NOTMODIFIED, 30, 0, (42, 42)),
        (UNKNOWN, 30, 0, (30, 30)),
        (NOTMODIFIED, 30, 10, (42, 39)),  # 0.3 of the 10 days are taken off
        (NOTMODIFIED, 5, 10, (10, 7)),  # longer than 5 d * 1.4, so the time since the change counts
        (UNKNOWN, 5, 10, (10, 7)),
    ],
)
def test_adaptive(change, interval, since, expected):
    assert days(change, interval, since) == expected


def test_the_delta_is_only_used_if_it_is_wanted():
    assert days(NOTMODIFIED, 5, 10, Adaptive(sync_delta=False)) == (7, 7)


def test_an_offset_is_a_share_of_at_most_one_interval():
    settings = Adaptive(max_interval=10 * DAY_S)
    assert days(NOTMODIFIED, 5, 30, settings) == (10, 7)  # Nutch: after 1 day
    assert days(NOTMODIFIED, 5, 100, settings) == (10, 7)  # Nutch: 10 days, the offset becomes 0


def test_no_fetch_is_sooner_than_the_smallest_interval():
    settings = Adaptive(min_interval=DAY_S, sync_delta_rate=1.0)
    assert days(NOTMODIFIED, 5, 10, settings) == (10, 1)


def test_the_smaller_of_both_longest_intervals_counts():
    settings = Adaptive(sync_delta=False)
    assert days(NOTMODIFIED, 80, 0, settings, Limits()) == (90, 90)
    assert days(NOTMODIFIED, 80, 0, Adaptive(max_interval=85 * DAY_S)) == (85, 85)


def test_the_smallest_interval_counts():
    assert days(MODIFIED, 0.5, 0, Adaptive(min_interval=DAY_S // 2)) == (0.5, 0.5)


def test_a_fixed_interval_wins_over_everything():
    limits = Limits(max_fetch_interval=10 * DAY_S)
    for change in (MODIFIED, NOTMODIFIED, UNKNOWN):
        assert days(change, 5, 40, Adaptive(), limits, fixed_interval=40 * DAY_S) == (40, 40)
        assert days(change, 5, 40, Adaptive(), limits, fixed_interval=7) == (
            round(7 / DAY_S, 6),
            round(7 / DAY_S, 6),
        )


def test_intervals_of_a_host():
    lines = ["www.example.com 3600 7200", "example.org 0 864000"]
    settings = Adaptive(hosts=read_hosts(lines, Adaptive(), YEAR), sync_delta=False)
    hours = 1 / 24
    www = "com.example.www:http/a"
    assert days(MODIFIED, 30, 0, settings, key=www)[0] == round(2 * hours, 6)
    assert days(MODIFIED, 0.001, 0, settings, key=www)[0] == round(hours, 6)
    assert days(NOTMODIFIED, 30, 0, settings, key="org.example:http/a")[0] == 10
    assert days(NOTMODIFIED, 30, 0, settings)[0] == 42


@pytest.mark.parametrize(
    "line", ["a.com 59 100", "a.com 60 31536000", "a.com 200 100", "a.com default 59"]
)
def test_intervals_of_a_host_outside_of_the_global_ones_are_refused(line):
    with pytest.raises(ValueError, match=r"a\.com.* 60 and 7776000"):
        read_hosts([line], Adaptive(), Limits())


@pytest.mark.parametrize(
    ("content_type", "modified", "notmodified"),
    [
        ("text/html", 24, 36),
        ("TEXT/HTML; charset=utf-8", 24, 36),
        ("application/pdf", 18, 33),
        ("image/png", 24, 42),  # not listed: the global rates
        (None, 24, 42),
    ],
)
def test_rates_by_type(content_type, modified, notmodified):
    settings = Adaptive(mimes=SHIPPED)
    assert days(MODIFIED, 30, 0, settings, content_type=content_type)[0] == modified
    assert days(NOTMODIFIED, 30, 0, settings, content_type=content_type)[0] == notmodified


def random_settings(numbers, mime_adaptive):
    limits = Limits(max_fetch_interval=numbers.choice((DAY_S, 90 * DAY_S, 400 * DAY_S)))
    settings = Adaptive(
        inc_rate=numbers.choice((0.1, 0.4, 2.0)),
        dec_rate=numbers.choice((0.1, 0.2, 0.9)),
        min_interval=numbers.choice((60, 3600)),
        sync_delta=numbers.random() < 0.8,
        sync_delta_rate=numbers.choice((0.0, 0.3, 1.0)),
        mimes=SHIPPED if mime_adaptive else {},
    )
    hosts = read_hosts(["a.com 7200 80000", "b.com 0 7200"], settings, limits)
    return dataclasses.replace(settings, hosts=hosts), limits


def random_cases(numbers, count=300):
    return [
        {
            "key": f"com.{numbers.choice('abc')}:http/{at}",
            "fetch_interval": numbers.choice((None, 0, 1, 60, 5000, DAY_S, 30 * DAY_S)),
            "fixed_interval": numbers.choice((None,) * 9 + (100 * DAY_S,)),
            "modified_time": numbers.choice((None, 0, NOW - numbers.randrange(700 * DAY_MS))),
            "content_type": numbers.choice((None, "text/html; x=y", "Application/PDF", "a/b")),
            "fetched": NOW + at,
            "change": numbers.choice((MODIFIED, NOTMODIFIED, UNKNOWN)),
        }
        for at in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_no_adaptive_date_is_before_the_fetch_or_beyond_the_bounds(seed):
    numbers = random.Random(seed)
    settings, limits = random_settings(numbers, seed % 2)
    schedule = adaptive_schedule(settings, limits)
    for case in random_cases(numbers):
        interval, due = schedule(case, case["fetched"], case["change"])
        assert case["fetched"] <= due <= case["fetched"] + interval * 1000 + 1
        if not case["fixed_interval"]:
            assert due >= case["fetched"] + settings.min_interval * 1000
            assert settings.min_interval <= interval <= limits.max_fetch_interval


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["adaptive", "mime_adaptive"])
def test_the_product_chooses_the_same_dates(name, seed):
    numbers = random.Random(seed)
    settings, limits = random_settings(numbers, name == "mime_adaptive")
    cases, schedule = random_cases(numbers), adaptive_schedule(settings, limits)
    expected = [schedule(case, case["fetched"], case["change"]) for case in cases]
    for (interval, due), (seconds, at) in zip(
        expected, product_dates(name, cases, settings, limits), strict=True
    ):
        assert abs(seconds - interval) <= 0.5
        assert abs(at - due) <= 1


@pytest.mark.parametrize("change", [MODIFIED, NOTMODIFIED])
def test_update_with_the_adaptive_schedule(change):
    rules = Rules(adaptive=Adaptive())
    row = dict.fromkeys(reference_update.KNOWN) | {"key": KEY, "status": 2, "signature": b"a"}
    row |= {"fetch_interval": 30 * DAY_S, "modified_time": NOW - DAY_MS, "score": 1.0}
    event = {"key": KEY, "order": 1, "fetch_status": 33, "fetch_time": NOW, "parse_status": 1}
    event["signature"] = b"b" if change == MODIFIED else b"a"
    after, outcome = update_url(row, [event], NOW, rules)
    if change == MODIFIED:
        expected = (2, 24 * DAY_S, NOW + 24 * DAY_MS, NOW)
    else:
        expected = (6, 42 * DAY_S, NOW + 42 * DAY_MS - round(0.3 * DAY_MS), NOW - DAY_MS)
    columns = ("status", "fetch_interval", "fetch_time", "modified_time")
    assert tuple(after[name] for name in columns) == expected
    assert outcome["status"] == after["status"]


@pytest.mark.parametrize(
    ("signatures", "expected"),
    [([b"a"] * 20, 90 * DAY_S), ([b"%d" % at for at in range(80)], 60)],
    ids=["never_changes", "always_changes"],
)
def test_intervals_grow_to_the_longest_or_shrink_to_the_smallest(signatures, expected):
    row, now = None, NOW
    for signature in signatures:
        event = {"key": KEY, "order": 1, "fetch_status": 33, "fetch_time": now}
        row, _ = update_url(
            row, [event | {"signature": signature}], now, Rules(adaptive=Adaptive())
        )
        now = row["fetch_time"] + 1
    assert row["fetch_interval"] == expected
