"""The queue of a host: its tasks, the state of its hosts, the outcome of a turn, and the pause after it."""

import dataclasses
import random
import sys
from collections.abc import Callable, Iterator

from ..base.mappings import SmallMap
from ..exchange.status import BUSY_STATUSES, EXCEPTION, Outcome, Response
from ..robots.robots import NO_RULES, RobotsRecord, RobotsRules
from ..robots.robots_text import absolute_sitemaps
from .pace import FetchOptions
from .robots_search import RobotsSearch
from .tasks import HostRecord, Result, Task, Tasks

Recall = Callable[[str], HostRecord | None]

# Largest random extension of a back-off, as a share, so that crawlers do not return all at once.
_JITTER = 0.2
_MAX_BACKOFF_LEVEL = 30


@dataclasses.dataclass(slots=True)
class HostState:
    """The state of one host.

    Attributes:
        host: Its name.
        recall: Function that returns the findings of an earlier run about a host.
        address: IP address of the host; None while unknown, empty if it does not matter.
        unreachable: Origin and record of the last robots.txt that could not be fetched.
        counts: Results by the name of their protocol status.
    """

    host: str
    recall: Recall
    address: str | None = None
    unreachable: tuple[str, RobotsRecord] | None = None
    counts: SmallMap[str, int] = dataclasses.field(default_factory=SmallMap)

    @property
    def findings(self) -> HostRecord | None:
        """Findings of an earlier run; read each time, because a robots.txt may be long."""
        return self.recall(self.host)


class HostQueue:
    """The tasks of one host, or of the hosts of a domain or an address, and their state.

    Attributes:
        name: The host, the domain or the address.
        tasks: Waiting tasks, in order of arrival.
        hosts: State of each host.
        in_progress: Number of turns under way.
        listed: Whether it is in the ready queues.
        begun: Whether it has had a turn.
        fresh: Its number of tasks when it was listed as a new queue; None: it is not.
        ready_at: Monotonic moment of the next request.
        rules: Rules of robots.txt, by origin.
        searches: Searches for robots.txt under way, by origin.
        crawl_delay: Longest crawl delay of its hosts, in s.
        own_delay: Longest delay of its tasks, in s; None if no task has a delay.
        own_threads: Fewest threads that its tasks allow; None if no task says so.
        exceptions: Number of consecutive failures.
        backoff_level: See ``HostRecord``.
        answered: Whether the server has answered a request for a page.
        failures: Number of pages without an answer.
        failure: Reason of the last of them.
        held_keys: Keys of pages whose results wait until it has ended; see ``HeldResults``.
    """

    __slots__ = (
        *("answered", "failure", "failures"),
        *("backoff_level", "backoff_until", "begun", "crawl_delay", "exceptions", "fresh"),
        *("held_keys", "hosts", "in_progress", "last_request_time", "listed", "name", "own_delay"),
        *("own_threads", "ready_at", "rules", "rules_counted", "searches", "tasks"),
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks = Tasks()
        self.hosts: SmallMap[str, HostState] = SmallMap()
        self.in_progress = 0
        self.listed = self.begun = self.rules_counted = False
        self.fresh: int | None = None
        self.ready_at = 0.0
        self.rules: SmallMap[str, RobotsRules] = SmallMap()
        self.searches: SmallMap[str, RobotsSearch] = SmallMap()
        self.crawl_delay: float | None = None
        self.own_delay: float | None = None
        self.own_threads: int | None = None
        self.held_keys: tuple[str, ...] = ()
        self.answered, self.failures, self.failure = False, 0, ""
        self.exceptions = 0
        self.backoff_level = self.backoff_until = self.last_request_time = 0

    def next_search(self) -> RobotsSearch | None:
        """Returns the search for the robots.txt of the first page."""
        if not self.searches or not self.tasks or self.tasks[0].robots:
            return None
        return self.searches.get(origin_of(self.tasks[0].request_url))

    @property
    def next_host(self) -> HostState:
        """The host of the first task."""
        return self.hosts[self.tasks[0].host]

    def limit(self, usual_limit: int) -> int:
        """Returns how many turns may be under way at a time."""
        limit = usual_limit if self.own_threads is None else self.own_threads
        # A crawl delay is a delay between requests, so only one turn at a time is allowed.
        return 1 if self.next_host.address is None or self.crawl_delay else limit

    def delay_after_request(self, usual: Callable[[float | None], float]) -> float:
        """Returns the delay after a request: that of its tasks, or the usual one.

        It is never less than the crawl delay of robots.txt.

        >>> queue = HostQueue("foo.com")
        >>> queue.own_delay, queue.crawl_delay = 0.5, 2.0
        >>> queue.delay_after_request(lambda crawl_delay: crawl_delay or 5.0)
        2.0
        """
        if self.own_delay is None:
            return usual(self.crawl_delay)
        return max(self.own_delay, self.crawl_delay or 0.0)

    def count(self, result: Result) -> None:
        """Counts a result: an answer of the server, or an error."""
        if result.protocol_status == EXCEPTION:
            self.failures, self.failure = self.failures + 1, sys.intern(result.message)
        else:
            self.answered = True

    def take_over(self, task: Task) -> None:
        """Takes over the delay, the number of threads and the address of a task."""
        self.own_delay = _longest(self.own_delay, task.delay)
        self.own_threads = _fewest(self.own_threads, task.threads)
        if task.address is not None:
            self.hosts[task.host].address = task.address

    def add_host(self, host: str, recall: Recall) -> HostRecord | None:
        """Adds a host; returns the findings of an earlier run about it."""
        self.hosts[host] = HostState(host, recall)
        findings = recall(host)
        if findings is not None:
            self._take_delays(findings)
        return findings

    def _take_delays(self, other: "HostRecord | HostQueue") -> None:
        self.crawl_delay = _longest(self.crawl_delay, other.crawl_delay)
        self.backoff_level = max(self.backoff_level, other.backoff_level)
        self.backoff_until = max(self.backoff_until, other.backoff_until)
        self.last_request_time = max(self.last_request_time, other.last_request_time)

    def absorb(self, other: "HostQueue") -> None:
        """Adds the hosts and tasks of a queue that has no turns under way."""
        self.hosts.update(other.hosts)
        self.tasks.extend(other.tasks)
        other.tasks.clear()
        self.rules.update(other.rules)
        self.searches.update(other.searches)
        self.held_keys += other.held_keys
        self.own_delay = _longest(self.own_delay, other.own_delay)
        self.own_threads = _fewest(self.own_threads, other.own_threads)
        self.ready_at = max(self.ready_at, other.ready_at)
        self.answered |= other.answered
        self.failures, self.failure = self.failures + other.failures, self.failure or other.failure
        self._take_delays(other)

    def keep_rules(self, origin: str, rules: RobotsRules, longest: float) -> None:
        """Keeps the rules of a robots.txt.

        Args:
            origin: Its origin.
            rules: Its rules.
            longest: Limit; a longer crawl delay only counts if it is the only one of a single host.
        """
        self.rules[origin] = rules
        if len(self.hosts) > 1:  # the longest delay of all hosts counts
            if rules.crawl_delay is not None and rules.crawl_delay <= longest:
                self.crawl_delay = _longest(self.crawl_delay, rules.crawl_delay)
            return
        requested = [
            rules.crawl_delay
            for rules in self.rules.copy().values()
            if rules.crawl_delay is not None
        ]
        self.crawl_delay = max([d for d in requested if d <= longest] or requested, default=None)

    def records(self) -> Iterator[HostRecord]:
        """Yields the findings about each host, after the first turn."""
        if not self.begun:
            return
        for host, state in self.hosts.copy().items():  # workers may add hosts
            if not (self.last_request_time or self.rules or state.counts):
                continue  # a robots.txt was due, and was not requested
            record = HostRecord(
                host,
                crawl_delay=self.crawl_delay,
                exceptions=self.exceptions,
                backoff_until=self.backoff_until,
                last_request_time=self.last_request_time,
                counts=dict(state.counts),
                backoff_level=self.backoff_level,
            )
            self._add_robots(record, state)
            yield record

    def _add_robots(self, record: HostRecord, state: HostState) -> None:
        """Adds the robots.txt of one origin: the known one if requested again, else the first."""
        requested = {o: r for o, r in self.rules.copy().items() if host_of_origin(o) == record.host}
        requested = {origin: rules for origin, rules in requested.items() if rules is not NO_RULES}
        findings = None if len(requested) == 1 else state.findings
        origin = findings.robots_origin if findings is not None else ""
        if requested:
            origin = origin if origin in requested else next(iter(requested))
            robots = requested[origin].record
            record.sitemaps = absolute_sitemaps(requested[origin].sitemaps, origin)
        elif state.unreachable is not None:
            origin, robots = state.unreachable
            record.sitemaps = findings.sitemaps if findings is not None else ()
        elif findings is not None and findings.robots is not None:
            robots, record.sitemaps = findings.robots, findings.sitemaps
        else:
            return
        record.robots_origin = origin
        record.robots_status, record.robots_text = robots.status, robots.text
        record.robots_time, record.robots_failing_since = (
            robots.fetched_at,
            robots.failing_since,
        )


@dataclasses.dataclass(slots=True)
class HostTurn:
    """The outcome of a turn of a host: at most one request to it.

    Attributes:
        queue: The queue of the host.
        task: The task that was taken.
        result: The result; None if there is none.
        again: Whether the task goes back to the front of its queue.
        requested: Whether a request was made, so that the host's delay counts from now.
        failed: Whether the server failed; None if unknown.
        busy: Whether the server has too many requests (425, 429, 503).
        wait: Pause that the server demands, in s, in addition to the delay.
        drop_queue: Reason to drop all tasks of the queue, or None.
        address: Address of the host, if it was looked up; see ``HostState``.
        follow: Task for the target of a redirect, which is queued for its host.
        search: Search for the robots.txt of the task, which continues there; the task waits for it.
        answer: The response, if the task was to fetch a robots.txt for another host.
        drop: Reason to drop the task, or None.
        cookies: The cookies that were sent, if the result is a redirect and cookies are kept: then
            its page may be requested again when there are others.
        leads_to: Key of the target of the redirect, and the cookies for it; None: there is none.
    """

    queue: HostQueue
    task: Task
    result: Result | None = None
    again: bool = False
    requested: bool = False
    failed: bool | None = None
    busy: bool = False
    wait: float = 0.0
    drop_queue: str | None = None
    address: str | None = None
    follow: Task | None = None
    search: RobotsSearch | None = None
    answer: Response | None = None
    drop: str | None = None
    cookies: str | None = None
    leads_to: tuple[str, str] | None = None


def turn_of(queue: HostQueue, task: Task, response: Response, outcome: Outcome) -> HostTurn:
    """Returns the turn that ended with a response."""
    return HostTurn(
        queue,
        task,
        requested=bool(task.host),  # reading files needs no politeness
        failed=outcome.protocol_status == EXCEPTION,
        busy=response.status in BUSY_STATUSES,
        wait=outcome.retry_after_s or 0.0,
    )


def back_off_after(turn: HostTurn, options: FetchOptions) -> tuple[float, bool, str | None]:
    """Counts a failure, or a success, which reduces the back-off.

    Returns:
        (seconds to wait in addition to the delay; whether a later run must wait, too; reason to
        drop the rest of the queue, or None).
    """
    queue, reason = turn.queue, turn.drop_queue
    most_failures, most_wait = options.max_exceptions_per_host, options.max_retry_after
    wait = min(turn.wait, most_wait)
    rests = wait > 0 or turn.busy
    if turn.failed is not None:
        queue.exceptions = queue.exceptions + 1 if turn.failed else 0
    if turn.failed:
        # The exponent is bounded: 2.0 ** 1024 raises.
        queue.backoff_level = min(max(queue.backoff_level, 0) + 1, _MAX_BACKOFF_LEVEL)
        more = 1 + _JITTER * random.random()
        first = options.exceptions_delay
        first = options.server_delay if first is None else first
        wait = max(wait, min(first * 2.0 ** (queue.backoff_level - 1) * more, most_wait))
        if 0 <= most_failures <= queue.exceptions:
            reason, rests = reason or "too_many_exceptions", True
    elif turn.failed is False:
        queue.backoff_level //= 2
    if wait > options.max_backoff >= 0:
        reason, rests = reason or "backoff", True
    return wait, rests, reason


def origin_of(url: str) -> str:
    """Returns ``scheme://host[:port]`` of a normalized URL.

    >>> origin_of("http://a.example:81/b/c")
    'http://a.example:81'
    """
    end = url.find("/", url.find("://") + 3)
    return url if end < 0 else url[:end]


def host_of_origin(origin: str) -> str:
    """Returns the host of an origin.

    >>> host_of_origin("http://a.example:81"), host_of_origin("https://[::1]:81")
    ('a.example', '[::1]')
    >>> host_of_origin("http://[::1]")
    '[::1]'
    """
    place = origin.partition("://")[2].lower()
    return place[: place.find("]") + 1] if place.startswith("[") else place.partition(":")[0]


def _longest(*delays: float | None) -> float | None:
    return max((delay for delay in delays if delay is not None), default=None)


def _fewest(*threads: int | None) -> int | None:
    return min((number for number in threads if number is not None), default=None)
