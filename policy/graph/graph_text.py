"""The text of Common Crawl's files of ranks."""

import polars as pl

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
