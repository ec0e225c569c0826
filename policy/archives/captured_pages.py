"""Which rows of ``pages`` an archive gets, and what each is as a capture."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from ...web.archives.captures import Capture
from ...web.exchange.status import FETCH_NOTMODIFIED, FETCH_SUCCESS
from ...web.urls.key_columns import from_keys
from ..components.schema import PAGES_COLUMNS, to_frame
from ..conditions import wanted_rows

_TEXTS = ("request", "status_line", "content_type", "ip", "cipher")  # empty for null
_VALUES = ("truncated", "body", "wire", "wire_head")
_SUCCESSFUL = (FETCH_SUCCESS, FETCH_NOTMODIFIED)
# Reasons for which a row is left out.
UNANSWERED, UNSUCCESSFUL, UNWANTED = "unanswered", "unsuccessful", "unwanted"


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
    conditions = {UNANSWERED: answered}
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
