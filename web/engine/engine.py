"""The fetch engine: many requests at a time, with a queue and a delay for each host.

It uses no batch and no table: it takes tasks and yields results as they arrive. ``hosts`` returns
the findings about each host afterwards.
"""

import email.utils
import itertools
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator

from ..base.clock import now_ms
from ..base.memory import share_heaps
from ..base.progress import PROGRESS
from ..clients.http_client import Client
from ..exchange import status
from ..exchange.status import Outcome, Response, classify
from ..network.failures import NOT_SENT
from ..robots.robots import DEFER, DENIED, NO_RULES, TOO_COSTLY, RobotsRules, is_exempt
from ..urls.schemes import SCHEMES, is_web, scheme_of
from .fetch_workers import workers_of
from .host_queue import HostQueue, HostTurn, origin_of, turn_of
from .host_reports import host_activity, log_odd_delay, log_silent_hosts
from .pace import FetchOptions, RunTimes, Throughput
from .queues import Queues
from .request_times import REQUEST_TIMES
from .robots_search import RobotsAnswers
from .robots_turns import RobotsTurns, earlier_record
from .tasks import Hop, HostRecord, KnownHosts, Result, Task

__all__ = ["Engine", "FetchOptions", "HostRecord", "Result", "Task"]

_LOG = logging.getLogger(__name__)
_FEED = 1000
_MAX_WAITING = 250_000
_PULSE_SECONDS = 2.0
_CHECK_SECONDS = 1.0
_LULL_SECONDS = 0.5
# Reasons that apply to every task of a queue.
_FOR_ALL = frozenset({"agent_missing", "stopped", "proxy_error"})


class Engine:
    """Fetches tasks politely; an engine is used once.

    Args:
        options: Delays and limits.
        client: Makes the requests; the caller closes it.
        known_hosts: Findings of earlier runs, by host.
        requested_until: Moment on the monotonic clock until which other engines may
            have sent requests to the same hosts.
        on_pulse: Called on the caller's thread, at least every 2 s, with the seconds for which
            tasks have waited only for politeness (a second counts half if half of the threads had
            no other work). An exception that it raises ends the run.
        seconds_to_pulse: Function that returns the seconds until ``on_pulse`` must be called.
        on_drop: Called with each task that is dropped and the reason, in any thread.
        follow: Function that returns the ``Hop`` for (a task, the target of its redirect, whether
            the answer has set a new cookie). Its task waits in the queue of its host. Called in any
            thread.
        screen: Function that returns why a task is dropped now that robots.txt of its host is
            known, or None. Called in any thread.

    Attributes:
        drop_counts: Number of tasks without a result, by reason, such as ``backoff``, or the reason
            given to ``stop``; they stay due. docs/reference/reasons.md lists what fetch drops.
        odd_crawl_delays: Number of robots.txt read whose crawl delay is no time.
    """

    def __init__(
        self,
        options: FetchOptions,
        client: Client,
        known_hosts: KnownHosts | None = None,
        requested_until: float = -math.inf,
        on_pulse: Callable[[float], None] | None = None,
        on_drop: Callable[[Task, str], None] | None = None,
        follow: Callable[[Task, str, bool], Hop] | None = None,
        seconds_to_pulse: Callable[[], float] = lambda: math.inf,
        screen: Callable[[Task, RobotsRules], str | None] = lambda task, rules: None,
    ) -> None:
        self._options, self._client, self._follow = options, client, follow
        self._screen = screen
        if options.robots_allowlist:
            names = ", ".join(options.robots_allowlist)
            _LOG.warning(
                "robots.txt is neither fetched nor obeyed on: %s (robots_allowlist)", names
            )
        limit = options.fetch_time_limit
        deadline = time.monotonic() + limit if limit >= 0 else math.inf
        self._known_hosts = known_hosts
        answers = RobotsAnswers(client.cookies)
        times = RunTimes(deadline, requested_until)
        self._queues = Queues(options, self._recall_host, times, on_drop, answers)
        self._robots = RobotsTurns(options, client, answers)
        self._on_pulse, self._seconds_to_pulse = on_pulse, seconds_to_pulse
        self._fetch_workers = workers_of(client, self._queues, self._take_turn, self._turn_of_error)
        self._paused, self.odd_crawl_delays = False, 0

    @property
    def drop_counts(self) -> Counter[str]:
        """Tasks without a result, by reason."""
        return self._queues.drop_counts

    def run(self, tasks: Iterable[Task | None]) -> Generator[Result, None, None]:
        """Yields the results as they arrive; closing the iterator stops the engine.

        ``tasks`` is read on the caller's thread, in advance. None means that there are no tasks at
        the moment: reading continues a little later (see ``is_idle``). When the iterator is closed,
        no new turn begins. Turns under way end in the background, and their results are lost.
        """
        share_heaps()
        queues, feed = self._queues, iter(tasks)
        delay = self._options.delay
        PROGRESS.watch(lambda: host_activity(list(queues.queues.values()), delay, time.monotonic()))
        fed, pages = False, 0
        throughput = Throughput(self._options, time.monotonic())
        watched = self._options.throughput_threshold_pages >= 0
        seldom = _CHECK_SECONDS if watched else _PULSE_SECONDS
        try:
            while True:
                if not fed and queues.waiting < _MAX_WAITING:
                    fed = self._feed(feed)
                most, wait = (0, _LULL_SECONDS) if self._paused else (_MAX_WAITING, seldom)
                results = queues.collect(most, min(wait, self._seconds_to_pulse()))
                if self._on_pulse is not None:
                    self._on_pulse(queues.throttled_seconds())
                if results is None:
                    break
                _count(results)
                pages += len(results)
                now = time.monotonic()
                if throughput.too_low(now, pages):
                    queues.stop("throughput")
                results.reverse()
                while results:  # no reference to a result stays: their bodies may be large
                    yield results.pop()
                throughput.pause(time.monotonic() - now)
            self._fetch_workers.join()
            log_silent_hosts(list(queues.queues.values()))
        finally:
            queues.close()

    def is_idle(self) -> bool:
        """Returns whether no task waits, no turn is under way, and all results were yielded."""
        return self._queues.is_idle()

    def stop(self, reason: str = "stopped") -> None:
        """Drops all waiting tasks and counts them by ``reason``; then ``run`` ends.

        May be called from any thread.
        """
        self._queues.stop(reason)

    def demands(self) -> dict[str, tuple[float | None, int]]:
        """Returns the delays and pauses that hosts have demanded so far, by host.

        Values are the crawl delay in s or None, and the end of the pause in UTC ms, or 0.
        May be called from any thread.
        """
        return self._queues.demands.copy()  # atomic: other threads change the dict

    def hosts(self) -> Iterator[HostRecord]:
        """Yields the findings about every host that had a request."""
        jar = self._client.jar
        for queue in list(self._queues.queues.values()):
            for record in queue.records():
                record.cookies = jar.lines_of(record.host) if jar is not None else None
                yield record

    def _recall_host(self, host: str) -> HostRecord | None:
        """Returns the findings of an earlier run about a host; restores its cookies."""
        record = self._known_hosts.get(host) if self._known_hosts is not None else None
        if record is not None and record.cookies and self._client.jar is not None:
            self._client.jar.restore(host, record.cookies)
        return record

    def _feed(self, feed: Iterator[Task | None]) -> bool:
        """Queues the next tasks; returns whether there are no more."""
        next_tasks = list(itertools.islice(_until_none(feed), _FEED))
        self._paused = next_tasks[-1:] == [None]
        tasks = [task for task in next_tasks if task is not None and self._find_host(task)]
        self._queues.add(tasks)
        more = min(self._options.threads - self._queues.workers, len(tasks))
        self._queues.workers += more
        self._fetch_workers.grow(more)
        if len(next_tasks) < _FEED and not self._paused:
            self._queues.end_feed()
            return True
        return False

    def _find_host(self, task: Task) -> bool:
        scheme = scheme_of(task.request_url)
        if scheme not in self._client.schemes and (scheme in SCHEMES or "://" in task.request_url):
            self._queues.drop([task], "scheme_not_allowed")
            return False
        try:
            task.host = self._client.host(task.request_url).rstrip(".")
        except ValueError:
            self._queues.drop([task], "bad_url")
            return False
        return True

    def _turn_of_error(self, queue: HostQueue, task: Task, error: BaseException) -> HostTurn:
        _LOG.error("fetching %s failed", task.url, exc_info=error)
        if task.robots:
            return HostTurn(queue, task, answer=Response(task.url, error="protocol_error"))
        queue.searches.pop(origin_of(task.request_url), None)
        text = f"internal error: {type(error).__name__}"
        outcome = Outcome(status.FETCH_RETRY, status.FAILED, text)
        return HostTurn(queue, task, _result(queue, task, outcome))

    async def _take_turn(self, queue: HostQueue, task: Task) -> HostTurn:
        if queue.hosts[task.host].address is None:
            address = await self._client.locate(task.request_url)
            return HostTurn(queue, task, again=True, address=address or "")
        if task.robots:
            return await self._robots.fetch_for_others(queue, task)
        origin = origin_of(task.request_url)
        rules = queue.rules.get(origin) or self._recall(queue, task.host, origin)
        if rules is None:
            turn, rules = await self._robots.search(queue, task, origin)
            return turn if rules is None else self._turn_after_robots(turn, origin, rules)
        if rules.state == DEFER:
            return HostTurn(queue, task, again=True, drop_queue="robots_deferred")
        if (drop_reason := self._screen(task, rules)) is not None:
            return HostTurn(queue, task, drop=drop_reason)
        verdict, reason = self._verdict(rules, task)
        if verdict == TOO_COSTLY:
            return HostTurn(queue, task, drop="robots_too_costly")
        if verdict == DENIED:
            outcome = Outcome(status.FETCH_GONE, status.ROBOTS_DENIED, reason)
            return HostTurn(queue, task, _result(queue, task, outcome))
        turn = await self._fetch(queue, task)
        if turn.result is not None and rules.usages:
            turn.result.usage = rules.usage(task.request_url)
        return turn

    def _recall(self, queue: HostQueue, host: str, origin: str) -> RobotsRules | None:
        """Returns the robots.txt that an earlier run has read, if it is not too old."""
        options = self._options
        if not is_web(origin) or is_exempt(host, options.robots_allowlist):
            queue.rules[origin] = NO_RULES
            return NO_RULES
        record = earlier_record(queue, host, origin)
        if record is None or not record.status:
            return None
        rules = RobotsRules(record, self._robots.agents, host=host)
        most = options.robots_defer_delay if rules.state == DEFER else options.robots_max_age
        if not 0 <= now_ms() - record.fetched_at <= most * 1000:
            return None
        self._keep_rules(queue, origin, rules)
        return rules

    def _keep_rules(self, queue: HostQueue, origin: str, rules: RobotsRules) -> None:
        queue.keep_rules(origin, rules, self._options.longest_crawl_delay)

    def _turn_after_robots(self, turn: HostTurn, origin: str, rules: RobotsRules) -> HostTurn:
        """Returns the turn of a page after its robots.txt has arrived or failed."""
        queue, task = turn.queue, turn.task
        if rules.status or rules.state != DEFER:
            self._keep_rules(queue, origin, rules)
            if rules.odd_delay is not None:
                self.odd_crawl_delays += 1
                log_odd_delay(task.host, rules.odd_delay)
            turn.again, turn.wait = True, rules.retry_after or 0.0
            turn.drop_queue = "robots_deferred" if rules.state == DEFER else None
            return turn
        if rules.error not in NOT_SENT:
            queue.hosts[task.host].unreachable = origin, rules.record
        # No answer: the page is not fetched (RFC 9309 2.3.1.4), and its turn has failed. It counts
        # as a retry, so that pages of dead hosts do not stay due forever.
        failed = self._turn_of_failure(queue, task, rules.error or "protocol_error")
        failed.requested = failed.requested or turn.requested
        return failed

    def _turn_of_failure(self, queue: HostQueue, task: Task, error: str) -> HostTurn:
        if error in _FOR_ALL:
            return HostTurn(queue, task, again=True, drop_queue=error)
        if error == "address_changed":  # another worker may fetch the host now: it stays due
            return HostTurn(queue, task, drop=error)
        sent = error not in NOT_SENT
        result = _result(queue, task, Outcome(status.FETCH_RETRY, status.EXCEPTION, error))
        return HostTurn(queue, task, result, requested=sent, failed=True if sent else None)

    def _verdict(self, rules: RobotsRules, task: Task) -> tuple[str, str]:
        """Returns the verdict of a robots.txt on a task, and its reason."""
        delay, most = rules.crawl_delay, self._options.longest_crawl_delay
        if delay is not None and delay > most:
            return DENIED, f"crawl delay {delay:g} s is over {most:g} s"
        return rules.verdict(task.request_url), "robots.txt"

    async def _fetch(self, queue: HostQueue, task: Task) -> HostTurn:
        response = await self._client.request(task.request_url, _conditions(task), fresh=task.fresh)
        if response.resend:
            task.fresh = True
            return HostTurn(queue, task, again=True, requested=True)
        if not response.status and response.error in NOT_SENT:
            return self._turn_of_failure(queue, task, response.error)
        outcome = classify(response)
        turn = turn_of(queue, task, response, outcome)
        if outcome.redirect_target and self._follow is not None:
            self._hop(turn, response, outcome.redirect_target)
        if turn.follow is None or turn.follow.key != task.key:
            turn.result = _result(queue, task, outcome, response)
        return turn

    def _hop(self, turn: HostTurn, response: Response, target: str) -> None:
        """Sets what follows a redirect."""
        assert self._follow is not None
        hop = self._follow(turn.task, target, response.new_cookie)
        if hop.task is not None and self._find_host(hop.task):
            turn.follow = hop.task
        if self._client.jar is not None and hop.key:
            turn.cookies = response.cookies
            turn.leads_to = hop.key, self._client.cookies(target)


def _until_none(feed: Iterator[Task | None]) -> Iterator[Task | None]:
    for task in feed:
        yield task
        if task is None:
            break


def _conditions(task: Task) -> list[tuple[str, str]]:
    """Returns the headers of a conditional request (RFC 9110 13)."""
    headers = []
    if task.etag:
        headers.append(("If-None-Match", task.etag))
    if task.last_modified:
        headers.append(("If-Modified-Since", task.last_modified))
    elif 0 < task.modified_time <= now_ms():  # a date in the future cannot be compared
        date = email.utils.formatdate(task.modified_time / 1000, usegmt=True)
        headers.append(("If-Modified-Since", date))
    return headers


def _result(
    queue: HostQueue, task: Task, outcome: Outcome, response: Response | None = None
) -> Result:
    fetch_status, protocol_status, message, redirect, _ = outcome
    name = status.PROTOCOL_STATUS_NAMES[protocol_status]
    counts = queue.hosts[task.host].counts
    counts[name] = counts.get(name, 0) + 1
    return Result(task, response, fetch_status, protocol_status, message, redirect, now_ms())


def _count(results: list[Result]) -> None:
    counts = Counter(status.PROTOCOL_STATUS_NAMES[result.protocol_status] for result in results)
    size = sum(len(result.response.body) for result in results if result.response)
    if results:
        PROGRESS.add(len(results), bytes=size, **counts)
        REQUEST_TIMES.add(result.response.elapsed_ms for result in results if result.response)
    for result in results:
        if result.fetch_status == status.FETCH_RETRY:
            PROGRESS.note_failure(result.task.url, result.message or "no answer")
