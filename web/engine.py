"""The fetch engine: many threads, one queue per host, nobody asked too often.

Knows no batch and no table: tasks go in, results come out as they arrive, and
what was learnt about each host can be asked for afterwards.
"""

import dataclasses
import email.utils
import itertools
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from .hosts import HostRecord
from .http import Client, Response, split_url
from .options import option
from .progress import PROGRESS
from .protocol import (
    EXCEPTION,
    FAILED,
    FETCH_GONE,
    FETCH_REDIR_PERM,
    FETCH_RETRY,
    PROTOCOL_STATUS_NAMES,
    ROBOTS_DENIED,
    classify,
)
from .queues import Queues
from .robots import DEFER, RobotsOptions, RobotsRecord, RobotsRules, fetch_robots
from .tasks import Result, Task
from .turns import HostQueue, Pace, Visit, origin_of

_LOG = logging.getLogger(__name__)
_FEED = 1000
_MAX_WAITING = 250_000
# Refused before anything was sent: no failure of the server, and no delay is due.
_NOT_SENT = frozenset({"address_denied", "port_denied", "agent_missing", "bad_url"})


@dataclasses.dataclass(frozen=True)
class FetchOptions(RobotsOptions):
    """How fast, and how many at a time."""

    threads: int = option(
        50, "Requests at a time, in all.", nutch="fetcher.threads.fetch", minimum=1, maximum=2000
    )
    threads_per_host: int = option(
        1,
        "Requests at a time to one host; one that asks for a crawl delay gets one.",
        nutch="fetcher.threads.per.queue",
        minimum=1,
    )
    threads_per_address: int = option(
        8,
        "Requests at a time to one address, whatever the number of its hosts; negative for "
        "any number. Hosts of connect_to are exempt.",
    )
    server_delay: float = option(
        5.0,
        "Wait between the end of a request and the next one to the same host.",
        unit="s",
        nutch="fetcher.server.delay",
        minimum=0,
    )
    server_min_delay: float = option(
        0.0,
        "The same where threads_per_host is above 1.",
        unit="s",
        nutch="fetcher.server.min.delay",
        minimum=0,
    )
    max_crawl_delay: float = option(
        30.0,
        "Pages of a host that asks for a longer crawl delay are not fetched; negative to wait "
        "as long as asked.",
        unit="s",
        nutch="fetcher.max.crawl.delay",
    )
    min_crawl_delay: float | None = option(
        None,
        "Least wait where robots.txt asks for a crawl delay; server_delay if not given.",
        unit="s",
        nutch="fetcher.min.crawl.delay",
        minimum=0,
    )
    time_limit: float = option(
        10_800.0,
        "Time after which no request is begun; what waits stays due. Negative for no limit.",
        unit="s",
        nutch="fetcher.timelimit.mins",
    )
    max_exceptions_per_host: int = option(
        5,
        "Failures in a row after which the rest of a host stays due; negative for any number.",
        nutch="fetcher.max.exceptions.per.queue",
    )
    exceptions_delay: float | None = option(
        None,
        "Extra wait after a failure, doubled with each in a row; server_delay if not given.",
        unit="s",
        nutch="fetcher.exceptions.per.queue.delay",
        minimum=0,
    )
    max_backoff: float = option(
        120.0,
        "The rest of a host that must be left alone for longer (Retry-After) stays due; "
        "negative to wait as long as it takes.",
        unit="s",
    )


def crawl_pace(options: FetchOptions) -> Pace:
    """Returns the pace that the options describe.

    >>> pace = crawl_pace(FetchOptions(server_delay=2.0))
    >>> pace.delay(None), pace.delay(1.0), pace.delay(9.0)
    (2.0, 2.0, 9.0)
    """
    usual = options.server_delay
    least = usual if options.min_crawl_delay is None else options.min_crawl_delay
    fixed = options.server_min_delay if options.threads_per_host > 1 else usual
    after = usual if options.exceptions_delay is None else options.exceptions_delay
    return Pace(
        threads_per_host=options.threads_per_host,
        threads_per_address=options.threads_per_address,
        delay=lambda crawl_delay: max(crawl_delay, least) if crawl_delay else fixed,
        max_exceptions=options.max_exceptions_per_host,
        exceptions_delay=after,
        max_backoff=options.max_backoff,
    )


class Engine:
    """Fetches tasks politely; used once.

    Args:
        options: How fast.
        client: What asks; closed by whoever made it.
        known_hosts: What earlier runs learnt, by host.

    Attributes:
        dropped: How many tasks have no result, by reason; they stay due:
            bad_url, robots_deferred, too_many_exceptions, backoff,
            time_limit, agent_missing, or the reason given to ``stop``.
    """

    def __init__(
        self,
        options: FetchOptions,
        client: Client,
        known_hosts: Mapping[str, HostRecord] | None = None,
    ) -> None:
        self._options, self._client = options, client
        limit = options.time_limit
        deadline = time.monotonic() + limit if limit >= 0 else math.inf
        self._queues = Queues(crawl_pace(options), (known_hosts or {}).get, deadline)
        self._threads: list[threading.Thread] = []

    @property
    def dropped(self) -> Counter[str]:
        """Tasks without a result, by reason."""
        return self._queues.dropped

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yields the results as they come; closing it stops the engine.

        ``tasks`` is read on the caller's thread, some way ahead. What is under
        way when the iterator is closed is finished in the background, its
        result lost; nothing more is begun.
        """
        queues, feed = self._queues, iter(tasks)
        fed = False
        try:
            while True:
                if not fed and queues.waiting < _MAX_WAITING:
                    fed = self._feed(feed)
                results = queues.collect(wait=fed or queues.waiting >= _MAX_WAITING)
                if results is None:
                    return
                _count(results)
                yield from results
        finally:
            queues.close()

    def stop(self, reason: str = "stopped") -> None:
        """Drops all that waits, counted under ``reason``; ``run`` then ends by itself.

        May be called from any thread.
        """
        self._queues.stop(reason)

    def hosts(self) -> Iterator[HostRecord]:
        """Yields what is known now of every host that had a task."""
        for queue in list(self._queues.hosts.values()):
            yield _record(queue)

    def _feed(self, feed: Iterator[Task]) -> bool:
        """Queues the next tasks and starts threads for them; returns whether all are."""
        tasks = list(itertools.islice(feed, _FEED))
        self._queues.add(self._with_hosts(tasks))
        missing = min(self._options.threads, len(self._threads) + len(tasks)) - len(self._threads)
        for _ in range(missing):
            thread = threading.Thread(target=self._work, name="nutbeam-fetch", daemon=True)
            self._threads.append(thread)
            thread.start()
        if len(tasks) < _FEED:
            self._queues.fed()
            return True
        return False

    def _with_hosts(self, tasks: list[Task]) -> Iterator[tuple[str, Task]]:
        for task in tasks:
            try:
                yield split_url(task.url)[0][1], task
            except ValueError:
                self._queues.dropped["bad_url"] += 1

    def _work(self) -> None:
        visit = None
        while (turn := self._queues.next(visit)) is not None:
            queue, task = turn
            try:
                visit = self._visit(queue, task)
            except Exception as error:
                _LOG.exception("fetching %s failed", task.url)
                message = f"internal error: {type(error).__name__}"
                visit = Visit(queue, task, _result(queue, task, None, FETCH_RETRY, FAILED, message))

    def _visit(self, queue: HostQueue, task: Task) -> Visit:
        if queue.address is None:
            address = self._client.address(task.url) or ""
            return Visit(queue, task, again=True, address=address)
        origin = origin_of(task.url)
        rules = queue.rules.get(origin) or self._recall(queue, origin)
        if rules is None:
            return self._ask_robots(queue, task, origin)
        if rules.state == DEFER:
            return Visit(queue, task, again=True, purge="robots_deferred")
        denied = self._denied(rules, task)
        if denied is not None:
            result = _result(queue, task, None, FETCH_GONE, ROBOTS_DENIED, denied)
            return Visit(queue, task, result)
        return self._ask(queue, task)

    def _recall(self, queue: HostQueue, origin: str) -> RobotsRules | None:
        """Returns what an earlier run read in robots.txt, if that still holds."""
        known = queue.known
        if known is None or known.robots_origin != origin or not known.robots_status:
            return None
        record = RobotsRecord(known.robots_status, known.robots_text, known.robots_fetched_at)
        rules = RobotsRules(record, self._client.token)
        options = self._options
        most = options.robots_defer_delay if rules.state == DEFER else options.robots_max_age
        if not 0 <= _now_ms() - known.robots_fetched_at <= most * 1000:
            return None
        _learn(queue, origin, rules)
        return rules

    def _ask_robots(self, queue: HostQueue, task: Task, origin: str) -> Visit:
        rules = fetch_robots(self._client, origin, self._options.robots_redirect_max)
        if rules.status:
            _learn(queue, origin, rules)
            return Visit(queue, task, again=True, asked=True)
        # No answer: the page is not asked for (RFC 9309 2.3.1.4), and its turn
        # failed. Its retries count, so that pages of dead hosts do not stay due for ever.
        return self._failed(queue, task, rules.error or "protocol_error")

    def _failed(self, queue: HostQueue, task: Task, error: str) -> Visit:
        if error == "agent_missing":
            return Visit(queue, task, again=True, purge=error)
        sent = error not in _NOT_SENT
        result = _result(queue, task, None, FETCH_RETRY, EXCEPTION, error)
        return Visit(queue, task, result, asked=sent, failed=True if sent else None)

    def _denied(self, rules: RobotsRules, task: Task) -> str | None:
        delay, most = rules.crawl_delay, self._options.max_crawl_delay
        if delay is not None and delay > most >= 0:
            return f"crawl delay {delay:g} s is over {most:g} s"
        return None if rules.allowed(task.url) else "robots.txt"

    def _ask(self, queue: HostQueue, task: Task) -> Visit:
        response = self._client.get(task.url, _conditions(task))
        if not response.status and response.error in _NOT_SENT:
            return self._failed(queue, task, response.error)
        outcome = classify(response)
        result = _result(
            queue, task, response, outcome.fetch_status, outcome.protocol_status, outcome.message
        )
        result.redirect = outcome.redirect_target
        result.permanent = outcome.fetch_status == FETCH_REDIR_PERM
        return Visit(
            queue,
            task,
            result,
            asked=True,
            failed=outcome.protocol_status == EXCEPTION,
            wait=outcome.retry_after_s or 0.0,
        )


def _conditions(task: Task) -> list[tuple[str, str]]:
    """Returns the headers that ask for a page only if it changed (RFC 9110 13)."""
    headers = []
    if task.etag:
        headers.append(("If-None-Match", task.etag))
    if task.last_modified:
        headers.append(("If-Modified-Since", task.last_modified))
    elif task.modified_time > 0:
        date = email.utils.formatdate(task.modified_time / 1000, usegmt=True)
        headers.append(("If-Modified-Since", date))
    return headers


def _learn(queue: HostQueue, origin: str, rules: RobotsRules) -> None:
    queue.rules[origin] = rules
    queue.crawl_delay = rules.crawl_delay


def _result(
    queue: HostQueue,
    task: Task,
    response: Response | None,
    fetch_status: int,
    protocol_status: int,
    message: str,
) -> Result:
    name = PROTOCOL_STATUS_NAMES[protocol_status]
    queue.counts[name] = queue.counts.get(name, 0) + 1
    return Result(
        task, response, fetch_status, protocol_status, message, fetched_at=_now_ms()
    )


def _record(queue: HostQueue) -> HostRecord:
    record = HostRecord(
        queue.host,
        crawl_delay=queue.crawl_delay,
        exceptions=queue.exceptions,
        backoff_until=queue.backoff_until,
        last_request_end=queue.last_end,
        counts=dict(queue.counts),
    )
    for origin, rules in queue.rules.items():
        record.robots_origin = origin
        record.robots_status, record.robots_text, record.robots_fetched_at = rules.record
        break
    return record


def _count(results: list[Result]) -> None:
    counts = Counter(PROTOCOL_STATUS_NAMES[result.protocol_status] for result in results)
    size = sum(len(result.response.body) for result in results if result.response)
    if results:
        PROGRESS.add(len(results), bytes=size, **counts)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
