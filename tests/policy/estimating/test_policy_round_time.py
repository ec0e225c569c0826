"""How long a fetch takes: the slowest host, or the threads, or the processor, or a limit."""

import polars as pl
import pytest

from nutbeam.policy.estimating.round_time import (
    FetchTerms,
    KnownSpeeds,
    fetch_time,
    host_times,
    phase_times,
    time_of_a_page,
)
from nutbeam.web.engine.pace import FetchOptions

NOW = 10 * 86_400_000


def rows_of(pages, delays=None):
    """Returns rows of hosts with some pages each."""
    delays = delays or {}
    rows = [
        (f"com.{host}:http/{n}", delays.get(host))
        for host, number in pages.items()
        for n in range(number)
    ]
    return pl.DataFrame(rows, {"key": pl.String, "delay": pl.Float64}, orient="row")


def hosts_of(crawl_delays, robots_time=NOW):
    rows = [(f"com.{host}", delay, robots_time) for host, delay in crawl_delays.items()]
    schema = {"key": pl.String, "crawl_delay": pl.Float64, "robots_time": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row")


def times(pages, crawl_delays, delays=None, robots_time=NOW, **pace):
    terms = FetchTerms(FetchOptions(**pace), NOW)
    speeds = KnownSpeeds({"": 0.5})
    found = host_times(rows_of(pages, delays), hosts_of(crawl_delays, robots_time), speeds, terms)
    return {one.host: (one.turns, one.delay, one.cause, one.seconds) for one in found}


def test_the_longest_pause_counts():
    found = times({"a": 3, "b": 3, "c": 3}, {"a": None, "b": 9.0, "c": 2.0}, {"c": 7.0})
    assert found == {
        "b.com": (3, 9.0, "crawl_delay", 3 * 0.5 + 2 * 9.0),
        "c.com": (3, 7.0, "setting", 3 * 0.5 + 2 * 7.0),
        "a.com": (3, 5.0, "server_delay", 3 * 0.5 + 2 * 5.0),
    }


def test_an_old_robots_txt_is_a_turn_and_a_long_crawl_delay_leaves_pages_out():
    found = times({"a": 3, "b": 3}, {"a": None, "b": 99.0}, robots_time=0)
    assert {host: one[0] for host, one in found.items()} == {"a.com": 4, "b.com": 1}
    assert times({"new": 1}, {})["new.com"][0] == 2


def test_hosts_of_a_domain_may_share_a_queue():
    found = times({"x.www": 2, "x.blog": 3}, {}, queue_mode="domain", server_delay=1.0)
    assert {host: one[0] for host, one in found.items()} == {"x.com": 7}


@pytest.mark.parametrize(
    ("pace", "speeds", "bound", "seconds"),
    [
        ({"server_delay": 1.0}, {}, "hosts", 14.0),
        ({"server_delay": 0.0, "threads": 2}, {}, "threads", 10.0),
        ({"server_delay": 0.0}, {"page_s": 0.7}, "cpu", 28.0),
        ({"server_delay": 9.0, "fetch_time_limit": 50.0}, {}, "time_limit", 50.0),
    ],
)
def test_something_holds_a_fetch_up(pace, speeds, bound, seconds):
    terms = FetchTerms(FetchOptions(**pace), NOW)
    known = KnownSpeeds({"": 0.5}, **speeds)
    pages = {f"h{n}": 10 for n in range(4)}
    found = fetch_time(
        host_times(rows_of(pages), hosts_of(dict.fromkeys(pages)), known, terms), known, terms
    )
    assert (found.bound, found.seconds) == (bound, pytest.approx(seconds))
    assert (found.left > 0) == (bound == "time_limit")


def test_only_a_fetch_without_pauses_says_how_fast_the_processor_is():
    requests = rows_of({f"h{n}": 50 for n in range(10)}).select(
        "key", fetch_time=NOW + pl.int_range(500) * 100
    )
    hosts = hosts_of({f"h{n}": None for n in range(10)})
    speeds = KnownSpeeds({"": 0.001})
    fast, slow = (FetchTerms(FetchOptions(server_delay=s), NOW) for s in (0.0, 1.0))
    assert time_of_a_page(requests, hosts, speeds, fast) == pytest.approx(0.1, rel=0.01)
    assert time_of_a_page(requests, hosts, speeds, slow) is None
    assert time_of_a_page(requests.head(50), hosts, speeds, fast) is None


def test_phases_take_as_long_as_before():
    found = phase_times(KnownSpeeds(phases={"update": [(3.0, 100)], "dedup": [(2.0, 100)]}), 50)
    assert (found["update"], found["dedup"]) == (3.0, 2.0)
    assert 0 < found["generate"] < 1
