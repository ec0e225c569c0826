"""Reports on the hosts of a fetch: its slowest ones, and log lines on those that fail."""

import heapq
import logging
from collections.abc import Callable, Iterable

from ..base.json_logs import with_fields
from ..base.progress import HostActivity, WaitingHost
from .host_queue import HostQueue

_LOG = logging.getLogger("nutbeam.hosts")
_SLOWEST = 20


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
    queue_times = []
    for queue in queues:
        pages, in_progress = len(queue.tasks), queue.in_progress > 0
        active += in_progress
        waiting += pages > 0
        if pages or in_progress:
            first = max(0.0, queue.ready_at - now) if pages else 0.0
            seconds = first + max(0, pages - 1) * queue.delay_after_request(delay)
            queue_times.append((seconds, pages, queue.name, queue.ready_at, in_progress))
    slowest = (
        WaitingHost(host, pages, seconds, at, in_progress)
        for seconds, pages, host, at, in_progress in heapq.nlargest(_SLOWEST, queue_times)
    )
    return HostActivity(active, waiting, tuple(slowest))


def log_given_up_host(queue: HostQueue, reason: str) -> None:
    """Logs that the waiting pages of a host are left out of this fetch; they stay due."""
    if queue.tasks:
        text = "%s is given up: %s, %d pages stay due"
        _log("host_given_up", text, queue, reason, len(queue.tasks))


def log_silent_hosts(queues: Iterable[HostQueue]) -> None:
    """Logs each host that has answered no request for a page, at the end of a fetch."""
    for queue in queues:
        if queue.failures and not queue.answered:
            text = "%s has failed: %s, %d pages"
            _log("host_failed", text, queue, queue.failure, queue.failures)


def log_odd_delay(host: str, value: str) -> None:
    """Logs that the crawl delay in the robots.txt of a host is no time, so it is not obeyed."""
    value = value[:100]
    fields = with_fields(event="odd_crawl_delay", host=host, reason=value)
    _LOG.info("%s has a crawl delay that is no time: %r", host, value, extra=fields)


def _log(event: str, text: str, queue: HostQueue, reason: str, pages: int) -> None:
    fields = with_fields(event=event, host=queue.name, reason=reason, pages=pages)
    _LOG.info(text, queue.name, reason, pages, extra=fields)
