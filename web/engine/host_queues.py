"""The queues of all hosts: which host gets the next request, and what a turn changes.

A queue per host (or domain or address) keeps delays and limits. Nothing here waits or uses threads:
``Queues`` does.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable

from ..base.clock import now_ms
from .host_queue import HostQueue, HostTurn, back_off_after, origin_of
from .host_reports import log_given_up_host
from .pace import FetchOptions, RunTimes
from .ready_queues import AddressLimit, ReadyQueues
from .robots_search import RobotsAnswers, RobotsHops
from .tasks import MOST_REPEATS, HostRecord, Result, Task, body_bytes

_MAX_KEPT_BYTES = 128 << 20
_MAX_HELD = 50
_MAX_HELD_BYTES = 65_536


class HeldResults:
    """Results of redirects that wait for cookies, by the key of their page.

    ``/`` redirects to ``/welcome``, which sets a cookie and redirects to ``/``. The result of ``/`` is
    held until the queue of its host has ended. If a redirect leads back to it, and there are other
    cookies for it than before, it is requested again, and only its last result counts.
    """

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[Result, str]] = {}

    def hold(self, turn: HostTurn, queue: HostQueue) -> bool:
        """Holds the result of a turn, if its page may be requested again; returns whether it does.

        Args:
            turn: The turn.
            queue: The queue until whose end the result is held.
        """
        result = turn.result
        if turn.cookies is None or result is None or turn.task.again >= MOST_REPEATS:
            return False
        key = turn.task.key
        crowded = len(queue.held_keys) >= _MAX_HELD or body_bytes(result) > _MAX_HELD_BYTES
        if crowded or key in self._by_key:
            return False
        self._by_key[key] = result, turn.cookies
        queue.held_keys = (*queue.held_keys, key)
        return True

    def take_again(self, key: str, cookies: str) -> list[Task]:
        """Returns the task for a page that is requested again; its result is forgotten.

        Args:
            key: Key of the page that a redirect leads to.
            cookies: The cookies for it now.
        """
        held = self._by_key.get(key)
        if held is None or held[1] == cookies:
            return []
        del self._by_key[key]
        task = held[0].task
        return [dataclasses.replace(task, at="", again=task.again + 1, fresh=False)]

    def release(self, queue: HostQueue) -> list[Result]:
        """Returns the results that were held until the end of a queue."""
        keys, queue.held_keys = queue.held_keys, ()
        return [self._by_key.pop(key)[0] for key in keys if key in self._by_key]


class HostQueues:
    """All queues, and the results that were not taken yet.

    Args:
        options: The limits.
        recall_host: Function that returns the findings of an earlier run about a host.
        times: The clock, and until when other engines may have sent requests to the same hosts.
        on_drop: Called with each page that will have no result and the reason, in any thread.
        answers: Responses to requests for robots.txt; empty at first.

    Attributes:
        answers: Responses to requests for robots.txt.
        demands: (crawl delay in s, UTC ms of the end of a pause), by host.
        drop_counts: Number of pages without a result, by reason.
        queues: The queues, by name.
        waiting: Number of tasks in queues, and of pages that wait for a robots.txt.
    """

    def __init__(
        self,
        options: FetchOptions,
        recall_host: Callable[[str], HostRecord | None],
        times: RunTimes,
        on_drop: Callable[[Task, str], None] | None = None,
        answers: RobotsAnswers | None = None,
    ) -> None:
        self._options, self._recall_host = options, recall_host
        self._times, self._on_drop = times, on_drop
        self._hops = RobotsHops(options.robots_redirect_targets, answers or RobotsAnswers())
        self.answers = self._hops.answers
        self.demands: dict[str, tuple[float | None, int]] = {}
        self.drop_counts: Counter[str] = Counter()
        self.queues: dict[str, HostQueue] = {}
        self._joined: dict[str, str] = {}  # hosts that are in the queue of an address
        self.waiting = self._in_progress = 0
        self._ready = ReadyQueues(options.delay)
        self._address_limit = AddressLimit(options.threads_per_address, self._ready)
        self._results: list[Result] = []
        self._held_results = HeldResults()
        self._result_bytes = self._kept_bytes = 0
        self._stopped: str | None = None

    def _add_all(self, tasks: Iterable[Task], now: float, first: bool = False) -> None:
        grown = [queue for task in tasks if (queue := self._add(task, now, first))]
        for queue in dict.fromkeys(grown):
            self._offer(queue, now)

    def _add(self, task: Task, now: float, first: bool = False) -> HostQueue | None:
        """Queues a task, unless it is refused; returns its queue."""
        name = self._name_of(task)
        queue = self.queues.get(name)
        if queue is None or task.host not in queue.hosts:
            queue = self._open(name, task, now)
        elif task.delay is not None:
            queue.take_over(task)
        refusal = self._refusal_reason(queue)
        if refusal:
            self._leave_out([task], refusal)
            return None
        queue.begun = queue.begun or task.robots  # others wait for it
        (queue.tasks.appendleft if first else queue.tasks.append)(task)
        self.waiting += 1
        return queue

    def drop(self, tasks: list[Task], reason: str) -> None:
        """Counts tasks that will have no result."""
        if tasks:
            self.drop_counts[reason] += len(tasks)
        if self._on_drop is not None:
            for task in tasks:
                self._on_drop(task, reason)

    def _refusal_reason(self, queue: HostQueue) -> str | None:
        options = self._options
        if self._stopped:
            return self._stopped
        if 0 <= options.max_exceptions_per_host <= queue.exceptions:
            return "too_many_exceptions"
        if queue.backoff_until and options.max_backoff >= 0:
            pause_ms = queue.backoff_until - now_ms()
            return "backoff" if pause_ms > options.max_backoff * 1000 else None
        return None

    def _open(self, name: str, task: Task, now: float) -> HostQueue:
        """Returns the queue for a new host, with the findings of earlier runs."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = HostQueue(name)
        findings = queue.add_host(task.host, self._recall_host)
        queue.take_over(task)
        if findings is not None:
            delay = queue.delay_after_request(self._options.delay)
            since = (now_ms() - findings.last_request_time) / 1000
            pause = min((findings.backoff_until - now_ms()) / 1000, self._options.max_retry_after)
            queue.ready_at = max(queue.ready_at, now + max(0.0, min(delay, delay - since), pause))
        if self._times.requested_until > -math.inf:
            delay = queue.delay_after_request(self._options.delay)
            queue.ready_at = max(queue.ready_at, self._times.requested_until + delay)
        return queue

    def _offer(self, queue: HostQueue, now: float) -> None:
        if queue.listed:
            self._ready.move_grown(queue)
        elif queue.tasks and queue.in_progress < queue.limit(self._options.threads_per_host):
            self._ready.put(queue, now)

    def _take(self, now: float) -> tuple[HostQueue, Task] | None:
        while (queue := self._ready.take(now)) is not None:
            if queue.ready_at > now:  # postponed since it was listed
                self._offer(queue, now)
                continue
            self._pass_over(queue)
            if not queue.tasks or not self._may_enter(queue):
                self._release(queue)
                continue
            task = queue.tasks.popleft()
            queue.begun = True
            self.waiting -= 1
            self._in_progress += 1
            queue.in_progress += 1
            self._offer(queue, now)
            return queue, task
        return None

    def _pass_over(self, queue: HostQueue) -> None:
        """Removes the first pages if their robots.txt waits for another host, or is refused."""
        while (search := queue.next_search()) is not None:
            if search.waits:
                search.pages.append(queue.tasks.popleft())
            elif search.refused:
                self.waiting -= 1
                self.drop([queue.tasks.popleft()], search.refused)
            else:
                break

    def _may_enter(self, queue: HostQueue) -> bool:
        if queue.in_progress >= queue.limit(self._options.threads_per_host):
            return False
        if queue.in_progress and origin_of(queue.tasks[0].request_url) not in queue.rules:
            return False  # one turn at a time until robots.txt is known
        return self._address_limit.enter(queue)

    def _settle(self, turn: HostTurn) -> None:
        queue, now = turn.queue, self._times.monotonic()
        queue.in_progress -= 1
        self._in_progress -= 1
        host = queue.hosts[turn.task.host]
        self._address_limit.leave(host.address)
        if turn.address is not None:
            host.address = turn.address
            if self._options.queue_mode == "ip" and turn.address not in ("", queue.name):
                queue = turn.queue = self._join(queue, turn.address)
        self._await_robots(turn)
        if turn.again:
            queue.tasks.appendleft(turn.task)
            self.waiting += 1
        if turn.drop is not None:
            self.drop([turn.task], turn.drop)
        wait = self._back_off(turn)
        if turn.requested:
            queue.last_request_time = now_ms()
            queue.ready_at = max(
                queue.ready_at, now + queue.delay_after_request(self._options.delay) + wait
            )
        if queue.crawl_delay or queue.backoff_until > now_ms():
            self.demands[turn.task.host] = queue.crawl_delay, queue.backoff_until
        if turn.result is not None:
            queue.count(turn.result)
            if not self._held_results.hold(turn, self._queue_of(turn.follow) or queue):
                self._put(turn.result)
            turn.result = None  # a thread keeps its last turn while it waits for the next one
        if self._stopped:
            self._purge(queue, self._stopped)
        self._offer(queue, now)
        if turn.follow is not None:
            self._add_all([turn.follow], now, first=True)  # in the queue of its host
        if turn.leads_to is not None:
            self._add_all(self._held_results.take_again(*turn.leads_to), now, first=True)
        if turn.answer is not None:
            pages = self._hops.release(turn.task.url, turn.answer)
            self.waiting -= len(pages)
            self._add_all(reversed(pages), now, first=True)
        self._release(queue)
        if not queue.tasks and not queue.in_progress:
            self._forget(queue)

    def _put(self, result: Result) -> None:
        self._results.append(result)
        self._result_bytes += body_bytes(result)

    def _queue_of(self, task: Task | None) -> HostQueue | None:
        """Returns the queue that a task will wait in, if there is one."""
        return None if task is None else self.queues.get(self._name_of(task))

    def _name_of(self, task: Task) -> str:
        return self._joined.get(task.host) or task.address or self._options.queue_name(task.host)

    def _release(self, queue: HostQueue) -> None:
        """Passes on the results that were held until a queue has nothing to do, if it has not."""
        if queue.held_keys and not queue.tasks and not queue.in_progress:
            for result in self._held_results.release(queue):
                self._put(result)

    def _await_robots(self, turn: HostTurn) -> None:
        """Makes a page wait for a robots.txt of another host; all pages share one request."""
        search, hop = turn.search, turn.follow
        if search is None or hop is None:
            return
        search.answer = self.answers.get(hop.url)  # it may have arrived since the turn began
        if search.answer is not None:
            turn.again, turn.follow = True, None
            return
        self.waiting += 1
        if not self._hops.add_page(search, turn.task):
            turn.follow = None
        elif not self._hops.admits(search.owner):
            turn.follow = None
            self._refuse(hop.url, "robots_redirects")

    def _refuse(self, url: str, reason: str) -> None:
        """Drops the pages that wait for a robots.txt."""
        pages = self._hops.release(url, None, reason)
        self.waiting -= len(pages)
        self.drop(pages, reason)

    def _join(self, queue: HostQueue, address: str) -> HostQueue:
        """Merges a queue without turns under way into that of an address; returns the latter."""
        joined = self.queues.setdefault(address, HostQueue(address))
        joined.absorb(self.queues.pop(queue.name))
        self._joined.update(dict.fromkeys(queue.hosts, address))
        return joined

    def _back_off(self, turn: HostTurn) -> float:
        """Counts a failure and returns the seconds to wait for it, or purges the queue."""
        wait, rests, reason = back_off_after(turn, self._options)
        if rests:  # the next generate skips the host for this time
            until = now_ms() + int(wait * 1000)
            turn.queue.backoff_until = max(turn.queue.backoff_until, until)
        if reason:
            log_given_up_host(turn.queue, reason)
            self._purge(turn.queue, reason)
        return wait

    def _purge(self, queue: HostQueue, reason: str) -> None:
        if queue.tasks:
            tasks = list(queue.tasks)
            self.waiting -= len(tasks)
            queue.tasks.clear()
            self._leave_out(tasks, reason)
            self._release(queue)

    def _leave_out(self, tasks: list[Task], reason: str) -> None:
        """Drops tasks; for a robots.txt among them, drops the pages that wait for it."""
        self.drop([task for task in tasks if not task.robots], reason)
        for task in tasks:
            if task.robots:  # its host gets no requests for now
                self._refuse(task.url, self._stopped or "robots_deferred")

    def _stop(self, reason: str) -> None:
        if self._stopped is None:
            self._stopped = reason
            for queue in self.queues.values():
                self._purge(queue, reason)
            for url in self._hops.urls:
                self._refuse(url, reason)

    def _forget(self, queue: HostQueue) -> None:
        """Keeps the robots.txt of a finished queue if there is space; otherwise drops it."""
        if queue.rules_counted:
            return
        queue.rules_counted = True
        self._kept_bytes += sum(rules.packed_bytes for rules in queue.rules.values())
        if self._kept_bytes > _MAX_KEPT_BYTES:
            queue.rules.clear()
