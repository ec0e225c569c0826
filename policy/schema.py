"""Declares the columns of all rows: one Arrow schema per kind of chunk.

Times are UTC milliseconds since the epoch, intervals are seconds. If an older file
lacks columns, readers fill them with nulls. Only ``conform`` casts frames and tables
to these schemas.
"""

from enum import IntEnum

import polars as pl
import pyarrow as pa

TEXT = pa.large_string()
TEXT_MAP = pa.map_(TEXT, TEXT)


# In a row's metadata: seconds between two requests to its host (Nutch: _variableFetchDelay_).
FETCH_DELAY = "nutch.fetchDelay"
MAX_DELAY = 86_400.0


class Status(IntEnum):
    """A URL's state, with Nutch's codes (CrawlDatum 1.x)."""

    DB_UNFETCHED = 1
    DB_FETCHED = 2
    DB_GONE = 3
    DB_REDIR_TEMP = 4
    DB_REDIR_PERM = 5
    DB_NOTMODIFIED = 6
    DB_DUPLICATE = 7
    DB_ORPHAN = 8
    DB_PARSE_FAILED = 9


STATUS_NAMES = {int(status): status.name.lower() for status in Status}


class ParseStatus(IntEnum):
    """Nutch's major parse status."""

    NOTPARSED = 0
    SUCCESS = 1
    FAILED = 2


class ParseMinor(IntEnum):
    """Nutch's minor parse status: kind of success, or reason of failure."""

    OK = 0
    REDIRECT = 100  # a meta refresh
    EXCEPTION = 200
    TRUNCATED = 202
    INVALID_FORMAT = 203
    MISSING_PARTS = 204
    MISSING_CONTENT = 205


STATE = pa.schema(
    [
        ("key", TEXT),  # row key: reversed host, scheme, port, path (web/urls/row_keys.py)
        ("status", pa.uint8()),  # Status
        ("fetch_time", pa.int64()),  # when it is due next, ms
        ("fetch_interval", pa.int32()),  # s
        ("retries", pa.int32()),
        ("last_fetch_time", pa.int64()),  # ms
        ("modified_time", pa.int64()),  # ms
        ("etag", TEXT),
        ("last_modified", TEXT),  # as the server sent it
        ("score", pa.float32()),
        ("cash", pa.float32()),
        ("signature", pa.large_binary()),
        ("simhash", pa.uint64()),
        ("protocol_status", pa.uint8()),
        ("protocol_message", TEXT),
        ("http_code", pa.uint16()),
        ("parse_status", pa.uint8()),  # ParseStatus
        ("content_type", TEXT),
        ("batch_id", TEXT),  # the batch of the newest body,
        ("document", TEXT),  # its documents file,
        ("page", TEXT),  # and its pages file
        ("repr_url", TEXT),
        ("distance", pa.int32()),  # links from the nearest seed
        ("fixed_interval", pa.int32()),  # s
        ("last_inlink_day", pa.int32()),  # days since the epoch
        ("response_ms", pa.int32()),
        ("metadata", TEXT_MAP),
    ]
)


def columns(schema: pa.Schema, *names: str) -> list[pa.Field]:
    """Returns columns of a schema, for another schema that has them, too."""
    return [schema.field(name) for name in names]


# One line of a seed list, normalized and filtered.
SEEDS = pa.schema(
    [
        STATE.field("key"),
        ("order", pa.int64()),  # of several lines for one URL the last one counts
        *columns(STATE, "score", "fetch_interval", "fixed_interval", "metadata"),
    ]
)

# The URLs of a batch; in key order within a file.
FETCHLIST = pa.schema(
    [
        STATE.field("key"),
        ("slot", pa.uint16()),  # hash of host (or domain) and batch: it is in one slot
        *columns(STATE, "score", "distance"),
        *columns(STATE, "etag", "last_modified", "modified_time", "signature"),
        ("delay", pa.float64()),  # s, between two requests to its host; null: the usual
        (
            "address",
            TEXT,
        ),  # of the host, if there is a queue per address; empty: it did not resolve
    ]
)

HEADERS = pa.large_list(pa.struct([("name", TEXT), ("value", TEXT)]))

# Requests and responses, one row per URL that was tried.
PAGES = pa.schema(
    [
        ("key", TEXT),
        ("score", pa.float32()),
        ("distance", pa.int32()),
        ("fetch_status", pa.uint8()),  # FETCH_... of web/exchange/status.py
        ("protocol_status", pa.uint8()),
        ("protocol_message", TEXT),
        ("http_code", pa.uint16()),
        ("fetch_time", pa.int64()),  # ms, start of the request
        ("response_ms", pa.int32()),
        ("content_type", TEXT),
        ("etag", TEXT),
        ("last_modified", TEXT),
        ("redirect", TEXT),  # absolute URL, resolved
        ("retry_after", pa.int32()),  # s
        ("ip", TEXT),
        ("tls", TEXT),  # checked, or unchecked if the operator allows it; null without TLS
        ("request", TEXT),  # request line and headers
        ("status_line", TEXT),
        ("headers", HEADERS),
        ("truncated", TEXT),  # the reason, or null
        ("body", pa.large_binary()),
        ("depth", pa.uint16()),  # number of links that the fetch followed to this page; null: none
    ]
)

# Findings about a host; in a batch and in the host table.
HOSTS = pa.schema(
    [
        ("key", TEXT),  # reversed host
        ("seed", pa.bool_()),  # whether it is the host of a seed
        ("robots_origin", TEXT),  # whose robots.txt it is: scheme://host[:port]
        ("robots_status", pa.uint16()),  # 0: no answer
        ("robots_text", TEXT),
        ("robots_time", pa.int64()),  # ms
        ("crawl_delay", pa.float64()),  # s, from robots.txt
        ("exceptions", pa.int32()),  # failures since the last success
        ("backoff_until", pa.int64()),  # ms
        ("requests", pa.int64()),
        ("last_request_time", pa.int64()),  # ms
        ("robots_failing_since", pa.int64()),  # ms; null: robots.txt is answered
        ("sitemaps", TEXT),  # from robots.txt, one per line
        ("backoff_level", pa.int32()),  # failures, halved by each success
    ]
)

LINKS = pa.large_list(pa.struct([("key", TEXT), ("anchor", TEXT), ("rel", TEXT)]))

# Contents of pages: one row per successfully fetched page, and one per part of a page that is
# a separate document.
DOCUMENTS = pa.schema(
    [
        ("key", TEXT),
        ("score", pa.float32()),
        ("distance", pa.int32()),
        ("fetch_time", pa.int64()),
        ("parse_status", pa.uint8()),
        ("parse_message", TEXT),
        ("title", TEXT),
        ("text", TEXT),
        ("outlinks", LINKS),
        ("refresh", TEXT),  # absolute URL of a meta refresh
        ("directives", pa.large_list(TEXT)),
        ("language", TEXT),
        ("charset", TEXT),
        ("content_type", TEXT),
        ("signature", pa.large_binary()),
        ("metadata", TEXT_MAP),
        ("parse_minor", pa.uint8()),  # ParseMinor
        ("part_of", TEXT),  # row key of the page that this is a part of; null: it is a page
    ]
)

# The effect of a batch on the table: one row per URL that was tried.
OUTCOME = pa.schema(columns(STATE, "key", "document", "status", "score", "signature"))

# The changes of update: an event per page, a sum per link target.
CHANGES = pa.schema(
    [
        STATE.field("key"),
        ("order", pa.int64()),  # of the file in the batch; the first event counts
        PAGES.field("fetch_status"),  # null: linked only
        *columns(PAGES, "protocol_status", "protocol_message", "http_code", "fetch_time"),
        *columns(PAGES, "response_ms", "retry_after", "content_type", "etag", "last_modified"),
        STATE.field("signature"),  # null: fetched but not parsed
        *columns(STATE, "parse_status", "batch_id", "page", "document"),
        ("inlink_score", pa.float64()),
        ("inlink_distance", pa.int32()),
        ("part", pa.bool_()),  # a part of another page, not fetched
    ]
)

# Rows that dedup compares, and its changes (only the key of these matters).
SIGNATURES = pa.schema(
    [
        *columns(STATE, "key", "signature", "score", "last_fetch_time"),
        ("url_length", pa.int32()),
        ("https", pa.bool_()),
        ("group", TEXT),  # signature, with host or domain if pages are only compared within these
    ]
)

# The blocklist: hashes of names that must not be added to the table again.
BLOCKLIST = pa.schema(
    [
        ("key", TEXT),  # url:HASH, host:HASH or domain:HASH (policy/blocklist.py)
        ("host", TEXT),  # of a URL the hash of its host
        ("time", pa.int64()),  # time of the purge, ms
    ]
)


def conform(table: pa.Table | pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Returns the rows with exactly the columns and types of ``schema``.

    Columns that are not declared are dropped, missing ones are null.

    Raises:
        pa.ArrowInvalid: A value does not have its column's type; the message names the column.
            It is a ValueError.

    >>> conform(pl.DataFrame({"key": ["a"], "x": [1]}), OUTCOME).column_names
    ['key', 'document', 'status', 'score', 'signature']
    """
    if isinstance(table, pl.DataFrame):
        table = table.to_arrow()
    columns = [
        _column(table, field)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    column = table.column(field.name)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise pa.ArrowInvalid(f"column {field.name!r} must hold {field.type}: {error}") from error


def empty(schema: pa.Schema) -> pl.DataFrame:
    """Returns a frame without rows, with the columns of ``schema``."""
    frame = pl.from_arrow(schema.empty_table())
    assert isinstance(frame, pl.DataFrame)
    return frame


def to_frame(table: pa.Table) -> pl.DataFrame:
    """Returns the rows of an Arrow table as a polars frame, without a copy."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
