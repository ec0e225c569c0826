"""Rows of a batch from a segment of Nutch: its fetch list, and its pages with their bodies."""

from collections import Counter
from typing import TypeAlias

import polars as pl

from ...web.exchange.status import (
    EXCEPTION,
    FETCH_GONE,
    FETCH_NOTMODIFIED,
    FETCH_REDIR_PERM,
    FETCH_REDIR_TEMP,
    FETCH_RETRY,
    FETCH_STATUS_NAMES,
    FETCH_SUCCESS,
    GONE,
    MOVED,
    NOTMODIFIED,
    SUCCESS,
    TEMP_MOVED,
)
from ..components.document_schema import DocumentRows
from ..components.schema import FETCHLIST, PAGES, FetchListRows, PageRows, conform_frame
from ..generating.selection import queue_names
from .crawldb_rows import DatumRows, NutchRules, admit_urls
from .datum_fields import add_fields
from .imported_rows import NutchStateRows

# ``url``, ``content``, ``content_type``, ``metadata``: CONTENTS of web/hadoop/segment_values.py.
SegmentBodyRows: TypeAlias = pl.DataFrame
_REDIRECTED = (FETCH_REDIR_TEMP, FETCH_REDIR_PERM)
# Where a record does not say what the protocol answered.
_PROTOCOL_OF = {
    FETCH_SUCCESS: SUCCESS,
    FETCH_RETRY: EXCEPTION,
    FETCH_REDIR_TEMP: TEMP_MOVED,
    FETCH_REDIR_PERM: MOVED,
    FETCH_GONE: GONE,
    FETCH_NOTMODIFIED: NOTMODIFIED,
}
# Nutch notes these beside the headers of an answer.
_NO_HEADERS = ("caching.forbidden", "OriginalCharEncoding", "CharEncodingForConversion", "language",
               "pragma.no-cache")  # fmt: skip
_NO_HEADER = r"^(?:_|nutch\.|http\.content\.)"
_FIELDS = ("protocol_status", "protocol_message", "response_ms", "http_code", "distance", "ip")
LIST_PLACE = "place"


def listed_rows(
    records: DatumRows, how: NutchRules, batch: str
) -> tuple[FetchListRows, Counter[str]]:
    """Returns FETCHLIST rows of ``crawl_generate``, with ``place``, whose hash is the slot; and counts.

    Args:
        records: Its records.
        how: The rules.
        batch: Id of the batch.
    """
    rows, counts = admit_urls(records, how)
    rows = add_fields(rows, "distance", "delay", "fixed_interval", "repr_url")
    rows = rows.with_columns(
        modified_time=pl.when(pl.col("modified_time") > 0).then("modified_time"),
    ).unique("key", keep="first", maintain_order=True)
    listed = conform_frame(rows, FETCHLIST)
    places = queue_names(batch, listed.get_column("key"), "host")
    return listed.drop("slot").with_columns(places.alias(LIST_PLACE)), counts


def pages_of_segment(
    fetched: DatumRows, contents: SegmentBodyRows, how: NutchRules
) -> tuple[PageRows, Counter[str]]:
    """Returns PAGES rows of records of ``crawl_fetch``, with their contents; and counts.

    Records of targets of redirects, which were not fetched, are left out.

    Args:
        fetched: Records of URLs; a content may lack one.
        contents: The contents that belong to them.
        how: The rules.
    """
    results = fetched.filter(pl.col("status").is_in(list(FETCH_STATUS_NAMES)))
    results = add_fields(results, *_FIELDS).drop("metadata", "signature")
    # Bodies are large: they are taken once, by their numbers.
    numbered = contents.select("url", "content_type", headers="metadata").with_row_index("content")
    rows = results.unique("url", keep="first", maintain_order=True).join(
        numbered.unique("url", keep="first"),
        on="url",
        how="full",
        coalesce=True,
        maintain_order="left",
    )
    rows, counts = admit_urls(rows, how)
    rows = rows.unique("key", keep="first", maintain_order=True)
    status = pl.coalesce("status", _noted("_fst_").cast(pl.Int16, strict=False), FETCH_SUCCESS)
    rows = rows.with_columns(
        fetch_status=status,
        protocol_status=pl.coalesce(
            "protocol_status", status.replace_strict(_PROTOCOL_OF, default=EXCEPTION)
        ),
        content_type=pl.coalesce(_header("content-type"), "content_type"),
        etag=_header("etag"),
        last_modified=_header("last-modified"),
        ip=pl.coalesce("ip", _noted("_ip_")),
        request=_noted("_request_"),
        status_line=_noted("_response.headers_").str.extract(r"^(HTTP/[^\r\n]*)"),
        http_code=pl.coalesce(
            "http_code", _noted("nutch.protocol.code").cast(pl.Int64, strict=False)
        ),
        truncated=_truncation(),
    )
    redirected, success = (
        pl.col("fetch_status").is_in(_REDIRECTED),
        pl.col("fetch_status") == FETCH_SUCCESS,
    )
    rows = rows.with_columns(
        redirect=pl.when(redirected).then("protocol_message"),
        content=pl.when(redirected | success).then("content"),
        headers=_header_list(),
    )
    bodies = contents.get_column("content").gather(rows.get_column("content")).alias("body")
    counts["pages"] = len(rows)
    counts["pages_without_body"] = int(rows.select((success & bodies.is_null()).sum()).item())
    # With the bodies at the end, or they would be copied.
    return conform_frame(rows, PAGES).with_columns(bodies), +counts


def page_changes(
    pages: PageRows, documents: DocumentRows, segment: int, paths: tuple[str, str]
) -> NutchStateRows:
    """Returns NUTCH_STATE rows of pages: where their bodies and their texts are.

    Args:
        pages: The pages.
        documents: Their documents.
        segment: Number of their segment.
        paths: The file of the pages, and that of the documents.
    """
    page, document = map(pl.lit, paths)
    has_body = (pl.col("fetch_status") == FETCH_SUCCESS) & pl.col("body").is_not_null()
    of_documents = documents.select("key", "parse_status", "usage", document=document)
    return pages.drop("usage").join(of_documents, on="key", how="left", maintain_order="left").select(
        *("key", "fetch_status", "content_type", "etag", "last_modified"),
        *("parse_status", "usage", "document"),
        last_fetch_time="fetch_time", segment=pl.lit(segment, pl.Int32),
        page=pl.when(has_body).then(page),
    )  # fmt: skip


def _values(condition: pl.Expr) -> pl.Expr:
    """Returns the first value of metadata whose name fits."""
    fitting = pl.element().filter(condition).struct.field("value")
    return pl.col("headers").list.eval(fitting).list.first()


def _noted(name: str) -> pl.Expr:
    return _values(pl.element().struct.field("key") == name)


def _header(name: str) -> pl.Expr:
    return _values(pl.element().struct.field("key").str.to_lowercase() == name)


def _truncation() -> pl.Expr:
    """Returns why a body is incomplete; Nutch says ``LENGTH``, ``DISCONNECT``, ``TIME``."""
    reason = _noted("http.content.truncated.reason").str.to_lowercase()
    is_cut = (_noted("http.content.truncated") == "true").fill_null(False)
    return pl.when(is_cut).then(reason.fill_null("length"))


def _header_list() -> pl.Expr:
    """Returns the headers of an answer.

    A null must be an empty list before: polars leaves the items of a list that becomes null, and pyarrow before
    25 cannot write these.
    """
    name = pl.element().struct.field("key")
    is_header = ~name.str.contains(_NO_HEADER) & ~name.is_in(_NO_HEADERS)
    pair = pl.struct(name=name, value=pl.element().struct.field("value"))
    headers = pl.col("headers")
    header_pairs = headers.fill_null([]).list.eval(pair.filter(is_header))
    return pl.when(headers.is_not_null()).then(header_pairs)
