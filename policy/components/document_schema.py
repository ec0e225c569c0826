"""Declares documents, the contents of pages: their columns, their links, and the spans of their texts."""

from enum import IntEnum
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from .columns import Column, Columns, Form, Purged, code_column, join_columns
from .schema import PAGES_COLUMNS, PARSE_STATUS_NAMES, STATE_COLUMNS, TEXT, TEXT_MAP

DocumentRows: TypeAlias = pl.DataFrame  # columns of DOCUMENTS


class ParseMinor(IntEnum):
    """Nutch's minor parse status: kind of success, or reason of failure."""

    OK = 0
    REDIRECT = 100  # a meta refresh
    EXCEPTION = 200
    TRUNCATED = 202
    INVALID_FORMAT = 203
    MISSING_PARTS = 204
    MISSING_CONTENT = 205


PARSE_MINOR_NAMES = {int(minor): minor.name.lower() for minor in ParseMinor}

# The fields of a link in a document.
LINK_FIELDS = Columns(
    (
        Column("key", TEXT, "Row key of the target.", form=Form.URL),
        Column("anchor", TEXT, "Text of the link.", purged=Purged.KEPT),
        Column("rel", TEXT, "Its attribute `rel`.", purged=Purged.KEPT),
    )
)
LINKS = pa.large_list(pa.struct(list(LINK_FIELDS.schema)))
PAGE_LINKS = pa.large_list(pa.struct([("url", TEXT), ("anchor", TEXT), ("rel", TEXT)]))

SPAN_FIELDS = Columns(
    (
        Column(
            "kind",
            TEXT,
            "What it is: a block (`paragraph`, `heading`, `term`, `caption`, `preformatted`, `rule`), what holds "
            "blocks (`list`, `item`, `description`, `quote`, `table`, `row`, `cell`, `section`), or a mark "
            "(`link`, `image`, `code`, `strong`, `emphasis`, `deleted`, `break`); `base`: see `of`.",
        ),
        Column("start", pa.int32(), "Number of its first character in the text, from 0."),
        Column("end", pa.int32(), "Number of the character after it."),
        Column(
            "level",
            pa.int16(),
            "Of a heading 1 to 6; of a list and an item how deep they nest; 1 for the heading of a column or "
            "row, and for a paragraph that is an element of its own.",
        ),
        Column(
            "of",
            TEXT,
            "Target of a link and source of an image, as they stand in the page; language of preformatted "
            "text; first number of a list; number of an item that does not follow on the one before; columns "
            "of a cell; name of a section; URL that targets are relative to.",
        ),
    )
)
SPANS = pa.large_list(pa.struct(list(SPAN_FIELDS.schema)))

TEXT_PART_FIELDS = SPAN_FIELDS.pick("start", "end")
TEXT_PARTS = pa.large_list(pa.struct(list(TEXT_PART_FIELDS.schema)))

ITEM_FIELDS = Columns(
    (
        Column(
            "syntax",
            TEXT,
            "How the page writes it: `json-ld`, `microdata`, `rdfa`, `opengraph`, `twitter`, `dublin-core`, "
            "`highwire`.",
            purged=Purged.KEPT,
        ),
        Column(
            "type",
            TEXT,
            "Its types, with a space between them: the names of schema.org's, such as `Product`; the URLs of "
            "others.",
            purged=Purged.KEPT,
        ),
        Column(
            "properties",
            TEXT,
            "JSON: values by name, with `@type` and `@id` as in JSON-LD; items in it have the same form.",
        ),
    )
)
STRUCTURED_ITEMS = pa.large_list(pa.struct(list(ITEM_FIELDS.schema)))

EXTRACT_FIELDS = Columns(
    (
        Column("rules", TEXT, "Name of the set of rules.", purged=Purged.KEPT),
        Column("rules_version", TEXT, "Version of its rules.", purged=Purged.KEPT),
        Column("rule", TEXT, "The rule that made the record.", purged=Purged.KEPT),
        Column("position", pa.int32(), "Number of the item on the page, from 0."),
        Column(
            "fields",
            TEXT,
            "JSON: values by field; decimals are texts, dates ms since 1970, UTC.",
            purged=Purged.KEPT,
        ),
    )
)
EXTRACTS = pa.large_list(pa.struct(list(EXTRACT_FIELDS.schema)))

# Contents of pages: one row per successfully fetched page, and one per part of a page that is
# a separate document.
DOCUMENTS_COLUMNS = join_columns(
    STATE_COLUMNS.pick("key", "score", "distance"),
    PAGES_COLUMNS.pick("fetch_time"),
    [
        code_column("parse_status", PARSE_STATUS_NAMES, "Result of parsing."),
        Column("parse_message", TEXT, "The reason, if parsing failed."),
        Column("title", TEXT, "Title of the page.", purged=Purged.KEPT),
        Column(
            "text",
            TEXT,
            "Text of the page, a line for each block; paragraphs have an empty line between them.",
            purged=Purged.KEPT,
        ),
        Column(
            "outlinks",
            LINKS,
            "Accepted links: row key of the target, anchor, rel.",
            items=LINK_FIELDS,
        ),
        Column("refresh", TEXT, "Target of a meta refresh, as an absolute URL."),
        Column(
            "directives", pa.large_list(TEXT), "Robots directives of the page, such as `noindex`."
        ),
        Column("language", TEXT, "Language that the page declares."),
        Column("charset", TEXT, "Charset of the body."),
        *STATE_COLUMNS.pick("content_type", "signature"),
        Column("metadata", TEXT_MAP, "Names and values from the page: meta tags and properties."),
        code_column("parse_minor", PARSE_MINOR_NAMES, "Kind of success, or of failure."),
        Column("part_of", TEXT, "The page that this is a part of, such as a feed.", form=Form.URL),
        *STATE_COLUMNS.pick("usage"),
        Column(
            "nofollow_links",
            LINKS,
            "Accepted links that say `nofollow`, like `outlinks`. Only the link table has them, "
            "too.",
            items=LINK_FIELDS,
        ),
        Column("refresh_seconds", pa.int32(), "Time after which a meta refresh takes place, s."),
        Column(
            "blocks",
            SPANS,
            "Blocks of the text and marks in it, those around others first; none if it is not known.",
            items=SPAN_FIELDS,
        ),
        Column(
            "main",
            TEXT_PARTS,
            "Parts of the text that are its main content, without navigation and the like; none if they are "
            "not known.",
            items=TEXT_PART_FIELDS,
            purged=Purged.KEPT,
        ),
        Column(
            "structured_data",
            STRUCTURED_ITEMS,
            "Structured data of the page, such as products and articles; none if it has none.",
            items=ITEM_FIELDS,
        ),
        Column(
            "extracted",
            EXTRACTS,
            "Records that the rules of `--extract` have taken from the page; none if there are none.",
            items=EXTRACT_FIELDS,
        ),
    ],
)
DOCUMENTS = DOCUMENTS_COLUMNS.schema
