"""Declares the rows of the link table, their keys, and which inlinks of a page are the best.

A key is the key of the target, a space, the key of the source. A space is smaller than all characters
of row keys, and ``#`` is not one of them. So the inlinks of a page are one range of keys, as are those
of a host; the blocklist, tablets and Bigtable find the host of the target at the start of the key.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from ...web.base.columns import number_in
from ...web.urls.row_keys import MAX_KEY_BYTES
from ..base.key_columns import host_keys
from .columns import Column, Columns, Form, Purged, time_column
from .schema import TEXT

LinkRows: TypeAlias = pl.DataFrame  # columns of INLINKS

# The link table: one row per pair of a target and a page that links to it.
INLINKS_COLUMNS = Columns(
    (
        Column("key", TEXT, "Row key of the target, a space, row key of the source."),
        Column("target", TEXT, "The page that the link leads to.", form=Form.URL),
        Column("source", TEXT, "The page that has the link.", form=Form.URL),
        Column(
            "anchor",
            TEXT,
            "Texts of its links to the target, one per line; null: they have none.",
            purged=Purged.KEPT,
        ),
        Column(
            "rel",
            TEXT,
            "Those of `nofollow`, `sponsored` and `ugc` that all its links to the target have.",
            purged=Purged.KEPT,
        ),
        Column("score", pa.float32(), "Score of the source when it was last fetched."),
        time_column("first_seen", "When the source was first found to have the link."),
        time_column("last_seen", "When the source was last found to have the link."),
        time_column("gone_since", "Since when the source does not have it any more."),
    )
)
INLINKS = INLINKS_COLUMNS.schema

# Lists of links in documents. Links that say nofollow are in the second.
LISTS_OF_LINKS = ("outlinks", "nofollow_links")
# Columns of documents on which rows of the link table depend.
EDGES_OF = ("key", "fetch_time", "score", *LISTS_OF_LINKS)
SEPARATOR = " "
# A longer row key is shortened, so that two of them fit into a row key of Bigtable.
MAX_HALF = (MAX_KEY_BYTES - len(SEPARATOR)) // 2
_DIGEST = 32
_START = MAX_HALF - _DIGEST - 1


def half(key: str) -> str:
    """Returns a row key as it is in keys of links: a long one ends with ``#`` and a digest.

    >>> half("com.a:http/"), len(half("com.a:http/" + 3000 * "x"))
    ('com.a:http/', 2047)
    """
    if len(key) <= MAX_HALF:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:_DIGEST]
    return f"{key[:_START]}#{digest}"


def link_keys(targets: pl.Series, sources: pl.Series) -> pl.Series:
    """Returns the keys of links, from those of their targets and sources.

    >>> link_keys(pl.Series(["com.a:http/"]), pl.Series(["org.b:http/x"])).to_list()
    ['com.a:http/ org.b:http/x']
    """
    return (_halves(targets) + SEPARATOR + _halves(sources)).alias("key")


def range_of_target(target: str) -> tuple[str, str]:
    """Returns the first key that a link to a page may have, and the first one after all of them.

    >>> range_of_target("com.a:http/")
    ('com.a:http/ ', 'com.a:http/!')
    """
    start = half(target)
    return f"{start}{SEPARATOR}", f"{start}{chr(ord(SEPARATOR) + 1)}"


def _halves(keys: pl.Series) -> pl.Series:
    long = keys.str.len_bytes() > MAX_HALF
    if not long.any():
        return keys
    long_keys = keys.filter(long).unique().drop_nulls()
    return keys.replace(long_keys, pl.Series([half(key) for key in long_keys], dtype=pl.String))


def says_nofollow(rel: pl.Expr) -> pl.Expr:
    """Returns whether all links between two pages say nofollow, by ``rel`` of the link table."""
    return rel.str.contains("nofollow", literal=True).fill_null(False)


def best_inlinks(links: LinkRows, most: int) -> LinkRows:
    """Returns the best inlinks of each target, best first; targets in key order.

    Args:
        links: Rows of the link table: ``target``, ``source``, ``score`` and others.
        most: How many to keep of each target.

    >>> links = pl.DataFrame({"target": 3 * ["com.a:http/"], "score": [1.0, 1.0, 2.0],
    ...     "source": ["com.a:http/1", "com.b:http/", "com.a:http/2"]})
    >>> best_inlinks(links, 2).get_column("source").to_list()
    ['com.a:http/2', 'com.b:http/']
    """
    same = host_keys(links.get_column("target")) == host_keys(links.get_column("source"))
    ranked = links.with_columns(
        same.alias("_internal"), pl.col("score").fill_null(0.0).alias("_score")
    ).sort("target", "_score", "_internal", "source", descending=[False, True, False, False])
    return ranked.filter(number_in("target") < most).drop("_internal", "_score")


def keep_best(parts: Iterable[LinkRows], most: int) -> Iterator[LinkRows]:
    """Yields the best inlinks of each target, in the order of the keys.

    Args:
        parts: Rows of the link table that count, in key order, in pieces. A target may be in
            several of them.
        most: How many to keep of each target; 0 keeps all.

    Memory holds a piece, and ``most`` rows of the target that may go on in the next one.

    >>> rows = pl.DataFrame({"key": ["com.a:http/ com.b:http/", "com.a:http/ com.c:http/"],
    ...     "target": 2 * ["com.a:http/"], "source": ["com.b:http/", "com.c:http/"],
    ...     "score": [1.0, 2.0]})
    >>> [part["source"].to_list() for part in keep_best([rows[:1], rows[1:]], 1) if len(part)]
    [['com.c:http/']]
    """
    if not most:
        yield from parts
        return
    last: pl.DataFrame | None = None
    for part in parts:
        rows = part if last is None else pl.concat([last, part])
        rows = best_inlinks(rows, most).sort("key")
        # A target that was cut goes on in the next piece.
        goes_on = rows.get_column("target") == rows.get_column("target").last()
        last = rows.filter(goes_on)
        yield rows.filter(~goes_on)
    if last is not None:
        yield last
