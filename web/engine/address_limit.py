"""Limits the requests to one IP address at a time, for all of its hosts together."""

from collections import Counter, deque

from .host_queue import HostQueue
from .ready_queues import ReadyQueues


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
