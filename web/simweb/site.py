"""The simulated web: pure functions from (hosts, pages, seed) to pages.

Hosts are named ``h0.example.com`` to ``h{hosts - 1}.example.com``; ``http://h0.example.com/``
leads to all of them. A crawler that obeys robots.txt, meta robots and ``rel=nofollow`` and follows
redirects finds exactly ``hosts * pages`` pages, and beside them redirects (301 and 302, chains,
to other hosts), missing pages (404 and 410) and pages that robots.txt denies. It never
meets the hidden pages, which only ``nofollow`` links lead to. The last host asks for a delay.
"""

import gzip
import hashlib
from dataclasses import dataclass
from email.utils import formatdate
from functools import cached_property
from typing import NamedTuple

from .model import PagePlace, SimPage, SitePlan
from .render import lone_html, page_html

_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010100000000376ef9240000000a49444154789c6360"
    "0000000200015a0c7d5d0000000049454e44ae426082"
)
_CSS = b"body { max-width: 40em; margin: auto; font-family: sans-serif }\n"
_YEAR_2024, _YEAR_SECONDS = 1_704_067_200, 31_536_000
INDEX_PATH, PAGES_PATH, ALONE_PATH = "/sitemap.xml", "/sitemaps/pages.xml.gz", "/sitemaps/alone.txt"
_XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
# Hosts in turn: robots.txt names the index; it does not, and crawlers try /sitemap.xml.
_NAMED = 2


class Answer(NamedTuple):
    """The answer to a GET.

    Attributes:
        kind: ``page``, ``redirect``, ``missing``, ``private``, ``hidden``, ``asset``, ``robots``,
            ``sitemap`` or ``unknown`` (no host of this web).
        status: The HTTP status code.
        body: The content; empty for a redirect.
        content_type: The value of Content-Type.
        headers: Further headers, in order.
    """

    kind: str
    status: int
    body: bytes
    content_type: str = _HTML
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Site:
    """A simulated web.

    >>> site = Site(hosts=3, pages=10, seed=7)
    >>> site.answer("h1.example.com", "/").status
    200

    Attributes:
        hosts: How many hosts, at least 1.
        pages: Pages per host on average, at least 1; low numbers have more.
        seed: Any integer; another seed gives another web.
        crawl_delay: Crawl-delay in the last host's robots.txt, in seconds; 0 for no such line.
        sitemaps: Whether each host has sitemaps, and pages that only they name.
    """

    hosts: int = 20
    pages: int = 50
    seed: int = 7
    crawl_delay: float = 1.0
    sitemaps: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.crawl_delay < float("inf"):
            raise ValueError(f"crawl_delay must be at least 0 seconds, got {self.crawl_delay!r}")
        self.plan  # checks the rest

    @cached_property
    def plan(self) -> SitePlan:
        """The plan: pages and links."""
        return SitePlan(self.hosts, self.pages, self.seed)

    @property
    def seeds(self) -> tuple[str, ...]:
        """The one URL from which links lead to all others."""
        return (self.plan.url(SimPage(0, 0)),)

    def answer(self, name: str, target: str) -> Answer:
        """Returns the answer of a host (lower case, no port) to a GET of a path and query.

        A name that is not a host of this web gets 421 (RFC 9110 15.5.20).
        """
        host = self.plan.host_number(name)
        if host is None:
            return Answer("unknown", 421, b"no such host\n", _TEXT)
        path = target.partition("?")[0]
        if path == "/robots.txt":
            robots = self.robots(name)
            body = b"no robots.txt\n" if robots is None else robots.encode()
            return Answer("robots", 404 if robots is None else 200, body, _TEXT)
        if path == "/style.css":
            return Answer("asset", 200, _CSS, "text/css")
        if self.sitemaps and (sitemap_answer := self._of_sitemaps(host, path)) is not None:
            return sitemap_answer
        place = self.plan.find(host, path if path.startswith("/img/") else target)
        return self._missing(404) if place is None else self._answer_place(host, place)

    def _of_sitemaps(self, host: int, path: str) -> Answer | None:
        """Returns a sitemap, or a page that only sitemaps name; else None."""
        sitemap = sitemap_of(self.plan, host, path)
        if sitemap is not None:
            return Answer("sitemap", 200, *sitemap)
        number = lone_number(self.plan, host, path)
        if number is None:
            return None
        body = f"<!DOCTYPE html><title>Alone {number}</title><p>Page {number} of host {host}.\n"
        return Answer("page", 200, body.encode())

    def _answer_place(self, host: int, place: PagePlace) -> Answer:
        page = SimPage(host, place.number)
        if place.kind == "page":
            return self._page(page)
        if place.kind == "img":
            return Answer("asset", 200, _PNG, "image/png")
        if place.kind == "gone":
            return self._missing(410 if place.number % 4 == 3 else 404)
        if place.kind in ("private", "hidden"):
            return Answer(place.kind, 200, lone_html(self.plan, place.kind, page))
        status, location = self.plan.redirect(host, place)
        return Answer("redirect", status, b"", headers=(("Location", location),))

    def _missing(self, status: int) -> Answer:
        body = f"<!DOCTYPE html><title>{status}</title><p>Not here. <a href='/'>Home</a>\n"
        return Answer("missing", status, body.encode())

    def _page(self, page: SimPage) -> Answer:
        body = page_html(self.plan, page)
        etag = hashlib.blake2b(body, digest_size=8).hexdigest()
        when = _YEAR_2024 + self.plan.mix("modified", *page) % _YEAR_SECONDS
        headers = (("ETag", f'"{etag}"'), ("Last-Modified", formatdate(when, usegmt=True)))
        return Answer("page", 200, body, headers=headers)

    def robots(self, name: str) -> str | None:
        """Returns the robots.txt of a host; None if there is none.

        >>> print(Site(hosts=1).robots("h0.example.com"))
        User-agent: otherbot
        Disallow: /
        <BLANKLINE>
        User-agent: *
        Crawl-delay: 1
        Allow: /private/open-
        Disallow: /private/  # not for you
        <BLANKLINE>
        """
        host = self.plan.host_number(name)
        if host is None or not self.plan.has_robots(host):
            return None
        delay = host == self.hosts - 1 and self.crawl_delay > 0
        named = self.sitemaps and is_named(host)
        lines = (
            *((f"Sitemap: {self.plan.url_at(host, INDEX_PATH)}", "") if named else ()),
            *("User-agent: otherbot", "Disallow: /", "", "User-agent: *"),
            *((f"Crawl-delay: {self.crawl_delay:g}",) if delay else ()),
            *("Allow: /private/open-", "Disallow: /private/  # not for you", ""),
        )
        return ("\r\n" if host % 4 == 1 else "\n").join(lines)


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
            f"<sitemap><loc>{plan.url_at(host, name)}</loc></sitemap>\n" for name in names
        )
        return f"{_HEAD}<sitemapindex {_XMLNS}>\n{entries}</sitemapindex>\n".encode(), "text/xml"
    if path == PAGES_PATH:
        numbers = range(min(plan.sizes[host], 50))
        entries = "".join(_entry(plan, SimPage(host, number)) for number in numbers)
        body = f"{_HEAD}<urlset {_XMLNS}>\n{entries}</urlset>\n".encode()
        return gzip.compress(body, mtime=0), "application/gzip"
    if path == ALONE_PATH:
        lines = [plan.url_at(host, lone_path(number)) for number in lone_pages(plan, host)]
        return "\n".join([*lines, plan.url_at(0, "/alone/foreign.html"), ""]).encode(), "text/plain"
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
