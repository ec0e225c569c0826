"""Pages on their way into an index: what index filters may read, and what they make."""

from collections.abc import Iterable

import polars as pl
import pyarrow as pa

from ...web.pages.metadata import TYPE_FOUND
from ...web.rules.url_rules import host_keys
from ...web.urls.key_columns import from_keys
from ...web.urls.row_keys import from_host_key
from ..components.columns import Column, joined
from ..components.schema import DOCUMENTS_COLUMNS, PAGES_COLUMNS, STATE_COLUMNS, TEXT, TEXT_MAP

# Reason why a filter leaves a document out; null: it stays. The first filter counts.
DROPPED = "dropped_by"
TEXTS = pa.large_list(TEXT)

# One row per page that may become a document of an index.
INDEX_PAGES_COLUMNS = joined(
    STATE_COLUMNS.pick("key"),
    DOCUMENTS_COLUMNS.pick("title", "text", "outlinks", "directives", "language", "charset"),
    DOCUMENTS_COLUMNS.pick("content_type", "metadata", "fetch_time", "part_of", "parse_status"),
    PAGES_COLUMNS.pick("headers", "ip"),
    STATE_COLUMNS.pick("status", "score", "signature", "modified_time", "repr_url", "batch_id"),
    STATE_COLUMNS.pick("retries", "fetch_interval", "usage"),
    [
        Column("row_metadata", TEXT_MAP, "Metadata of its row in the state."),
        Column("anchors", TEXTS, "Texts of the links to it."),
        Column("inlinks", TEXTS, "URLs of the pages that link to it."),
        Column("rank", pa.float64(), "Its rank in the graph of links."),
    ],
)
INDEX_PAGES = INDEX_PAGES_COLUMNS.schema


def hosts_of_keys(keys: pl.Series) -> pl.Series:
    """Returns the hosts of row keys.

    >>> hosts_of_keys(pl.Series(["com.foo.www:http/"])).to_list()
    ['www.foo.com']
    """
    names = host_keys(keys)
    known = names.drop_nulls().unique()
    made = pl.Series([from_host_key(name) for name in known], dtype=pl.String)
    return names.replace_strict(known, made, return_dtype=pl.String)


def target_urls(links: pl.Series) -> pl.Series:
    """Returns the URLs of the targets in a column of LINKS."""
    keys = links.list.eval(pl.element().struct.field("key"))
    flat = keys.explode().drop_nulls().unique()
    return keys.list.eval(
        pl.element().replace_strict(flat, from_keys(flat), return_dtype=pl.String)
    )


def entries_of(column: pl.Series, names: Iterable[str]) -> dict[str, pl.Series]:
    """Returns the values of some names of a column of maps."""
    struct = pl.Struct({"key": pl.String, "value": pl.String})
    pairs = column.cast(pl.List(struct))
    return {
        name: pairs.list.eval(
            pl.element().filter(pl.element().struct.field("key") == name).struct.field("value")
        ).list.first()
        for name in names
    }


def found_types(pages: pl.DataFrame) -> pl.Series:
    """Returns the MIME type of each page: as its bytes show, if its header has another one or none."""
    found = entries_of(pages.get_column("metadata"), [TYPE_FOUND])[TYPE_FOUND]
    declared = pl.col("content_type").str.split(";").list.first().str.strip_chars()
    return pages.select(pl.coalesce(found, declared.str.to_lowercase())).to_series()


def header(headers: pl.Series, name: str) -> pl.Series:
    """Returns the first value of a header, by its name in lower case."""
    element = pl.element()
    named = element.filter(element.struct.field("name").str.to_lowercase() == name)
    return headers.list.eval(named.struct.field("value")).list.first()
