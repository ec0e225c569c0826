"""Counts the work of this process: the source of the live view and the summary.

Only the process that works can count. If others work, such as those of a cluster, the launcher reads
from the table how far they are, and relays that.
"""

import dataclasses
import heapq
import operator
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .clock import now_ms
from .dataclass import dataclass

# Reading a million hosts takes time; it may take a two-hundredth of the total time.
_LOOK_SECONDS, _LOOK_SHARE = 1.0, 200
_KEPT_FAILURES = 5


class RequestFailure(NamedTuple):
    """A request that has failed.

    Attributes:
        time: When, UTC ms.
        url: The URL; it may have a user and a password.
        reason: Why, such as ``timeout``.
    """

    time: int
    url: str
    reason: str


@dataclass(frozen=True)
class WaitingHost:
    """A host with waiting pages.

    Attributes:
        host: Its name.
        pages: Number of waiting pages; 0 if only requests under way are left.
        seconds: Minimum time for these pages, in s, because of the delays between requests.
        next_at: Time of its next request, on the monotonic clock.
        active: Whether a request is under way.
    """

    host: str
    pages: int
    seconds: float
    next_at: float = 0.0
    active: bool = False


@dataclass(frozen=True)
class HostActivity:
    """The hosts of a fetch at one moment.

    Attributes:
        active: Number of hosts with a request under way.
        waiting: Number of hosts with waiting pages.
        slowest: The hosts whose waiting pages take longest, the slowest first.
    """

    active: int = 0
    waiting: int = 0
    slowest: tuple[WaitingHost, ...] = ()

    @classmethod
    def of_all(cls, engines: "Sequence[HostActivity]") -> "HostActivity":
        """Returns the hosts of several engines, each of which has its own.

        >>> one = HostActivity(1, 2, (WaitingHost("a", 3, 9.0),))
        >>> both = HostActivity.of_all([one, HostActivity(1, 1, (WaitingHost("b", 5, 25.0),))])
        >>> both.active, both.waiting, [host.host for host in both.slowest]
        (2, 3, ['b', 'a'])
        """
        hosts = [host for engine in engines for host in engine.slowest]
        most = max((len(engine.slowest) for engine in engines), default=0)
        slowest = heapq.nlargest(max(most, len(engines)), hosts, key=lambda host: host.seconds)
        active, waiting = (
            sum(map(operator.attrgetter(name), engines)) for name in ("active", "waiting")
        )
        return cls(active, waiting, tuple(slowest))

    @property
    def seconds(self) -> float:
        """Minimum time, in s, until the slowest host is done; 0 if no host has waiting pages."""
        return self.slowest[0].seconds if self.slowest else 0.0


@dataclass(frozen=True)
class Phase:
    """One phase at one moment.

    Attributes:
        name: Name of the phase, such as ``fetch``.
        unit: What is counted, in the plural, such as ``pages``.
        total: How many there are to do; None if unknown.
        done: How many are done.
        counts: More counts by name, such as ``gone`` or ``robots_denied``.
        elapsed: Seconds since the start, or from start to finish.
        finished: Whether the phase is over.
        hosts: The hosts of a fetch, while one is under way.
        round: Which round of a crawl it is in, such as ``2 of 3``; empty outside of rounds.
        elsewhere: Whether other processes do its work, as on a cluster, where a phase takes long.
    """

    name: str
    unit: str
    total: int | None
    done: int
    counts: Mapping[str, int]
    elapsed: float
    finished: bool
    hosts: HostActivity | None = None
    round: str = ""
    elsewhere: bool = False

    @property
    def rate(self) -> float:
        """Things done per second; 0 before the start."""
        return self.done / self.elapsed if self.elapsed > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest at this rate, or for the slowest host; None if unknown."""
        if self.total is None or not self.rate:
            return None
        things = max(0, self.total - self.done)
        return max(things / self.rate, self.hosts.seconds if self.hosts and things else 0.0)


@dataclass(frozen=True)
class Phases:
    """The current phase, if any, those before it, oldest first, and the round of a crawl.

    Attributes:
        current: The current phase.
        history: Those before it.
        round: Which round of a crawl it is; see ``Phase``.
        failures: The last requests that have failed, the newest last.
    """

    current: Phase | None
    history: tuple[Phase, ...]
    round: str = ""
    failures: tuple[RequestFailure, ...] = ()

    def by_phase(self) -> dict[str, Phase]:
        """Returns one phase per name, the sum of all phases with it, in the order of their start.

        Rounds of a crawl repeat the same phases; this gives rates for a whole crawl.
        """
        sums: dict[str, Phase] = {}
        for phase in (*self.history, *([self.current] if self.current else [])):
            sums[phase.name] = _sum(sums[phase.name], phase) if phase.name in sums else phase
        return sums


class Progress:
    """Counts of one phase at a time; every method is safe to call from any thread.

    >>> progress = Progress()
    >>> progress.start("fetch", total=3)
    >>> progress.add(2, gone=1)
    >>> phase = progress.snapshot().current
    >>> phase.done, phase.counts
    (2, {'gone': 1})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._history: list[Phase] = []
        self._failures: deque[RequestFailure] = deque(maxlen=_KEPT_FAILURES)
        self._round = ""
        self._clear()

    def _clear(self) -> None:
        self._phase: Phase | None = None  # as it began, with the total
        self._relayed: Phase | None = None
        self._done = 0
        self._counts: Counter[str] = Counter()
        self._began = 0.0
        self._look: Callable[[], HostActivity] | None = None
        self._hosts: HostActivity | None = None
        self._look_due = 0.0

    def begin_round(self, number: int, rounds: int) -> None:
        """Begins a round of a crawl; finishes the current phase first.

        Args:
            number: Number of the round, from 1.
            rounds: Most rounds of the crawl; negative is no limit.
        """
        with self._lock:
            self._finish()
            self._round = f"{number:,} of {rounds:,}" if rounds >= 0 else f"{number:,}"

    def start(self, phase: str, total: int | None = None, unit: str = "pages") -> None:
        """Begins a phase; finishes the current one first."""
        with self._lock:
            self._finish()
            self._phase = Phase(phase, unit, total, 0, {}, 0.0, finished=False, round=self._round)
            self._began = time.monotonic()

    def expect_more(self, n: int) -> None:
        """Adds ``n`` to the total, if there is one."""
        with self._lock:
            if self._phase is not None and self._phase.total is not None:
                self._phase = dataclasses.replace(self._phase, total=self._phase.total + n)

    def watch(self, look: Callable[[], HostActivity]) -> None:
        """Sets the function that reads the hosts of the phase; any thread may call it."""
        with self._lock:
            if self._phase is not None:
                self._look, self._look_due = look, 0.0

    def add(self, n: int = 1, **counts: int) -> None:
        """Adds ``n`` to the things done, and to the counts by name.

        Does nothing without a phase, as in a worker process.
        """
        with self._lock:
            if self._phase is not None:
                self._done += n
                self._counts.update(counts)

    def relay(self, phase: Phase | None) -> None:
        """Shows a phase in which other processes work; one that is finished goes into the history.

        Args:
            phase: The phase as it is now, without its round; None if none is under way.
        """
        with self._lock:
            relayed = dataclasses.replace(phase, round=self._round) if phase else None
            if relayed is not None and relayed.finished:
                self._history.append(relayed)
                relayed = None
            self._relayed = relayed

    def note_failure(self, url: str, reason: str) -> None:
        """Keeps a failed request, for those who look at the last ones."""
        self._failures.append(RequestFailure(now_ms(), url, reason))

    def finish(self) -> None:
        """Ends the phase and keeps it in the history; does nothing without a phase."""
        with self._lock:
            self._finish()

    def reset(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._history.clear()
            self._failures.clear()
            self._round = ""
            self._clear()

    def snapshot(self) -> Phases:
        """Returns the current phase and the history, consistent with each other."""
        self._look_again()
        with self._lock:
            current = self._current(finished=False)
            return Phases(current, tuple(self._history), self._round, self._last_failures())

    def _last_failures(self) -> tuple[RequestFailure, ...]:
        """Returns the last failures; ``copy`` is one step, while other threads append."""
        return tuple(self._failures.copy())

    def _look_again(self) -> None:
        """Reads the hosts if the last reading is old; without the lock, because it takes time."""
        with self._lock:
            look, began = self._look, time.monotonic()
            if look is None or began < self._look_due:
                return
            self._look_due = float("inf")  # one thread is enough
        hosts = look()
        took = time.monotonic() - began
        with self._lock:
            if self._look is look:
                self._hosts = hosts
                self._look_due = began + max(_LOOK_SECONDS, _LOOK_SHARE * took)

    def _finish(self) -> None:
        phase = self._current(finished=True)
        if phase is not None:
            self._history.append(phase)
        self._clear()

    def _current(self, finished: bool) -> Phase | None:
        if self._phase is None:
            return None if finished else self._relayed
        return dataclasses.replace(
            self._phase,
            done=self._done,
            counts=dict(self._counts),
            elapsed=time.monotonic() - self._began,
            finished=finished,
            hosts=None if finished else self._hosts,
        )


def _sum(one: Phase, other: Phase) -> Phase:
    has_total = one.total is not None and other.total is not None
    return dataclasses.replace(
        other,
        total=(one.total or 0) + (other.total or 0) if has_total else None,
        done=one.done + other.done,
        counts=dict(Counter(one.counts) + Counter(other.counts)),
        elapsed=one.elapsed + other.elapsed,
    )


PROGRESS = Progress()
