"""The form in which users see rows: one name, one kind of time and one name of a code everywhere.

Files keep numbers. ``shown_frame`` is for Parquet and frames, ``record_of`` for text and JSON,
``normal_text`` for Nutch's text; ``io/rows/duckdb_tables.py`` has the same in SQL. Columns that only
users see are declared here.
"""

import base64
import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from ...web.urls.row_keys import from_host_key, from_key
from ..base.key_columns import from_keys
from ..base.row_status import FETCHED_STATUSES
from .columns import Column, Columns, Form, join_columns, time_column
from .document_schema import DOCUMENTS_COLUMNS, PAGE_LINKS
from .schema import STATE_COLUMNS, STATUS_NAMES, TEXT, Status

# The phases of a batch, in order.
PHASES = ("generated", "fetched", "parsed", "updated")
GENERATED_PHASE, FETCHED_PHASE, PARSED_PHASE, UPDATED_PHASE = PHASES
# What they are depends on options: a snapshot records these under the name of the phase.
PHASES_WITH_OPTIONS = (PARSED_PHASE, UPDATED_PHASE)
# The records of batches in the manifest, as rows.
BATCHES_COLUMNS = Columns(
    (
        Column("batch_id", TEXT, "The batch."),
        Column("phase", TEXT, "Its last phase: `generated`, `fetched`, `parsed`, `updated`."),
        time_column("created", "When it was generated."),
        Column("partitions", pa.int64(), "Number of partitions into which generate divided it."),
        Column("urls", pa.int64(), "Number of URLs to fetch."),
        time_column("blocks_until", "Until when no other batch takes its URLs."),
        Column("deduped", pa.bool_(), "Whether its pages were compared with all others."),
        Column("segment", TEXT, "Name of the segment of Nutch that it was imported from."),
    )
)

# How users see keys, in each view.
URL_COLUMN = Column("url", TEXT, "The URL.")
HOST_COLUMN = Column("host", TEXT, "The host.")

# A page as users see it: its row in the state, with its newest text. `nutbeam pages` writes it;
# `sql` has a few more columns.
PAGE_COLUMNS = join_columns(
    [URL_COLUMN],
    DOCUMENTS_COLUMNS.pick("title", "text"),
    STATE_COLUMNS.pick("status", "http_code", "content_type"),
    DOCUMENTS_COLUMNS.pick("language"),
    STATE_COLUMNS.pick("last_fetch_time", "modified_time", "fetch_time", "score"),
    DOCUMENTS_COLUMNS.pick("distance", "metadata"),
    DOCUMENTS_COLUMNS.pick("parse_status", "parse_minor", "parse_message", "part_of"),
    STATE_COLUMNS.pick("repr_url"),
    [Column("links", PAGE_LINKS, "Accepted links: URL of the target, anchor, rel.")],
)

# What a reader gets of a page only when it asks for it: making Markdown takes as long as parsing.
MARKDOWN_COLUMN = Column(
    "markdown",
    TEXT,
    "The text as Markdown, with links and images: CommonMark, with GitHub's tables.",
)

# What a reader of changes gets of each page or chunk, before its columns.
CHANGE_COLUMNS = Columns(
    (
        Column(
            "change",
            TEXT,
            "What became of the page since the older snapshot: `new`, `changed` (its content has "
            "another signature) or `gone`. Of a page that is gone, there is no text.",
        ),
        Column("snapshot", pa.int64(), "Number of the snapshot that the row was read from."),
    )
)

# A link as users see it.
LINK_COLUMNS = Columns(
    (
        URL_COLUMN,
        Column("target_url", TEXT, "URL that the link leads to."),
        Column("anchor", TEXT, "Text of the link."),
        Column("rel", TEXT, "Its attribute `rel`."),
        Column("key", TEXT, "Row key of `url`."),
        Column("target_key", TEXT, "Row key of `target_url`."),
    )
)
# Statuses of URLs that exist, as far as the table knows: a retry may be due.
LIVING = (*FETCHED_STATUSES, Status.DB_UNFETCHED)

_CODES = {name: Status(code) for code, name in STATUS_NAMES.items()}
# Words that mean statuses, in options and queries. A page that was not modified is still fetched.
_WORDS: dict[str, tuple[Status, ...]] = (
    {name: (status,) for name, status in _CODES.items()}
    | {name.removeprefix("db_"): (status,) for name, status in _CODES.items()}
    | {"fetched": FETCHED_STATUSES}
)
STATUS_WORDS = tuple(_WORDS)

_SHOWN_TYPES = {
    Form.TIME: pa.timestamp("ms", "UTC"),
    Form.DAY: pa.date32(),
    Form.CODE: TEXT,
    Form.HEX: TEXT,
    Form.URL: TEXT,
}

# Functions that make these columns of a row key.
_NAMES = {URL_COLUMN.name: from_key, HOST_COLUMN.name: from_host_key}
# Of Nutch's CrawlDatum, whose text this is.
_VERSION = 7
_DAY_S = 86_400


def statuses_of(word: str) -> tuple[Status, ...]:
    """Returns the statuses that a word means: a name, or a name without ``db_``.

    Raises:
        ValueError: The word means none.

    >>> statuses_of("gone"), statuses_of("db_fetched")
    ((<Status.DB_GONE: 3>,), (<Status.DB_FETCHED: 2>,))
    >>> statuses_of("fetched")
    (<Status.DB_FETCHED: 2>, <Status.DB_NOTMODIFIED: 6>)
    """
    try:
        return _WORDS[word]
    except KeyError:
        raise ValueError(f"status must be one of {', '.join(_WORDS)}, got {word!r}") from None


def shown_type(column: Column) -> pa.DataType:
    """Returns the type of a column's values as users see them."""
    return _SHOWN_TYPES.get(column.form, column.type)


def shown_schema(columns: Iterable[Column]) -> pa.Schema:
    """Returns the columns as users see them, in Parquet and in frames."""
    return pa.schema([(column.name, shown_type(column)) for column in columns])


def shown_frame(frame: pl.DataFrame, columns: Iterable[Column]) -> pl.DataFrame:
    """Returns stored rows as users see them; columns that are not declared stay as they are.

    If a frame with ``key`` lacks the declared column ``url`` or ``host``, it is added.

    >>> from .schema import STATE_COLUMNS
    >>> from .vocabulary import URL_COLUMN
    >>> frame = pl.DataFrame({"key": ["com.a:http/"], "status": [2], "fetch_time": [0]})
    >>> shown_frame(frame, [URL_COLUMN, *STATE_COLUMNS]).rows()[0][1:2]
    ('db_fetched',)
    """
    columns = list(columns)
    declared = {column.name for column in columns}
    for name, named in _NAMES.items():
        if name in declared and name not in frame.columns:
            values = [named(key) for key in frame.get_column("key")]
            frame = frame.with_columns(pl.Series(name, values, dtype=pl.String))
    present = [column for column in columns if column.name in frame.columns]
    return frame.with_columns(_display_form(column, frame) for column in present)


def _display_form(column: Column, frame: pl.DataFrame) -> pl.Expr:
    """Returns a stored column as users see it, under the same name."""
    stored = pl.col(column.name)
    match column.form:
        case Form.TIME:
            return stored.cast(pl.Datetime("ms", "UTC"))
        case Form.DAY:
            return stored.cast(pl.Date)
        case Form.CODE:
            return names_of_codes(stored, column.codes)
        case Form.HEX:
            return stored.bin.encode("hex")
        case Form.URL:
            return pl.lit(from_keys(frame.get_column(column.name))).alias(column.name)
    return stored


def names_of_codes(codes: pl.Expr, names: Mapping[int, str]) -> pl.Expr:
    """Returns the names of codes; a code without one is its number as a text."""
    return codes.replace_strict(names, default=codes.cast(pl.String), return_dtype=pl.String)


def record_of(row: Mapping[str, Any], columns: Iterable[Column]) -> dict[str, Any]:
    """Returns a stored row as a record for JSON or CSV: the declared columns, as users see them.

    >>> from .schema import STATE_COLUMNS
    >>> from .vocabulary import URL_COLUMN
    >>> some = [URL_COLUMN, *STATE_COLUMNS.pick("status", "fetch_time")]
    >>> record_of({"key": "com.a:http/", "status": 2, "fetch_time": 0}, some)
    {'url': 'http://a.com/', 'status': 'db_fetched', 'fetch_time': '1970-01-01T00:00:00.000Z'}
    """
    return {column.name: _value(row, column) for column in columns}


def _value(row: Mapping[str, Any], column: Column) -> Any:
    if column.name not in row:
        named = _NAMES.get(column.name)
        return named(row["key"]) if named else None
    return plain(row[column.name], column)


def plain(value: Any, column: Column) -> Any:
    """Returns a stored value for JSON, as users see it."""
    if value is None:
        return None
    match column.form:
        case Form.TIME:
            return iso(value)
        case Form.DAY:
            return _day(value)
        case Form.CODE:
            return column.codes.get(value, str(value))
        case Form.HEX:
            return value.hex()
        case Form.URL:
            return from_key(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return dict(value) if pa.types.is_map(column.type) else value


def code_name(value: int | None, column: Column) -> str | None:
    """Returns the name of a code with its number, for a person who reads one row.

    >>> from .schema import STATE_COLUMNS
    >>> code_name(2, *STATE_COLUMNS.pick("status"))
    'db_fetched (2)'
    """
    return None if value is None else f"{column.codes.get(value, 'unknown')} ({value})"


def iso(time_ms: int | None, timespec: str = "milliseconds") -> str | None:
    """Returns a time in ISO form.

    >>> iso(0), iso(1 << 62), iso(1_999, "seconds")
    ('1970-01-01T00:00:00.000Z', '4611686018427387904 ms', '1970-01-01T00:00:01Z')
    """
    if time_ms is None:
        return None
    moment = _utc(time_ms)
    if moment is None:
        return f"{time_ms} ms"
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


def _utc(time_ms: int) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):  # the year is out of range
        return None


def _day(day: int) -> str:
    try:
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()
    except OverflowError:
        return f"day {day}"


def normal_text(row: Mapping[str, Any]) -> str:
    """Returns a row as the URL, a tab, and a line per value; an empty line ends it.

    Times are UTC. Line breaks in metadata are escaped.

    >>> row = {"key": "com.a:http/", "status": 2, "fetch_time": 0, "modified_time": None,
    ...        "retries": 1, "fetch_interval": 86400, "score": 0.5, "signature": b"\\x01",
    ...        "metadata": [("a", "b")], "repr_url": "http://b.com/"}
    >>> print(normal_text(row), end="")  # doctest: +NORMALIZE_WHITESPACE
    http://a.com/	Version: 7
    Status: 2 (db_fetched)
    Fetch time: Thu Jan 01 00:00:00 UTC 1970
    Modified time: Thu Jan 01 00:00:00 UTC 1970
    Retries since fetch: 1
    Retry interval: 86400 seconds (1 days)
    Score: 0.5
    Signature: 01
    Metadata:
     a=b
     _repr_=http://b.com/
    <BLANKLINE>
    """
    status = f"{row['status']} ({STATUS_NAMES.get(row['status'], 'unknown')})"
    return f"{from_key(row['key'])}\t{datum_text(row, status)}\n"


def datum_text(row: Mapping[str, Any], status: str) -> str:
    """Returns the lines of a record as Nutch's ``CrawlDatum`` prints it.

    Args:
        row: Columns of the state; missing ones have no value.
        status: The text of its status.
    """
    interval, score = row.get("fetch_interval") or 0, row.get("score")
    signature = row.get("signature")
    lines = [
        f"Version: {_VERSION}",
        f"Status: {status}",
        f"Fetch time: {_java_time(row.get('fetch_time'))}",
        f"Modified time: {_java_time(row.get('modified_time'))}",
        f"Retries since fetch: {row.get('retries') or 0}",
        f"Retry interval: {interval} seconds ({interval // _DAY_S} days)",
        f"Score: {0.0 if score is None else score}",
        f"Signature: {signature.hex() if signature is not None else 'null'}",
        "Metadata: ",
    ]
    metadata = dict(row.get("metadata") or [])
    if row.get("repr_url"):
        metadata["_repr_"] = row["repr_url"]  # where Nutch has it
    lines += [_escape(f" \t{name}={value}") for name, value in metadata.items()]
    return "\n".join([*lines, ""])


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _java_time(time_ms: int | None) -> str:
    """Returns a time as Java's ``Date`` prints it; Nutch has 0 where there is none."""
    moment = _utc(time_ms or 0)
    return moment.strftime("%a %b %d %H:%M:%S UTC %Y") if moment else f"{time_ms} ms"
