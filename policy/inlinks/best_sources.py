"""The best inlinks of a page: by the score of the source, then those from other hosts first."""

from collections.abc import Iterable, Iterator

import polars as pl

from ...web.base.columns import number_in
from ...web.rules.url_rules import host_keys


def best_inlinks(links: pl.DataFrame, most: int) -> pl.DataFrame:
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


def keep_best(parts: Iterable[pl.DataFrame], most: int) -> Iterator[pl.DataFrame]:
    """Yields the best inlinks of each target, in the order of the keys.

    Args:
        parts: Current rows of the link table, in key order, in pieces. A target may be in
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
