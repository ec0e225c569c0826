"""Chooses the next queue: in order of delays, and within a limit of requests to one address."""

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable

from .host_queue import HostQueue


class ReadyQueues:
    """Queues that wait for a worker, or for the end of a delay.

    Queues that were begun come first, in the order in which their delays end. So no queue starves,
    and few robots.txt are kept at a time. Then comes the new queue that will take longest (tasks
    times delay), so that few slow hosts are left at the end.

    Args:
        delay: Returns the delay after a request, given the crawl delay.
    """

    def __init__(self, delay: Callable[[float | None], float]) -> None:
        self._delay = delay
        self._due: list[tuple[float, int, HostQueue]] = []
        self._begun: deque[HostQueue] = deque()
        self._fresh: list[tuple[float, int, HostQueue]] = []
        self._sequence = itertools.count()

    @property
    def has_ready(self) -> bool:
        """Whether a queue has no delay to wait for."""
        return bool(self._begun or self._fresh)

    @property
    def due(self) -> float | None:
        """Monotonic moment at which the first delay ends."""
        return self._due[0][0] if self._due else None

    def put(self, queue: HostQueue, now: float) -> None:
        """Lists a queue."""
        queue.listed = True
        if queue.ready_at > now:
            heapq.heappush(self._due, (queue.ready_at, next(self._sequence), queue))
        elif queue.begun:
            self._begun.append(queue)
        else:
            self._list_fresh(queue)

    def put_first(self, queue: HostQueue) -> None:
        """Lists a begun queue before all other begun queues."""
        queue.listed = True
        self._begun.appendleft(queue)

    def move_grown(self, queue: HostQueue) -> None:
        """Moves a listed queue that has more tasks now."""
        if queue.fresh is None:
            return
        if queue.begun:
            queue.fresh = None
            self._begun.append(queue)  # other queues wait for a robots.txt of this host
        # Only when it is twice as long; the first entry counts.
        elif 2 * queue.fresh <= len(queue.tasks):
            self._list_fresh(queue)

    def take(self, now: float) -> HostQueue | None:
        """Takes the first queue."""
        queue = self._pop_first(now)
        if queue is not None:
            queue.listed = False
        return queue

    def _pop_first(self, now: float) -> HostQueue | None:
        if self._due and self._due[0][0] <= now:
            return heapq.heappop(self._due)[2]
        if self._begun:
            return self._begun.popleft()
        while self._fresh:
            queue = heapq.heappop(self._fresh)[2]
            if queue.fresh is not None:
                queue.fresh = None
                return queue
        return None

    def _list_fresh(self, queue: HostQueue) -> None:
        queue.fresh = len(queue.tasks)
        lasts = len(queue.tasks) * (queue.delay_after_request(self._delay) or 1e-3)
        heapq.heappush(self._fresh, (-lasts, next(self._sequence), queue))


class AddressLimit:
    """Limits the requests to each address; queues wait here until an address is free.

    Args:
        most: Requests to one address at a time; negative: no limit.
        ready: The queues whose turn may come; queues go there when an address is free.

    Attributes:
        busy: Number of requests under way, by address.
        waiting: Waiting queues, by address.
    """

    def __init__(self, most: int, ready: ReadyQueues) -> None:
        self._most, self._ready = most, ready
        self.busy: Counter[str] = Counter()
        self.waiting: dict[str, deque[HostQueue]] = {}

    def enter(self, queue: HostQueue) -> bool:
        """Counts a request to the queue's next host, or makes the queue wait.

        Returns False if the queue must wait because the address is busy.
        """
        address = queue.next_host.address
        if not address or self._most < 0:
            return True
        if self.busy[address] >= self._most:
            queue.listed = True
            self.waiting.setdefault(address, deque()).append(queue)
            return False
        self.busy[address] += 1
        return True

    def leave(self, address: str | None) -> None:
        """Counts the end of a request."""
        if not address or self._most < 0:
            return
        self.busy[address] -= 1
        if not self.busy[address]:
            del self.busy[address]
        waiting = self.waiting.get(address)
        while waiting:
            following = waiting.popleft()
            if following.tasks:
                self._ready.put_first(following)
                break
            following.listed = False
        if waiting is not None and not waiting:
            del self.waiting[address]
