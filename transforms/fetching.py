"""Fetches pages with one engine, without Beam: does the work of ``FetchPages``, fetch and sitemap."""

import abc
import contextlib
import dataclasses
import math
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa

from ..io.batches.page_writer import page_row, why_not
from ..policy.base.key_columns import hosts_of
from ..policy.components.schema import MAX_DELAY, TEXT, columns, conform, to_frame
from ..web.base.agent import require_agent
from ..web.base.clock import now_ms
from ..web.base.columns import reason_if
from ..web.base.joined_options import joined_options
from ..web.base.options import seconds
from ..web.clients.aio_client import client_of
from ..web.engine.engine import Engine
from ..web.engine.pace import FetchOptions
from ..web.engine.tasks import Hop, KnownHosts, Result, Task
from ..web.exchange.http_options import HttpOptions
from ..web.exchange.status import FETCH_STATUS_NAMES, PROTOCOL_STATUS_NAMES
from ..web.network.guard import Guard
from ..web.robots.robots import RobotsRules
from ..web.rules.url_rules import UrlOptions, UrlRules
from ..web.urls.schemes import WEB
from .elements.chunks import MAX_BYTES, Chunk
from .elements.field_kinds import schema_of_class
from .elements.records import DeadLetter, FetchedPage

PAGES_OUTPUT = "pages"
DEAD_LETTERS_OUTPUT = "dead_letters"
FETCHED = schema_of_class(FetchedPage)
DEAD = schema_of_class(DeadLetter)
# The columns that are read from the input.
_GIVEN = pa.schema(
    [
        *columns(FETCHED, "url", "key", "score", "etag", "last_modified"),
        ("modified_time", pa.int64()),
        ("delay", pa.float64()),
    ]
)
# The columns that cross the shuffle.
WANTED = pa.schema([*_GIVEN, ("given", TEXT), ("host", TEXT)])
# The largest body; the other columns of its row must fit into the chunk, too.
_MAX_CONTENT = MAX_BYTES - (1 << 20)
# URLs are parsed as browsers do, and not filtered: the user has chosen them.
URL_OPTIONS = UrlOptions(no_filter=True, no_normalize=True)


@joined_options
class RequestOptions(FetchOptions, HttpOptions):
    """How URLs are requested, and how fast."""

    def __post_init__(self) -> None:
        require_agent(self)


@joined_options
class FetchPagesOptions(RequestOptions):
    """How pages are requested, and how fast, so that each fits into a chunk."""

    def __post_init__(self) -> None:
        if not 0 <= self.content_limit <= _MAX_CONTENT:
            raise ValueError(
                f"content_limit must be 0 to {_MAX_CONTENT} bytes, got {self.content_limit}"
            )
        super().__post_init__()


def admit(
    pages: Chunk | pl.DataFrame, schemes: tuple[str, ...] = WEB
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns (WANTED rows, dead letters) of the input.

    >>> wanted, dead = admit(pl.DataFrame({"url": ["HTTP://Foo.com#x", "ftp://foo.com/"]}))
    >>> wanted["url"].to_list(), dead.select("url", "reason").rows()
    (['http://foo.com/'], [('ftp://foo.com/', 'scheme_not_allowed')])
    """
    rows = to_frame(conform(pages, _GIVEN))
    options = dataclasses.replace(URL_OPTIONS, schemes=schemes)
    urls = rows.get_column("url").str.strip_chars()
    admitted = UrlRules(options).admit(urls, filters=False).select("url", "reason")
    # A bad delay is not replaced by the default, which may be too fast for the host.
    bad_delay = reason_if(~pl.col("delay").is_between(0.0, MAX_DELAY), "bad_delay")
    rows = rows.with_columns(
        *admitted,
        hosts_of(admitted.get_column("url")).fill_null("").alias("host"),  # file: has none
        pl.col("score").fill_null(0.0).fill_nan(0.0),
        pl.col("modified_time").fill_null(0),
        given="url",
    ).with_columns(reason=pl.coalesce("reason", bad_delay))
    bad = rows.filter(pl.col("reason").is_not_null())
    dead = bad.select("key", "reason", url="given", message=pl.lit(None, pl.String))
    return rows.filter(pl.col("reason").is_null()).select(WANTED.names), dead


class Fetching(contextlib.AbstractContextManager["Fetching"]):
    """What one engine fetches, and what becomes of the results; ``fetch_pages`` runs it, once.

    ``FetchPages`` runs one for each partition of its rows, or of a batch (``FetchBatch``). The
    engine calls ``may_send``, ``note_drop``, ``follow`` and ``screen`` in any thread.

    Args:
        options: FetchOptions and HttpOptions.

    Attributes:
        guard: Judges addresses; None makes one from the options.
        known_hosts: Facts about hosts.
        requested_until: Monotonic moment until which the same hosts may have had requests.
    """

    guard: Guard | None = None
    known_hosts: KnownHosts | None = None
    requested_until: float = -math.inf

    def __init__(self, options: Any) -> None:
        self.options = options

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Ends it, with an error or without."""

    def begin(self) -> Iterator[Any]:
        """Yields elements that need no request."""
        yield from ()

    @abc.abstractmethod
    def tasks(self, engine: Engine) -> Iterable[Task | None]:
        """Returns what to fetch; see ``Engine.run``."""

    @abc.abstractmethod
    def add(self, result: Result) -> Iterator[Any]:
        """Yields elements after a result."""

    def end(self) -> Iterator[Any]:
        """Yields the last elements, after all results."""
        yield from ()

    def may_send(self) -> bool:
        """Returns whether a request may be sent now."""
        return True

    def pulse(self, waited: float) -> None:
        """Callback: called often; see ``on_pulse`` of ``Engine``."""

    def note_drop(self, task: Task, reason: str) -> None:
        """Callback: a task was dropped for a reason, so it has no result."""

    def follow(self, task: Task, url: str, new_cookie: bool) -> Hop:
        """Returns what becomes of the target of a redirect; see ``follow`` of ``Engine``."""
        return Hop()

    def screen(self, task: Task, rules: RobotsRules) -> str | None:
        """Returns why a task is dropped now that robots.txt is known, or None."""
        return None

    def seconds_to_pulse(self) -> float:
        """Returns the seconds until ``pulse`` must be called."""
        return math.inf


def fetch_pages(fetching: Fetching) -> Generator[Any, None, None]:
    """Runs one engine to its end; closing the iterator ends the engine and its requests.

    Yields:
        The elements that ``fetching`` makes of the results, as these come.
    """
    over = threading.Event()
    with fetching:
        yield from fetching.begin()
        client = client_of(
            fetching.options, fetching.guard, lambda: not over.is_set() and fetching.may_send()
        )
        engine = Engine(
            fetching.options, client, fetching.known_hosts, fetching.requested_until,
            fetching.pulse, fetching.note_drop, fetching.follow, fetching.seconds_to_pulse, fetching.screen,
        )  # fmt: skip
        try:
            with contextlib.closing(engine.run(fetching.tasks(engine))) as results:
                for result in results:
                    yield from fetching.add(result)
        finally:
            over.set()  # stops requests that are not sent yet
            client.close()
        yield from fetching.end()


class RowsFetching(Fetching):
    """The pages of rows; yields (``pages``, a FETCHED row) and (``dead_letters``, a DEAD row).

    Args:
        wanted: WANTED rows; of several rows for one URL, the best is fetched.
        options: How to send requests.
        requested_until: Monotonic moment until which the same hosts may have had requests.
    """

    def __init__(
        self, wanted: pl.DataFrame, options: RequestOptions, requested_until: float = -math.inf
    ) -> None:
        super().__init__(options)
        self.requested_until = requested_until
        self._rows = rows = _best(wanted)
        self._given, self._keys, self._hosts = (
            rows.get_column(name).to_list() for name in ("given", "key", "host")
        )
        self._dropped: deque[tuple[Task, str]] = deque()

    def tasks(self, engine: Engine) -> Iterator[Task]:
        columns = ("url", "score", "etag", "last_modified", "modified_time", "delay")
        for number, row in enumerate(self._rows.select(columns).iter_rows(named=True)):
            yield Task(key=str(number), **row)

    def add(self, result: Result) -> Iterator[tuple[str, dict[str, Any]]]:
        number = int(result.task.key)
        page = page_row(result)
        if is_answer(result):
            yield PAGES_OUTPUT, _fetched_row(result, page, self._hosts[number], self._keys[number])
        else:
            reason = str(why_not(page))
            message = result.message if result.message != reason else None
            yield self._dead_letter(result.task, reason, message)
        yield from self._dead_letters()

    def end(self) -> Iterator[tuple[str, dict[str, Any]]]:
        return self._dead_letters()

    def _dead_letters(self) -> Iterator[tuple[str, dict[str, Any]]]:
        while self._dropped:
            yield self._dead_letter(*self._dropped.popleft())

    def note_drop(self, task: Task, reason: str) -> None:
        self._dropped.append((task, reason))

    def _dead_letter(
        self, task: Task, reason: str, message: str | None = None
    ) -> tuple[str, dict[str, Any]]:
        url, key = self._given[int(task.key)], self._keys[int(task.key)]
        letter = {"url": url, "key": key, "reason": reason, "message": message or None}
        return DEAD_LETTERS_OUTPUT, letter


def is_answer(result: Result) -> bool:
    """Returns whether there is an answer that could be read."""
    response = result.response
    if response is None or not response.status:
        return False
    return response.error is None or not 200 <= response.status < 300


def _best(wanted: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each URL, the best first, so that a limit cuts off the worst."""
    order = wanted.sort(
        "score", "key", "given", "etag", descending=[True, False, False, False], nulls_last=True
    )
    return order.unique("url", keep="first", maintain_order=True)


def _fetched_row(
    result: Result, page: dict[str, Any], host: str, key: str | None
) -> dict[str, Any]:
    redirect = page["redirect"]
    if redirect is not None and redirect.startswith("file:") and host:
        redirect = None  # a page of the web must not lead to the disk
    return {name: page.get(name) for name in FETCHED.names} | {
        "url": result.task.url,
        "redirect": redirect,
        "host": host,
        "key": key,
        "fetch_status": FETCH_STATUS_NAMES[result.fetch_status],
        "protocol_status": PROTOCOL_STATUS_NAMES[result.protocol_status],
        "message": result.message or None,
    }


_Options = TypeVar("_Options", bound=FetchOptions)


def in_time_left(options: _Options, until: int | None) -> _Options:
    """Returns options of a fetch that ends no later than its crawl.

    Args:
        options: The options of the fetch.
        until: Time at which the crawl ends, ms; None is no limit.

    >>> in_time_left(FetchOptions(fetch_time_limit=60.0), None).fetch_time_limit
    60.0
    >>> in_time_left(FetchOptions(fetch_time_limit=-1.0), 0).fetch_time_limit
    0.0
    """
    if until is None:
        return options
    rest_s = max(0.0, (until - now_ms()) / 1000)
    limit = rest_s if options.fetch_time_limit < 0 else min(options.fetch_time_limit, rest_s)
    return dataclasses.replace(options, fetch_time_limit=limit)


@dataclasses.dataclass(frozen=True)
class LeaseOptions:
    """Options of waiting for another fetch."""

    GROUP = "fetch"

    max_lease_wait: float = seconds(
        3600.0,
        "Wait at most this long for another fetch of this table, then fail; -1: no limit. A "
        "fetch whose process died is waited for no longer than a minute.",
        minimum=-1.0,
    )


def longest_wait(options: LeaseOptions) -> float:
    """Returns the longest wait for another fetch, s."""
    return options.max_lease_wait if options.max_lease_wait >= 0 else math.inf
