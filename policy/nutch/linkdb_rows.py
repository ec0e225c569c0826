"""Changes of the link table from the links of a LinkDb, and rows of hosts from a HostDb."""

from collections import Counter
from typing import TypeAlias

import polars as pl

from ...web.urls.row_keys import host_key
from ..components.blocklist import drop_blocked_hosts
from ..components.link_rows import link_keys
from ..components.schema import HOSTS, HostRows, conform_frame
from ..inlinks.edges import LINK_CHANGES, InvertOptions, LinkChangeRows, clean_anchors, merge_rows
from .crawldb_rows import NutchRules, admit_urls

LinkdbRows: TypeAlias = pl.DataFrame  # columns of LINKDB_LINK, of web/nutch_text/text_records.py
NutchHostRows: TypeAlias = pl.DataFrame  # columns of HOSTDB_HOST, of the same module


def links_of_linkdb(
    inlinks: LinkdbRows, how: NutchRules, options: InvertOptions, seen: int
) -> tuple[LinkChangeRows, Counter[str]]:
    """Returns changes of the link table, one per source and target; and counts.

    A LinkDb does not say when a link was found: it counts as seen at the time of its file.

    Args:
        inlinks: The links.
        how: The rules.
        options: How long the texts of links may be.
        seen: Time at which the links were there, ms.
    """
    counts = Counter({"linkdb/links": len(inlinks)})
    rows, dropped = admit_urls(inlinks, how, "url", "target")
    counts.update(dropped)
    rows, dropped = admit_urls(rows, how, "source", "source")
    counts.update(dropped)
    others = rows.filter(pl.col("target") != pl.col("source"))
    counts["dropped/own_url"] = len(rows) - len(others)
    keys = link_keys(others.get_column("target"), others.get_column("source"))
    anchors = clean_anchors(others.get_column("anchor"), options.max_anchor_length)
    links = others.with_columns(
        keys,
        anchors.alias("anchor"),
        rel=pl.lit(None, pl.String),
        score=pl.lit(None, pl.Float32),
        time=pl.lit(seen, pl.Int64),
        first=pl.lit(None, pl.Int64),
        gone=pl.lit(False),
    )
    return conform_frame(merge_rows(links.select(LINK_CHANGES.names)), LINK_CHANGES), +counts


def hosts_of_hostdb(hosts: NutchHostRows, how: NutchRules) -> tuple[HostRows, Counter[str]]:
    """Returns HOSTS rows of a HostDb with what the URLs of the table do not say; and counts.

    These are the score, the look-ups of the address, and the home page. The numbers of URLs are
    those of the rows that the table has. Metadata of hosts has no place in the host table.
    """
    names = hosts.get_column("host").str.to_lowercase()
    keys = pl.Series([host_key(name) if name else None for name in names], dtype=pl.String)
    homepages = how.rules.admit(hosts.get_column("homepage"), "crawldb", filters=False)
    rows = hosts.with_columns(
        homepages.get_column("key").alias("homepage"),
        key=keys,
        dns_time=pl.when(pl.col("last_check") > 0).then("last_check"),
    ).drop_nulls("key")
    counts = Counter({"hostdb/hosts": len(hosts), "dropped/malformed": len(hosts) - len(rows)})
    rows = drop_blocked_hosts(rows, how.blocklist)
    known = rows.select("key", "score", "dns_failures", "dns_time", "homepage")
    return conform_frame(known, HOSTS), +counts
