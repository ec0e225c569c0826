"""The reference of the schedules: its examples, and the dates that the product chooses."""

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

NOW = 1_790_000_000_000
DAY_MS = DAY_S * 1000
SHIPPED = read_mimes(
    ["text/html\t0.2\t0.2", "application/xhtml+xml\t0.2\t0.2", "application/pdf\t0.1\t0.4"]
)


@pytest.mark.parametrize("module", [reference_schedules, reference_update])
def test_examples_of_the_reference(module):
    assert doctest.testmod(module).failed == 0


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


@pytest.mark.few(10)
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
