"""Sitemaps of the simulated web, and the pages that only they name."""

import gzip

from .model import SimPage, SitePlan

INDEX_PATH, PAGES_PATH, ALONE_PATH = "/sitemap.xml", "/sitemaps/pages.xml.gz", "/sitemaps/alone.txt"
_XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
# Hosts in turn: robots.txt names the index; it does not, and crawlers try /sitemap.xml.
_NAMED = 2


def is_named(host: int) -> bool:
    """Returns whether robots.txt of a host names its sitemap."""
    return host % _NAMED == 0


def lone_pages(plan: SitePlan, host: int) -> range:
    """Returns the numbers of a host's unlinked pages: one for each ten pages, and one more."""
    return range(1, 2 + plan.sizes[host] // 10)


def lone_path(number: int) -> str:
    """Returns the path of a page that no link leads to."""
    return f"/alone/page-{number}.html"


def sitemap_of(plan: SitePlan, host: int, path: str) -> tuple[bytes, str] | None:
    """Returns (body, Content-Type) of a sitemap; None if there is none with the path.

    The index names a packed sitemap with the first pages of the host, and a list of the pages that
    no link leads to. It also names itself, and pages of another host, which count for nothing.
    """
    if path == INDEX_PATH:
        names = (PAGES_PATH, ALONE_PATH, INDEX_PATH)
        entries = "".join(
            f"<sitemap><loc>{plan.at(host, name)}</loc></sitemap>\n" for name in names
        )
        return f"{_HEAD}<sitemapindex {_XMLNS}>\n{entries}</sitemapindex>\n".encode(), "text/xml"
    if path == PAGES_PATH:
        shown = range(min(plan.sizes[host], 50))
        entries = "".join(_entry(plan, SimPage(host, number)) for number in shown)
        body = f"{_HEAD}<urlset {_XMLNS}>\n{entries}</urlset>\n".encode()
        return gzip.compress(body, mtime=0), "application/gzip"
    if path == ALONE_PATH:
        lines = [plan.at(host, lone_path(number)) for number in lone_pages(plan, host)]
        return "\n".join([*lines, plan.at(0, "/alone/foreign.html"), ""]).encode(), "text/plain"
    return None


def lone_number(plan: SitePlan, host: int, path: str) -> int | None:
    """Returns the number of the page at a path, if no link leads to it."""
    return next((n for n in lone_pages(plan, host) if lone_path(n) == path), None)


def _entry(plan: SitePlan, page: SimPage) -> str:
    day = 1 + page.number % 28
    return (
        f"<url><loc>{plan.url(page).replace('&', '&amp;')}</loc><lastmod>2024-02-{day:02d}</lastmod>"
        f"<changefreq>weekly</changefreq><priority>0.{1 + page.number % 9}</priority></url>\n"
    )
