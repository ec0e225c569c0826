"""The fetch engine: many threads, one queue per host, nobody asked too often.

Knows no batch and no table: tasks go in, results come out as they arrive, and
what was learnt about each host can be asked for afterwards.
"""

import email.utils
import itertools
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

from .adapter import split_url
from .hosts import HostRecord
from .http import Client, Response
from .pace import FetchOptions, Throughput, crawl_pace
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
from .robots import DEFER, EXEMPT, RobotsRecord, RobotsRules, fetch_robots, is_exempt
from .tail import tail_of
from .tasks import Result, Task
from .turns import HostQueue, Visit, origin_of

__all__ = ["Engine", "FetchOptions", "HostRecord", "Result", "Task"]

_LOG = logging.getLogger(__name__)
_FEED = 1000
_MAX_WAITING = 250_000
_PULSE_SECONDS = 2.0
_CHECK_SECONDS = 1.0
_BUSY = frozenset({429, 503})
# Refused before anything was sent: no failure of the server, and no delay is due.
_NOT_SENT = frozenset(
    {"address_denied", "port_denied", "agent_missing", "bad_url", "stopped", "proxy_error"}
)
# Of these no task will fare better.
_FOR_ALL = frozenset({"agent_missing", "stopped", "proxy_error"})


class Engine:
    """Fetches tasks politely; used once.

    Args:
        options: How fast.
        client: What asks; closed by whoever made it.
        known_hosts: What earlier runs learnt, by host.
        asked_until: Moment on the monotonic clock until which others may have
            asked the same hosts.
        on_pulse: Is told on the caller's thread, at least every 2 s, for how
            many seconds so far tasks have waited for politeness alone (a second
            in which half of the threads had nothing else to do is half a
            second). What it raises ends the run.
        on_drop: Is told of each task that is dropped, and the reason; in any thread.
        follow: Returns the task for the target of a task's redirect, or None to
            leave it to others. It waits for its host's turn as all do. Is called
            in any thread.

    Attributes:
        dropped: How many tasks have no result, by reason; they stay due:
            bad_url, robots_deferred, too_many_exceptions, backoff,
            time_limit, throughput, agent_missing, proxy_error, stopped (by the
            client's gate), or the reason given to ``stop``.
    """

    def __init__(
        self,
        options: FetchOptions,
        client: Client,
        known_hosts: Mapping[str, HostRecord] | None = None,
        asked_until: float = -math.inf,
        on_pulse: Callable[[float], None] | None = None,
        on_drop: Callable[[Task, str], None] | None = None,
        follow: Callable[[Task, str], Task | None] | None = None,
    ) -> None:
        self._options, self._client, self._follow = options, client, follow
        if options.robots_allowlist:
            _LOG.warning(
                "robots.txt is neither asked for nor obeyed on: %s (robots_allowlist)",
                ", ".join(options.robots_allowlist),
            )
        limit = options.time_limit
        deadline = time.monotonic() + limit if limit >= 0 else math.inf
        known = (known_hosts or {}).get
        self._queues = Queues(crawl_pace(options), known, deadline, asked_until, on_drop)
        self._on_pulse = on_pulse
        self._threads: list[threading.Thread] = []

    @property
    def dropped(self) -> Counter[str]:
        """Tasks without a result, by reason."""
        return self._queues.dropped

    def run(self, tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """Yields the results as they come; closing it stops the engine.

        ``tasks`` is read on the caller's thread, some way ahead. What is under
        way when the iterator is closed is finished in the background, its
        result lost; nothing more is begun.
        """
        queues, feed = self._queues, iter(tasks)
        delay = crawl_pace(self._options).delay
        PROGRESS.watch(lambda: tail_of(list(queues.queues.values()), delay, time.monotonic()))
        fed, pages = False, 0
        throughput = Throughput(self._options, time.monotonic())
        watched = self._options.throughput_threshold_pages >= 0
        patience = _CHECK_SECONDS if watched else _PULSE_SECONDS
        try:
            while True:
                if not fed and queues.waiting < _MAX_WAITING:
                    fed = self._feed(feed)
                results = queues.collect(_MAX_WAITING, patience)
                if self._on_pulse is not None:
                    self._on_pulse(queues.throttled())
                if results is None:
                    break
                _count(results)
                pages += len(results)
                now = time.monotonic()
                if throughput.too_low(now, pages):
                    queues.stop("throughput")
                yield from results
                throughput.pause(time.monotonic() - now)
            for thread in self._threads:
                thread.join(1.0)
        finally:
            queues.close()

    def stop(self, reason: str = "stopped") -> None:
        """Drops all that waits, counted under ``reason``; ``run`` then ends by itself.

        May be called from any thread.
        """
        self._queues.stop(reason)

    def demands(self) -> dict[str, tuple[float | None, int]]:
        """Returns what hosts have demanded so far, by host.

        The crawl delay in seconds or None, and until when they want to be left
        alone, in UTC ms, or 0. May be called from any thread.
        """
        return self._queues.notes.copy()  # at once: no other thread runs meanwhile

    def hosts(self) -> Iterator[HostRecord]:
        """Yields what is known now of every host that had a task."""
        for queue in list(self._queues.queues.values()):
            yield from queue.records()

    def _feed(self, feed: Iterator[Task]) -> bool:
        """Queues the next tasks and starts threads for them; returns whether all are."""
        tasks = list(itertools.islice(feed, _FEED))
        self._queues.add(self._with_hosts(tasks))
        missing = min(self._options.threads, len(self._threads) + len(tasks)) - len(self._threads)
        self._queues.workers += missing
        for _ in range(missing):
            thread = threading.Thread(target=self._work, name="nutbeam-fetch", daemon=True)
            self._threads.append(thread)
            thread.start()
        if len(tasks) < _FEED:
            self._queues.fed()
            return True
        return False

    def _with_hosts(self, tasks: list[Task]) -> list[Task]:
        return [task for task in tasks if self._find_host(task)]

    def _find_host(self, task: Task) -> bool:
        try:
            task.host = split_url(task.url)[0][1]
        except ValueError:
            self._queues.drop([task], "bad_url")
            return False
        return True

    def _work(self) -> None:
        visit = None
        while (turn := self._queues.next(visit)) is not None:
            queue, task = turn
            try:
                visit = self._visit(queue, task)
            except Exception as error:  # noqa: BLE001 - one page must not stop a thread
                _LOG.exception("fetching %s failed", task.url)
                message = f"internal error: {type(error).__name__}"
                visit = Visit(queue, task, _result(queue, task, None, FETCH_RETRY, FAILED, message))

    def _visit(self, queue: HostQueue, task: Task) -> Visit:
        if queue.hosts[task.host].address is None:
            address = self._client.address(task.url) or ""
            return Visit(queue, task, again=True, address=address)
        origin = origin_of(task.url)
        rules = queue.rules.get(origin) or self._recall(queue, task.host, origin)
        if rules is None:
            return self._ask_robots(queue, task, origin)
        if rules.state == DEFER:
            return Visit(queue, task, again=True, purge="robots_deferred")
        denied = self._denied(rules, task)
        if denied is not None:
            result = _result(queue, task, None, FETCH_GONE, ROBOTS_DENIED, denied)
            return Visit(queue, task, result)
        return self._ask(queue, task)

    def _recall(self, queue: HostQueue, host: str, origin: str) -> RobotsRules | None:
        """Returns what an earlier run read in robots.txt, if that still holds."""
        options = self._options
        if is_exempt(host, options.robots_allowlist):
            queue.rules[origin] = EXEMPT
            return EXEMPT
        record = _earlier(queue, host, origin)
        if record is None or not record.status:
            return None
        rules = RobotsRules(record, (self._client.token, *options.robots_agents))
        most = options.robots_defer_delay if rules.state == DEFER else options.robots_max_age
        if not 0 <= _now_ms() - record.fetched_at <= most * 1000:
            return None
        self._learn(queue, origin, rules)
        return rules

    def _learn(self, queue: HostQueue, origin: str, rules: RobotsRules) -> None:
        most = self._options.max_crawl_delay
        queue.learn(origin, rules, most if most >= 0 else math.inf)

    def _ask_robots(self, queue: HostQueue, task: Task, origin: str) -> Visit:
        options = self._options
        earlier = _earlier(queue, task.host, origin)
        rules = fetch_robots(
            self._client, origin, options.robots_redirect_max, options.robots_agents, earlier
        )
        if rules.status or rules.state != DEFER:
            self._learn(queue, origin, rules)
            visit = Visit(queue, task, again=True, asked=True, wait=rules.retry_after or 0.0)
            visit.purge = "robots_deferred" if rules.state == DEFER else None
            return visit
        if rules.error not in _NOT_SENT:
            queue.hosts[task.host].unreachable = origin, rules.record
        # No answer: the page is not asked for (RFC 9309 2.3.1.4), and its turn
        # failed. Its retries count, so that pages of dead hosts do not stay due for ever.
        return self._failed(queue, task, rules.error or "protocol_error")

    def _failed(self, queue: HostQueue, task: Task, error: str) -> Visit:
        if error in _FOR_ALL:
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
        outcome, following = classify(response), None
        result = _result(
            queue, task, response, outcome.fetch_status, outcome.protocol_status, outcome.message
        )
        result.redirect = outcome.redirect_target
        result.permanent = outcome.fetch_status == FETCH_REDIR_PERM
        if result.redirect and self._follow is not None:
            following = self._follow(task, result.redirect)
        return Visit(
            queue,
            task,
            result,
            asked=True,
            failed=outcome.protocol_status == EXCEPTION,
            busy=response.status in _BUSY,
            wait=outcome.retry_after_s or 0.0,
            follow=following if following is not None and self._find_host(following) else None,
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


def _earlier(queue: HostQueue, host: str, origin: str) -> RobotsRecord | None:
    """Returns what is known of a robots.txt from before, however old."""
    state = queue.hosts[host]
    if state.unreachable is not None and state.unreachable[0] == origin:
        return state.unreachable[1]
    known = state.known
    if known is None or known.robots_origin != origin or known.robots_status is None:
        return None
    return RobotsRecord(
        known.robots_status,
        known.robots_text,
        known.robots_fetched_at,
        known.robots_failing_since,
    )


def _result(
    queue: HostQueue,
    task: Task,
    response: Response | None,
    fetch_status: int,
    protocol_status: int,
    message: str,
) -> Result:
    name = PROTOCOL_STATUS_NAMES[protocol_status]
    counts = queue.hosts[task.host].counts
    counts[name] = counts.get(name, 0) + 1
    return Result(task, response, fetch_status, protocol_status, message, fetched_at=_now_ms())


def _count(results: list[Result]) -> None:
    counts = Counter(PROTOCOL_STATUS_NAMES[result.protocol_status] for result in results)
    size = sum(len(result.response.body) for result in results if result.response)
    if results:
        PROGRESS.add(len(results), bytes=size, **counts)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
