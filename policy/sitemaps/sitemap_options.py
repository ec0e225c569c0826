"""Options of sitemaps."""

import dataclasses

from ...web.base.options import option
from ...web.parsers.sitemap_entries import ALTERNATE, LINK_KINDS
from ..schedules.reschedule import CheckedScheduleOptions
from ..scope import TargetOptions
from ..scoring.scoring_options import ScoringOptions
from ..traps import BudgetOptions


@dataclasses.dataclass(frozen=True)
class SitemapLimits:
    """Options of sitemaps alone."""

    GROUP = "sitemaps"

    sitemap_strict_parsing: bool = option(
        True,
        "Accept only URLs on the host of their sitemap, and below its folder or that of the index "
        "that names it. If robots.txt of a host names the sitemap, all URLs of this host in it are "
        "accepted.",
        nutch="sitemap.strict.parsing, sitemap -noStrict",
    )
    sitemap_url_filter: bool = option(
        True,
        "Apply the URL filters to the URLs of sitemaps.",
        nutch="sitemap.url.filter, sitemap -noFilter",
    )
    sitemap_url_normalize: bool = option(
        True,
        "Apply the URL rewriting rules to the URLs of sitemaps.",
        nutch="sitemap.url.normalize, sitemap -noNormalize",
    )
    sitemap_url_default_sitemap_xml: bool = option(
        True,
        "Request /sitemap.xml of a host whose robots.txt names no sitemap.",
        nutch="sitemap.url.default.sitemap.xml",
    )
    sitemap_url_overwrite_existing: bool = option(
        False,
        "Give a known URL the priority and interval in its sitemap, if there are any.",
        nutch="sitemap.url.overwrite.existing",
    )
    sitemap_refetch: bool = option(
        False,
        "Make a known URL due if its sitemap says that it has changed since its last fetch. Many "
        "servers say so about all pages.",
    )
    sitemap_redir_max: int = option(
        3,
        "Follow at most this many redirects in a row.",
        nutch="sitemap.redir.max",
        minimum=0,
        maximum=20,
    )
    sitemap_size_max: int = option(
        50 << 20,
        "Most bytes to read of a sitemap, after unpacking.",
        unit="bytes",
        nutch="sitemap.size.max",
        minimum=1,
        maximum=50 << 20,
    )
    sitemap_urls_max: int = option(
        50_000, "Most URLs to read from one sitemap.", minimum=1, maximum=50_000
    )
    sitemap_depth: int = option(
        3, "Follow indexes of sitemaps down to this depth; 0 follows none.", minimum=0, maximum=10
    )
    sitemap_files_max: int = option(
        1_000,
        "Most sitemaps to request for one host, or for one given sitemap.",
        unit="sitemaps",
        minimum=1,
    )
    sitemap_links: tuple[str, ...] = option(
        (ALTERNATE,),
        "Links in sitemaps to add, too: alternate (the page in other languages), image, video.",
        choices=LINK_KINDS,
    )
    sitemap_max_new_per_host: int = option(
        50_000,
        "How many URLs of one host are added from its sitemaps at once, the best by priority; "
        "-1: no limit. These URLs do not count for --max_new_per_host.",
        minimum=-1,
    )


@dataclasses.dataclass(frozen=True)
class SitemapOptions(
    SitemapLimits, TargetOptions, CheckedScheduleOptions, ScoringOptions, BudgetOptions
):
    """Options of reading sitemaps, and of adding their URLs to the table."""
