"""The date of a document in an index: when it was published, or else changed, or else fetched."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from .directives import parse_moment

# Names under which pages and feeds say when they were published, in the order in which they count.
PUBLISHED_FIELDS = (
    "published", "article:published_time", "metatag.article:published_time", "datePublished",
    "date.published", "dc.date.issued", "dcterms.issued", "dc.date",
)  # fmt: skip
_MODIFIED_FIELDS = ("lastModified", "date")
_FETCHED_FIELD = "tstamp"
_MOST_AHEAD_MS = 86_400_000  # of the fetch: clocks and time zones differ
_MOST_CHARS = 100  # of a date


class DocumentDate(NamedTuple):
    """The date of a document.

    Attributes:
        time: UTC ms.
        kind: ``published``, ``modified`` or ``fetched``.
    """

    time: int
    kind: str


def document_date(fields: Mapping[str, Any]) -> DocumentDate | None:
    """Returns the date of a document; None if none of its fields has one.

    A page may say that it will be published, or was changed, in the future. Such a date does not
    count, or the page would be the newest for ever.

    Args:
        fields: Fields of the document: times in ms, and texts of pages.

    >>> document_date({"published": "2026-01-02", "tstamp": 1_800_000_000_000})
    DocumentDate(time=1767312000000, kind='published')
    >>> document_date({"published": "2099-01-02", "date": 5, "tstamp": 5})
    DocumentDate(time=5, kind='fetched')
    """
    fetched = _milliseconds(fields.get(_FETCHED_FIELD))
    for name in (*PUBLISHED_FIELDS, *_MODIFIED_FIELDS):
        time = _milliseconds(fields.get(name))
        if time is not None and (fetched is None or time <= fetched + _MOST_AHEAD_MS):
            if name in PUBLISHED_FIELDS:
                return DocumentDate(time, "published")
            return DocumentDate(time, "fetched" if time == fetched else "modified")
    return None if fetched is None else DocumentDate(fetched, "fetched")


def document_times(documents: pl.DataFrame) -> pl.Series:
    """Returns the time of the ``document_date`` of each document, UTC ms; null if it has none."""
    dated = [
        name
        for name in (*PUBLISHED_FIELDS, *_MODIFIED_FIELDS, _FETCHED_FIELD)
        if name in documents.columns
    ]
    dates = map(document_date, documents.select(dated).iter_rows(named=True))
    times = [None if date is None else date.time for date in dates]
    return pl.Series(times if dated else [None] * len(documents), dtype=pl.Int64)


def _milliseconds(value: Any) -> int | None:
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str):
        return parse_moment(value) if len(value) <= _MOST_CHARS else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and abs(value) < 2**63:  # infinite numbers are not
        return int(value)
    return None
