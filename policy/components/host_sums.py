"""How differences in numbers of URLs add up to rows of the host table, and what these rows mean."""

from collections.abc import Iterable

import polars as pl

from ...web.urls.key_columns import domain_keys
from .schema import HOST_COUNTS, HOSTS, STATUS_COUNTS, URL_COUNTS, empty

_NONE = empty(HOST_COUNTS)


def sum_host_counts(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Returns the sums of HOST_COUNTS rows, one row per host, in key order."""
    rows = pl.concat([_NONE, *(frame.select(HOST_COUNTS.names) for frame in frames)])
    return rows.group_by("key").agg(pl.col(URL_COUNTS).sum()).sort("key")


def urls_of_domains(counts: pl.DataFrame) -> pl.DataFrame:
    """Returns the numbers of URLs of registered domains: ``key``, ``domain_urls``, in key order.

    >>> rows = pl.DataFrame({"key": ["com.a.x", "com.a.y"], "unfetched": [1, 2]})
    >>> urls_of_domains(sum_host_counts([pl.concat([_NONE, rows], how="diagonal")])).rows()
    [('com.a', 3)]
    """
    domains = domain_keys(counts.get_column("key"))
    total = pl.sum_horizontal(pl.col(*STATUS_COUNTS.values()).fill_null(0))
    summed = counts.select(domains.alias("key"), domain_urls=total)
    return summed.group_by("key").agg(pl.col("domain_urls").sum()).sort("key")


def has_urls() -> pl.Expr:
    """Returns a condition on HOSTS rows: the table has URLs of the host, or it is a seed's."""
    return pl.any_horizontal(pl.col(URL_COUNTS).fill_null(0) != 0) | pl.col("seed").fill_null(False)


def counted_hosts(rows: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Returns rows of the host table with differences added, in key order.

    Args:
        rows: HOSTS rows.
        changes: Differences, at most one row per key: ``key``, ``URL_COUNTS``, ``domain_urls``.
    """
    wide = empty(HOSTS)
    both = pl.concat([rows, pl.concat([wide, changes], how="diagonal")])
    summed = (*URL_COUNTS, "domain_urls")
    added = both.group_by("key", maintain_order=True).agg(
        pl.exclude("key", *summed).first(), pl.col(summed).fill_null(0).sum()
    )
    added = added.with_columns(pl.col("seed").fill_null(False), pl.col("requests").fill_null(0))
    return added.select(HOSTS.names).cast(wide.schema).sort("key")


def is_given_up() -> pl.Expr:
    """Returns a condition: a row is of a host that was purged, and not requested since."""
    back = (pl.col("last_request_time") > pl.col("purged_since")).fill_null(False)
    return pl.col("purged_since").is_not_null() & ~back
