"""Lists the nodes of a graph by a value, the best first."""

import polars as pl

from ..choosing.selection import groups

AGGREGATES = ("sum", "max")


def grouped_values(nodes: pl.DataFrame, group_by: str, aggregate: str) -> pl.DataFrame:
    """Returns one row per node, host or domain: ``key`` and ``value``.

    Args:
        nodes: Columns ``key`` and ``value``; null counts as 0.
        group_by: ``none``, ``host`` or ``domain``.
        aggregate: One of ``AGGREGATES``; parts of groups may be aggregated again.

    >>> nodes = pl.DataFrame({"key": ["com.a:http/1", "com.a:http/2"], "value": [1.0, 2.0]})
    >>> grouped_values(nodes, "host", "sum").rows()
    [('com.a', 3.0)]
    """
    nodes = nodes.with_columns(pl.col("value").fill_null(0))
    if group_by == "none":
        return nodes
    names = nodes.with_columns(key=groups(nodes.get_column("key"), group_by))
    return merged_values([names], aggregate)


def merged_values(parts: list[pl.DataFrame], aggregate: str) -> pl.DataFrame:
    """Merges parts that may have rows of the same keys."""
    value = pl.col("value").sum() if aggregate == "sum" else pl.col("value").max()
    return pl.concat(parts).group_by("key").agg(value)


def best_first(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """Returns the rows in the order of their values, the largest first; equal ones by key.

    Args:
        rows: Columns ``key`` and ``value``.
        number: How many; 0 means all. Nutch's ``-topn`` counts per distinct value instead.

    >>> rows = pl.DataFrame({"key": ["b", "a", "c"], "value": [1, 1, 0]})
    >>> best_first(rows, 2).rows()
    [('a', 1), ('b', 1)]
    """
    ordered = rows.sort("value", "key", descending=[True, False])
    return ordered.head(number) if number else ordered
