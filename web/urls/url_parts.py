"""Splits URLs into parts, without normalizing: a column or one URL at a time."""

import re

import polars as pl

_SPLIT = (
    r"^[A-Za-z][A-Za-z0-9+.-]*:"
    r"(?://(?:[^/?#]*@)?(\[[^\]/?#@]*\]|[^/?#:@]*)[^/?#@]*)?([^?#]*)(?:\?([^#]*))?"
)
_ONE = re.compile(_SPLIT)


def parts_of_url(url: str) -> tuple[str, str, str | None] | None:
    """Returns host (lower case, empty if there is none), path and query; None if it is not a URL.

    >>> parts_of_url("http://me@Foo.com:80/x?y#z"), parts_of_url("file:/x"), parts_of_url("foo")
    (('foo.com', '/x', 'y'), ('', '/x', None), None)
    """
    match = _ONE.match(url)
    return ((match[1] or "").lower(), match[2], match[3]) if match else None


def host_of_url(url: str) -> str | None:
    """Returns the host of a URL in lower case; None if it is not a URL, empty without a host."""
    parts = parts_of_url(url)
    return parts[0] if parts else None


def parts_of(urls: pl.Series) -> pl.DataFrame:
    """Returns ``host`` (lower case), ``path`` and ``query`` of URLs; all null for other texts.

    >>> parts_of(pl.Series(["http://Foo.com:80/a?b#c", "foo", "file:///a"])).rows()
    [('foo.com', '/a', 'b'), (None, None, None), ('', '/a', None)]
    """
    url = pl.col("url")
    split = urls.alias("url").to_frame().select(url.str.extract_groups(_SPLIT)).unnest("url")
    path = pl.col("2")
    host = pl.when(path.is_not_null()).then(pl.col("1").fill_null("").str.to_lowercase())
    return split.select(host=host, path=path, query="3")
