"""The simulated web: pure functions from (hosts, pages, seed) to pages, and the truth about them.

Hosts are named ``h0.example.com`` to ``h{hosts - 1}.example.com``; ``http://h0.example.com/``
leads to all of them. A crawler that obeys robots.txt, meta robots and ``rel=nofollow`` and follows
redirects finds exactly ``hosts * pages`` pages, and beside them redirects (301 and 302, chains,
to other hosts), missing pages (404 and 410) and pages that robots.txt denies. It never
meets the hidden pages, which only ``nofollow`` links lead to. The last host asks for a delay.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import formatdate
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlsplit

from .model import Place, SimLink, SimPage, SitePlan
from .render import lone_html, page_html, title

_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010100000000376ef9240000000a49444154789c6360"
    "0000000200015a0c7d5d0000000049454e44ae426082"
)
_CSS = b"body { max-width: 40em; margin: auto; font-family: sans-serif }\n"
_YEAR_2024, _YEAR_SECONDS = 1_704_067_200, 31_536_000


class Answer(NamedTuple):
    """What a server says to a GET.

    Attributes:
        kind: As in ``Site.expected``, but ``private`` and ``hidden`` by what lies there.
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
    >>> len(site.urls("page"))
    30

    Attributes:
        hosts: How many hosts, at least 1.
        pages: Pages per host on average, at least 1; low numbers have more.
        seed: Any integer; another seed gives another web.
        crawl_delay: What the last host's robots.txt asks for, in seconds; 0 for no such line.
    """

    hosts: int = 20
    pages: int = 50
    seed: int = 7
    crawl_delay: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.crawl_delay < float("inf"):
            raise ValueError(f"crawl_delay must be at least 0 seconds, got {self.crawl_delay!r}")
        self.plan  # checks the rest

    @cached_property
    def plan(self) -> SitePlan:
        """Which pages there are, and what links to what."""
        return SitePlan(self.hosts, self.pages, self.seed)

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts' names."""
        return tuple(self.plan.host_name(host) for host in range(self.hosts))

    @property
    def seeds(self) -> tuple[str, ...]:
        """The one URL from which all others can be found."""
        return (self.plan.url(SimPage(0, 0)),)

    def answer(self, name: str, target: str) -> Answer:
        """What host ``name`` (lower case, no port) says to GET of a path and query.

        A name that is no host of this web gets 421 (RFC 9110 15.5.20).
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
        place = self.plan.find(host, path if path.startswith("/img/") else target)
        return self._missing(404) if place is None else self._answer_place(host, place)

    def _answer_place(self, host: int, place: Place) -> Answer:
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
        """The robots.txt of a host, ``None`` where there is none.

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
        lines = (
            *("User-agent: otherbot", "Disallow: /", "", "User-agent: *"),
            *((f"Crawl-delay: {self.crawl_delay:g}",) if delay else ()),
            *("Allow: /private/open-", "Disallow: /private/  # not for you", ""),
        )
        return ("\r\n" if host % 4 == 1 else "\n").join(lines)

    def links(self, url: str) -> tuple[SimLink, ...]:
        """The links on the page at ``url``; none where there is no page."""
        page = self._find_page(url)
        return () if page is None else self.plan.links(page)

    def title(self, url: str) -> str:
        """The title of the page at ``url``; empty where there is no page."""
        page = self._find_page(url)
        return "" if page is None else title(self.plan, page)

    def reachable(self, seeds: Iterable[str] | None = None) -> dict[str, str]:
        """Every URL an obedient crawler meets that starts from ``seeds``, with its kind.

        It honours robots.txt, meta robots and rel=nofollow, follows redirects and reads no
        images or styles. Kinds are ``page``, ``redirect``, ``missing`` (404, 410) and ``denied``
        (by robots.txt: met, never asked for). The order is breadth first.
        """
        found = dict.fromkeys(self.seeds if seeds is None else seeds, "")
        queue = list(found)
        for url in queue:  # grows while it is read
            found[url], targets = self._visit(url)
            fresh = [target for target in dict.fromkeys(targets) if target not in found]
            found.update(dict.fromkeys(fresh, ""))
            queue += fresh
        return found

    def _visit(self, url: str) -> tuple[str, list[str]]:
        host, place = self._locate(url)
        if place is None or place.kind == "gone":
            return "missing", []
        page = SimPage(host, place.number)
        if place.kind in ("private", "hidden"):
            hidden = self.plan.special(host, "hidden", place.number)
            return ("denied", []) if place.kind == "private" else ("page", [hidden])
        if place.kind == "img":
            return "asset", []
        if place.kind != "page":
            return "redirect", [self.plan.redirect(host, place)[1]]
        if self.plan.role(page) == "nofollow":
            return "page", []
        return "page", [link.url for link in self.plan.links(page) if not link.nofollow]

    @cached_property
    def _reachable(self) -> dict[str, str]:
        return self.reachable()

    def urls(self, *kinds: str) -> frozenset[str]:
        """The URLs reachable from the root, of the kinds named, or of all kinds.

        ``page``, ``redirect``, ``missing`` and ``denied``, as in ``reachable``.
        """
        return frozenset(url for url, kind in self._reachable.items() if not kinds or kind in kinds)

    def expected(self, url: str) -> str:
        """What a whole crawl must find at ``url``: a kind as in ``reachable``, or else.

        ``robots`` and ``asset`` (styles, images) are what no page links to by ``<a>``; ``hidden``
        is a page an obedient crawler never meets; ``unknown`` is anything else.
        """
        if url in self._reachable:
            return self._reachable[url]
        parts = urlsplit(url)
        query = f"?{parts.query}" if parts.query else ""
        kind = self.answer(parts.netloc, (parts.path or "/") + query).kind
        return kind if kind in ("robots", "asset", "hidden") else "unknown"

    def duplicates(self) -> tuple[frozenset[str], ...]:
        """Sets of two or more pages with identical bodies."""
        sets: dict[SimPage, set[str]] = {}
        for page in self.plan.all_pages():
            sets.setdefault(self.plan.original(page), set()).add(self.plan.url(page))
        return tuple(frozenset(urls) for urls in sets.values() if len(urls) > 1)

    def noindex(self) -> frozenset[str]:
        """The pages whose meta robots says noindex."""
        return self._with_role("noindex")

    def nofollow(self) -> frozenset[str]:
        """The pages whose meta robots says nofollow."""
        return self._with_role("nofollow")

    def _with_role(self, role: str) -> frozenset[str]:
        plan = self.plan
        return frozenset(plan.url(page) for page in plan.all_pages() if plan.role(page) == role)

    def _locate(self, url: str) -> tuple[int, Place | None]:
        parts = urlsplit(url)
        host = self.plan.host_number(parts.netloc)
        if host is None or parts.scheme != "http":
            return 0, None
        query = f"?{parts.query}" if parts.query else ""
        return host, self.plan.find(host, (parts.path or "/") + query)

    def _find_page(self, url: str) -> SimPage | None:
        host, place = self._locate(url)
        return SimPage(host, place.number) if place is not None and place.kind == "page" else None
