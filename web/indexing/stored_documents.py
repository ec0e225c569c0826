"""Documents that an index has stored, as dedup and a full rebuild need them."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from .server_bulks import Action, document_ids

# ``id`` is the id in the index; sequence and term say which state of the document was read.
STORED = pl.Schema(
    {
        "id": pl.String,
        "url": pl.String,
        "time": pl.Int64,
        "segment": pl.String,
        "signature": pl.String,
        "score": pl.Float64,
        "sequence": pl.Int64,
        "term": pl.Int64,
    }
)
# The fields of documents that are read.
STORED_FIELDS = ("id", "url", "tstamp", "segment", "digest", "boost")


def stored_document_rows(
    documents: Iterable[tuple[str, Mapping[str, Any], int | None, int | None]],
) -> Any:
    """Returns STORED rows of documents: (id in the index, fields, sequence, term) of each.

    A document without ``url`` has its ``id`` as its URL.

    >>> stored_document_rows([("a", {"digest": "00", "tstamp": "1970-01-01T00:00:01Z"}, 1, 2)]).row(0)
    ('a', 'a', 1000, None, '00', None, 1, 2)
    """
    rows = [
        (
            id_,
            _first_value(fields.get("url")) or _first_value(fields.get("id")) or id_,
            _time(_first_value(fields.get("tstamp"))),
            _text(_first_value(fields.get("segment"))),
            _text(_first_value(fields.get("digest"))),
            _number(_first_value(fields.get("boost"))),
            sequence,
            term,
        )
        for id_, fields, sequence, term in documents
    ]
    return pl.DataFrame(rows, schema=STORED, orient="row")


def stored_deletes(documents: pl.DataFrame) -> Iterator[Action]:
    """Yields deletes of STORED rows; a document that has changed in the meantime stays.

    >>> rows = stored_document_rows([("a", {}, 1, 2)])
    >>> next(stored_deletes(rows)).data
    b'{"delete":{"_id":"a","if_seq_no":1,"if_primary_term":2}}\\n'
    """
    rows = documents.select("id", "sequence", "term")
    delete = pl.struct(_id="id", if_seq_no="sequence", if_primary_term="term")
    lines = rows.select(pl.struct(delete=delete).struct.json_encode()).to_series()
    for id_, line in zip(rows.get_column("id"), lines, strict=True):
        yield Action(id_, id_, line.encode() + b"\n")


def _first_value(value: Any) -> Any:
    """Returns a value, or the first one of a field with several."""
    return (value[0] if value else None) if isinstance(value, list) else value


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None


def _time(value: Any) -> int | None:
    """Returns a time, ms, from ms or ISO 8601."""
    if isinstance(value, int):
        return value
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


def ids_of_nutbeam(stored: pl.DataFrame) -> pl.Series:
    """Returns the ids of stored documents that nutbeam may have sent: they have its fields.

    Args:
        stored: STORED rows.

    >>> ids_of_nutbeam(pl.DataFrame({"id": ["a", "b"], "segment": ["17-1", None],
    ...     "signature": [None, None]})).to_list()
    ['a']
    """
    marked = pl.col("segment").is_not_null() | pl.col("signature").is_not_null()
    return stored.filter(marked).get_column("id")


def unsent_ids(ids: pl.Series, urls: Iterable[pl.Series]) -> pl.Series:
    """Returns the ids that belong to none of the URLs.

    Args:
        ids: Ids of documents in an index.
        urls: URLs of the documents that the index must keep.

    >>> unsent_ids(pl.Series("id", ["a", "b"]), [pl.Series(["b", "c"])]).to_list()
    ['a']
    """
    remaining = ids.rename("id").to_frame()
    for url_part in urls:
        held = pl.DataFrame({"id": document_ids(url_part)}, schema={"id": pl.String})
        remaining = remaining.join(held, on="id", how="anti", maintain_order="left")
    return remaining.get_column("id")
