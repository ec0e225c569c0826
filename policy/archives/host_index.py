"""Makes rows of Common Crawl's host index: what an archive and a table have of each host."""

import polars as pl

from ...web.archives.index_urls import host_parts, surt_host
from ..base.key_columns import host_names
from ..components.archive_rows import (
    HOST_FACTS,
    HOST_INDEX,
    HOST_RANKS,
    NUTCH_COUNTS,
    STATUS_GROUPS,
    HostFactRows,
    HostIndexRows,
    UrlIndexRows,
)
from ..components.graph_schema import NodeRows
from ..components.schema import STATUS_COUNTS, HostRows, conform_frame
from .url_index import ROBOTS_SUBSET, SUCCESSFUL

_ENGLISH = "eng"
# Statuses that belong to no class; others belong to that of their first digit.
_NAMED = {301: "redirPerm", 302: "redirTemp", 304: "notModified", 307: "redirTemp",
          308: "redirPerm", 404: "gone", 410: "gone"}  # fmt: skip
_CLASSES = {2: "200", 3: "3xx", 4: "4xx", 5: "5xx"}
_SCALE = 10


def facts_of_captures(rows: UrlIndexRows) -> HostFactRows:
    """Returns what the host index needs of the captures of an archive."""
    successful, language = pl.col("subset") == SUCCESSFUL, pl.col("content_languages")
    return _host_facts(
        rows.select(
            host="url_host_name",
            robots=pl.col("subset") == ROBOTS_SUBSET,
            status="fetch_status",
            length=pl.when(successful).then("warc_record_length"),
            foreign=(language != _ENGLISH) & successful,
        )
    )


def facts_of_hosts(hosts: HostRows) -> HostFactRows:
    """Returns what the host index needs of the host table.

    A robots.txt that was answered without 200 is in no archive, so it is counted here. Rows that are
    only about a domain are left out.
    """
    hosts = hosts.with_columns(host=host_names(hosts.get_column("key")))
    counts = hosts.select(
        "host",
        robots=pl.lit(False),
        records=pl.sum_horizontal(*STATUS_COUNTS.values()),
        **{name: pl.col(column) for name, column in NUTCH_COUNTS.items()},
    ).filter(pl.col("records") > 0)
    refused = hosts.filter(~pl.col("robots_status").is_in([0, 200])).select(
        "host", robots=pl.lit(True), status="robots_status"
    )
    return pl.concat([_host_facts(counts), _host_facts(refused)])


def facts_of_ranks(ranks: NodeRows) -> HostFactRows:
    """Returns what the host index needs of the ranks of all hosts.

    ``hcrank10`` is in proportion to the harmonic centrality, ``prank10`` to the logarithm of PageRank
    above the least one; the largest is 10. Common Crawl does not say how its own are made.

    >>> ranks = pl.DataFrame({"key": ["com.a", "com.b"], "harmonic": [1.0, 4.0], "pagerank": [0.1, 0.9]})
    >>> facts_of_ranks(ranks).select("surt_host_name", "hcrank10", "prank10").rows()
    [('com,a', 2.5, 0.0), ('com,b', 10.0, 10.0)]
    """
    harmonic, pagerank = pl.col("harmonic"), pl.col("pagerank")
    over_least = (pagerank / pagerank.min()).log()
    return _host_facts(
        ranks.select(
            host=host_names(ranks.get_column("key")),
            robots=pl.lit(False),
            hcrank=harmonic,
            prank=pagerank,
            hcrank10=_scale_rank(harmonic),
            prank10=_scale_rank(over_least),
        )
    )


def _scale_rank(rank: pl.Expr) -> pl.Expr:
    return pl.when(rank.max() > 0).then((_SCALE * rank / rank.max()).round(3)).otherwise(0.0)


def _host_facts(facts: pl.DataFrame) -> HostFactRows:
    named = facts.filter(pl.col("host") != "")
    keys = pl.col("host").map_elements(surt_host, pl.String)
    return conform_frame(named.with_columns(surt_host_name=keys), HOST_FACTS)


def host_index_rows(facts: HostFactRows) -> HostIndexRows:
    """Returns a row of the index for each host, in the order of their names.

    Args:
        facts: All facts of these hosts.

    >>> fact = {"surt_host_name": "com,a", "host": "a.com", "robots": False, "status": 200, "length": 7}
    >>> rows = host_index_rows(pl.DataFrame([fact, fact], schema=pl.Schema(HOST_FACTS)))
    >>> rows.select("surt_host_name", "url_host_tld", "fetch_200", "warc_record_length_av").row(0)
    ('com,a', 'com', 2, 7)
    """
    numbers = [
        *_numbers_of_statuses("fetch", pl.col("robots").not_()),
        *_numbers_of_statuses("robots", pl.col("robots")),
    ]
    rows = facts.group_by("surt_host_name").agg(
        pl.col("host").min(),
        *(pl.col(name).max() for name in HOST_RANKS),
        *numbers,
        *(pl.col(name).sum().alias(f"nutch_{name}") for name in NUTCH_COUNTS),
        pl.col("records").sum().alias("nutch_numRecords"),
        pl.col("foreign").sum().alias("fetch_200_lote"),
        pl.col("length").mean().round().alias("warc_record_length_av"),
        pl.col("length").median().round().alias("warc_record_length_median"),
    )
    shares = [
        _percent(f"nutch_{name}", "nutch_numRecords").alias(f"nutch_{name}_pct")
        for name in NUTCH_COUNTS
    ]
    parts = [host_parts(host) for host in rows.get_column("host")]
    return conform_frame(
        rows.with_columns(
            *shares,
            _percent("fetch_200_lote", "fetch_200").alias("fetch_200_lote_pct"),
            pl.Series("url_host_registered_domain", [each.domain for each in parts], pl.String),
            pl.Series("url_host_tld", [each.labels[0] for each in parts], pl.String),
        ).sort("surt_host_name"),
        HOST_INDEX,
    )


def _percent(part: str, whole: str) -> pl.Expr:
    share = (100 * pl.col(part) / pl.col(whole)).round()
    return pl.when(pl.col(whole) > 0).then(share).otherwise(0)


def _numbers_of_statuses(start: str, chosen: pl.Expr) -> list[pl.Expr]:
    """Returns the numbers of captures by status, for the captures that are chosen."""
    status = pl.col("status").cast(pl.Int64)
    group = status.replace_strict(_NAMED, default=None).fill_null(
        (status // 100).replace_strict(_CLASSES, default="other")
    )
    counted = chosen & status.is_not_null()
    return [(counted & (group == name)).sum().alias(f"{start}_{name}") for name in STATUS_GROUPS]
