"""What index filters find in columns of pages on their way into an index."""

from collections.abc import Iterable

import polars as pl

from ...web.pages.metadata import TYPE_FOUND
from ...web.rules.url_rules import host_keys
from ...web.urls.key_columns import from_keys
from ...web.urls.row_keys import from_host_key


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
