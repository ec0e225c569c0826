"""Purges a URL, a host or a domain from rows.

A purge removes the rows of a name, links and redirects to it, and header lines and metadata that
contain it. The content of other pages (body, text, title, anchors) stays. The declarations of the
columns say which is which; a column that is not declared is searched as a key and as a text.
"""

import re
from typing import Any

import polars as pl
import pyarrow as pa

from ..web.base.dataclass import dataclass
from ..web.urls.row_keys import from_host_key, from_key
from .components.blocklist import Blocklist, Names, blocklist_of
from .components.columns import Column, Form, Purged
from .components.declaration import Kind, RowKey, columns_to_search, has_texts, is_kept
from .components.kinds import kind_of
from .components.schema import BlocklistRows

_END = r"(?:$|[^a-z0-9.%_-])"


def pattern_of_names(names: Names) -> str:
    """Returns a regular expression for texts that contain a purged URL, host or domain.

    >>> bool(re.search(pattern_of_names(Names(hosts=("com.foo",))), "see http://FOO.com/a"))
    True
    >>> bool(re.search(pattern_of_names(Names(hosts=("com.foo",))), "http://www.foo.com/"))
    False
    >>> bool(re.search(pattern_of_names(Names(domains=("com.foo",))), "http://www.foo.com/"))
    True
    >>> bool(re.search(pattern_of_names(Names(urls=("com.foo:http/a",))), "http://foo.com/ab"))
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


@dataclass(frozen=True)
class Purge:
    """Removes blocked rows, and blocked names from other rows; counts both.

    Attributes:
        blocklist: The names, as hashes.
        pattern: Regular expression of the names in texts; the default is of none.
    """

    blocklist: Blocklist
    pattern: str = r"[^\s\S]"

    def __call__(self, table: pa.Table, component: str) -> tuple[pa.Table, int, int]:
        return purge_rows(table, kind_of(component), self.blocklist, self.pattern)


def purge_of(names: Names) -> Purge:
    """Returns the edit that removes names from rows."""
    return Purge(blocklist_of(names.rows(0)), pattern_of_names(names))


def block_names(rows: BlocklistRows, now: int, names: Names) -> BlocklistRows:
    """Returns BLOCKLIST rows with those of names added, in key order."""
    return pl.concat([rows, names.rows(now)]).unique("key", keep="first").sort("key")


def unblock_names(rows: BlocklistRows, now: int, names: Names) -> BlocklistRows:
    """Returns BLOCKLIST rows without those of names, in key order."""
    return rows.join(names.rows(now).select("key"), on="key", how="anti").sort("key")


def purge_rows(
    table: pa.Table, kind: Kind, blocklist: Blocklist, pattern: str
) -> tuple[pa.Table, int, int]:
    """Removes purged rows, and purged names in other rows.

    Args:
        table: Rows with a column ``key``, with any of the kind's columns and others.
        kind: The kind of the rows.
        blocklist: The names to purge.
        pattern: From ``pattern_of_names``.

    Returns:
        (rows, number of removed rows, number of removed names in other rows).
    """
    keys = _series(table["key"])
    if kind.key is RowKey.LINK:
        gone = blocklist.blocks(_series(table["target"])) | blocklist.blocks(
            _series(table["source"])
        )
    else:
        gone = blocklist.blocks_hosts(keys) if kind.key is RowKey.HOST else blocklist.blocks(keys)
    number = int(gone.sum())
    if number:
        table = table.filter(pa.array((~gone).to_list()))
    mentions, known = 0, {column.name: column for column in kind.columns}
    for name in columns_to_search(table.schema, kind):
        if name != "key":
            column, found = _clean(table[name], known.get(name), blocklist, pattern)
            if found:
                at = table.column_names.index(name)
                table = table.set_column(at, table.schema.field(at), column)
                mentions += found
    return table, number, mentions


def _clean(
    column: pa.ChunkedArray, declared: Column | None, blocklist: Blocklist, pattern: str
) -> tuple[pa.ChunkedArray | pa.Array, int]:
    if not pa.types.is_nested(column.type):
        hit = _hit(declared, _series(column), blocklist, pattern)
        number = int(hit.sum())
        if not number:
            return column, 0
        if declared is not None and declared.purged is Purged.LINES:
            lines = re.compile(f"(?im)^.*(?:{pattern.removeprefix('(?im)')}).*$")
            texts = [t and lines.sub("", t) for t in column.to_pylist()]
            return pa.array(texts, column.type), number
        import pyarrow.compute as pc  # late: it takes as long as pyarrow itself

        return pc.if_else(pa.array(hit.to_list()), pa.scalar(None, column.type), column), number
    blocked = _blocked_in(column, declared, blocklist, pattern)
    if not blocked:
        return column, 0
    values = column.to_pylist()
    clean = [v and [item for item in v if not _is_in(item, blocked)] for v in values]
    number = sum(len(v or ()) for v in values) - sum(len(v or ()) for v in clean)
    return (pa.array(clean, column.type), number) if number else (column, 0)


def _blocked_in(
    column: pa.ChunkedArray, declared: Column | None, blocklist: Blocklist, pattern: str
) -> dict[str, frozenset[str]]:
    """Returns texts to remove from a list, by field of its items; "" is the item itself."""
    found: dict[str, frozenset[str]] = {}
    fields = {field.name: field for field in (declared.items if declared else ())}
    for chunk in column.chunks:
        for name, texts in _texts_of(chunk, ""):
            inner = fields.get(name, declared)
            if is_kept(inner):
                continue
            series = _series(texts).unique()
            hit = _hit(inner, series, blocklist, pattern)
            if hit.any():
                found[name] = found.get(name, frozenset()) | frozenset(series.filter(hit))
    return found


def _texts_of(array: pa.Array, name: str) -> list[tuple[str, pa.Array]]:
    if pa.types.is_map(array.type):
        return [("value", array.items)] if has_texts(array.type.item_type) else []
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _texts_of(array.flatten(), "")
    if pa.types.is_struct(array.type):
        fields = [array.type.field(at) for at in range(array.type.num_fields)]
        return [(f.name, array.field(f.name)) for f in fields if has_texts(f.type)]
    return [(name, array)]


def _is_in(item: Any, blocked: dict[str, frozenset[str]]) -> bool:
    """Returns whether to remove an item of a list; it is a text, a struct, or a pair of a map."""
    if isinstance(item, dict):
        return any(item.get(name) in texts for name, texts in blocked.items())
    if isinstance(item, tuple):
        return item[1] in blocked.get("value", ())
    return item in blocked.get("", ())


def _hit(
    declared: Column | None, texts: pl.Series, blocklist: Blocklist, pattern: str
) -> pl.Series:
    if declared is not None and declared.form is Form.URL:
        return blocklist.blocks(texts)
    hit = texts.cast(pl.String).str.contains(pattern).fill_null(False)
    return hit if declared is not None else hit | blocklist.blocks(texts)


def _series(column: pa.ChunkedArray | pa.Array) -> pl.Series:
    series = pl.from_arrow(column)
    assert isinstance(series, pl.Series)
    return series
