"""Finds facts about hosts in the pages of a batch: response times, home pages, links of domains."""

from collections.abc import Collection

import polars as pl

from ...web.exchange.status import FETCH_SUCCESS
from ...web.rules.url_rules import host_keys
from ...web.urls.key_columns import domain_keys
from ...web.urls.row_keys import from_host_key
from .domain_sketch import sketch_domains
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
    found = home.select(host_keys(home.get_column("key")).alias("key"), homepage="key")
    # The last in order: "https" is better than "http".
    best = found.filter(pl.col("key") != "").group_by("key").agg(pl.col("homepage").max())
    return hosts.join(best, on="key", how="full", coalesce=True)


def domain_links(documents: pl.DataFrame) -> pl.DataFrame:
    """Returns the pairs of registered domains between which pages link: ``source``, ``target``.

    Both are reversed. Links within a domain are left out.

    Args:
        documents: DOCUMENTS rows with ``key`` and ``outlinks``.
    """
    links = documents.select(
        source=host_keys(documents.get_column("key")),
        target=pl.col("outlinks").list.eval(pl.element().struct.field("key")),
    )
    links = links.explode("target").drop_nulls()
    targets = host_keys(links.get_column("target"))
    pairs = links.with_columns(target=targets).unique()
    pairs = pairs.with_columns(
        source=domain_keys(pairs.get_column("source")),
        target=domain_keys(pairs.get_column("target")),
    )
    foreign = (pl.col("source") != pl.col("target")) & (pl.col("target") != "")
    return pairs.filter(foreign).unique().sort("target", "source")


def linking_domains(pairs: pl.DataFrame, vouching: Collection[str]) -> pl.DataFrame:
    """Returns ``key`` and ``linking_domains`` of the domains to which vouching domains link.

    Args:
        pairs: The result of ``domain_links``.
        vouching: The domains whose links count, reversed.
    """
    counting = pairs.filter(pl.col("source").is_in(list(vouching)))
    grouped = counting.group_by("target").agg("source").sort("target")
    sketches = [
        sketch_domains(map(from_host_key, sources)) for sources in grouped.get_column("source")
    ]
    return grouped.select(key="target", linking_domains=pl.Series(sketches, dtype=pl.Binary))
