"""What is counted of the requests that a server saw: pure functions, one for each column.

A request for robots.txt is no page request: it is counted nowhere but where a function says so.
"""

import itertools
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import conformance_sites as sites
from conformance_web import Seen

# A gap is too short below this share of the delay: less is what a busy machine does to it.
TOLERANCE = 0.75


class Tally(NamedTuple):
    """A number, and the number of chances to be counted."""

    number: int
    of: int


def page_requests(seen: Iterable[Seen]) -> list[Seen]:
    """Returns the requests for anything but robots.txt, in the order of time."""
    return sorted(request for request in seen if request.target != "/robots.txt")


def gaps(seen: Iterable[Seen], host: str) -> list[float]:
    """Returns the seconds between each two page requests to a host."""
    times = [request.time for request in page_requests(seen) if request.host == host]
    return [after - before for before, after in itertools.pairwise(times)]


def short_gaps(seen: Iterable[Seen], host: str, delay: float) -> Tally:
    """Counts gaps between two page requests to a host that are shorter than the delay, in seconds."""
    seconds = gaps(seen, host)
    return Tally(sum(gap < TOLERANCE * delay for gap in seconds), len(seconds))


def requested(seen: Iterable[Seen], urls: Collection[tuple[str, str]]) -> Tally:
    """Counts those of (host, target) that were requested."""
    targets = {request[1:] for request in seen}
    return Tally(sum(url in targets for url in urls), len(urls))


def requests_while_busy(seen: Iterable[Seen], host: str, busy: int, seconds: float) -> int:
    """Counts page requests to a host after one was answered with Retry-After.

    Args:
        seen: The requests.
        host: The host.
        busy: The place among its page requests of the first one that was answered so.
        seconds: The value of Retry-After.
    """
    times = [request.time for request in page_requests(seen) if request.host == host]
    if len(times) <= busy:
        return 0
    return sum(times[busy] < time < times[busy] + seconds for time in times[busy + 1 :])


def pages_requested(seen: Iterable[Seen], host: str) -> int:
    """Counts the different URLs of a host that were requested, without robots.txt."""
    return len({request.target for request in page_requests(seen) if request.host == host})


def repeated_requests(seen: Iterable[Seen], host: str) -> int:
    """Counts page requests to a host for a URL that was requested before."""
    counts = Counter(request.target for request in page_requests(seen) if request.host == host)
    return sum(counts.values()) - len(counts)


def lost_pages(pages: Collection[str], output: Iterable[str]) -> Tally:
    """Counts the pages (URLs) that are not in the output of a crawler."""
    return Tally(len(set(pages) - set(output)), len(pages))


def reached(targets: Sequence[str], kind: str) -> int:
    """Counts the different numbers N of paths ``/KIND/N`` that a canary was asked for."""
    wanted = (target.partition("?")[0].split("/") for target in targets)
    return len({path[2] for path in wanted if len(path) > 2 and path[1] == kind})


def trap_is_over(seen: Sequence[Seen]) -> bool:
    """Says whether a crawler has gone so far into the trap that nothing is likely to stop it."""
    return pages_requested(seen, sites.TRAP_HOST) >= sites.TRAP_MOST


def busy_is_over(seen: Sequence[Seen]) -> bool:
    """Says whether the Retry-After of the first busy answer of each host is over."""
    for host in sites.BUSY_HOSTS:
        times = [request.time for request in page_requests(seen) if request.host == host]
        if len(times) <= sites.FIRST_BUSY:
            return False
        if time.monotonic() < times[sites.FIRST_BUSY] + sites.RETRY_AFTER:
            return False
    return True
