"""Look-ups: which hosts are due, what their results mean, and when a host is given up."""

import pytest
from frames import frame_of

from nutbeam.policy.components.schema import HOSTS
from nutbeam.policy.hosting.host_fields import is_shown
from nutbeam.policy.hosting.recount import HostCheckOptions, checked_hosts, to_check
from nutbeam.web.exchange.addresses import FOUND

DAY = 86_400_000
NOW = 1_700_000_000_000


def hosts(*rows):
    return frame_of(HOSTS, *({"seed": False, "unfetched": 1, **row} for row in rows))


NEW = {"key": "com.new"}
KNOWN = {"key": "com.known", "dns_time": NOW - 2 * DAY, "dns_failures": 0}
FAILED = {"key": "com.failed", "dns_time": NOW - 2 * DAY, "dns_failures": 1}
FRESH = {"key": "com.fresh", "dns_time": NOW - DAY // 2, "dns_failures": 0}
# Its third failure was two days ago: it waits for three.
RESTING = {"key": "com.resting", "dns_time": NOW - 2 * DAY, "dns_failures": 3}
DOMAIN = {"key": "com.domain", "unfetched": 0}


@pytest.mark.parametrize(
    ("check", "right"),
    [
        ("none", set()),
        ("new", {"com.new"}),
        ("known", {"com.known"}),
        ("failed", {"com.failed"}),
        ("all", {"com.new", "com.known", "com.failed"}),
    ],
)
def test_which_hosts_are_looked_up(check, right):
    rows = hosts(NEW, KNOWN, FAILED, FRESH, RESTING, DOMAIN)
    assert set(to_check(rows, NOW, HostCheckOptions(check=check))) == right


def test_results_and_nutchs_counters():
    rows = hosts(NEW, KNOWN, FAILED, {"key": "com.bad"}, {**RESTING, "dns_failures": 1})
    found = {"com.new": FOUND, "com.known": "timeout", "com.failed": FOUND, "com.bad": "unknown"}
    after, counts = checked_hosts(rows, found, NOW, HostCheckOptions())
    said = {key: (n, t) for key, n, t in after.select("key", "dns_failures", "dns_time").rows()}
    assert said == {
        "com.new": (0, NOW), "com.known": (1, NOW), "com.failed": (0, NOW), "com.bad": (1, NOW),
        "com.resting": (1, NOW - 2 * DAY),
    }  # fmt: skip
    assert counts == {
        "new_known_host": 1, "existing_unknown_host": 1, "rediscovered_host": 1,
        "new_unknown_host": 1, "checked_hosts": 4, "lookup/timeout": 1, "lookup/unknown": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("failures", "threshold", "row", "shown"),
    [
        (3, 3, {}, False),  # this is the fourth failure: more than three
        (2, 3, {}, True),  # Nutch gives these up, and keeps those
        (0, 0, {}, False),
        (9, -1, {}, True),
        (9, 3, {"seed": True}, True),
        (9, 3, {"settings": [("delay", "1")]}, True),
        (9, 3, {"last_request_time": NOW + 1}, True),
    ],
)
def test_a_host_is_given_up_after_more_failures_than_the_threshold(failures, threshold, row, shown):
    rows = hosts({"key": "com.a", "dns_failures": failures, "dns_time": 1, **row})
    options = HostCheckOptions(failed_hosts_threshold=threshold)
    after, _ = checked_hosts(rows, {"com.a": "unknown"}, NOW, options)
    assert len(after) == 1  # its numbers of URLs follow the changes, and are needed
    assert len(after.filter(is_shown())) == shown
    again, _ = checked_hosts(after, {"com.a": FOUND}, NOW, options)
    assert again["purged_since"].to_list() == [None]
