"""Summarizes the hosts of a fetch: how many are active, and which will take longest."""

import heapq
from collections.abc import Callable, Iterable

from ..base.progress import HostActivity, WaitingHost
from .host_queue import HostQueue

_SLOWEST = 3


def host_activity(
    queues: Iterable[HostQueue], delay: Callable[[float | None], float], now: float
) -> HostActivity:
    """Returns the state of the queues; approximate, because queues may change during the call.

    Args:
        queues: One queue for each host.
        delay: Function of the crawl delay that returns the seconds between two requests.
        now: Time on the monotonic clock.
    """
    active = waiting = 0
    known = []
    for queue in queues:
        pages, in_progress = len(queue.tasks), queue.in_progress > 0
        active += in_progress
        waiting += pages > 0
        if pages or in_progress:
            first = max(0.0, queue.ready_at - now) if pages else 0.0
            seconds = first + max(0, pages - 1) * queue.rest(delay)
            known.append((seconds, pages, queue.name, queue.ready_at, in_progress))
    slowest = (
        WaitingHost(host, pages, seconds, at, in_progress)
        for seconds, pages, host, at, in_progress in heapq.nlargest(_SLOWEST, known)
    )
    return HostActivity(active, waiting, tuple(slowest))
