"""Which URLs are asked for, and what comes of it; knows no Beam."""

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
from ..policy.schema import MAX_DELAY, TEXT
from ..web.base.agent import require_agent
from ..web.clients.open_client import client_of
from ..web.engine.engine import Engine
from ..web.engine.pace import FetchOptions
from ..web.engine.tasks import Result, Task
from ..web.exchange.http_options import HttpOptions
from ..web.exchange.status import FETCH_STATUS_NAMES, PROTOCOL_STATUS_NAMES
from ..web.network.guard import Guard
from ..web.rules.url_rules import UrlOptions, UrlRules
from ..web.urls.schemes import WEB
from .chunks import MAX_BYTES
from .partition import hosts_of
from .records import DeadLetter, FetchedPage
from .row_types import arrow_schema

PAGES = "pages"
DEAD_LETTERS = "dead_letters"
FETCHED = arrow_schema(FetchedPage)
DEAD = arrow_schema(DeadLetter)
# What crosses the shuffle: each row's URL, and what was given with it.
WANTED = pa.schema(
    [
        ("url", TEXT),
        ("given", TEXT),
        ("host", TEXT),
        ("key", TEXT),
        ("score", pa.float64()),
        ("etag", TEXT),
        ("last_modified", TEXT),
        ("modified_time", pa.int64()),
        ("delay", pa.float64()),
    ]
)
# Of a body; what else a row has must fit into a chunk, too.
_MAX_CONTENT = MAX_BYTES - (1 << 20)
# URLs as browsers take them; which are wanted is for the user to say.
URL_OPTIONS = UrlOptions(no_filter=True, no_normalize=True)


@dataclasses.dataclass(frozen=True)
class FetchUrlsOptions(FetchOptions, HttpOptions):
    """How URLs are asked for, and how fast."""

    def __post_init__(self) -> None:
        require_agent(self)


@dataclasses.dataclass(frozen=True)
class FetchPagesOptions(FetchUrlsOptions):
    """How pages are asked for, and how fast, so that each fits into a chunk."""

    def __post_init__(self) -> None:
        if not 0 <= self.content_limit <= _MAX_CONTENT:
            raise ValueError(
                f"content_limit must be 0 to {_MAX_CONTENT} bytes, got {self.content_limit}"
            )
        super().__post_init__()


def admit(given: pl.DataFrame, schemes: tuple[str, ...] = WEB) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns (WANTED rows, dead letters) of what was given.

    >>> wanted, dead = admit(pl.DataFrame({"url": ["HTTP://Foo.com#x", "ftp://foo.com/"]}))
    >>> wanted["url"].to_list(), dead.select("url", "reason").rows()
    (['http://foo.com/'], [('ftp://foo.com/', 'scheme_not_allowed')])
    """
    urls = _column(given, "url", pl.String).str.strip_chars()
    options = dataclasses.replace(URL_OPTIONS, schemes=schemes)
    admitted = UrlRules(options).admit(urls, filters=False)
    rows = pl.DataFrame(
        [
            admitted.get_column("url"),
            _column(given, "url", pl.String).alias("given"),
            hosts_of(admitted.get_column("url")).fill_null("").alias("host"),  # file: has none
            _column(given, "key", pl.String),
            _column(given, "score", pl.Float64).fill_null(0.0).fill_nan(0.0),
            _column(given, "etag", pl.String),
            _column(given, "last_modified", pl.String),
            _column(given, "modified_time", pl.Int64).fill_null(0),
            _column(given, "delay", pl.Float64),
            admitted.get_column("reason"),
        ]
    )
    # To ask without the delay that was meant could be more than the host bears.
    bad_delay = ~pl.col("delay").is_between(0.0, MAX_DELAY)
    reason = pl.when(bad_delay).then(pl.lit("bad_delay"))
    rows = rows.with_columns(reason=pl.coalesce("reason", reason))
    bad = rows.filter(pl.col("reason").is_not_null())
    dead = bad.select(
        pl.col("given").alias("url"), "key", "reason", pl.lit(None, pl.String).alias("message")
    )
    return rows.filter(pl.col("reason").is_null()).drop("reason"), dead


def fetch_urls(
    wanted: pl.DataFrame,
    options: FetchUrlsOptions,
    requested_until: float = -math.inf,
    on_pulse: Callable[[float], None] | None = None,
    patience: Callable[[], float] = lambda: math.inf,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Asks for URLs with one engine; closing the iterator ends it.

    Args:
        wanted: WANTED rows; of those for one URL the best counts.
        options: How to ask.
        requested_until: Monotonic moment until which somebody may have asked the same hosts.
        on_pulse: See ``Engine``.
        patience: See ``Engine``.

    Yields:
        As they come, (``pages``, a FETCHED row) and (``dead_letters``, a DEAD row).
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
        tasks: Makes the tasks, which may follow from what the engine does.
        options: FetchOptions and HttpOptions.
        guard: Judges addresses; None makes one of the options.
        may_send: Asked before each request; False refuses it.
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
        over.set()  # requests under way reach no server any more
        client.close()


def is_answer(result: Result) -> bool:
    """Returns whether a server has answered, and its answer could be read."""
    response = result.response
    if response is None or not response.status:
        return False
    return response.error is None or not 200 <= response.status < 300


def _column(given: pl.DataFrame, name: str, kind: Any) -> pl.Series:
    if name not in given.columns:
        return pl.Series(name, [None] * len(given), kind)
    column = given.get_column(name)
    try:
        return column if column.dtype == kind else column.cast(kind)
    except pl.exceptions.PolarsError as error:
        word = "text" if kind == pl.String else "a number"
        raise ValueError(f"column {name!r} must be {word}, got {column.dtype}") from error


def _best(wanted: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each URL, the best first: of what a limit cuts off, the least is lost."""
    order = wanted.sort(
        "score", "key", "given", "etag", descending=[True, False, False, False], nulls_last=True
    )
    return order.unique("url", keep="first", maintain_order=True)


def _tasks(rows: pl.DataFrame) -> Iterator[Task]:
    for number, row in enumerate(rows.iter_rows(named=True)):
        yield Task(
            url=row["url"],
            key=str(number),
            score=row["score"],
            etag=row["etag"],
            last_modified=row["last_modified"],
            modified_time=row["modified_time"],
            delay=row["delay"],
        )


def _fetched(result: Result, page: dict[str, Any], host: str, key: str | None) -> dict[str, Any]:
    redirect = page["redirect"]
    if redirect is not None and redirect.startswith("file:") and host:
        redirect = None  # whoever asks for redirects must not be led to the disk
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
