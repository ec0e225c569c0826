"""A queue's turn: what waits in it, what is known of its hosts, and what came of a visit."""

import dataclasses
from collections import deque
from collections.abc import Iterator

from .hosts import HostRecord
from .robots import EXEMPT, RobotsRecord, RobotsRules
from .tasks import Result, Task


class HostState:
    """What is known of one host.

    Attributes:
        known: What an earlier run learnt.
        address: Where the host is; None while unknown, empty where it does not matter.
        unreachable: The last robots.txt that did not come, with its origin.
        counts: Results by the name of their protocol status.
    """

    __slots__ = ("address", "counts", "known", "unreachable")

    def __init__(self, known: HostRecord | None) -> None:
        self.known = known
        self.address: str | None = None
        self.unreachable: tuple[str, RobotsRecord] | None = None
        self.counts: dict[str, int] = {}


class HostQueue:
    """The tasks of one host, or of those of a domain or an address, and how to treat them.

    Attributes:
        name: The host, the domain or the address.
        tasks: Waiting, first come first.
        hosts: What is known of each host.
        in_progress: How many workers are at it.
        listed: Whether it waits for its turn already.
        begun: Whether it has had a turn.
        ready_at: Monotonic moment of the next turn.
        rules: What robots.txt says, by origin.
        crawl_delay: Seconds that its hosts ask for, the longest.
        exceptions: Failures in a row.
        backoff_level: See ``HostRecord``.
    """

    __slots__ = (
        *("backoff_level", "backoff_until", "begun", "crawl_delay", "exceptions", "hosts"),
        *("in_progress", "kept", "last_end", "listed", "name", "ready_at", "rules", "tasks"),
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks: deque[Task] = deque()
        self.hosts: dict[str, HostState] = {}
        self.in_progress = 0
        self.listed = self.begun = self.kept = False
        self.ready_at = 0.0
        self.rules: dict[str, RobotsRules] = {}
        self.crawl_delay: float | None = None
        self.exceptions = 0
        self.backoff_level = self.backoff_until = self.last_end = 0

    @property
    def next_host(self) -> HostState:
        """The host of the task that comes first."""
        return self.hosts[self.tasks[0].host]

    def add_host(self, host: str, known: HostRecord | None) -> None:
        """Notes what an earlier run learnt about a host of this queue."""
        self.hosts[host] = HostState(known)
        if known is not None:
            self.crawl_delay = _longest(self.crawl_delay, known.crawl_delay)
            self.backoff_level = max(self.backoff_level, known.backoff_level)
            self.backoff_until = max(self.backoff_until, known.backoff_until)
            self.last_end = max(self.last_end, known.last_request_end)

    def absorb(self, other: "HostQueue") -> None:
        """Takes over the hosts and tasks of a queue that nobody is at."""
        self.hosts |= other.hosts
        self.tasks.extend(other.tasks)
        other.tasks.clear()
        self.rules |= other.rules
        self.crawl_delay = _longest(self.crawl_delay, other.crawl_delay)
        self.ready_at = max(self.ready_at, other.ready_at)
        self.backoff_level = max(self.backoff_level, other.backoff_level)
        self.backoff_until = max(self.backoff_until, other.backoff_until)
        self.last_end = max(self.last_end, other.last_end)

    def learn(self, origin: str, rules: RobotsRules, most: float) -> None:
        """Keeps what a robots.txt says.

        Args:
            origin: Whose it is.
            rules: What it says.
            most: Crawl delays that are longer do not count while there are others.
        """
        self.rules[origin] = rules
        if len(self.hosts) > 1:  # of many hosts nothing is taken back
            if rules.crawl_delay is not None and rules.crawl_delay <= most:
                self.crawl_delay = _longest(self.crawl_delay, rules.crawl_delay)
            return
        asked = [r.crawl_delay for r in list(self.rules.values()) if r.crawl_delay is not None]
        self.crawl_delay = max([d for d in asked if d <= most] or asked, default=None)

    def records(self) -> Iterator[HostRecord]:
        """Yields what is known now of each host."""
        for host, state in list(self.hosts.items()):  # at once: workers may add some
            record = HostRecord(
                host,
                crawl_delay=self.crawl_delay,
                exceptions=self.exceptions,
                backoff_until=self.backoff_until,
                last_request_end=self.last_end,
                counts=dict(state.counts),
                backoff_level=self.backoff_level,
            )
            self._add_robots(record, state)
            yield record

    def _add_robots(self, record: HostRecord, state: HostState) -> None:
        """Tells of one origin: the one known before if it was asked again, else the first."""
        known = state.known
        asked = {o: r for o, r in list(self.rules.items()) if host_of(o) == record.host}
        asked = {origin: rules for origin, rules in asked.items() if rules is not EXEMPT}
        origin = known.robots_origin if known is not None else ""
        if asked:
            origin = origin if origin in asked else next(iter(asked))
            kept, record.sitemaps = asked[origin].record, asked[origin].sitemaps
        elif state.unreachable is not None:
            origin, kept = state.unreachable
            record.sitemaps = known.sitemaps if known is not None else ()
        elif known is not None and known.robots_status is not None:
            kept = RobotsRecord(
                known.robots_status,
                known.robots_text,
                known.robots_fetched_at,
                known.robots_failing_since,
            )
            record.sitemaps = known.sitemaps
        else:
            return
        record.robots_origin = origin
        record.robots_status, record.robots_text = kept.status, kept.text
        record.robots_fetched_at, record.robots_failing_since = kept.fetched_at, kept.failing_since


@dataclasses.dataclass(slots=True)
class Visit:
    """What came of a turn.

    Attributes:
        queue: Whose turn it was.
        task: The task that was taken.
        result: None where the task produced none.
        again: Whether the task goes back to the front of its queue.
        asked: Whether a request was made, so that the host's delay counts from now.
        failed: Whether the server failed; None where nothing can be said.
        busy: Whether the server said that it is asked too much (429, 503).
        wait: Seconds that the server asked to be left alone, on top of the delay.
        purge: Reason for which all that waits in the queue is dropped.
        address: Where the host was found to be, if that was asked; see ``HostState``.
        follow: Where a redirect leads that is to be followed in its host's turn.
    """

    queue: HostQueue
    task: Task
    result: Result | None = None
    again: bool = False
    asked: bool = False
    failed: bool | None = None
    busy: bool = False
    wait: float = 0.0
    purge: str | None = None
    address: str | None = None
    follow: Task | None = None


def origin_of(url: str) -> str:
    """Returns ``scheme://host[:port]`` of a normalized URL.

    >>> origin_of("http://a.example:81/b/c")
    'http://a.example:81'
    """
    end = url.find("/", 8)
    return url if end < 0 else url[:end]


def host_of(origin: str) -> str:
    """Returns the host of an origin.

    >>> host_of("http://a.example:81"), host_of("https://[::1]:81"), host_of("http://[::1]")
    ('a.example', '[::1]', '[::1]')
    """
    place = origin.partition("://")[2].lower()
    return place[: place.find("]") + 1] if place.startswith("[") else place.partition(":")[0]


def _longest(*delays: float | None) -> float | None:
    return max((delay for delay in delays if delay is not None), default=None)
