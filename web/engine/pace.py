"""Options of fetching (``FetchOptions``: threads, delays, limits), and measurements of its speed."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from ..base.dataclass import dataclass
from ..base.options import option, seconds
from ..robots.robots_options import RobotsOptions
from ..urls.domains import registered_domain


@dataclass(frozen=True)
class QueueOptions:
    """Option that determines which hosts share a queue."""

    queue_mode: str = option(
        "host",
        "Which hosts share a queue, with one request at a time and a delay. host: each host has "
        "its own queue. domain: the hosts of a registered domain share one. ip: the hosts of an IP "
        "address share one (with several num_fetchers, generate resolves the hosts). Give the same "
        "value to generate and to fetch.",
        choices=("host", "domain", "ip"),
        nutch="fetcher.queue.mode",
        group="fetch",
    )

    def queue_name(self, host: str) -> str:
        """Returns the name of the queue of a host, before its address is known.

        >>> QueueOptions("domain").queue_name("www.foo.co.uk")
        'foo.co.uk'
        """
        return registered_domain(host) if self.queue_mode == "domain" else host


@dataclass(frozen=True)
class FetchOptions(RobotsOptions, QueueOptions):
    """Delays, limits, and the number of requests at a time."""

    threads: int = option(
        50,
        "Requests at a time, of each fetch engine.",
        nutch="fetcher.threads.fetch, fetch -threads, crawl --num-threads",
        minimum=1,
        maximum=2000,
    )
    threads_per_host: int = option(
        1,
        "Requests at a time to one host; a host with a crawl delay gets one.",
        nutch="fetcher.threads.per.queue",
        minimum=1,
    )
    threads_per_address: int = option(
        8,
        "Requests at a time to one address, for all its hosts together; -1: no limit. "
        "Hosts of connect_to are exempt.",
        minimum=-1,
    )
    server_delay: float = seconds(
        5.0,
        "Wait between the end of a request and the next one to the same host.",
        nutch="fetcher.server.delay",
    )
    server_min_delay: float = seconds(
        0.0,
        "Like server_delay, when threads_per_host is above 1.",
        nutch="fetcher.server.min.delay",
    )
    max_crawl_delay: float = seconds(
        30.0,
        "Pages of a host with a longer crawl delay are not fetched; -1: no limit.",
        nutch="fetcher.max.crawl.delay",
        minimum=None,
    )
    min_crawl_delay: float | None = seconds(
        None,
        "Least wait for a host with a crawl delay; server_delay if not given.",
        nutch="fetcher.min.crawl.delay",
    )
    fetch_time_limit: float = seconds(
        10_800.0,
        "Time after which a fetch begins no request; waiting pages stay due. -1: no limit.",
        nutch="fetcher.timelimit.mins, crawl --time-limit-fetch",
        minimum=None,
    )
    max_exceptions_per_host: int = option(
        5,
        "Failures in a row after which the rest of a host stays due; -1: no limit.",
        nutch="fetcher.max.exceptions.per.queue",
    )
    exceptions_delay: float | None = seconds(
        None,
        "Extra wait after a failure. Each further failure doubles it, and failures of earlier "
        "rounds count; each success halves it. A random part of up to a fifth is added. Not given: "
        "server_delay.",
        nutch="fetcher.exceptions.per.queue.delay",
    )
    max_backoff: float = seconds(
        120.0,
        "If a host must wait for longer (Retry-After, back-off), its other pages stay due; -1: no "
        "limit.",
        minimum=None,
    )

    max_retry_after: float = seconds(
        86_400.0, "Longest pause of a host, even if its Retry-After is longer."
    )
    throughput_threshold_pages: float = option(
        -1.0,
        "End the fetch when fewer pages per second arrive; -1: never.",
        unit="pages/s",
        nutch="fetcher.throughput.threshold.pages",
    )
    throughput_threshold_retries: int = option(
        5,
        "How many consecutive slow seconds end the fetch.",
        unit="seconds",
        nutch="fetcher.throughput.threshold.retries",
        minimum=1,
    )
    throughput_threshold_check_after: float = seconds(
        300.0,
        "Start measuring the throughput after this time.",
        nutch="fetcher.throughput.threshold.check.after",
    )

    def __post_init__(self) -> None:
        if self.threads_per_address == 0:
            raise ValueError("threads_per_address must be at least 1, or -1 for no limit, got 0")

    @property
    def longest_crawl_delay(self) -> float:
        """Longest allowed crawl delay, in s; pages of hosts with a longer one are not fetched."""
        return self.max_crawl_delay if self.max_crawl_delay >= 0 else math.inf

    def delay(self, crawl_delay: float | None) -> float:
        """Returns the delay after a request to a host, in s.

        Args:
            crawl_delay: Crawl delay of its robots.txt in s, if it has one.

        >>> options = FetchOptions(server_delay=2.0)
        >>> options.delay(None), options.delay(1.0), options.delay(9.0)
        (2.0, 2.0, 9.0)
        """
        if crawl_delay and crawl_delay <= self.longest_crawl_delay:
            least = self.min_crawl_delay
            return max(crawl_delay, self.server_delay if least is None else least)
        return self.server_min_delay if self.threads_per_host > 1 else self.server_delay


class RunTimes(NamedTuple):
    """The clock of a run and moments on it, in s.

    Attributes:
        deadline: After this, no turn begins.
        requested_until: Until then, other engines may have sent requests to the same hosts.
        monotonic: The clock; tests give one of their own.
    """

    deadline: float = math.inf
    requested_until: float = -math.inf
    monotonic: Callable[[], float] = time.monotonic


class WaitedTime:
    """Sums the time of waiting; a second in which a third of the workers wait counts as a third.

    >>> waited = WaitedTime(0.0)
    >>> for now, share in ((1.0, 0.5), (3.0, 0.0), (9.0, 0.0)):
    ...     waited.account(now, share)
    >>> waited.total
    1.0
    """

    def __init__(self, now: float) -> None:
        self.total = self._share = 0.0
        self._since = now

    def account(self, now: float, share: float) -> None:
        """Sets the share of workers that wait from now on."""
        self.total += max(0.0, now - self._since) * self._share
        self._since, self._share = now, share


class Throughput:
    """Detects that too few pages arrive for too many consecutive seconds.

    Args:
        options: The threshold.
        now: Monotonic moment at which fetching begins.

    >>> options = FetchOptions(throughput_threshold_pages=2, throughput_threshold_retries=2,
    ...                        throughput_threshold_check_after=0.0)
    >>> throughput = Throughput(options, now=0.0)
    >>> [throughput.too_low(now, pages) for now, pages in ((1, 1), (2, 9), (3, 10), (4.5, 11))]
    [False, False, False, True]
    """

    def __init__(self, options: FetchOptions, now: float) -> None:
        self._options = options
        self._begin = self._since = now + options.throughput_threshold_check_after
        self._pages = self._slow = 0

    def too_low(self, now: float, pages: int) -> bool:
        """Returns whether the number of pages so far shows a throughput that is too low."""
        least, seconds = self._options.throughput_threshold_pages, now - self._since
        if least < 0 or seconds < 1:
            if now < self._begin:
                self._pages = pages
            return False
        slow = (pages - self._pages) / seconds < least
        self._slow = self._slow + int(seconds) if slow else 0
        self._since, self._pages = now, pages
        return self._slow >= self._options.throughput_threshold_retries

    def pause(self, seconds: float) -> None:
        """Excludes time in which the caller took no pages."""
        self._since += seconds
