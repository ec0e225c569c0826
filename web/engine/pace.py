"""The engine's speed: its options, and the limits computed from them."""

import dataclasses
import math
from collections.abc import Callable

from ..base.options import option
from ..base.robots_options import RobotsOptions
from .queue_options import QueueOptions, queue_of


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """The limits that the queues keep; seconds, negative counts for "no limit".

    Attributes:
        threads_per_host: Requests to one host at a time.
        threads_per_address: Requests to one address at a time.
        delay: Returns the delay after a request, given the host's crawl delay.
        max_exceptions: Failures in a row after which a host is left alone.
        exceptions_delay: Back-off after the first failure, doubled with each more.
        max_backoff: A host that wants to be left alone for longer is left alone.
        max_rest: Longest time for which a host is left alone.
        max_crawl_delay: Longest crawl delay that counts.
        queue_of: Returns the name of the queue that a host is in.
        by_address: Whether hosts at one address share a queue as soon as it is known.
        robots_targets: Requests to the hosts of a domain because of others' robots.txt.
    """

    threads_per_host: int
    threads_per_address: int
    delay: Callable[[float | None], float]
    max_exceptions: int
    exceptions_delay: float
    max_backoff: float
    max_rest: float = math.inf
    max_crawl_delay: float = math.inf
    queue_of: Callable[[str], str] = str
    by_address: bool = False
    robots_targets: int = 10


@dataclasses.dataclass(frozen=True)
class FetchOptions(RobotsOptions, QueueOptions):
    """How fast, and how many at a time."""

    threads: int = option(
        50, "Requests at a time, in all.", nutch="fetcher.threads.fetch", minimum=1, maximum=2000
    )
    threads_per_host: int = option(
        1,
        "Requests at a time to one host; one that asks for a crawl delay gets one.",
        nutch="fetcher.threads.per.queue",
        minimum=1,
    )
    threads_per_address: int = option(
        8,
        "Requests at a time to one address, whatever the number of its hosts; negative for "
        "any number. Hosts of connect_to are exempt.",
        minimum=-1,
    )
    server_delay: float = option(
        5.0,
        "Wait between the end of a request and the next one to the same host.",
        unit="s",
        nutch="fetcher.server.delay",
        minimum=0,
    )
    server_min_delay: float = option(
        0.0,
        "The same where threads_per_host is above 1.",
        unit="s",
        nutch="fetcher.server.min.delay",
        minimum=0,
    )
    max_crawl_delay: float = option(
        30.0,
        "Pages of a host that asks for a longer crawl delay are not fetched; negative to wait "
        "that long.",
        unit="s",
        nutch="fetcher.max.crawl.delay",
    )
    min_crawl_delay: float | None = option(
        None,
        "Least wait where robots.txt asks for a crawl delay; server_delay if not given.",
        unit="s",
        nutch="fetcher.min.crawl.delay",
        minimum=0,
    )
    time_limit: float = option(
        10_800.0,
        "Time after which no request is begun; what waits stays due. Negative for no limit.",
        unit="s",
        nutch="fetcher.timelimit.mins",
    )
    max_exceptions_per_host: int = option(
        5,
        "Failures in a row after which the rest of a host stays due; negative for any number.",
        nutch="fetcher.max.exceptions.per.queue",
    )
    exceptions_delay: float | None = option(
        None,
        "Extra wait after a failure, doubled with each more, of earlier rounds too; each success "
        "halves it. Up to a fifth longer, by chance; server_delay if not given.",
        unit="s",
        nutch="fetcher.exceptions.per.queue.delay",
        minimum=0,
    )
    max_backoff: float = option(
        120.0,
        "The rest of a host that must be left alone for longer (Retry-After) stays due; "
        "negative to wait as long as it takes.",
        unit="s",
    )

    max_retry_after: float = option(
        86_400.0,
        "A host is left alone for no longer than this, whatever its Retry-After says.",
        unit="s",
        minimum=0,
    )
    throughput_threshold_pages: float = option(
        -1.0,
        "Leave the rest due when fewer pages a second come; negative never does.",
        unit="pages/s",
        nutch="fetcher.throughput.threshold.pages",
    )
    throughput_threshold_retries: int = option(
        5,
        "How many seconds in a row must be that slow.",
        unit="seconds",
        nutch="fetcher.throughput.threshold.retries",
        minimum=1,
    )
    throughput_threshold_check_after: float = option(
        300.0,
        "Time before which no second counts as slow.",
        unit="s",
        nutch="fetcher.throughput.threshold.check.after",
        minimum=0,
    )

    def __post_init__(self) -> None:
        if self.threads_per_address == 0:
            raise ValueError("threads_per_address must be at least 1, or -1 for any, got 0")


def crawl_pace(options: FetchOptions) -> Pace:
    """Returns the pace that the options describe.

    >>> pace = crawl_pace(FetchOptions(server_delay=2.0))
    >>> pace.delay(None), pace.delay(1.0), pace.delay(9.0)
    (2.0, 2.0, 9.0)
    """
    most = options.max_crawl_delay if options.max_crawl_delay >= 0 else math.inf
    usual = options.server_delay
    least = usual if options.min_crawl_delay is None else options.min_crawl_delay
    fixed = options.server_min_delay if options.threads_per_host > 1 else usual
    after = usual if options.exceptions_delay is None else options.exceptions_delay
    return Pace(
        threads_per_host=options.threads_per_host,
        threads_per_address=options.threads_per_address,
        # Of a host that asks for more than the most, no page is fetched.
        delay=lambda requested: max(requested, least) if requested and requested <= most else fixed,
        max_exceptions=options.max_exceptions_per_host,
        exceptions_delay=after,
        max_backoff=options.max_backoff,
        max_rest=options.max_retry_after,
        max_crawl_delay=most,
        queue_of=queue_of(options.queue_mode),
        by_address=options.queue_mode == "ip",
        robots_targets=options.robots_redirect_targets,
    )


class Waited:
    """Adds up waiting over time; a second in which a third of all wait is a third.

    >>> waited = Waited(0.0)
    >>> for now, share in ((1.0, 0.5), (3.0, 0.0), (9.0, 0.0)):
    ...     waited.account(now, share)
    >>> waited.total
    1.0
    """

    def __init__(self, now: float) -> None:
        self.total = self._share = 0.0
        self._since = now

    def account(self, now: float, share: float) -> None:
        """Sets the share that waits from now on."""
        self.total += max(0.0, now - self._since) * self._share
        self._since, self._share = now, share


class Throughput:
    """Detects that too few pages come for too many seconds in a row.

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
        """Takes the number of all pages so far; returns whether that is too few."""
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
        """Leaves out time in which the caller took no pages."""
        self._since += seconds
