"""Writes the pages of a batch as they are fetched, and parses them at the same time."""

import math
import re
import secrets
import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from ...policy.components.page_facts import was_requested
from ...policy.components.schema import PAGES, to_frame
from ...web.base.clock import now_ms
from ...web.base.memory import give_back
from ...web.content.whole_bodies import BROKEN
from ...web.engine.tasks import Result
from ...web.exchange.http_options import limit_of
from ...web.exchange.status import (
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_RETRY,
    FETCH_SUCCESS,
    PROTOCOL_STATUS_NAMES,
    UNCHECKED,
    classify,
)
from ..storage.parquet_files import collect, scan
from ..storage.places import Place
from ..tablets.file_lists import DataFile
from ..tablets.written import Written
from .batches import batch_component, page_name, page_order, page_started, write_file
from .documents import DocumentQueue, Parser, parse_file

FLUSH_BYTES = 32 << 20
GROUP_BYTES = 4 << 20
# Pages of this size are parsed before their row group is complete, if a process has nothing to do. The size
# doubles each time, because small jobs cost more.
_FIRST_BYTES = 1 << 20
_BODY = PAGES.field("body")
_ROWS = 500  # in Python at a time: they need ten times the memory of a table's rows
_LOOK_SECONDS = 0.2  # between checks for parsed documents while no page comes
_WORD = re.compile(r"[a-z0-9_]{1,40}|protocol_[\w.-]{1,100}")
COUNTED_OF_PAGES = ("fetch_status", "protocol_status", "protocol_message", "http_code",
                    "response_ms", "content_type", "truncated")  # fmt: skip
PAGE_ROW_BYTES = 1_000  # size of a row without its body


class PageWriter:
    """Collects results of one partition, and writes them when they are large or old enough.

    A page is safe once ``add``, ``flush_late`` or ``keep`` has returned the file
    that holds it.

    Args:
        root: The table's folder.
        batch: Id of the batch.
        partition: Number of the partition.
        flush_seconds: Pages are written when the first of them is this old.
        parser: Parses the pages; None parses none.
    """

    def __init__(
        self,
        root: Place,
        batch: str,
        partition: int,
        flush_seconds: float,
        parser: Parser | None = None,
    ) -> None:
        self._root, self._batch, self._partition = root, batch, partition
        self._flush_seconds = flush_seconds
        self._parser = parser
        self._documents = None if parser is None else DocumentQueue(root, batch, parser)
        # Each attempt has another start time: of equal keys, readers keep the earliest page.
        self._started = now_ms()
        self._token = secrets.token_hex(4)
        self._files = 0
        self._early_bytes = _FIRST_BYTES
        self._clear()

    def _clear(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._pieces: list[pa.Table] = []  # of the group that is not complete
        self._parsed_pieces = 0  # number of the first ones, which are parsed already
        self._groups: list[pa.Table] = []
        self._portion_bytes = self._group_bytes = self._bytes = 0
        self._since = math.inf  # when the first page came

    def add(self, result: Result) -> Iterator[Written]:
        """Adds a result; yields the files that are complete now."""
        row = page_row(result)
        size = len(row["body"] or b"") + len(row.get("wire") or b"") + PAGE_ROW_BYTES
        self._since = min(self._since, time.monotonic())
        self._rows.append(row)
        self._portion_bytes += size
        self._group_bytes += size
        self._bytes += size
        if self._group_bytes > GROUP_BYTES:
            self._close_group()
        elif len(self._rows) >= _ROWS:
            self._close_piece()
        if self._portion_bytes > self._early_bytes and self._parsers_wait():
            self._early_bytes *= 2
            self._close_portion()
        if self._bytes > FLUSH_BYTES:
            yield from self.keep()
        yield from self.flush_late()

    def due_in(self) -> float:
        """Returns the seconds until ``flush_late`` has work; infinite if there is none."""
        due = max(0.0, self._since + self._flush_seconds - time.monotonic())
        return min(due, _LOOK_SECONDS) if self._documents else due

    def flush_late(self) -> Iterator[Written]:
        """Writes the collected pages if the first is old enough, and documents that are done."""
        if time.monotonic() >= self._since + self._flush_seconds:
            yield from self.keep()
        if self._documents is not None:
            yield from self._documents.write_ready()

    def flush(self) -> Iterator[Written]:
        """Writes the collected pages; waits for their documents and writes them, too."""
        if self._documents is not None:
            self._documents.share_rest()
        yield from self.keep()
        if self._documents is not None:
            yield from self._documents.flush()

    def keep(self) -> Iterator[Written]:
        """Writes the collected pages without waiting for the parser."""
        self._close_group()
        if not self._groups:
            return
        file = write_file(
            self._root,
            self._batch,
            "pages",
            self._groups,
            partition=self._partition,
            order=page_order(self._started, self._files),
            name=page_name(self._partition, self._started, self._token, self._files),
        )
        counts = page_counts(self._groups)
        self._files += 1
        self._clear()
        if self._documents is not None:
            self._documents.end_file(file)
        give_back()
        yield Written(batch_component(self._batch, "pages"), (file,), (), counts)

    def abandon(self) -> None:
        """Stops parsing the written pages; their documents are not written."""
        if self._documents is not None:
            self._documents.abandon()

    def adopt(self, file: DataFile) -> Iterator[Written]:
        """Takes over a file of pages from an earlier attempt; must be called before ``add``."""
        # That attempt's clock may have been ahead of ours.
        self._started = max(self._started, page_started(file.order) + 1)
        pages = collect(scan([self._root / file.path], PAGES).select(COUNTED_OF_PAGES)).to_arrow()
        counts = page_counts([pages]) | {"adopted": file.rows}
        yield Written(batch_component(self._batch, "pages"), (file,), (), counts)
        if self._parser is not None:
            yield parse_file(self._root, self._batch, file, self._parser)

    def _close_group(self) -> None:
        """Ends a row group."""
        self._close_portion()
        if not self._pieces:
            return
        group = pa.concat_tables(self._pieces).combine_chunks()
        # In one statement, so that Ctrl-C cannot interrupt between the assignments.
        self._groups, self._pieces, self._parsed_pieces, self._group_bytes = (
            [*self._groups, group], [], 0, 0
        )  # fmt: skip
        if self._documents is not None:
            self._documents.end_group()

    def _parsers_wait(self) -> bool:
        return self._documents is not None and self._documents.wants_pages()

    def _close_portion(self) -> None:
        """Gives the pages that wait to the processes that parse."""
        self._close_piece()
        portion, self._parsed_pieces = self._pieces[self._parsed_pieces :], len(self._pieces)
        self._portion_bytes = 0
        if portion and self._documents is not None:
            self._documents.add(pa.concat_tables(portion).combine_chunks())

    def _close_piece(self) -> None:
        if self._rows:
            piece = page_table(self._rows)
            self._pieces, self._rows = [*self._pieces, piece], []  # in one statement, as above


def page_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Returns PAGES rows as a table, which refers to the bytes of their bodies without a copy."""
    others = pa.Table.from_pylist([{**row, "body": None} for row in rows], schema=PAGES)
    bodies = pa.chunked_array([_one_value(row["body"]) for row in rows], _BODY.type)
    return others.set_column(PAGES.get_field_index(_BODY.name), _BODY, bodies)


def _one_value(value: bytes | None) -> pa.Array:
    if value is None:
        return pa.nulls(1, _BODY.type)
    bounds = pa.py_buffer(struct.pack("=qq", 0, len(value)))
    return pa.Array.from_buffers(_BODY.type, 1, [None, bounds, pa.py_buffer(value)])


def page_counts(groups: list[pa.Table]) -> dict[str, int]:
    """Counts pages, requests and cut bodies; pages by protocol status, and failures by reason."""
    counts = Counter(pages=sum(len(group) for group in groups))
    for group in groups:
        pages = to_frame(group.select(COUNTED_OF_PAGES))
        for status, number in (
            pages.group_by("protocol_status", maintain_order=True).len().iter_rows()
        ):
            counts[f"protocol/{PROTOCOL_STATUS_NAMES[status]}"] += number
        counts["requests"] += pages.select(was_requested().sum()).item()
        counts.update(_cuts(pages))
        failed = pages.filter(pl.col("fetch_status").is_in((FETCH_GONE, FETCH_RETRY)))
        counts.update(f"not_fetched/{why_not(row)}" for row in failed.iter_rows(named=True))
    return +counts


def _cuts(pages: pl.DataFrame) -> Iterator[str]:
    """Yields the count of each page that was cut at a limit of its length, or that broke off."""
    fetched = pl.col("fetch_status") == FETCH_SUCCESS
    cut = pages.filter(fetched, pl.col("truncated").is_not_null())
    for page in cut.iter_rows(named=True):
        if page["truncated"] == "length":
            yield f"truncated/{limit_of(page['content_type'])}"
        elif page["truncated"] in BROKEN:
            yield "truncated/incomplete"


def page_row(result: Result) -> dict[str, Any]:
    """Returns the PAGES row of a fetched URL: its response, or its failure."""
    task, response = result.task, result.response
    row: dict[str, Any] = {
        "key": task.key,
        "score": task.score,
        "distance": task.distance,
        "depth": task.depth or None,
        "fetch_status": result.fetch_status,
        "protocol_status": result.protocol_status,
        "protocol_message": result.message or None,
        "fetch_time": result.fetched_at,
        "redirect": result.redirect,
        "retry_after": _retry_after(result),
        "usage": result.usage,
        "body": None,
    }
    if response is None:
        return row
    keep = result.fetch_status == FETCH_SUCCESS or result.redirect is not None
    words = (response.http_version, str(response.status), response.reason)
    written_line = " ".join(words).rstrip() if response.status else None
    if response.tls == "unchecked" and result.fetch_status in (FETCH_SUCCESS, FETCH_NOTMODIFIED):
        row["protocol_message"] = UNCHECKED
    return row | {
        "http_code": response.status or None,
        "response_ms": response.elapsed_ms,
        "content_type": response.header("content-type"),
        "etag": response.header("etag"),
        "last_modified": response.header("last-modified"),
        "ip": response.ip or None,
        "tls": response.tls,
        "request": response.request,
        "status_line": response.status_line or written_line,
        "headers": [{"name": name, "value": value} for name, value in response.headers],
        "truncated": response.truncated,
        "body": response.body if keep else None,
        "wire": response.wire,
        "wire_head": response.wire_head,
        "cipher": response.cipher or None,
    }


def why_not(row: dict[str, Any]) -> str | None:
    """Returns the reason why a fetch gave no page, as a counter name; None if there is a page.

    >>> why_not({"fetch_status": FETCH_RETRY, "http_code": 503, "protocol_status": 16})
    'http_503'
    """
    if row["fetch_status"] not in (FETCH_GONE, FETCH_RETRY):
        return None
    name = PROTOCOL_STATUS_NAMES[row["protocol_status"]]
    message = row.get("protocol_message") or ""
    if name == "exception" and _WORD.fullmatch(message):
        return message  # such as a timeout in the middle of a page
    return f"http_{row['http_code']}" if row.get("http_code") else name


def _retry_after(result: Result) -> int | None:
    if result.response is None or result.fetch_status != FETCH_RETRY:
        return None
    seconds = classify(result.response).retry_after_s
    return None if seconds is None else int(seconds)
