"""What index filters find in columns of pages on their way into an index."""

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from ...web.pages.metadata import TYPE_FOUND
from ...web.urls.key_columns import from_keys, host_keys
from ...web.urls.row_keys import from_host_key


def hosts_of_keys(keys: pl.Series) -> pl.Series:
    """Returns the hosts of row keys.

    >>> hosts_of_keys(pl.Series(["com.foo.www:http/"])).to_list()
    ['www.foo.com']
    """
    return map_distinct(host_keys(keys), from_host_key)


def map_distinct(
    column: pl.Series, function: Callable[[str], Any], dtype: Any = pl.String
) -> pl.Series:
    """Returns the results of a function, which is called once for each distinct value.

    >>> map_distinct(pl.Series(["a b", None, "c"]), str.split, pl.List(pl.String)).to_list()
    [['a', 'b'], None, ['c']]
    """
    distinct = column.drop_nulls().unique()
    if not len(distinct):
        return pl.Series([None], dtype=dtype).new_from_index(0, len(column))
    results = pl.Series([function(value) for value in distinct], dtype=dtype)
    if dtype == pl.List(pl.String):
        place = column.replace_strict(distinct, range(len(distinct)), return_dtype=pl.Int64)
        return results.gather(place)
    return column.replace_strict(distinct, results, return_dtype=dtype)


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
    by_bytes = entries_of(pages.get_column("metadata"), [TYPE_FOUND])[TYPE_FOUND]
    declared = pl.col("content_type").str.split(";").list.first().str.strip_chars()
    return pages.select(pl.coalesce(by_bytes, declared.str.to_lowercase())).to_series()


def header(headers: pl.Series, name: str) -> pl.Series:
    """Returns the first value of a header, by its name in lower case."""
    element = pl.element()
    named = element.filter(element.struct.field("name").str.to_lowercase() == name)
    return headers.list.eval(named.struct.field("value")).list.first()
