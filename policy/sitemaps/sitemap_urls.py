"""Judges the URLs of a sitemap (rules, scope, places), and adds them to the state."""

import dataclasses
from collections import Counter
from typing import NamedTuple, TypeAlias

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
from ..components.rule_counts import count_reasons
from ..components.schema import STATE, StateRows, columns, conform_frame
from ..hosting.merit import DomainRoom, within_room
from ..schedules.schedule import RescheduleOptions
from ..scope import judge
from ..scoring.scorings import OPIC, Scorings
from ..seeding import new_rows
from ..traps import within_budget
from .sitemap_list import Sitemap, SitemapOptions

# A URL of a sitemap on its way to the state. Null: the sitemap does not say.
SITEMAP_URLS = pa.schema(
    [
        *columns(STATE, "key", "score"),
        ("changefreq", pa.int32()),  # s, within the bounds of the schedule
        ("lastmod", pa.int64()),  # UTC ms, not in the future
    ]
)
SitemapUrlRows: TypeAlias = pl.DataFrame  # columns of SITEMAP_URLS
SitemapEntryRows: TypeAlias = pl.DataFrame  # a row per entry of a sitemap
# Seconds; ``never`` is the longest interval.
_INTERVALS = {
    "always": 1, "hourly": 3_600, "daily": 86_400, "weekly": 604_800, "monthly": 2_592_000,
    "yearly": 31_536_000, "never": 2**31 - 1,
}  # fmt: skip
_ZERO_SCORE = 0.5
_FIELDS = {"kind": pl.String, "url": pl.String, "lastmod": pl.Int64, "changefreq": pl.String,
           "priority": pl.Float64}  # fmt: skip
# The score of a URL without a priority: the protocol's default.
USUAL_SCORE = 0.5
# A sitemap is like a home page: its pages are one link away.
_DISTANCE = 1


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
        seeds: The hosts of seeds.
        blocklist: Names that must not be added again.
        now: The time that counts as now, ms; a later ``lastmod`` does not count.
    """

    options: SitemapOptions
    seeds: Seeds
    blocklist: Blocklist
    now: int


def judge_sitemap(
    content: SitemapContent, sitemap: Sitemap, rules: EntryRules
) -> tuple[SitemapUrlRows, Counter[str]]:
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
    counts.update(count_reasons(rows))
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


def merge_sitemap_urls(rows: SitemapUrlRows) -> SitemapUrlRows:
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


def _frame(entries: list[SitemapEntry]) -> SitemapEntryRows:
    own = [entry for entry in entries if entry.kind != CHILD_SITEMAP]
    return pl.DataFrame(own, schema=_FIELDS, orient="row")


def _judge_entries(
    entries: SitemapEntryRows, sitemap: Sitemap, options: SitemapOptions, seeds: Seeds
) -> SitemapEntryRows:
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


class SitemapRules(NamedTuple):
    """The rules by which sitemaps change rows.

    Attributes:
        options: Budgets, and what known URLs take over.
        scorings: The scorings.
    """

    options: SitemapOptions
    scorings: Scorings = OPIC


class SitemapFacts(NamedTuple):
    """What the table says besides the rows of a range.

    Attributes:
        now: Due time of new URLs, ms.
        room: Room of registered domains; None: they have no limit.
    """

    now: int
    room: DomainRoom | None = None


def add_sitemap_urls(
    state_rows: StateRows, urls: SitemapUrlRows, facts: SitemapFacts, rules: SitemapRules
) -> tuple[StateRows, dict[str, int]]:
    """Adds the URLs of sitemaps to the rows of a range of keys.

    A new URL is due at once. A known URL stays as it is, unless an option changes it.

    Args:
        state_rows: STATE rows in key order.
        urls: SITEMAP_URLS rows for keys in the same range; a key may be there several times.
        facts: The time, and the room for new URLs.
        rules: The rules.

    Returns:
        (STATE rows in key order, counts).
    """
    options, now = rules.options, facts.now
    merged = merge_sitemap_urls(urls)
    is_known = merged.get_column("key").is_in(state_rows.get_column("key").implode())
    fresh, counts = _within_budget(merged.filter(~is_known), options, facts.room)
    repeated = merged.filter(is_known)
    # Nutch's 0 without a change frequency would become the default with the first fetch. Fetch sends
    # the date only with a stored page: see its ``_tasks``.
    fresh = fresh.rename({"changefreq": "fetch_interval", "lastmod": "modified_time"})
    fresh = fresh.with_columns(distance=pl.lit(_DISTANCE))
    created = rules.scorings.injected(new_rows(fresh, options, now, USUAL_SCORE))
    old_rows, due = _known_rows(state_rows, repeated, now, options)
    counts |= {"added": len(fresh), "known": len(repeated), "made_due": due}
    together = pl.concat([old_rows, created]).sort("key")
    return together, {name: number for name, number in counts.items() if number}


def _within_budget(
    fresh: SitemapUrlRows, options: SitemapOptions, room: DomainRoom | None
) -> tuple[SitemapUrlRows, dict[str, int]]:
    """Returns the new URLs that the budget of sitemaps allows, and counts of the others."""
    budgets = dataclasses.replace(
        options, max_new_per_host=options.sitemap_max_new_per_host, max_same_pages=-1
    )
    scored = fresh.with_columns(inlink_score=pl.col("score").fill_null(USUAL_SCORE))
    events = pl.DataFrame(schema={"key": pl.String, "signature": pl.Binary, "fetch_time": pl.Int64})
    allowed, counts = within_budget(scored, events, budgets)
    allowed, full = within_room(allowed, room)
    return allowed.drop("inlink_score"), {**counts, **full}


def _known_rows(
    rows: StateRows, urls: SitemapUrlRows, now: int, options: SitemapOptions
) -> tuple[StateRows, int]:
    """Returns (rows with what sitemaps change of known URLs, the number of those made due)."""
    overwrites, refetches = options.sitemap_url_overwrite_existing, options.sitemap_refetch
    if not len(urls) or not (overwrites or refetches):
        return rows, 0
    named = urls.rename({name: f"sitemap.{name}" for name in urls.columns if name != "key"})
    joined = rows.join(named, on="key", how="left", maintain_order="left")
    if overwrites:
        unfetched = pl.col("last_fetch_time").is_null()
        lastmod = pl.when(unfetched).then("sitemap.lastmod")
        joined = joined.with_columns(
            pl.coalesce("sitemap.score", "score").alias("score"),
            # A date after the last fetch would make the server answer "not modified".
            pl.coalesce(lastmod, "modified_time").alias("modified_time"),
            pl.when(pl.col("fixed_interval").is_null())
            .then(pl.coalesce("sitemap.changefreq", "fetch_interval"))
            .otherwise("fetch_interval")
            .alias("fetch_interval"),
        )
    if not refetches:
        return joined.select(rows.columns), 0
    newer = (pl.col("sitemap.lastmod") > pl.col("last_fetch_time")).fill_null(False)
    late = newer & (pl.col("fetch_time") > now)
    due = int(joined.select(late.sum()).item())
    changed = joined.with_columns(fetch_time=pl.when(late).then(now).otherwise("fetch_time"))
    return changed.select(rows.columns), due
