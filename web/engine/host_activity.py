"""Summarizes the hosts of a fetch: how many are active, and which will take longest."""

import heapq
from collections.abc import Callable, Iterable

from ..base.progress import HostActivity, SlowHost
from .host_queue import HostQueue

_SLOWEST = 3


def host_activity(
    queues: Iterable[HostQueue], delay: Callable[[float | None], float], now: float
) -> HostActivity:
    """Returns the state of the queues; counts are approximate, because queues may change meanwhile.

    Args:
        queues: One queue for each host.
        delay: Function of the crawl delay that returns the seconds between two requests.
        now: Time on the monotonic clock.
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
        SlowHost(host, pages, wait) for wait, pages, host in heapq.nlargest(_SLOWEST, waiting)
    )
    return HostActivity(active, len(waiting), tuple(slowest))
