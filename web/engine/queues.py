"""Shares the queues of hosts among workers, with a common lock.

A worker returns its finished turn and takes the next one in the same call. No thread polls: if no
host is ready, a worker waits until the first one is, or until another worker changes something. An
event loop must not wait: it gets the time of its next call, and an alert if something changes.
"""

import math
import threading
from collections.abc import Callable, Iterable

from .host_queue import HostQueue, HostTurn
from .host_queues import HostQueues
from .pace import FetchOptions, RunTimes, WaitedTime
from .robots_search import RobotsAnswers
from .tasks import HostRecord, Result, Task, body_bytes

_MAX_RESULTS = 1000
_MAX_RESULT_BYTES = 8 << 20
_MAX_COLLECTED_BYTES = 4 << 20


class Queues(HostQueues):
    """Queues, and the workers and the collector of results that wait; safe for threads.

    Args:
        options: The limits.
        recall_host: Function that returns the findings of an earlier run about a host.
        times: The clock, and the time after which no turn begins.
        on_drop: See ``HostQueues``.
        answers: See ``HostQueues``.

    Attributes:
        workers: Largest number of turns at a time.
        alert: Function for event loops, which have no threads to wake: called if a turn may be
            possible; in any thread, with the lock held.
    """

    def __init__(
        self,
        options: FetchOptions,
        recall_host: Callable[[str], HostRecord | None],
        times: RunTimes,
        on_drop: Callable[[Task, str], None] | None = None,
        answers: RobotsAnswers | None = None,
    ) -> None:
        super().__init__(options, recall_host, times, on_drop, answers)
        self.workers = self._idle = 0
        self.alert: Callable[[], None] | None = None
        self._fed = self._closed = self._held_back = False
        self._throttled = WaitedTime(self._times.monotonic())
        self._alarm = math.inf
        lock = threading.Lock()
        self._work = threading.Condition(lock)
        self._arrived = threading.Condition(lock)

    def add(self, tasks: Iterable[Task]) -> None:
        """Queues tasks; each must have its host."""
        with self._work:
            self._add_all(tasks, self._times.monotonic())
            self._wake(self._idle)

    def end_feed(self) -> None:
        """Declares that no more tasks will be added."""
        with self._work:
            self._fed = True
            self._wake()

    def next_turn(self, turn: HostTurn | None) -> tuple[HostQueue, Task] | None:
        """Accepts a finished turn, and waits for the next one; returns None at the end."""
        ended = [] if turn is None else [turn]
        with self._work:
            while True:
                turns, due = self._due_turns(ended, 1)
                if turns:
                    self._wake_another()
                    return turns[0]
                if due is None:
                    self._wake()
                    return None
                ended = []
                self._wait(due)

    def take_due(
        self, ended: Iterable[HostTurn], room: int
    ) -> tuple[list[tuple[HostQueue, Task]], float | None]:
        """Accepts finished turns, and returns turns that are due, without waiting.

        Args:
            ended: The finished turns.
            room: Largest number of turns to return.

        Returns:
            (turns to take, time of the next call on the monotonic clock). The time is infinite if
            the end of a turn or an alert comes first, and None at the end.
        """
        with self._work:
            turns, due = self._due_turns(ended, room)
            self._idle = room - len(turns)
            self._account(self._times.monotonic())
            return turns, due

    def _due_turns(
        self, ended: Iterable[HostTurn], room: int
    ) -> tuple[list[tuple[HostQueue, Task]], float | None]:
        for turn in ended:
            self._settle(turn)
        now = self._times.monotonic()
        if now >= self._times.deadline:
            self._stop("time_limit")
        if self._closed or self._is_done():
            self._arrived.notify_all()
            return [], None
        turns: list[tuple[HostQueue, Task]] = []
        self._held_back = self._is_crowded()
        while not self._held_back and len(turns) < room and (start := self._take(now)) is not None:
            turns.append(start)
        self._arrived.notify()  # for results, and if no task is left because some were dropped
        self._account(now)
        return turns, self._due(room=not self._held_back and len(turns) < room)

    def collect(self, most: int, patience: float) -> list[Result] | None:
        """Returns results in the order of their arrival; None if there will be no more.

        Of large bodies it returns some, so that a collector does not hold all of them.

        It waits for the first result, up to ``patience`` seconds, unless fewer than
        ``most`` tasks wait and more may be added.
        """
        until = self._times.monotonic() + patience
        with self._arrived:
            while not self._results and (self._fed or self.waiting >= most):
                if self._is_done() or self._closed:
                    return None
                patience_left = until - self._times.monotonic()
                if patience_left <= 0:
                    break
                self._arrived.wait(patience_left)
            results = self._take_results()
            if self._held_back:
                self._held_back = False
                self._wake()
            return results

    def is_idle(self) -> bool:
        """Returns whether no task waits, no turn is under way, and all results were taken."""
        with self._work:
            return not (self.waiting or self._in_progress or self._results)

    def throttled_seconds(self) -> float:
        """Returns the seconds for which tasks have waited only for politeness; see ``WaitedTime``."""
        with self._work:
            self._account(self._times.monotonic())
            return self._throttled.total

    def stop(self, reason: str) -> None:
        """Drops all waiting tasks and all later tasks; turns under way are finished."""
        with self._work:
            self._stop(reason)
            self._wake()
            self._arrived.notify_all()

    def close(self) -> None:
        """Makes every worker stop after its turn."""
        with self._work:
            self._closed = True
            self._wake()
            self._arrived.notify_all()

    def _take_results(self) -> list[Result]:
        results: list[Result] = []
        size = 0
        while len(results) < len(self._results) and size < _MAX_COLLECTED_BYTES:
            results.append(self._results[len(results)])
            size += body_bytes(results[-1])
        self._results = self._results[len(results) :]
        self._result_bytes -= size
        return results

    def _is_crowded(self) -> bool:
        return len(self._results) >= _MAX_RESULTS or self._result_bytes >= _MAX_RESULT_BYTES

    def _is_done(self) -> bool:
        return self._fed and not self.waiting and not self._in_progress

    def _account(self, now: float) -> None:
        delayed = self._ready.due is not None and self.waiting > 0 and not self._held_back
        self._throttled.account(now, self._idle / max(1, self.workers) if delayed else 0.0)

    def _due(self, room: bool) -> float:
        """Returns the time of the next turn or event, if nothing changes before."""
        end = math.inf if self._stopped else self._times.deadline
        due = self._ready.due if room else None
        return end if due is None else min(due, end)

    def _wake(self, number: int | None = None) -> None:
        """Wakes some idle workers, or all; with an event loop, alerts the loop."""
        if self.alert is not None:
            self.alert()
        elif number is None:
            self._work.notify_all()
        else:
            self._work.notify(number)

    def _wake_another(self) -> None:
        """Wakes another worker for a ready host or the alarm, because this one is busy now."""
        due = self._ready.due
        if self._idle and (self._ready.has_ready or (due is not None and due < self._alarm)):
            self._work.notify()

    def _wait(self, due: float) -> None:
        """Waits for a change. The worker with the earliest ``due`` waits at most until then."""
        now = self._times.monotonic()
        self._idle += 1
        self._account(now)
        if due < self._alarm:
            self._alarm = due
            self._work.wait(min(max(0.0, due - now), threading.TIMEOUT_MAX))
            if self._alarm == due:
                self._alarm = math.inf
        else:
            self._work.wait()
        self._idle -= 1
        self._account(self._times.monotonic())
