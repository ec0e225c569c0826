"""Logs hosts that a fetch gives up, that have answered no request, or whose delay is no time."""

import logging
from collections.abc import Iterable

from ..base.json_logs import with_fields
from .host_queue import HostQueue

_LOG = logging.getLogger("nutbeam.hosts")


def given_up(queue: HostQueue, reason: str) -> None:
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
