"""Fetches URLs with one engine, without Beam: the twin of ``FetchPages``."""

import contextlib
import dataclasses
import math
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from ..io.batches.page_writer import page_row, why_not
from ..policy.components.schema import MAX_DELAY, TEXT, columns, conform, to_frame
from ..web.base.agent import require_agent
from ..web.base.columns import reason_if
from ..web.clients.open_client import client_of
from ..web.engine.engine import Engine
from ..web.engine.pace import FetchOptions
from ..web.engine.tasks import Result, Task
from ..web.exchange.http_options import HttpOptions
from ..web.exchange.status import FETCH_STATUS_NAMES, PROTOCOL_STATUS_NAMES
from ..web.network.guard import Guard
from ..web.rules.url_rules import UrlOptions, UrlRules
from ..web.urls.schemes import WEB
from .elements.chunks import MAX_BYTES, Chunk
from .elements.records import DeadLetter, FetchedPage
from .elements.row_types import arrow_schema
from .partition import hosts_of

PAGES = "pages"
DEAD_LETTERS = "dead_letters"
FETCHED = arrow_schema(FetchedPage)
DEAD = arrow_schema(DeadLetter)
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


@dataclasses.dataclass(frozen=True)
class RequestOptions(FetchOptions, HttpOptions):
    """How URLs are requested, and how fast."""

    def __post_init__(self) -> None:
        require_agent(self)


@dataclasses.dataclass(frozen=True)
class FetchPagesOptions(RequestOptions):
    """How pages are requested, and how fast, so that each fits into a chunk."""

    def __post_init__(self) -> None:
        if not 0 <= self.content_limit <= _MAX_CONTENT:
            raise ValueError(
                f"content_limit must be 0 to {_MAX_CONTENT} bytes, got {self.content_limit}"
            )
        super().__post_init__()


def admit(
    given: Chunk | pl.DataFrame, schemes: tuple[str, ...] = WEB
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns (WANTED rows, dead letters) of the input.

    >>> wanted, dead = admit(pl.DataFrame({"url": ["HTTP://Foo.com#x", "ftp://foo.com/"]}))
    >>> wanted["url"].to_list(), dead.select("url", "reason").rows()
    (['http://foo.com/'], [('ftp://foo.com/', 'scheme_not_allowed')])
    """
    rows = to_frame(conform(given, _GIVEN))
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


def fetch_pages(
    wanted: pl.DataFrame,
    options: RequestOptions,
    requested_until: float = -math.inf,
    on_pulse: Callable[[float], None] | None = None,
    patience: Callable[[], float] = lambda: math.inf,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Fetches URLs with one engine; closing the iterator ends it.

    Args:
        wanted: WANTED rows; of several rows for one URL, the best is fetched.
        options: How to send requests.
        requested_until: Monotonic moment until which the same hosts may have had requests.
        on_pulse: See ``Engine``.
        patience: See ``Engine``.

    Yields:
        (``pages``, a FETCHED row) and (``dead_letters``, a DEAD row), in the order of the answers.
    """
    rows = _best(wanted)
    given, keys, hosts = (rows.get_column(name).to_list() for name in ("given", "key", "host"))
    lost: deque[tuple[Task, str]] = deque()
    results = fetch_tasks(
        lambda _: _tasks(rows), options, requested_until=requested_until, on_pulse=on_pulse,
        on_drop=lambda task, reason: lost.append((task, reason)), patience=patience,
    )  # fmt: skip

    def dead_letters() -> Iterator[tuple[str, dict[str, Any]]]:
        while lost:
            task, reason = lost.popleft()
            yield DEAD_LETTERS, _dead(given[int(task.key)], keys[int(task.key)], reason)

    with contextlib.closing(results):
        for result in results:
            number = int(result.task.key)
            page = page_row(result)
            if is_answer(result):
                yield PAGES, _fetched(result, page, hosts[number], keys[number])
            else:
                reason = str(why_not(page))
                message = result.message if result.message != reason else None
                yield DEAD_LETTERS, _dead(given[number], keys[number], reason, message)
            yield from dead_letters()
        yield from dead_letters()


def fetch_tasks(
    tasks: Callable[[Engine], Iterable[Task | None]],
    options: Any,
    guard: Guard | None = None,
    may_send: Callable[[], bool] = lambda: True,
    **engine: Any,
) -> Generator[Result, None, None]:
    """Runs one engine to its end: the core of FetchPages, in a pipeline and in a batch.

    Args:
        tasks: Makes the tasks; they may depend on what the engine does.
        options: FetchOptions and HttpOptions.
        guard: Judges addresses; None makes one from the options.
        may_send: Called before each request; False refuses it.
        engine: Further arguments of ``Engine``.

    Yields:
        Results as they come; closing the iterator ends the engine and its requests.
    """
    over = threading.Event()
    client = client_of(options, guard, gate=lambda: not over.is_set() and may_send())
    running = Engine(options, client, **engine)
    try:
        with contextlib.closing(running.run(tasks(running))) as results:
            yield from results
    finally:
        over.set()  # stops requests that are not sent yet
        client.close()


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


def _tasks(rows: pl.DataFrame) -> Iterator[Task]:
    columns = ("url", "score", "etag", "last_modified", "modified_time", "delay")
    for number, row in enumerate(rows.select(columns).iter_rows(named=True)):
        yield Task(key=str(number), **row)


def _fetched(result: Result, page: dict[str, Any], host: str, key: str | None) -> dict[str, Any]:
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


def _dead(
    url: str | None, key: str | None, reason: str, message: str | None = None
) -> dict[str, Any]:
    return {"url": url, "key": key, "reason": reason, "message": message or None}
