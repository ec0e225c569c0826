"""Declares the columns of all rows: one Arrow schema per kind of chunk.

Times are UTC milliseconds since the epoch, intervals are seconds. If an older file
lacks columns, readers fill them with nulls. Only ``conform`` casts frames and tables
to these schemas.
"""

from enum import IntEnum
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from ...web.exchange.status import FETCH_STATUS_NAMES, PROTOCOL_STATUS_NAMES
from ..base.row_status import Status as Status  # noqa: PLC0414 - other modules import it from here
from ..schedules.schedule import latest_due, latest_rest
from .columns import Column, Columns, Form, Planned, Purged, code_column, join_columns, time_column

# What a frame holds, in signatures: rows with columns of a schema, perhaps with further ones.
StateRows: TypeAlias = pl.DataFrame  # columns of STATE
PageRows: TypeAlias = pl.DataFrame  # columns of PAGES
FetchListRows: TypeAlias = pl.DataFrame  # columns of FETCHLIST
SeedRows: TypeAlias = pl.DataFrame  # columns of SEEDS
ChangeRows: TypeAlias = pl.DataFrame  # columns of CHANGES
OutcomeRows: TypeAlias = pl.DataFrame  # columns of OUTCOME
HostRows: TypeAlias = pl.DataFrame  # columns of HOSTS
HostCountRows: TypeAlias = pl.DataFrame  # columns of HOST_COUNTS
BlocklistRows: TypeAlias = pl.DataFrame  # columns of BLOCKLIST

TEXT = pa.large_string()
TEXT_MAP = pa.map_(TEXT, TEXT)

# In a row's metadata: seconds between two requests to its host (Nutch: _variableFetchDelay_).
FETCH_DELAY = "nutch.fetchDelay"
MAX_DELAY = 86_400.0


STATUS_NAMES = {int(status): status.name.lower() for status in Status}


class ParseStatus(IntEnum):
    """Nutch's major parse status."""

    NOTPARSED = 0
    SUCCESS = 1
    FAILED = 2


PARSE_STATUS_NAMES = {int(status): status.name.lower() for status in ParseStatus}

STATE_COLUMNS = Columns(
    (
        Column("key", TEXT, "Row key: the URL with its host reversed: `com.example:http/`."),
        code_column("status", STATUS_NAMES, "What the table knows about the URL."),
        time_column(
            "fetch_time",
            "When the URL is due: from then on `generate` may choose it.",
            planned=Planned("last_fetch_time", latest_due),
        ),
        Column("fetch_interval", pa.int32(), "Time from one fetch to the next.", "s"),
        Column(
            "retries",
            pa.int32(),
            "Temporary failures in a row that count, such as timeouts and 503.",
        ),
        time_column("last_fetch_time", "When it was last requested, with or without an answer."),
        time_column(
            "modified_time",
            "Since when its content is as it is now: when that was first seen, or, with other "
            "schedules than `default`, what `Last-Modified` says.",
        ),
        Column("etag", TEXT, "ETag of its newest body, as the server sent it."),
        Column("last_modified", TEXT, "Last-Modified of its newest body, as the server sent it."),
        Column("score", pa.float32(), "Its importance (OPIC): the share that it got from links."),
        Column("cash", pa.float32(), "Scoring `opic_cash`: what it has to give to its links."),
        Column(
            "signature",
            pa.large_binary(),
            "Fingerprint of the newest content (`--signature`).",
            form=Form.HEX,
        ),
        Column(
            "simhash", pa.uint64(), "Not used: with `--signature simhash` it is in `signature`."
        ),
        code_column("protocol_status", PROTOCOL_STATUS_NAMES, "Result of the last request."),
        Column(
            "protocol_message", TEXT, "Its reason: `404 Not Found`, `timeout`, a redirect's target."
        ),
        Column("http_code", pa.uint16(), "HTTP's status code of the last answer; null: no answer."),
        code_column("parse_status", PARSE_STATUS_NAMES, "Result of parsing the newest body."),
        Column("content_type", TEXT, "Content-Type of its newest body, as the server sent it."),
        Column("batch_id", TEXT, "The batch of the newest body.", purged=Purged.KEPT),
        Column("document", TEXT, "File that its newest text was written to.", purged=Purged.KEPT),
        Column("page", TEXT, "File that its newest body was written to.", purged=Purged.KEPT),
        Column(
            "repr_url",
            TEXT,
            "URL to show instead, if a redirect led to the page from a URL that is better to show.",
        ),
        Column("distance", pa.int32(), "Number of links from the nearest seed; 0: it is a seed."),
        Column("fixed_interval", pa.int32(), "Interval that its seed list sets for good.", "s"),
        Column(
            "last_inlink_day",
            pa.int32(),
            "Day on which a link to it was last found.",
            form=Form.DAY,
        ),
        Column("response_ms", pa.int32(), "Time from the request to the end of the answer.", "ms"),
        Column(
            "metadata",
            TEXT_MAP,
            "Names and values from its seed list, a page that links to it, or its document.",
        ),
        Column(
            "change_shape",
            pa.float32(),
            "What `--schedule rate` knows of its rate of changes, a gamma distribution: the shape.",
        ),
        Column("change_days", pa.float32(), "The same distribution: its rate parameter.", "d"),
        Column(
            "max_depth",
            pa.int32(),
            "Scoring `depth`: the limit of depth that its seed sets; null: the usual one.",
        ),
        Column(
            "duplicate_of",
            TEXT,
            "Of a duplicate: the page that was kept instead. It may have lost to a page of a later "
            "batch, which it names.",
            form=Form.URL,
        ),
        Column(
            "usage",
            TEXT,
            "What the page allows its content to be used for: `train-ai=n`; null: it does not say.",
        ),
        time_column("gone_since", "Of a page that is `db_gone`: since when; null: unknown."),
    )
)
STATE = STATE_COLUMNS.schema


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
FETCHLIST_COLUMNS = join_columns(
    STATE_COLUMNS.pick("key"),
    [Column("slot", pa.uint16(), "Part of the batch, the same for all URLs of a host.")],
    STATE_COLUMNS.pick("score", "distance", "etag", "last_modified", "modified_time", "signature"),
    [
        Column("delay", pa.float64(), "Pause between requests to its host; null: the usual.", "s"),
        Column("address", TEXT, "IP address of its host, with a queue per address."),
    ],
    # A part of another page has a signature, but no page: its URL was never fetched.
    STATE_COLUMNS.pick("page"),
    # What update needs of the row before: for the target of a redirect, and after a 304.
    STATE_COLUMNS.pick("document", "fetch_interval", "fixed_interval", "metadata", "repr_url"),
)
FETCHLIST = FETCHLIST_COLUMNS.schema

# The value of ``truncated`` of a page whose body compact has deleted.
DROPPED_BODY = "dropped"
HEADERS = pa.large_list(pa.struct([("name", TEXT), ("value", TEXT)]))

# Requests and responses, one row per URL that was tried.
PAGES_COLUMNS = join_columns(
    STATE_COLUMNS.pick("key", "score", "distance"),
    [code_column("fetch_status", FETCH_STATUS_NAMES, "What the answer means.")],
    STATE_COLUMNS.pick("protocol_status", "protocol_message", "http_code"),
    [
        time_column("fetch_time", "When the request ended."),
        *STATE_COLUMNS.pick("response_ms"),
        Column("content_type", TEXT, "Content-Type, as the server sent it."),
        Column("etag", TEXT, "ETag, as the server sent it."),
        Column("last_modified", TEXT, "Last-Modified, as the server sent it."),
        Column("redirect", TEXT, "Target of a redirect, as an absolute URL."),
        Column("retry_after", pa.int32(), "The pause that the server demands.", "s"),
        Column("ip", TEXT, "Address of the server."),
        Column("tls", TEXT, "`checked`, or `unchecked` if the operator allows it."),
        Column("request", TEXT, "Request line and headers, as they were sent."),
        Column("status_line", TEXT, "Status line of the response."),
        Column("headers", HEADERS, "Headers of the response, in order."),
        Column(
            "truncated",
            TEXT,
            "Why the body is incomplete, such as `length`; null: it is complete. `frame` and "
            "`checksum`: it is, but the answer broke off, or its checksum is wrong. `dropped`: "
            "`compact --keep_bodies` has deleted it.",
        ),
        Column("body", pa.large_binary(), "The body, without the codings of HTTP."),
        Column("depth", pa.uint16(), "Links that the fetch followed to this page; null: none."),
        Column(
            "usage",
            TEXT,
            "What robots.txt allows its content to be used for; null: it does not say.",
        ),
        Column(
            "wire",
            pa.large_binary(),
            "With `--store_wire`: the body as it was transferred, with its codings, where it is not "
            "in `body`.",
        ),
        Column(
            "wire_head",
            TEXT,
            "With `--store_wire`: the head as it came; null: it is what `status_line` and `headers` "
            "give.",
        ),
        Column("cipher", TEXT, "With `--store_wire`: version of TLS, and cipher suite."),
    ],
)
PAGES = PAGES_COLUMNS.schema

# Findings about a host; in a batch and in the host table.
HOSTS_COLUMNS = Columns(
    (
        Column("key", TEXT, "The host, reversed: `com.example`."),
        Column("seed", pa.bool_(), "Whether it is the host of a seed."),
        Column("robots_origin", TEXT, "Whose robots.txt it is: `scheme://host[:port]`."),
        Column("robots_status", pa.uint16(), "HTTP's status code of robots.txt; 0: no answer."),
        Column("robots_text", TEXT, "Its robots.txt.", purged=Purged.LINES),
        time_column("robots_time", "When robots.txt was requested.", renewed=True),
        Column("crawl_delay", pa.float64(), "Pause that robots.txt asks for.", "s"),
        Column("exceptions", pa.int32(), "Failed requests since the last success."),
        time_column(
            "backoff_until",
            "Until when the host is left alone.",
            planned=Planned("last_request_time", latest_rest),
        ),
        Column("requests", pa.int64(), "Number of requests to it."),
        time_column("last_request_time", "When it was last requested."),
        time_column("robots_failing_since", "Since when robots.txt is not answered; null: it is."),
        Column(
            "sitemaps", TEXT, "Sitemaps that robots.txt names, one per line.", purged=Purged.LINES
        ),
        Column("backoff_level", pa.int32(), "Failed requests, halved by each success."),
        *(
            Column(name.removeprefix("db_"), pa.int64(), f"Number of its URLs that are `{name}`.")
            for name in STATUS_NAMES.values()
        ),
        Column("connection_failures", pa.int64(), "Number of its URLs whose last request failed."),
        Column(
            "dns_failures", pa.int32(), "Failed look-ups of its address since the last success."
        ),
        time_column("dns_time", "When its address was last looked up.", renewed=True),
        Column("homepage", TEXT, "Its home page, if it was fetched.", form=Form.URL),
        Column("score", pa.float32(), "Its importance."),
        Column("response_times", pa.large_binary(), "Sketch of its response times.", form=Form.HEX),
        Column(
            "linking_domains",
            pa.large_binary(),
            "Sketch of the foreign domains that link to this registered domain.",
            form=Form.HEX,
        ),
        Column("settings", TEXT_MAP, "Settings of the operator for this host."),
        time_column("purged_since", "When `updatehostdb` gave the host up; null: it did not."),
        Column(
            "domain_urls", pa.int64(), "Number of URLs of this registered domain, on all its hosts."
        ),
        Column(
            "cookies",
            TEXT,
            "With `--http_cookies`: its cookies, as Set-Cookie headers, one per line.",
            purged=Purged.LINES,
        ),
    )
)
HOSTS = HOSTS_COLUMNS.schema

# The numbers of a host's URLs: by status, and of those whose last request failed.
STATUS_COUNTS = {code: name.removeprefix("db_") for code, name in STATUS_NAMES.items()}
URL_COUNTS = (*STATUS_COUNTS.values(), "connection_failures")
HOST_COUNTS_COLUMNS = HOSTS_COLUMNS.pick("key", *URL_COUNTS)
HOST_COUNTS = HOST_COUNTS_COLUMNS.schema
HOST_SETTINGS_COLUMNS = HOSTS_COLUMNS.pick("key", "settings")
HOST_SETTINGS = HOST_SETTINGS_COLUMNS.schema

# The effect of a batch on the table: one row per URL that was tried.
OUTCOME_COLUMNS = join_columns(
    STATE_COLUMNS.pick("key", "document", "status", "score", "signature"),
    PAGES_COLUMNS.pick("fetch_status"),
    [
        code_column(
            "old_status", STATUS_NAMES, "Its status before; null: it was not in the table."
        ),
        Column("old_document", TEXT, "File with its text before.", purged=Purged.KEPT),
        Column("old_signature", pa.large_binary(), "Its fingerprint before.", form=Form.HEX),
    ],
    STATE_COLUMNS.pick("repr_url", "usage", "last_fetch_time"),
)
OUTCOME = OUTCOME_COLUMNS.schema

# The changes of update: an event per page, a sum per link target.
CHANGES = pa.schema(
    [
        STATE.field("key"),
        ("order", pa.int64()),  # of the file in the batch; the first event counts
        PAGES.field("fetch_status"),  # null: linked only
        *columns(PAGES, "protocol_status", "protocol_message", "http_code", "fetch_time"),
        *columns(PAGES, "response_ms", "retry_after", "content_type", "etag", "last_modified"),
        STATE.field("signature"),  # null: fetched but not parsed
        *columns(STATE, "parse_status", "batch_id", "page", "document", "usage"),
        ("inlink_score", pa.float64()),
        ("inlink_distance", pa.int32()),
        ("known_only", pa.bool_()),  # links only of pages that answered 304: they add no row
        ("part", pa.bool_()),  # a part of another page, not fetched
        # What the target of a redirect inherits.
        *columns(STATE, "fetch_interval", "fixed_interval", "metadata", "repr_url"),
    ]
)

# The blocklist: hashes of names that must not be added to the table again.
BLOCKLIST_COLUMNS = Columns(
    (
        Column("key", TEXT, "`url:HASH`, `host:HASH` or `domain:HASH`."),
        Column("host", TEXT, "Of a URL the hash of its host."),
        time_column("time", "Time of the purge."),
    )
)
BLOCKLIST = BLOCKLIST_COLUMNS.schema


def conform(table: pa.Table | pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Returns the rows with exactly the columns and types of ``schema``.

    Columns that are not declared are dropped, missing ones are null.

    Raises:
        pa.ArrowInvalid: A value does not have its column's type; the message names the column.
            It is a ValueError.

    >>> conform(pl.DataFrame({"key": ["a"], "x": [1]}), STATE).column_names[:2]
    ['key', 'status']
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


def conform_frame(frame: pl.DataFrame, schema: pa.Schema) -> pl.DataFrame:
    """Returns the same as ``conform``, as a frame: the given one if it has these columns already."""
    return frame if frame.schema == empty(schema).schema else to_frame(conform(frame, schema))


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    column = table.column(field.name)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise pa.ArrowInvalid(f"column {field.name!r} must hold {field.type}: {error}") from error


def empty(schema: pa.Schema) -> pl.DataFrame:
    """Returns a frame without rows, with the columns of ``schema``.

    Not by way of ``schema.empty_table()``, which loads pandas where it is installed: that takes a second.
    """
    return pl.DataFrame(schema=pl.Schema(schema))


def to_frame(table: pa.Table) -> pl.DataFrame:
    """Returns the rows of an Arrow table as a polars frame, without a copy."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
