"""Limits how many requests go to one address at a time, whatever the number of its hosts."""

from collections import Counter, deque

from .host_queue import HostQueue
from .ready_queues import ReadyQueues


class AddressLimit:
    """Limits the requests to each address; queues wait here until an address is free.

    Args:
        most: Requests to one address at a time; negative for any number.
        ready: Receives queues that need not wait any more.

    Attributes:
        busy: How many requests are under way, by address.
        parked: Queues that wait, by address.
    """

    def __init__(self, most: int, ready: ReadyQueues) -> None:
        self._most, self._ready = most, ready
        self.busy: Counter[str] = Counter()
        self.parked: dict[str, deque[HostQueue]] = {}

    def enter(self, queue: HostQueue) -> bool:
        """Counts a request to the queue's next host; if the address is busy, the queue waits."""
        address = queue.next_host.address
        if not address or self._most < 0:
            return True
        if self.busy[address] >= self._most:
            queue.listed = True
            self.parked.setdefault(address, deque()).append(queue)
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
        parked = self.parked.get(address)
        while parked:
            following = parked.popleft()
            if following.tasks:
                self._ready.put_first(following)
                break
            following.listed = False
        if parked is not None and not parked:
            del self.parked[address]
