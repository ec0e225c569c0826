"""Declares the columns that only users see: of pages, links and batches."""

import pyarrow as pa

from .columns import Column, Columns, join_columns, time_column
from .schema import DOCUMENTS_COLUMNS, PAGE_LINKS, STATE_COLUMNS, TEXT

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
