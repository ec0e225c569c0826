"""The simulated web: pure functions from (hosts, pages, seed) to pages.

Hosts are named ``h0.example.com`` to ``h{hosts - 1}.example.com``; ``http://h0.example.com/``
leads to all of them. A crawler that obeys robots.txt, meta robots and ``rel=nofollow`` and follows
redirects finds exactly ``hosts * pages`` pages, and beside them redirects (301 and 302, chains,
to other hosts), missing pages (404 and 410) and pages that robots.txt denies. It never
meets the hidden pages, which only ``nofollow`` links lead to. The last host asks for a delay.
"""

import hashlib
from dataclasses import dataclass
from email.utils import formatdate
from functools import cached_property
from typing import NamedTuple

from .model import PagePlace, SimPage, SitePlan
from .render import lone_html, page_html
from .sitemaps import INDEX_PATH, is_named, lone_number, sitemap_of

_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010100000000376ef9240000000a49444154789c6360"
    "0000000200015a0c7d5d0000000049454e44ae426082"
)
_CSS = b"body { max-width: 40em; margin: auto; font-family: sans-serif }\n"
_YEAR_2024, _YEAR_SECONDS = 1_704_067_200, 31_536_000


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
        if self.sitemaps and (found := self._of_sitemaps(host, path)) is not None:
            return found
        place = self.plan.find(host, path if path.startswith("/img/") else target)
        return self._missing(404) if place is None else self._answer_place(host, place)

    def _of_sitemaps(self, host: int, path: str) -> Answer | None:
        """Returns a sitemap, or a page that only sitemaps name; else None."""
        found = sitemap_of(self.plan, host, path)
        if found is not None:
            return Answer("sitemap", 200, *found)
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
            *((f"Sitemap: {self.plan.at(host, INDEX_PATH)}", "") if named else ()),
            *("User-agent: otherbot", "Disallow: /", "", "User-agent: *"),
            *((f"Crawl-delay: {self.crawl_delay:g}",) if delay else ()),
            *("Allow: /private/open-", "Disallow: /private/  # not for you", ""),
        )
        return ("\r\n" if host % 4 == 1 else "\n").join(lines)
