"""Adds URLs of sitemaps to the rows of the state (nutch.md 2.12)."""

import dataclasses
from typing import NamedTuple

import polars as pl

from ..components.page_facts import StateRows
from ..components.schema import STATE, Status, conform_frame
from ..hosting.merit import DomainRoom, within_room
from ..scoring.scorings import OPIC, Scorings
from ..traps import within_budget
from .sitemap_options import SitemapOptions
from .sitemap_urls import merge_sitemap_urls

# The score of a URL without a priority: the protocol's default.
USUAL_SCORE = 0.5
# A sitemap is like a home page: its pages are one link away.
_DISTANCE = 1


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
    state_rows: StateRows, urls: pl.DataFrame, facts: SitemapFacts, rules: SitemapRules
) -> tuple[pl.DataFrame, dict[str, int]]:
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
    created = rules.scorings.injected(_new_rows(fresh, now, options))
    old_rows, due = _known_rows(state_rows, repeated, now, options)
    counts |= {"added": len(fresh), "known": len(repeated), "made_due": due}
    together = pl.concat([old_rows, created]).sort("key")
    return together, {name: number for name, number in counts.items() if number}


def _within_budget(
    fresh: pl.DataFrame, options: SitemapOptions, room: DomainRoom | None
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns the new URLs that the budget of sitemaps allows, and counts of the others."""
    budgets = dataclasses.replace(
        options, max_new_per_host=options.sitemap_max_new_per_host, max_same_pages=-1
    )
    scored = fresh.with_columns(inlink_score=pl.col("score").fill_null(USUAL_SCORE))
    events = pl.DataFrame(schema={"key": pl.String, "signature": pl.Binary, "fetch_time": pl.Int64})
    allowed, counts = within_budget(scored, events, budgets)
    allowed, full = within_room(allowed, room)
    return allowed.drop("inlink_score"), {**counts, **full}


def _new_rows(urls: pl.DataFrame, now: int, options: SitemapOptions) -> pl.DataFrame:
    frame = urls.with_columns(
        status=pl.lit(int(Status.DB_UNFETCHED), pl.UInt8),
        fetch_time=pl.lit(now, pl.Int64),
        # Nutch's 0 without a change frequency would become the default with the first fetch.
        fetch_interval=pl.col("changefreq").fill_null(options.fetch_interval),
        retries=pl.lit(0, pl.Int32),
        score=pl.col("score").fill_null(USUAL_SCORE),
        distance=pl.lit(_DISTANCE, pl.Int32),
        modified_time="lastmod",  # fetch sends it only with a stored page: see its ``_tasks``
    )
    return conform_frame(frame, STATE)


def _known_rows(
    rows: pl.DataFrame, urls: pl.DataFrame, now: int, options: SitemapOptions
) -> tuple[pl.DataFrame, int]:
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
