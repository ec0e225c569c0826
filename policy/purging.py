"""Purges a URL, a host or a domain from rows.

A purge removes the rows of a name, links and redirects to it, and header lines and metadata that
contain it. The content of other pages (body, text, title, anchors) stays.
"""

import re
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ..web.urls.row_keys import from_host_key, from_key
from .blocklist import Blocklist, Names

# Columns that stay: content of other pages, and names of files and batches.
KEPT = frozenset({"title", "text", "anchor", "rel", "document", "page", "batch_id"})
# Large columns that stay, so a search for purged names need not read them.
BODIES = frozenset({"body", "text"})
KEYS = frozenset({"key", "part_of", "source", "target"})
_END = r"(?:$|[^a-z0-9.%_-])"


def pattern_of(names: Names) -> str:
    """Returns a regular expression for texts that contain a purged URL, host or domain.

    >>> bool(re.search(pattern_of(Names(hosts=("com.foo",))), "see http://FOO.com/a"))
    True
    >>> bool(re.search(pattern_of(Names(hosts=("com.foo",))), "http://www.foo.com/"))
    False
    >>> bool(re.search(pattern_of(Names(domains=("com.foo",))), "http://www.foo.com/"))
    True
    >>> bool(re.search(pattern_of(Names(urls=("com.foo:http/a",))), "http://foo.com/ab"))
    False
    """
    # With or without the scheme; the same address with https is a different URL.
    urls = [
        f"(?:{scheme})?//{re.escape(rest)}"
        for scheme, _, rest in (from_key(key).partition("//") for key in names.urls)
    ]
    hosts = [re.escape(from_host_key(host)) for host in names.hosts]
    domains = [re.escape(from_host_key(domain)) for domain in names.domains]
    parts = [
        *(f"(?:^|[^a-z0-9._:-]){url}(?:$|[^a-z0-9/?&=.%_~-])" for url in urls),
        *(f"(?:^|[^a-z0-9._-]){host}{_END}" for host in hosts),
        *(f"(?:^|[^a-z0-9_-]){domain}{_END}" for domain in domains),
    ]
    return "(?im)" + "|".join(parts)


def purge_rows(
    table: pa.Table, blocklist: Blocklist, pattern: str, of_hosts: bool = False
) -> tuple[pa.Table, int, int]:
    """Removes purged rows, and purged names in other rows.

    Args:
        table: Rows with a column ``key``, of any schema.
        blocklist: The names to purge.
        pattern: From ``pattern_of``.
        of_hosts: Whether keys are hosts, not URLs.

    Returns:
        (rows, number of removed rows, number of removed names in other rows).
    """
    keys = _series(table["key"])
    gone = blocklist.blocks_hosts(keys) if of_hosts else blocklist.blocks(keys)
    number = int(gone.sum())
    if number:
        table = table.filter(pa.array((~gone).to_list()))
    mentions = 0
    for at, field in enumerate(table.schema):
        if field.name not in KEPT and field.name != "key" and _has_texts(field.type):
            column, found = _clean(table.column(at), field, blocklist, pattern)
            if found:
                table = table.set_column(at, field, column)
                mentions += found
    return table, number, mentions


def _has_texts(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_nested(kind)


def _clean(
    column: pa.ChunkedArray, field: pa.Field, blocklist: Blocklist, pattern: str
) -> tuple[pa.ChunkedArray | pa.Array, int]:
    if not pa.types.is_nested(field.type):
        hit = _hit(field.name, _series(column), blocklist, pattern)
        number = int(hit.sum())
        if not number:
            return column, 0
        if field.name in ("robots_text", "sitemaps"):  # of another host: other lines stay
            lines = re.compile(f"(?im)^.*(?:{pattern.removeprefix('(?im)')}).*$")
            texts = [t and lines.sub("", t) for t in column.to_pylist()]
            return pa.array(texts, field.type), number
        return pc.if_else(pa.array(hit.to_list()), pa.scalar(None, field.type), column), number
    blocked = _blocked_in(column, field, blocklist, pattern)
    if not blocked:
        return column, 0
    values = column.to_pylist()
    kept = [
        None if v is None else [item for item in v if not _is_in(item, blocked)] for v in values
    ]
    number = sum(
        len(v) - len(k)
        for v, k in zip(values, kept, strict=True)
        if v is not None and k is not None
    )
    return (pa.array(kept, field.type), number) if number else (column, 0)


def _blocked_in(
    column: pa.ChunkedArray, field: pa.Field, blocklist: Blocklist, pattern: str
) -> dict[str, frozenset[str]]:
    """Returns texts to remove from a list, by field of its items; "" is the item itself."""
    found: dict[str, frozenset[str]] = {}
    for chunk in column.chunks:
        for name, texts in _texts_of(chunk, field.name):
            if name in KEPT:
                continue
            series = _series(texts).unique()
            hit = _hit(name, series, blocklist, pattern)
            if hit.any():
                found[name] = found.get(name, frozenset()) | frozenset(series.filter(hit))
    return found


def _texts_of(array: pa.Array, name: str) -> list[tuple[str, pa.Array]]:
    if pa.types.is_map(array.type):
        return [("value", array.items)] if _has_texts(array.type.item_type) else []
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _texts_of(array.flatten(), "")
    if pa.types.is_struct(array.type):
        fields = [array.type.field(at) for at in range(array.type.num_fields)]
        return [(f.name, array.field(f.name)) for f in fields if _has_texts(f.type)]
    return [(name, array)]


def _is_in(item: Any, blocked: dict[str, frozenset[str]]) -> bool:
    """Returns whether to remove an item of a list; it is a text, a struct, or a pair of a map."""
    if isinstance(item, dict):
        return any(item.get(name) in texts for name, texts in blocked.items())
    if isinstance(item, tuple):
        return item[1] in blocked.get("value", ())
    return item in blocked.get("", ())


def _hit(name: str, texts: pl.Series, blocklist: Blocklist, pattern: str) -> pl.Series:
    if name in KEYS:
        return blocklist.blocks(texts)
    return texts.cast(pl.String).str.contains(pattern).fill_null(False)


def _series(column: pa.ChunkedArray | pa.Array) -> pl.Series:
    series = pl.from_arrow(column)
    assert isinstance(series, pl.Series)
    return series
