"""Finds the hosts that a fetch waited for, and says why they took so long."""

from typing import Any, NamedTuple

import polars as pl

from ...web.urls.row_keys import from_host_key
from ..base.key_columns import host_keys
from ..components.host_rows import HostSettings
from ..components.schema import PageRows

_MOST = 3
_LEAST_S = 10.0
# A host is slow if its requests take this share of the fetch.
_SHARE = 0.5
# A longer observed pause is not that of politeness.
_LONGER = 1.5


class SlowHost(NamedTuple):
    """A host that a fetch waited for.

    Attributes:
        key: Its name, reversed.
        pages: Number of its requests.
        seconds: Time from its first request to its last one, s.
    """

    key: str
    pages: int
    seconds: float


def slow_hosts(requests: PageRows) -> list[SlowHost]:
    """Returns the slowest hosts of a fetch, the slowest first; none if the fetch took no time.

    Args:
        requests: ``key`` and ``fetch_time`` (ms) of the requests of one fetch.

    >>> keys = ["com.a:http/1", "com.a:http/2", "com.b:http/1", "com.b:http/2"]
    >>> slow_hosts(pl.DataFrame({"key": keys, "fetch_time": [0, 20_000, 0, 1_000]}))
    [SlowHost(key='com.a', pages=2, seconds=20.0)]
    """
    times = requests.drop_nulls("fetch_time")
    if times.is_empty():
        return []
    time = pl.col("fetch_time")
    spans = times.group_by(host_keys(times.get_column("key")).alias("host")).agg(
        pages=pl.len(), ms=time.max() - time.min()
    )
    whole = times.select(time.max() - time.min()).item()
    slow = spans.filter((pl.col("ms") >= _LEAST_S * 1000) & (pl.col("ms") >= _SHARE * whole))
    slow = slow.sort("ms", "host", descending=[True, False]).head(_MOST)
    return [SlowHost(host, pages, ms / 1000) for host, pages, ms in slow.iter_rows()]


def all_together(slow_hosts: list[SlowHost]) -> list[SlowHost]:
    """Returns the slowest hosts of several fetches, with their sums.

    >>> all_together([SlowHost("com.a", 2, 20.0), SlowHost("com.b", 9, 30.0), SlowHost("com.a", 1, 15.0)])
    [SlowHost(key='com.a', pages=3, seconds=35.0), SlowHost(key='com.b', pages=9, seconds=30.0)]
    """
    sums: dict[str, SlowHost] = {}
    for one in slow_hosts:
        earlier = sums.get(one.key, SlowHost(one.key, 0, 0.0))
        sums[one.key] = SlowHost(one.key, earlier.pages + one.pages, earlier.seconds + one.seconds)
    return sorted(sums.values(), key=lambda one: (-one.seconds, one.key))[:_MOST]


def slow_record(
    slow: SlowHost, own: HostSettings, crawl_delay: float | None, server_delay: float
) -> dict[str, Any]:
    """Returns why a host is slow, and which options change that, for people and JSON.

    Args:
        slow: The host.
        own: The operator's settings of it.
        crawl_delay: The pause that its robots.txt asks for, s.
        server_delay: The usual pause, s.

    >>> found = slow_record(SlowHost("com.a", 5, 20.0), HostSettings(), None, 5.0)
    >>> found["host"], found["pause"], found["cause"]
    ('a.com', 5.0, 'server_delay')
    """
    name = from_host_key(slow.key)
    observed = slow.seconds / max(1, slow.pages - 1)
    fewer = f'with the line "{name} max_count={max(1, slow.pages // 2)}" in a file for nutbeam hostinject, '
    fewer += "a batch takes fewer of its URLs"
    if own.delay is not None:
        pause, cause = own.delay, "setting"
        advice = (
            f'a pause of {pause:g} s that a setting asks for: a line "{name} delay=SECONDS" in a '
        )
        advice += "file for nutbeam hostinject changes it"
    elif crawl_delay:
        pause, cause = max(crawl_delay, server_delay), "crawl_delay"
        advice = f"a pause of {pause:g} s that its robots.txt asks for: {fewer}"
    else:
        pause, cause = server_delay, "server_delay"
        advice = f"a pause of {pause:g} s: --server_delay changes it for all hosts, a line "
        advice += f'"{name} delay=SECONDS" in a file for nutbeam hostinject for this one'
    if observed > _LONGER * max(pause, 1.0):
        cause = "answers"
        advice = f"its answers took {observed:.1f} s each, with the pause: {fewer}"
    return {"host": name, "pages": slow.pages, "seconds": round(slow.seconds, 1), "pause": pause,
            "cause": cause, "advice": advice}  # fmt: skip
