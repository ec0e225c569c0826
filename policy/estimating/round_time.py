"""Estimates how long a round takes: the hosts that hold its fetch up, and the work of its phases.

A host gets one request at a time, and a pause after each. So its pages take turns x (answer + pause),
and the slowest host ends the fetch, unless all requests together take longer for the threads or the
processor.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.engine.pace import FetchOptions
from ...web.urls.domains import registered_domain
from ...web.urls.row_keys import from_host_key
from ..base.key_columns import host_keys
from ..components.schema import PageRows

# Rows that are fetched: ``key``, and ``delay`` (s) that a setting or the metadata of a row asks for.
ChosenRows: TypeAlias = pl.DataFrame
# Rows with ``key`` and ``response_ms``.
ResponseRows: TypeAlias = pl.DataFrame
# Rows of hosts with ``key``, ``crawl_delay`` and ``robots_time``.
DelayRows: TypeAlias = pl.DataFrame

# Figures of docs/scale.md, for a page of a real site with 60 links: processor time, s.
FETCH_CPU_S, PARSE_CPU_S = 0.0004, 0.0010
_PHASE_CPU_S = {"generate": 0.00013, "update": 0.0004, "dedup": 0.00014}
_PHASE_START_S = 0.3  # of a phase in this process
# A fetch of fewer pages says nothing of the processor; nor does one that pauses explain.
_ENOUGH, _LONGER = 200, 1.3
_ANSWER_S = 0.2  # of a host without answers so far


class HostTime(NamedTuple):
    """How long the pages of a host take.

    Attributes:
        host: The host, or the registered domain whose hosts share a queue.
        pages: Number of its pages.
        turns: Number of requests, with that for robots.txt.
        delay: The pause after each, s.
        answer: How long an answer takes, s.
        cause: What asks for the pause: ``setting``, ``crawl_delay`` or ``server_delay``.
        seconds: How long all turns take.
    """

    host: str
    pages: int
    turns: int
    delay: float
    answer: float
    cause: str
    seconds: float


class FetchTime(NamedTuple):
    """How long a fetch takes.

    Attributes:
        seconds: The time.
        bound: What holds it up: ``hosts``, ``threads``, ``cpu``, ``time_limit`` or ``nothing``;
            ``start`` if its requests take less time than its start and its end.
        hosts: The hosts, the slowest first.
        left: Number of pages that a time limit leaves due.
    """

    seconds: float
    bound: str
    hosts: list[HostTime]
    left: int = 0


@dataclass(frozen=True)
class KnownSpeeds:
    """What earlier rounds of a table took.

    Attributes:
        answers: How long an answer takes, s, by host (reversed); the key "" is for all others.
        page_s: Time of a fetch for a page when no pause held it up, s; None is not known.
        phases: (seconds, pages) of the last runs of each phase, the newest first.
        fetch_rest_s: Time of the last fetch before its first answer and after its last one, s.
    """

    answers: Mapping[str, float] = dataclasses.field(default_factory=dict)
    page_s: float | None = None
    phases: Mapping[str, Sequence[tuple[float, int]]] = dataclasses.field(default_factory=dict)
    fetch_rest_s: float = _PHASE_START_S


class FetchTerms(NamedTuple):
    """Under which terms a fetch runs.

    Attributes:
        pace: Pauses, threads and the time limit.
        now: The time of its start, ms.
        cores: Number of processors: pages are parsed on all of them, fetched on one.
    """

    pace: FetchOptions
    now: int = 0
    cores: int = 1


def answer_times(frames: Iterable[ResponseRows], hosts: pl.Series) -> dict[str, float]:
    """Returns the median time of answers of hosts (reversed), s; under "" that of all URLs.

    >>> rows = pl.DataFrame({"key": ["com.a:http/1", "com.b:http/1"], "response_ms": [500, 1500]})
    >>> answer_times([rows], pl.Series(["com.a"]))
    {'com.a': 0.5, '': 1.0}
    """
    parts = [pl.DataFrame(schema={"host": pl.String, "ms": pl.Int32})]
    for frame in frames:
        of_hosts = host_keys(frame.get_column("key")).alias("host")
        parts.append(frame.select(of_hosts, pl.col("response_ms").cast(pl.Int32).alias("ms")))
    rows = pl.concat(parts)
    if rows.is_empty():
        return {}
    wanted = rows.filter(pl.col("host").is_in(hosts.implode()))
    medians = wanted.group_by("host").agg(pl.col("ms").median() / 1000)
    times = {str(host): float(seconds) for host, seconds in medians.iter_rows()}
    return times | {"": float(rows.select(pl.col("ms").median()).item()) / 1000}


def host_times(
    chosen: ChosenRows, hosts: DelayRows, speeds: KnownSpeeds, terms: FetchTerms
) -> list[HostTime]:
    """Returns how long each host takes, the slowest first.

    Args:
        chosen: The rows that are fetched.
        hosts: Rows of their hosts.
        speeds: How long answers take.
        terms: Pauses and threads; a robots.txt that is older than ``robots_max_age`` is requested, too.

    >>> chosen = pl.DataFrame({"key": ["com.a:http/1", "com.a:http/2"], "delay": [None, None]},
    ...                       schema={"key": pl.String, "delay": pl.Float64})
    >>> hosts = pl.DataFrame({"key": ["com.a"], "crawl_delay": [10.0], "robots_time": [0]})
    >>> (one,) = host_times(chosen, hosts, KnownSpeeds({"": 1.0}), FetchTerms(FetchOptions(), 1))
    >>> one.host, one.turns, one.delay, one.cause, one.seconds
    ('a.com', 2, 10.0, 'crawl_delay', 12.0)
    """
    pace = terms.pace
    old = terms.now - int(1000 * pace.robots_max_age)
    rows = (
        chosen.with_columns(host=host_keys(chosen.get_column("key")))
        .group_by("host")
        .agg(pl.len().alias("pages"), pl.col("delay").max())
        .join(hosts.select("key", "crawl_delay", "robots_time"), left_on="host", right_on="key",
              how="left")
        .with_columns(needs_robots=(pl.col("robots_time") > old).not_().fill_null(True))
    )  # fmt: skip
    queues: dict[str, _Queue] = {}
    for host, pages, delay, crawl_delay, _, needs_robots in rows.sort("host").iter_rows():
        name = from_host_key(host)
        if pace.queue_mode == "domain":
            name = registered_domain(name)
        answer = speeds.answers.get(host, speeds.answers.get("", _ANSWER_S))
        if crawl_delay and crawl_delay > pace.longest_crawl_delay:
            pages = 0  # they are left out
        turns = _Turns(pages, pages + needs_robots, delay, crawl_delay)
        queues.setdefault(name, _Queue()).add(turns, answer)
    times = [queue.time(name, pace) for name, queue in queues.items()]
    return sorted(times, key=lambda one: (-one.seconds, one.host))


class _Turns(NamedTuple):
    """The pages and turns of a host, and the pauses that settings and robots.txt ask for, s."""

    pages: int
    turns: int
    delay: float | None
    crawl_delay: float | None


class _Queue:
    """The hosts that share a queue; the longest pause of them counts."""

    def __init__(self) -> None:
        self.pages = self.turns = 0
        self.busy = 0.0
        self.delay: float | None = None
        self.crawl_delay: float | None = None

    def add(self, turns: "_Turns", answer: float) -> None:
        """Adds a host whose answers take a time, s."""
        self.pages += turns.pages
        self.turns += turns.turns
        self.busy += turns.turns * answer
        self.delay = _longest(self.delay, turns.delay)
        self.crawl_delay = _longest(self.crawl_delay, turns.crawl_delay)

    def time(self, name: str, pace: FetchOptions) -> HostTime:
        """Returns how long all its turns take."""
        if self.delay is not None:
            delay = max(self.delay, self.crawl_delay or 0.0)
            cause = "setting" if delay == self.delay else "crawl_delay"
        else:
            delay = pace.delay(self.crawl_delay)
            cause = "crawl_delay" if self.crawl_delay else "server_delay"
        abreast = 1 if self.crawl_delay else pace.threads_per_host
        seconds = (self.busy + max(0, self.turns - 1) * delay) / abreast
        answer = self.busy / self.turns if self.turns else 0.0
        return HostTime(name, self.pages, self.turns, delay, answer, cause, seconds)


def _longest(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def fetch_time(hosts: list[HostTime], speeds: KnownSpeeds, terms: FetchTerms) -> FetchTime:
    """Returns how long a fetch takes, and what holds it up.

    Args:
        hosts: Its hosts; see ``host_times``.
        speeds: How fast earlier fetches were.
        terms: Threads, processors and the time limit.
    """
    if not hosts:
        return FetchTime(0.0, "nothing", [])
    pace, pages = terms.pace, sum(one.pages for one in hosts)
    cpu = FETCH_CPU_S + PARSE_CPU_S / max(1, terms.cores)
    bounds = {
        "hosts": max(one.seconds for one in hosts),
        "threads": sum(one.turns * one.answer for one in hosts) / pace.threads,
        "cpu": pages * (cpu if speeds.page_s is None else speeds.page_s),
    }
    bound = max(bounds, key=lambda name: bounds[name])
    longest = bounds[bound]
    limit = pace.fetch_time_limit if pace.fetch_time_limit >= 0 else math.inf
    if longest <= limit:
        bound = "start" if longest < speeds.fetch_rest_s else bound
        return FetchTime(longest, bound, hosts)
    return FetchTime(limit, "time_limit", hosts, _pages_after(hosts, limit, pages, bounds))


def time_of_a_page(
    requests: PageRows, hosts: DelayRows, speeds: KnownSpeeds, terms: FetchTerms
) -> float | None:
    """Returns the time of a page in a fetch that no pause held up, s; None if one did.

    Args:
        requests: ``key`` and ``fetch_time`` (ms) of the pages of that fetch.
        hosts: Rows of their hosts.
        speeds: How long answers take.
        terms: Pauses, threads and processors.
    """
    if len(requests) < _ENOUGH:
        return None
    began = int(requests.select(pl.col("fetch_time").min()).item())
    then = terms._replace(now=began)
    chosen = requests.select("key", delay=pl.lit(None, pl.Float64))
    expected = fetch_time(host_times(chosen, hosts, speeds, then), speeds, then)
    took = seconds_of_requests(requests)
    return took / len(requests) if took > _LONGER * expected.seconds else None


def seconds_of_requests(requests: PageRows) -> float:
    """Returns the time from the first answer to the last one, s.

    >>> seconds_of_requests(pl.DataFrame({"fetch_time": [1000, 3500]}))
    2.5
    """
    time = pl.col("fetch_time")
    return float(requests.select((time.max() - time.min()) / 1000).item())


def _pages_after(
    hosts: list[HostTime], limit: float, pages: int, bounds: Mapping[str, float]
) -> int:
    """Returns how many pages are not fetched before a time limit."""
    of_hosts = sum(one.pages * (1 - limit / one.seconds) for one in hosts if one.seconds > limit)
    others = max(bounds["threads"], bounds["cpu"])
    of_others = pages * (1 - limit / others) if others > limit else 0.0
    return round(max(of_hosts, of_others))


def phase_times(speeds: KnownSpeeds, pages: int) -> dict[str, float]:
    """Returns how long the other phases of a round take, s.

    A phase takes as long as its run whose number of pages is the nearest. Its start takes the same time for
    any number; the rest takes longer for more pages. Before a first round, figures of docs/scale.md count.

    >>> speeds = KnownSpeeds(phases={"update": [(0.4, 15), (2.3, 100)]})
    >>> phase_times(speeds, 200)["update"]
    4.3
    """
    times = {}
    for name, cpu in _PHASE_CPU_S.items():
        if runs := speeds.phases.get(name):
            seconds, then = min(runs, key=lambda run: abs(run[1] - pages))
            start = min(seconds, _PHASE_START_S)
            times[name] = start + (seconds - start) * max(1.0, pages / max(1, then))
        else:
            times[name] = _PHASE_START_S + pages * cpu
    return times
