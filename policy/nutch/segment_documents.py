"""Documents of a batch from what Nutch's parser wrote into a segment."""

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

import polars as pl

from ...web.content.usage import usage_of_page
from ...web.exchange.status import FETCH_SUCCESS
from ..components.document_schema import DOCUMENTS, PARSE_MINOR_NAMES, DocumentRows, ParseMinor
from ..components.schema import PARSE_STATUS_NAMES, PageRows, ParseStatus, conform_frame
from .crawldb_rows import DatumRows, NutchRules, admit_urls
from .datum_fields import METADATA_MAP
from .segment_rows import SegmentBodyRows

# Columns of PARSE_DATA of web/hadoop/segment_values.py, ``text``, and ``signature``.
ParsedRows: TypeAlias = pl.DataFrame
_SIGNATURE = 0x41  # status of a record with a signature
_DIGEST = "nutch.content.digest"
_ROBOTS = ("robots", "metatag.robots")
_CHARSETS = ("OriginalCharEncoding", "CharEncodingForConversion")
_LANGUAGE = "language"
_ARGUMENTS = r"(?s)^[^)]*\)(?:: |, )(.*)$"
_REFRESH, _SECONDS = r"(?s)args\[0\]=(.*), args\[1\]=", r"(?s), args\[1\]=(\d{1,9})$"


def parsed_rows(data: pl.DataFrame, texts: pl.DataFrame) -> ParsedRows:
    """Returns what the parser wrote of each URL; the signature is that of its metadata.

    Args:
        data: PARSE_DATA rows.
        texts: PARSE_TEXTS rows.
    """
    digest = _value("content_metadata", _DIGEST).str.decode("hex", strict=False)
    rows = data.unique("url", keep="first", maintain_order=True)
    texts = texts.unique("url", keep="first")
    return rows.join(texts, on="url", how="left", maintain_order="left").with_columns(
        signature=digest
    )


def with_signatures(rows: ParsedRows, records: DatumRows) -> ParsedRows:
    """Returns the rows with signatures of ``crawl_parse`` where metadata have none.

    Args:
        rows: The rows.
        records: Records of ``crawl_parse``.
    """
    signed = records.filter(pl.col("status") == _SIGNATURE).select("url", signed="signature")
    signed = signed.drop_nulls().unique("url", keep="first")
    joined = rows.join(signed, on="url", how="left", maintain_order="left")
    return joined.with_columns(signature=pl.coalesce("signature", "signed")).drop("signed")


def with_parsed_headers(
    contents: SegmentBodyRows, parsed: ParsedRows, fetched: DatumRows
) -> SegmentBodyRows:
    """Returns contents, and rows without a body for fetched URLs that have none: the parser kept the headers."""
    missing = parsed.join(contents.select("url"), on="url", how="anti")
    missing = missing.join(fetched.select("url"), on="url", how="semi", maintain_order="left")
    rows = missing.select("url", metadata="content_metadata")
    return pl.concat([contents, rows], how="diagonal").select(contents.columns)


def documents_of_segment(
    pages: PageRows, parsed: ParsedRows, how: NutchRules
) -> tuple[DocumentRows, Counter[str]]:
    """Returns DOCUMENTS rows of pages; and counts.

    Pages with bodies that were not parsed have rows without texts: ``parse --reparse`` makes these.
    Rows of the state and the outcome of a batch that was applied name the file of these rows.

    Args:
        pages: The pages, with their bodies.
        parsed: What the parser wrote of their URLs.
        how: The rules.
    """
    rows, _ = admit_urls(parsed, how)  # their pages are counted
    rows = rows.unique("key", keep="first", maintain_order=True)
    success = pages.filter(pl.col("fetch_status") == FETCH_SUCCESS)
    of_page = success.select(
        *("key", "score", "distance", "fetch_time", "content_type", "headers"),
        has_body=pl.col("body").is_not_null(),
    )
    alone = rows.join(pages.select("key"), on="key", how="anti")
    links, counts = _links(rows.join(of_page.select("key"), on="key", how="semi"), how)
    counts["dropped/no_fetch"] = len(alone)
    status = pl.col("status").cast(pl.Int64)
    documents = (
        of_page.join(rows, on="key", how="left", maintain_order="left")
        .filter(pl.col("has_body") | pl.col("url").is_not_null())
        .with_columns(
            parse_status=pl.when(status.is_in(list(PARSE_STATUS_NAMES)))
            .then(status)
            .fill_null(int(ParseStatus.NOTPARSED)),
            parse_minor=pl.when(pl.col("minor_status").is_in(list(PARSE_MINOR_NAMES))).then(
                "minor_status"
            ),
            parse_message=pl.col("status_text").str.extract(_ARGUMENTS),
            directives=_directives(),
            language=_value("parse_metadata", _LANGUAGE),
            charset=pl.coalesce(_value("parse_metadata", name) for name in _CHARSETS),
        )
    )
    documents = _with_refresh(documents).with_columns(_usages(documents))
    counts["documents"] = len(documents.drop_nulls("url"))
    documents = documents.drop("outlinks")
    for added in (links, _metadata(documents)):
        documents = documents.join(added, on="key", how="left", maintain_order="left")
    return conform_frame(documents, DOCUMENTS), +counts


def split_by_bodies(
    pages: PageRows, documents: DocumentRows
) -> Iterator[tuple[PageRows, DocumentRows]]:
    """Yields pages and their documents for a file each: those that have a text, but no body, come last.

    ``parse --reparse`` makes the documents of a file again, and leaves those of a file without bodies.
    """
    has_text = pl.col("key").is_in(documents.get_column("key").implode())
    is_text_only = has_text & pl.col("body").is_null()
    for rows in (pages.filter(~is_text_only), pages.filter(is_text_only)):
        if len(rows):
            of_rows = documents.join(
                rows.select("key"), on="key", how="semi", maintain_order="left"
            )
            yield rows, of_rows


def _links(rows: ParsedRows, how: NutchRules) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns ``key`` and ``outlinks`` of rows with links; and counts."""
    links = rows.select(source="key", link="outlinks").explode("link").drop_nulls()
    links, counts = admit_urls(links.unnest("link"), how)
    others = links.filter(pl.col("key") != pl.col("source"))
    counts["dropped/own_url"] += len(links) - len(others)
    counts["outlinks"] += len(others)
    link = pl.struct("key", "anchor", rel=pl.lit(None, pl.String))
    lists = others.group_by("source", maintain_order=True).agg(outlinks=link)
    return lists.rename({"source": "key"}), counts


def _with_refresh(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds the target of a meta refresh, which the status of a page has in place of a message."""
    is_refresh = (pl.col("parse_minor") == int(ParseMinor.REDIRECT)).fill_null(False)
    text = pl.when(is_refresh).then("status_text")
    return rows.with_columns(
        refresh=text.str.extract(_REFRESH),
        refresh_seconds=text.str.extract(_SECONDS).cast(pl.Int32),
        parse_message=pl.when(~is_refresh).then("parse_message"),
    )


def _usages(rows: pl.DataFrame) -> pl.Series:
    usages = [
        usage_of_page(None, [(h["name"].lower(), h["value"]) for h in headers or ()], words or ())
        for headers, words in rows.select("headers", "directives").iter_rows()
    ]
    return pl.Series("usage", usages, dtype=pl.String)


def _metadata(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns ``key`` and ``metadata`` of rows with metadata; several values of a name are lines."""
    pairs = rows.select(row="key", pair="parse_metadata").explode("pair").drop_nulls()
    values = pairs.unnest("pair").group_by("row", "key", maintain_order=True)
    joined = values.agg(pl.col("value").str.join("\n"))
    maps = joined.group_by("row", maintain_order=True).agg(metadata=pl.struct("key", "value"))
    return maps.select(key="row", metadata=pl.col("metadata").cast(METADATA_MAP))


def _directives() -> pl.Expr:
    texts = pl.coalesce(_value("parse_metadata", name) for name in _ROBOTS)
    words = texts.str.to_lowercase().str.split(",").list.eval(pl.element().str.strip_chars())
    return words.list.unique().list.sort()


def _value(column: str, name: str) -> pl.Expr:
    """Returns the first value of a name in a column of metadata."""
    field = pl.element().struct.field
    return pl.col(column).list.eval(field("value").filter(field("key") == name)).list.first()
