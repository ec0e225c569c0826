"""Judges the URLs of a sitemap (rules, scope, places), and makes rows of them."""

import dataclasses
from collections import Counter
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from ...web.base.columns import put, reason_if
from ...web.normalizers.basic import normalize_basic
from ...web.parsers.sitemap_entries import CHILD_SITEMAP, SitemapContent, SitemapEntry
from ...web.urls.absolute_links import absolute_urls
from ...web.urls.row_keys import BadUrl, host_key, to_key
from ...web.urls.url_parts import host_of_url
from ..components.blocklist import Blocklist, drop_blocked
from ..components.host_rows import Seeds
from ..components.schema import STATE, columns, conform_frame
from ..schedules.schedule import RescheduleOptions
from ..scope import judge
from .sitemap_list import Sitemap
from .sitemap_options import SitemapOptions

# A URL of a sitemap on its way to the state. Null: the sitemap does not say.
SITEMAP_URLS = pa.schema(
    [
        *columns(STATE, "key", "score"),
        ("changefreq", pa.int32()),  # s, within the bounds of the schedule
        ("lastmod", pa.int64()),  # UTC ms, not in the future
    ]
)
# Seconds; ``never`` is the longest interval (nutch.md 2.12).
_INTERVALS = {
    "always": 1, "hourly": 3_600, "daily": 86_400, "weekly": 604_800, "monthly": 2_592_000,
    "yearly": 31_536_000, "never": 2**31 - 1,
}  # fmt: skip
_ZERO_SCORE = 0.5
_FIELDS = {"kind": pl.String, "url": pl.String, "lastmod": pl.Int64, "changefreq": pl.String,
           "priority": pl.Float64}  # fmt: skip


def interval_of(changefreq: str, options: RescheduleOptions) -> int:
    """Returns the interval of a change frequency, s, within the bounds of the schedules.

    >>> options = RescheduleOptions()
    >>> [interval_of(word, options) for word in ("always", "daily", "never")]
    [60, 86400, 7776000]
    """
    return min(max(_INTERVALS[changefreq], options.shortest), options.longest)


def children_of(content: SitemapContent, base: str) -> list[str]:
    """Returns the absolute URLs of the sitemaps that an index names."""
    urls = [entry.url for entry in content.entries if entry.kind == CHILD_SITEMAP]
    bases = pl.Series([base] * len(urls), dtype=pl.String)
    return absolute_urls(bases, pl.Series(urls, dtype=pl.String)).drop_nulls().to_list()


class EntryRules(NamedTuple):
    """Which URLs of sitemaps are taken.

    Attributes:
        options: The rules.
        seeds: Hosts and domains of the seeds.
        blocklist: Names that must not be added again.
        now: The time that counts as now, ms; a later ``lastmod`` does not count.
    """

    options: SitemapOptions
    seeds: Seeds
    blocklist: Blocklist
    now: int


def judge_sitemap(
    content: SitemapContent, sitemap: Sitemap, rules: EntryRules
) -> tuple[pl.DataFrame, Counter[str]]:
    """Decides which URLs of a sitemap are taken.

    Args:
        content: What the sitemap says.
        sitemap: Where it is, and what it may name.
        rules: Which URLs are taken.

    Returns:
        (SITEMAP_URLS rows, counts: ``entries``, ``dropped/REASON``, ``ignored/REASON``).
    """
    options, seeds, blocklist, now = rules
    entries = _frame(content.entries)
    counts = Counter({"entries": len(entries)})
    urls = absolute_urls(pl.Series([sitemap.url] * len(entries), dtype=pl.String), entries["url"])
    rows = _judge_entries(entries.with_columns(urls.alias("url")), sitemap, options, seeds)
    refused = rows.filter(pl.col("reason").is_not_null()).get_column("reason")
    for reason, number in refused.value_counts().iter_rows():
        counts[f"dropped/{reason}"] += number
    rows, blocked = drop_blocked(rows.filter(pl.col("reason").is_null()), blocklist)
    counts.update(blocked)
    late = (pl.col("lastmod") > now).fill_null(False)
    if in_future := int(rows.select(late.sum()).item()):
        counts["ignored/lastmod_in_future"] += in_future
    words = {word: interval_of(word, options) for word in _INTERVALS}
    url_rows = rows.select(
        "key",
        score=pl.when(pl.col("priority") == 0).then(_ZERO_SCORE).otherwise("priority"),
        changefreq=pl.col("changefreq").replace_strict(words, return_dtype=pl.Int32),
        lastmod=pl.when(~late).then("lastmod"),
    )
    return merge_sitemap_urls(conform_frame(url_rows, SITEMAP_URLS)), +counts


def merge_sitemap_urls(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each URL: the highest score, the shortest interval, the latest date.

    >>> rows = pl.DataFrame({"key": ["a", "a"], "score": [0.1, 0.9], "changefreq": [60, None],
    ...                      "lastmod": [1, 2]})
    >>> merge_sitemap_urls(rows).rows()
    [('a', 0.9, 60, 2)]
    """
    merged = rows.group_by("key").agg(
        pl.col("score").max(), pl.col("changefreq").min(), pl.col("lastmod").max()
    )
    return merged.select(rows.columns).sort("key")


def _frame(entries: list[SitemapEntry]) -> pl.DataFrame:
    own = [entry for entry in entries if entry.kind != CHILD_SITEMAP]
    return pl.DataFrame(own, schema=_FIELDS, orient="row")


def _judge_entries(
    entries: pl.DataFrame, sitemap: Sitemap, options: SitemapOptions, seeds: Seeds
) -> pl.DataFrame:
    """Returns entries, whose URLs are absolute, with ``key`` and ``reason``; one of the two is null."""
    rules = dataclasses.replace(
        options,
        no_filter=options.no_filter or not options.sitemap_url_filter,
        no_normalize=options.no_normalize or not options.sitemap_url_normalize,
        # A sitemap names the pages of its own host.
        skip_internal_links=False,
    )
    source = pl.lit(_source(sitemap.root))
    links = entries.with_columns(source=source, distance=pl.lit(1))
    judged = judge(links, "outlink", rules, seeds)
    if not options.sitemap_strict_parsing:
        return judged
    inside = _are_inside(entries.get_column("url"), sitemap.places)
    outside = reason_if(~pl.lit(inside) & pl.col("reason").is_null(), "outside_sitemap")
    return judged.with_columns(reason=pl.coalesce("reason", outside)).with_columns(
        key=pl.when(pl.col("reason").is_null()).then("key")
    )


def _are_inside(urls: pl.Series, places: tuple[str, ...]) -> pl.Series:
    """Returns a mask of the URLs below one of some places, however they are spelt."""
    inside = _begin_with(urls, places)
    outside = (~inside & urls.is_not_null()).arg_true()
    if not len(outside):
        return inside
    spelt = pl.Series([_normal(url) for url in urls.gather(outside)], dtype=pl.String)
    return put(inside, outside, _begin_with(spelt, places))


def _begin_with(urls: pl.Series, places: tuple[str, ...]) -> pl.Series:
    # The scheme may differ: a page of https in a sitemap of http is on the same host.
    bare = urls.str.replace(r"^[a-z][a-z0-9+.-]*://", "")
    begin = pl.any_horizontal([pl.lit(bare).str.starts_with(place) for place in places])
    return pl.select(begin.fill_null(False)).to_series()


def _normal(url: str) -> str | None:
    try:
        return normalize_basic(url)
    except BadUrl:
        return None


def _source(url: str) -> str:
    """Returns the row key of the page that links to the URLs of a sitemap."""
    try:
        return to_key(url)
    except ValueError:
        return host_key(host_of_url(url) or "")
