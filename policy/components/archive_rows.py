"""Rows of archives: the captures that it has, and Common Crawl's indexes of URLs and of hosts."""

from typing import TypeAlias

import polars as pl
import pyarrow as pa

from .schema import TEXT

CaptureRows: TypeAlias = pl.DataFrame  # columns of CAPTURES
UrlIndexRows: TypeAlias = pl.DataFrame  # columns of URL_INDEX, and subset
HostFactRows: TypeAlias = pl.DataFrame  # columns of HOST_FACTS
HostIndexRows: TypeAlias = pl.DataFrame  # columns of HOST_INDEX

# The record of an answer in a file, which indexes and later revisits need.
CAPTURES = pa.schema(
    [
        ("url", TEXT),
        ("time", pa.int64()),  # ms
        ("batch", TEXT),
        ("kind", TEXT),  # WARC-Type
        ("status", pa.uint16()),  # of HTTP; null: there is none
        ("mime", TEXT),  # as sent, without parameters
        ("digest", pa.large_binary()),  # SHA-1 of the payload; null: nothing of it is known
        ("whole", pa.bool_()),  # whether a revisit may name it
        ("file", TEXT),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("record", pa.large_binary()),  # its id, a UUID
        ("redirect", TEXT),  # target of a redirect, an absolute URL
        ("truncated", TEXT),  # WARC-Truncated
        ("mime_detected", TEXT),
        # What parsing has found.
        ("charset", TEXT),
        ("language", TEXT),  # ISO 639-1
        ("title", TEXT),
    ]
)

# Columns of Common Crawl's columnar index that are never null.
_REQUIRED = frozenset(
    [
        *(f"url{name}" for name in ("", "_surtkey", "_host_name", "_protocol", "_path")),
        *("fetch_time", "fetch_status", "warc_record_id", "warc_filename", "warc_record_offset"),
        *("warc_record_length", "warc_segment"),
    ]
)
# That index (cc-index-table, cc-index-schema-flat.json); the partitions ``crawl`` and ``subset`` are in
# the names of folders.
_URL_COLUMNS = pa.schema(
    [
        *((name, pa.string()) for name in ("url_surtkey", "url", "url_host_name", "url_host_tld")),
        *((f"url_host_{number}_last_part", pa.string()) for number in ("2nd", "3rd", "4th", "5th")),
        *(
            (f"url_host_{name}", pa.string())
            for name in ("registry_suffix", "registered_domain", "private_suffix", "private_domain",
                         "name_reversed")
        ),
        ("url_protocol", pa.string()),
        ("url_port", pa.int32()),
        ("url_path", pa.string()),
        ("url_query", pa.string()),
        ("fetch_time", pa.timestamp("ms", "UTC")),
        ("fetch_status", pa.int16()),
        ("fetch_redirect", pa.string()),
        *(
            (f"content_{name}", pa.string())
            for name in ("digest", "mime_type", "mime_detected", "charset", "languages", "truncated")
        ),
        ("warc_record_id", pa.binary()),
        ("warc_filename", pa.string()),
        ("warc_record_offset", pa.int32()),
        ("warc_record_length", pa.int32()),
        ("warc_segment", pa.string()),
    ]
)  # fmt: skip
URL_INDEX = pa.schema([field.with_nullable(field.name not in _REQUIRED) for field in _URL_COLUMNS])

# Names of HTTP's status codes in the host index, after ``fetch_`` and ``robots_``.
STATUS_GROUPS = (
    *("200", "3xx", "4xx", "5xx", "gone", "notModified", "other", "redirPerm", "redirTemp"),
)
# Its numbers of URLs, after ``nutch_``, and the columns of the host table that they come from.
NUTCH_COUNTS = {
    "fetched": "fetched",
    "gone": "gone",
    "notModified": "notmodified",
    "redirPerm": "redir_perm",
    "redirTemp": "redir_temp",
    "unfetched": "unfetched",
}
# Harmonic centrality and PageRank, and both on a scale from 0 to 10.
HOST_RANKS = ("hcrank10", "prank10", "prank", "hcrank")

# What the host index is made of: a row for each capture, each host of the table, each rank.
HOST_FACTS = pa.schema(
    [
        ("surt_host_name", TEXT),
        ("host", TEXT),
        ("robots", pa.bool_()),  # whether it is about robots.txt
        ("status", pa.uint16()),  # null: it is no capture
        ("length", pa.int64()),  # of a capture of the subset warc; null: it is none
        ("foreign", pa.bool_()),  # whether its language is known, and not English
        *((name, pa.int64()) for name in NUTCH_COUNTS),
        ("records", pa.int64()),  # number of URLs of the host
        *((name, pa.float64()) for name in HOST_RANKS),
    ]
)

# Common Crawl's host index (cc-host-index, version 2); the partition ``crawl`` is in the name of the
# folder.
HOST_INDEX = pa.schema(
    [
        ("surt_host_name", pa.string()),
        ("url_host_registered_domain", pa.string()),
        ("url_host_tld", pa.string()),
        *((name, pa.float64()) for name in HOST_RANKS),
        ("warc_record_length_av", pa.int32()),
        ("warc_record_length_median", pa.int32()),
        ("fetch_200", pa.int32()),
        ("fetch_200_lote", pa.int32()),
        ("fetch_200_lote_pct", pa.int32()),
        *((f"fetch_{name}", pa.int32()) for name in STATUS_GROUPS[1:]),
        *(
            (f"nutch_{name}{ending}", pa.int32())
            for name in ("fetched", "gone", "notModified")
            for ending in ("", "_pct")
        ),
        ("nutch_numRecords", pa.int32()),
        *(
            (f"nutch_{name}{ending}", pa.int32())
            for name in ("redirPerm", "redirTemp", "unfetched")
            for ending in ("", "_pct")
        ),
        *((f"robots_{name}", pa.int32()) for name in STATUS_GROUPS),
    ]
)
