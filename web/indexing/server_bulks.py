"""Documents and deletes for search servers: cleaned, as bytes, in bulks of bounded size.

The id of a document is its URL, or the digest of the URL where that is long.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

# Control characters except tab and line ends, and code points that are no characters.
_UNWANTED = (
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f\\x{fdd0}-\\x{fdef}"
    + "".join(f"\\x{{{plane:x}fffe}}\\x{{{plane:x}ffff}}" for plane in range(17))
    + "]"
)
# 1 January of the year 1 to the end of 9999: what dates in texts of four digits can say.
_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999


def clean_documents(
    documents: pl.DataFrame, dates: frozenset[str]
) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns documents without what a server would refuse, and what was taken out, by reason.

    Control characters become spaces; lone surrogates cannot be in a frame. Numbers that are not
    finite and times outside the years 1 to 9999 become null. Times become texts (ISO 8601), since
    servers refuse ms before 1970.

    Args:
        documents: A document per row: ``id`` and fields.
        dates: Names of the fields that are times, ms.

    >>> frame = pl.DataFrame({"id": ["a"], "title": ["x\\x00y"], "date": [10**18]})
    >>> clean, counts = clean_documents(frame, frozenset(["date"]))
    >>> clean.rows(), sorted(counts)
    ([('a', 'x y', None)], ['cleaned_dates', 'cleaned_texts'])
    """
    counts: Counter[str] = Counter()
    columns = []
    for column in documents.get_columns():
        if column.name == "id":
            columns.append(column)
            continue
        if isinstance(column.dtype, pl.Datetime | pl.Date):
            columns.append(_as_texts(column.dt.epoch("ms"), counts))
        elif column.name in dates and column.dtype.is_integer():
            columns.append(_as_texts(column, counts))
        elif column.dtype.is_float():
            columns.append(_drop_bad_values(column, ~column.is_finite(), "cleaned_numbers", counts))
        else:
            columns.append(_clean_texts(column, counts))
    return documents.with_columns(columns), +counts


def _as_texts(column: pl.Series, counts: Counter[str]) -> pl.Series:
    """Returns times, ms, as texts such as ``2026-11-24T00:00:00.000Z``."""
    times = column.cast(pl.Int64, strict=False)
    strange = ~times.is_between(_EARLIEST_MS, _LATEST_MS) | (times.is_null() & column.is_not_null())
    return (
        _drop_bad_values(times, strange, "cleaned_dates", counts)
        .cast(pl.Datetime("ms"))
        .dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    )


def _drop_bad_values(
    column: pl.Series, bad: pl.Series, reason: str, counts: Counter[str]
) -> pl.Series:
    bad = bad.fill_null(False)
    counts[reason] += int(bad.sum())
    return column.set(bad, None) if bad.any() else column


def _clean_texts(column: pl.Series, counts: Counter[str]) -> pl.Series:
    if column.dtype == pl.String:
        bad = column.str.contains(_UNWANTED).fill_null(False)
        counts["cleaned_texts"] += int(bad.sum())
        return column.str.replace_all(_UNWANTED, " ") if bad.any() else column
    if column.dtype == pl.List(pl.String):
        bad = column.list.eval(pl.element().str.contains(_UNWANTED)).list.any().fill_null(False)
        counts["cleaned_texts"] += int(bad.sum())
        if bad.any():
            return column.list.eval(pl.element().str.replace_all(_UNWANTED, " "))
    return column


# Elasticsearch and OpenSearch refuse a whole request for one longer id.
MAX_ID_BYTES = 512


def document_id(url: str) -> str:
    """Returns the id of the document of a URL.

    >>> document_id("http://example.com/")
    'http://example.com/'
    >>> document_id("http://example.com/" + "a" * 512)[:20]
    'sha256:9f61883a4bb57'
    """
    data = url.encode("utf-8", "surrogatepass")
    if 0 < len(data) <= MAX_ID_BYTES:
        return url
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def document_ids(urls: pl.Series) -> list[str]:
    """Returns the ids of a column of URLs; writers, deletes and dedup all use it."""
    if not (urls.str.len_bytes() > MAX_ID_BYTES).any() and not (urls == "").any():
        return urls.to_list()
    return [document_id(url) for url in urls]


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_LONGEST_LETTER = 1 << 20  # characters of a refused document that are kept
_ENDING = " ... (cut)"


class Action(NamedTuple):
    """A document that is added, or a delete.

    Attributes:
        url: The URL, which is the document's ``id`` for the job.
        id: The id on the server.
        data: The bytes to send.
        document: The document as JSON; None: it is a delete.
    """

    url: str
    id: str
    data: bytes
    document: bytes | None = None


def bulk_actions(documents: pl.DataFrame, deletes: pl.Series, version: int) -> Iterator[Action]:
    """Yields the actions of a bulk request, each with its lines.

    The version is external: of two operations the later one counts, whichever arrives last.

    Args:
        documents: A document per row: ``id`` (its URL) and fields.
        deletes: URLs.
        version: Number of the operation.

    >>> frame = pl.DataFrame({"id": ["http://a/"], "title": [None], "boost": [1.0]})
    >>> next(bulk_actions(frame, pl.Series([], dtype=pl.String), 7)).data.decode().splitlines()
    ['{"index":{"_id":"http://a/","version":7,"version_type":"external_gte"}}', '{"id":"http://a/","boost":1.0}']
    """
    tail = f',"version":{version},"version_type":"external_gte"}}}}\n'
    for url, id_, document in _documents(documents, dotted=False):
        head = f'{{"index":{{"_id":{_ENCODER.encode(id_)}{tail}'
        data = b"".join((head.encode(), document, b"\n"))
        yield Action(url, id_, data, document)
    for url in deletes:
        id_ = document_id(url)
        yield Action(url, id_, f'{{"delete":{{"_id":{_ENCODER.encode(id_)}{tail}'.encode())


def solr_actions(documents: pl.DataFrame, extra: Mapping[str, Any]) -> Iterator[Action]:
    """Yields the documents of an update of Solr, each as a JSON object.

    Args:
        documents: A document per row: ``id`` (its URL) and fields.
        extra: Fields that all documents have.

    >>> frame = pl.DataFrame({"id": ["http://a/"], "boost": [1.0]})
    >>> next(solr_actions(frame, {"index_version": 7})).data
    b'{"id":"http://a/","boost":1.0,"index_version":7}'
    """
    more = _ENCODER.encode(dict(extra))[1:].encode()
    for url, id_, document in _documents(documents, dotted=True):
        if id_ != url:  # Solr's id is a field
            fields = json.loads(document)
            document = _ENCODER.encode(
                {**fields, "id": id_, "url": fields.get("url", url)}
            ).encode()
        data = b"".join((document[:-1], b"," if len(more) > 1 else b"", more))
        yield Action(url, id_, data, document)


def solr_deletes(deletes: pl.Series) -> Iterator[Action]:
    """Yields the deletes of an update of Solr, each as a JSON text."""
    for url in deletes:
        id_ = document_id(url)
        yield Action(url, id_, _ENCODER.encode(id_).encode())


def _documents(documents: pl.DataFrame, *, dotted: bool) -> Iterator[tuple[str, str, bytes]]:
    """Yields (URL, id, JSON) of each document; it has no fields that are null."""
    if not len(documents):
        return
    names = documents.columns
    if not dotted:  # a dot would make an object of the field
        names = [name.replace(".", "_") for name in names]
    ids = document_ids(documents.get_column("id"))
    place = documents.columns.index("id")
    encode = _ENCODER.encode
    for id_, row in zip(ids, documents.iter_rows(), strict=True):
        fields = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        yield row[place], id_, encode(fields).encode()


def action_bulks(
    actions: Iterable[Action], max_bytes: int, max_count: int
) -> Iterator[list[Action]]:
    """Yields actions in bulks; one that is larger than the limit is alone.

    >>> some = [Action("a", "a", b"12"), Action("b", "b", b"3"), Action("c", "c", b"4567")]
    >>> [[action.id for action in bulk] for bulk in action_bulks(some, 3, 2)]
    [['a', 'b'], ['c']]
    """
    bulk: list[Action] = []
    size = 0
    for action in actions:
        if bulk and (size + len(action.data) > max_bytes or len(bulk) >= max_count):
            yield bulk
            bulk, size = [], 0
        bulk.append(action)
        size += len(action.data)
    if bulk:
        yield bulk


def dead_letter_text(document: bytes) -> str:
    """Returns a refused document for a dead letter; long texts in it are cut.

    >>> dead_letter_text(b'{"id":"a"}')
    '{"id":"a"}'
    """
    if len(document) <= _LONGEST_LETTER:
        return document.decode()
    fields: dict[str, Any] = json.loads(document)
    longest = max(1_000, _LONGEST_LETTER // max(1, len(fields)))
    return _ENCODER.encode({name: _cut(value, longest) for name, value in fields.items()})


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, list):
        return [_cut(item, longest // 10) for item in value[:10]]
    if isinstance(value, str) and len(value) > longest:
        return value[:longest] + _ENDING
    return value
