import itertools

import pytest
from frames import frame_of

from nutbeam.policy.components.schema import HOSTS
from nutbeam.policy.hosting.hosts import merge_hosts

NOW = 1_700_000_000_000


def host(key="com.example", **columns):
    return {"key": key, **columns}


def merge(rows, learnt):
    merged, counts = merge_hosts(frame_of(HOSTS, *rows), frame_of(HOSTS, *learnt), NOW)
    assert counts == {}
    assert merged.schema == frame_of(HOSTS).schema
    return merged.to_dicts()


def full(**columns):
    return (
        dict.fromkeys(HOSTS.names) | {"key": "com.example", "seed": False, "requests": 0} | columns
    )


def test_a_new_host_is_added():
    learnt = host(requests=3, exceptions=1, last_request_time=7, backoff_until=9)
    assert merge([], [learnt]) == [full(**learnt)]


def test_a_seed_stays_one():
    assert merge([host(seed=True)], [host()])[0]["seed"] is True
    assert merge([host()], [host(seed=True)])[0]["seed"] is True
    assert merge([host(seed=False)], [host(seed=False), host()])[0]["seed"] is False


def test_requests_add_up_and_times_grow():
    rows = [host(requests=3, last_request_time=50, backoff_until=9)]
    learnt = [host(requests=2, last_request_time=70), host(last_request_time=60, backoff_until=20)]
    expected = full(requests=5, last_request_time=70, backoff_until=20)
    assert merge(rows, learnt) == [expected]


OLD = host(robots_origin="http://example.com", robots_status=200, robots_text="old",
           robots_time=1, crawl_delay=2.0)  # fmt: skip
GONE = host(robots_origin="http://example.com", robots_status=404, robots_time=5)


def test_robots_is_one_thing_an_absent_text_is_not_an_older_one():
    (row,) = merge([OLD], [GONE])
    assert (row["robots_status"], row["robots_text"], row["crawl_delay"]) == (404, None, None)


def test_no_robots_says_nothing_of_robots():
    (row,) = merge([OLD], [host(requests=1)])
    assert (row["robots_status"], row["robots_text"], row["crawl_delay"]) == (200, "old", 2.0)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_newer_host_findings_are_chosen_by_time_and_not_by_order(order):
    learnt = [
        host(exceptions=3, last_request_time=10, robots_time=10, robots_text="a"),
        host(exceptions=1, last_request_time=20, robots_time=5, robots_text="b"),
        host(exceptions=None, last_request_time=30),
    ]
    (row,) = merge([host(exceptions=9, last_request_time=1)], [learnt[at] for at in order])
    assert (row["exceptions"], row["robots_text"], row["last_request_time"]) == (1, "a", 30)


def test_hosts_come_back_in_key_order_and_once():
    keys = ["org.b", "com.z", "com.a", "com.z"]
    merged = merge([host("com.m")], [host(key, requests=1) for key in keys])
    assert [(row["key"], row["requests"]) for row in merged] == [
        ("com.a", 1), ("com.m", 0), ("com.z", 2), ("org.b", 1)
    ]  # fmt: skip


def test_merging_no_hosts_gives_no_hosts():
    assert merge([], []) == []
