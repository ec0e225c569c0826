"""What keeps a fetch busy: which hosts are being asked, and for which it will take longest."""

import dataclasses
import heapq
from collections.abc import Callable, Iterable, Sized
from typing import Protocol

SLOWEST = 3


@dataclasses.dataclass(frozen=True)
class SlowHost:
    """A host with pages that wait.

    Attributes:
        host: Its name.
        pages: How many wait.
        seconds: How long they take at least, for politeness' sake.
    """

    host: str
    pages: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Tail:
    """The hosts of a fetch as they stood when they were looked at.

    Attributes:
        active: Hosts that are being asked.
        waiting: Hosts whose pages wait.
        slowest: Those that will take longest, the slowest first.
    """

    active: int = 0
    waiting: int = 0
    slowest: tuple[SlowHost, ...] = ()

    @property
    def seconds(self) -> float:
        """How long the slowest host takes at least; 0 where none waits."""
        return self.slowest[0].seconds if self.slowest else 0.0


class Queue(Protocol):
    """What is looked at of a host's queue; see ``turns.HostQueue``."""

    @property
    def name(self) -> str: ...
    @property
    def tasks(self) -> Sized: ...
    @property
    def in_progress(self) -> int: ...
    @property
    def ready_at(self) -> float: ...
    def rest(self, usual: Callable[[float | None], float]) -> float: ...


def tail_of(queues: Iterable[Queue], delay: Callable[[float | None], float], now: float) -> Tail:
    """Returns what the queues say; they may change meanwhile, so it is right but for a page or two.

    Args:
        queues: One for each host.
        delay: Returns the seconds between two requests, given the crawl delay.
        now: Monotonic moment.
    """
    active = 0
    waiting = []
    for queue in queues:
        active += queue.in_progress > 0
        pages = len(queue.tasks)
        if pages:
            first = max(0.0, queue.ready_at - now)
            waiting.append((first + (pages - 1) * queue.rest(delay), pages, queue.name))
    slowest = (
        SlowHost(host, pages, wait) for wait, pages, host in heapq.nlargest(SLOWEST, waiting)
    )
    return Tail(active, len(waiting), tuple(slowest))
