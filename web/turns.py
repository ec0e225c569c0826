"""A host's turn: its queue, and what came of a visit."""

import dataclasses
from collections import deque

from .hosts import HostRecord
from .robots import RobotsRules
from .tasks import Result, Task


class HostQueue:
    """The tasks of one host, and how it is to be treated.

    Attributes:
        tasks: Waiting, first come first.
        in_progress: How many workers are at it.
        listed: Whether it waits for its turn already.
        ready_at: Monotonic moment of the next turn.
        known: What an earlier run learnt.
        rules: What robots.txt says, by origin.
        crawl_delay: Seconds that it asks for.
        address: Where the host is; None while unknown, empty where it does not matter.
    """

    __slots__ = (
        *("address", "backoff_until", "counts", "crawl_delay", "exceptions", "host"),
        *("in_progress", "kept", "known", "last_end", "listed", "ready_at", "rules", "tasks"),
    )

    def __init__(self, host: str, known: HostRecord | None) -> None:
        self.host = host
        self.tasks: deque[Task] = deque()
        self.in_progress = 0
        self.listed = False
        self.ready_at = 0.0
        self.known = known
        self.rules: dict[str, RobotsRules] = {}
        self.crawl_delay = known.crawl_delay if known else None
        self.address: str | None = None
        self.exceptions = 0
        self.backoff_until = known.backoff_until if known else 0
        self.last_end = known.last_request_end if known else 0
        self.counts: dict[str, int] = {}
        self.kept = False


@dataclasses.dataclass(slots=True)
class Visit:
    """What came of a turn.

    Attributes:
        queue: Whose turn it was.
        task: The task that was taken.
        result: None where the task produced none.
        again: Whether the task goes back to the front of its queue.
        asked: Whether a request was made, so that the host's delay counts from now.
        failed: Whether the server failed; None where nothing can be said.
        wait: Seconds that the server asked to be left alone, on top of the delay.
        purge: Reason for which all that waits in the queue is dropped.
        address: Where the host was found to be, if that was asked; see ``HostQueue``.
    """

    queue: HostQueue
    task: Task
    result: Result | None = None
    again: bool = False
    asked: bool = False
    failed: bool | None = None
    wait: float = 0.0
    purge: str | None = None
    address: str | None = None


def origin_of(url: str) -> str:
    """Returns ``scheme://host[:port]`` of a normalized URL.

    >>> origin_of("http://a.example:81/b/c")
    'http://a.example:81'
    """
    end = url.find("/", 8)
    return url if end < 0 else url[:end]
