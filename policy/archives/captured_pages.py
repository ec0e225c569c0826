"""Which rows of ``pages`` an archive gets, and what each is as a capture."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from ...web.archives.captures import Capture, mime_of
from ...web.archives.http_messages import NOT_MODIFIED
from ...web.archives.page_records import CapturedContent, truncation
from ...web.content.content_type import sniff
from ...web.exchange.status import FETCH_NOTMODIFIED, FETCH_SUCCESS
from ..base.key_columns import from_keys
from ..components.schema import DROPPED_BODY, PAGES_COLUMNS, to_frame
from ..conditions import wanted_rows

_TEXTS = ("request", "status_line", "content_type", "ip", "cipher", "redirect")  # empty for null
_VALUES = ("truncated", "body", "wire", "wire_head")
_PARSED = ("charset", "language", "title")
_SUCCESSFUL = (FETCH_SUCCESS, FETCH_NOTMODIFIED)
# Reasons for which a row is left out.
UNANSWERED, UNSUCCESSFUL, UNWANTED = "unanswered", "unsuccessful", "unwanted"
BODY_DROPPED = "body_dropped"


def choose_pages(
    pages: pa.Table, expr: str, now: int, *, successful: bool
) -> tuple[pa.Table, Counter[str]]:
    """Returns the rows of ``pages`` that an archive gets, and how many are left out by reason.

    Args:
        pages: Rows.
        expr: The option ``--expr``: a condition on their columns.
        now: What ``now()`` is in it, ms.
        successful: Whether it gets only pages, and neither redirects nor errors.
    """
    frame = to_frame(pages)
    answered = pl.col("http_code").is_not_null() | pl.col("body").is_not_null()
    # Without its body, what the server answered is not known.
    conditions = {UNANSWERED: answered, BODY_DROPPED: pl.col("truncated").ne_missing(DROPPED_BODY)}
    if successful:
        conditions[UNSUCCESSFUL] = pl.col("fetch_status").is_in(_SUCCESSFUL)
    wanted = wanted_rows(expr, PAGES_COLUMNS, now)
    if wanted is not None:
        conditions[UNWANTED] = wanted.expr.fill_null(False)
    first = pl.coalesce(pl.when(~true).then(pl.lit(why)) for why, true in conditions.items())
    reasons = frame.select(reason=first).get_column("reason")
    chosen = reasons.is_null()
    counts = Counter(reasons.drop_nulls())
    return (pages if chosen.all() else pages.filter(chosen.to_arrow())), counts


def capture_row(
    content: CapturedContent, digest: bytes | None, *, whole: bool, sniffed: bool
) -> dict[str, Any]:
    """Returns a capture as a row of ``CAPTURES``, without the columns that say where it is.

    Args:
        content: The capture.
        digest: SHA-1 of its payload; None: nothing of it is known.
        whole: Whether a revisit may name it.
        sniffed: Whether its type is looked for in its body.
    """
    capture, page = content
    detected = sniff(capture.body, capture.content_type) if sniffed and capture.body else None
    return {
        "url": capture.url,
        "time": capture.time,
        "batch": capture.batch,
        "status": capture.status or None,
        "mime": mime_of(capture) or None,
        "digest": None if capture.status == NOT_MODIFIED else digest,
        "whole": whole,
        "redirect": capture.redirect or None,
        "truncated": truncation(capture),
        "mime_detected": detected,
        **{name: page.field(name) if page else None for name in _PARSED},
    }


def captures_of(pages: pa.Table, batch: str) -> Iterator[Capture]:
    """Yields the rows of ``pages`` as captures.

    Args:
        pages: Rows of ``PAGES``.
        batch: Id of their batch.
    """
    urls = from_keys(pl.Series("key", pages.column("key")))
    names = (*_TEXTS, *_VALUES)
    columns = [pages.column(name).to_pylist() for name in ("fetch_time", "http_code", *names)]
    for url, headers, time, code, *values in zip(urls, _header_lists(pages), *columns, strict=True):
        for at in range(len(_TEXTS)):
            values[at] = values[at] or ""
        fields: dict[str, Any] = dict(zip(names, values, strict=True))
        yield Capture(url, batch, time or 0, status=code or 0, headers=headers, **fields)


def _header_lists(pages: pa.Table) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yields the headers of each row; much faster than Arrow's dicts."""
    lists = pages.column("headers")
    lengths = lists.combine_chunks().value_lengths().fill_null(0).to_pylist()
    items = lists.combine_chunks().flatten()
    names, values = items.field("name").to_pylist(), items.field("value").to_pylist()
    at = 0
    for length in lengths:
        yield tuple(
            (name, value or "")
            for name, value in zip(names[at : at + length], values[at : at + length], strict=True)
            if name
        )
        at += length
