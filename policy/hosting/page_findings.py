"""Finds facts about hosts in the pages of a batch: response times and home pages."""

import polars as pl

from ...web.exchange.status import FETCH_SUCCESS
from ...web.urls.key_columns import host_keys
from .response_sketch import sketch_hosts

HOME = "^[^/]*/$"  # row keys of home pages


def page_findings(pages: pl.DataFrame) -> pl.DataFrame:
    """Returns HOSTS rows with ``response_times`` and ``homepage``.

    Args:
        pages: PAGES rows with ``key``, ``fetch_status`` and ``response_ms``.
    """
    once = pages.unique("key", keep="first", maintain_order=True)
    return with_homepages(sketch_hosts(once), once.filter(pl.col("fetch_status") == FETCH_SUCCESS))


def with_homepages(hosts: pl.DataFrame, pages: pl.DataFrame) -> pl.DataFrame:
    """Returns rows of hosts with ``homepage``: the best of the home pages among some pages."""
    home = pages.filter(pl.col("key").str.contains(HOME)).select("key")
    home_pages = home.select(host_keys(home.get_column("key")).alias("key"), homepage="key")
    # The last in order: "https" is better than "http".
    best = home_pages.filter(pl.col("key") != "").group_by("key").agg(pl.col("homepage").max())
    return hosts.join(best, on="key", how="full", coalesce=True)
