"""The best inlinks of a page: by the score of the source, then those from other hosts first."""

import polars as pl

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
    number = pl.int_range(pl.len()).over("target")
    return ranked.filter(number < most).drop("_internal", "_score")
