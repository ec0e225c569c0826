"""Counts rows by host, domain, suffix, TLD or protocol: Nutch's domainstats and its like."""

from collections.abc import Callable, Mapping

import polars as pl

from ...web.base.columns import each_once
from ...web.exchange.status import PROTOCOL_STATUS_NAMES
from ...web.urls.domains import registered_domain, suffix_and_domain
from ...web.urls.key_columns import host_keys
from ...web.urls.row_keys import from_host_key
from ..base.row_status import FETCHED_STATUSES
from ..components.schema import STATUS_NAMES

# Nutch's words.
FETCHED_PAGES, UNFETCHED_PAGES = "FETCHED", "UNFETCHED"
KEY, WHICH, NUMBER = "key", "which", "number"


def _suffix(host: str) -> str:
    return suffix_and_domain(host)[0] or ""


def _tld(host: str) -> str:
    last = host.rpartition(".")[2]
    return "" if last.isdigit() or host.startswith("[") else last


# The names of a host by which rows are counted; empty if it has none: an address has no suffix.
NAMES: Mapping[str, Callable[[str], str]] = {
    "host": str,
    "domain": registered_domain,
    "suffix": _suffix,
    "tld": _tld,
}


def by_name(rows: pl.DataFrame, mode: str) -> pl.DataFrame:
    """Returns how many pages of each name are fetched, and how many are not.

    Args:
        rows: Rows of the state: ``key``, ``status``.
        mode: One of ``NAMES``.

    Returns:
        ``key``, the name; ``which``, FETCHED or UNFETCHED; ``number``.

    >>> rows = pl.DataFrame({"key": ["com.a:http/", "com.a.b:http/"], "status": [2, 1]})
    >>> sorted(by_name(rows, "domain").rows())
    [('a.com', 'FETCHED', 1), ('a.com', 'UNFETCHED', 1)]
    """
    fetched = pl.when(pl.col("status").is_in(FETCHED_STATUSES)).then(pl.lit(FETCHED_PAGES))
    return _count_by_name(rows, fetched.otherwise(pl.lit(UNFETCHED_PAGES)), mode)


def by_status(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns how many rows each host has under each status; columns as of ``by_name``."""
    other = pl.col("status").cast(pl.String)
    names = pl.col("status").replace_strict(STATUS_NAMES, default=other, return_dtype=pl.String)
    return _count_by_name(rows, names, "host")


def _count_by_name(rows: pl.DataFrame, which: pl.Expr, mode: str) -> pl.DataFrame:
    hosts = host_keys(rows.get_column("key")).alias(KEY)
    counts = rows.select(which.alias(WHICH)).with_columns(hosts)
    counts = counts.group_by(KEY, WHICH).agg(pl.len().cast(pl.Int64).alias(NUMBER))
    name = NAMES[mode]
    names = each_once(counts.get_column(KEY), lambda key: name(from_host_key(key)))
    return sum_key_counts([counts.with_columns(names.alias(KEY))])


def by_protocol(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns how many rows had each HTTP code at the last request; columns as of ``by_name``.

    A row without a code counts under the name of its protocol status, such as ``exception``, and
    one that was never requested as UNFETCHED.

    Args:
        rows: Rows of the state: ``http_code``, ``protocol_status``, ``last_fetch_time``.
    """
    status = pl.col("protocol_status")
    other = status.cast(pl.String)
    name = status.replace_strict(PROTOCOL_STATUS_NAMES, default=other, return_dtype=pl.String)
    tried = pl.when(pl.col("last_fetch_time").is_not_null()).then(name)
    key = pl.coalesce(pl.col("http_code").cast(pl.String), tried, pl.lit(UNFETCHED_PAGES))
    counts = rows.group_by(key.alias(KEY)).agg(pl.len().cast(pl.Int64).alias(NUMBER))
    return counts.select(KEY, pl.lit("").alias(WHICH), NUMBER)


def sum_key_counts(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Returns the sums of several counts, the largest number first."""
    total = pl.concat(parts).group_by(KEY, WHICH).agg(pl.col(NUMBER).sum())
    return total.sort(NUMBER, KEY, WHICH, descending=[True, False, False])
