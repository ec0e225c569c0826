"""Lists the nodes of a graph by a value, the best first; also as Common Crawl's files of ranks."""

import polars as pl

from ..generating.selection import groups

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


RANKS_HEADER = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev"
HOSTS_HEADER = "#n_hosts"


def ranks_table(ranks: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of a file of ranks, the largest harmonic centrality first.

    Args:
        ranks: Columns ``key``, ``harmonic`` and ``pagerank``, in key order. Of equal values the
            smaller key is first.

    >>> ranks = pl.DataFrame({"key": ["com.a", "com.b"], "harmonic": [0.5, 1.0],
    ...     "pagerank": [0.25, 0.75]})
    >>> ranks_table(ranks).rows()
    [(1, 1.0, 1, 0.75, 'com.b'), (2, 0.5, 2, 0.25, 'com.a')]
    """
    placed = ranks.with_columns(
        harmonicc_pos=pl.col("harmonic").rank("ordinal", descending=True),
        pr_pos=pl.col("pagerank").rank("ordinal", descending=True),
    )
    # Common Crawl's centralities are 32-bit numbers.
    placed = placed.with_columns(pl.col("harmonic").cast(pl.Float32))
    columns = ("harmonicc_pos", "harmonic", "pr_pos", "pagerank", "key")
    return placed.select(columns).sort("harmonicc_pos")
