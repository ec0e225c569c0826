"""The plan of the simulated web: which URLs there are, and which link to which.

Everything follows from three numbers (hosts, pages, seed); nothing is stored. Each page is a
number on a host: page 0 is the root ``/``, page ``j`` is below page ``(j - 1) // FANOUT`` of
its host, host ``k`` below host ``(k - 1) // HOST_FANOUT``. So links from
``http://h0.example.com/`` lead to every page. Other links are added to these trees at random.
"""

import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

DOMAIN = "example.com"
FANOUT = 6
HOST_FANOUT = 10

# Roles of a host's pages, in turn, from a random start.
_ROLES = ("",) * 5 + ("copy", "", "", "noindex", "", "", "mirror", "", "", "nofollow", "")
_WAYS = ("",) * 7 + ("moved", "", "", "", "found", "", "", "", "chain", "", "", "")
_SECTIONS = "about archive blog docs guide help news notes project wiki".split()  # noqa: SIM905

# URLs that are not pages. {} is the number of the page that they lead to or are linked from.
_TEMPLATES = {
    "old": "/old/{}",
    "older": "/older/{}",
    "go": "/go/{}",
    "out": "/out/{}",
    "gone": "/gone/{}.html",
    "private": "/private/{}.html",
    "hidden": "/hidden/{}.html",
    "img": "/img/{}.png",
}
_SPECIAL = re.compile(r"/([a-z]+)/([0-9]{1,9})(?:\.[a-z]+)?")
_NUMBER = re.compile(r"[0-9]{1,9}")


class SimPage(NamedTuple):
    """A page: the number of its host, and its number there."""

    host: int
    number: int


class SimLink(NamedTuple):
    """A link on a page: an absolute URL, without fragment, and how it is written.

    Attributes:
        url: Where it leads.
        text: The anchor's text.
        nofollow: Whether it says ``rel="nofollow"``.
        fragment: The fragment, without ``#``; may be empty.
    """

    url: str
    text: str
    nofollow: bool = False
    fragment: str = ""


class PagePlace(NamedTuple):
    """The content of a URL: ``page`` or a key of the table of templates, and the page's number."""

    kind: str
    number: int


@dataclass(frozen=True)
class SitePlan:
    """The structure of one simulated web.

    Attributes:
        hosts: How many hosts, at least 1: ``h0.example.com`` to ``h{hosts - 1}.example.com``.
        pages: Pages per host on average, at least 1; host 0 has most, the last one least.
        seed: Any integer; another seed gives another web.
    """

    hosts: int
    pages: int
    seed: int

    def __post_init__(self) -> None:
        for name, value in (("hosts", self.hosts), ("pages", self.pages)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Pages of each host, in falling order, at least 1 each; they sum to ``hosts * pages``.

        >>> SitePlan(hosts=4, pages=10, seed=1).sizes
        (16, 10, 8, 6)
        """
        weights = [(host + 1) ** -0.7 for host in range(self.hosts)]
        share = (self.pages - 1) * self.hosts / sum(weights)
        sizes = [1 + int(share * weight) for weight in weights]
        for host in range(self.hosts * self.pages - sum(sizes)):
            sizes[host % self.hosts] += 1
        return tuple(sizes)

    def mix(self, *what: object) -> int:
        """Returns a pseudo-random number of 64 bits, a hash of the seed and ``what``."""
        text = f"{self.seed}{what!r}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")

    def host_name(self, host: int) -> str:
        """Returns the name of a host: ``h0.example.com``, ``h1.example.com``, …"""
        return f"h{host}.{DOMAIN}"

    def host_number(self, name: str) -> int | None:
        """Returns the number of the host with a (lower-case) name; None if there is none."""
        label, dot, domain = name.partition(".")
        number = int(label[1:]) if label[1:].isdecimal() and len(label) < 12 else self.hosts
        if not dot or domain != DOMAIN or number >= self.hosts or label != f"h{number}":
            return None
        return number

    def all_pages(self) -> Iterator[SimPage]:
        """Yields every page, host by host."""
        for host, size in enumerate(self.sizes):
            yield from (SimPage(host, number) for number in range(size))

    def has_robots(self, host: int) -> bool:
        """Returns whether the host has a robots.txt, which then denies ``/private/``."""
        return host % 4 != 3 or host == self.hosts - 1

    def role(self, page: SimPage) -> str:
        """Returns the role of a page: ``copy``, ``mirror``, ``noindex``, ``nofollow`` or empty.

        A copy has the body of the page before it, a mirror that of the page with its number on
        the host before. Copies, mirrors and nofollow pages have no pages below them.
        """
        role = self._wheel(page)
        host, number = page
        if role in ("", "noindex"):
            return role
        leaf = number > 0 and number * FANOUT + 1 >= self.sizes[host]
        if role == "copy":
            leaf = leaf and number > 1 and self._wheel(SimPage(host, number - 1)) == ""
        if role == "mirror":
            leaf = leaf and host > 0 and self._wheel(SimPage(host - 1, number)) == ""
        return role if leaf else ""

    def _wheel(self, page: SimPage) -> str:
        if page.number == 0:
            return ""
        return _ROLES[(self._start("role", page.host) + page.number) % len(_ROLES)]

    @cached_property
    def _starts(self) -> dict[tuple[str, int], int]:
        return {}

    def _start(self, wheel: str, host: int) -> int:
        start = self._starts.get((wheel, host))
        if start is None:
            start = self._starts[wheel, host] = self.mix(wheel, host)
        return start

    def original_page(self, page: SimPage) -> SimPage:
        """Returns the page whose body this page has: itself, unless it is a copy or a mirror."""
        host, number = page
        role = self.role(page)
        if role == "copy":
            return SimPage(host, number - 1)
        return SimPage(host - 1, number) if role == "mirror" else page

    def has_copies(self, page: SimPage) -> bool:
        """Returns whether another URL has the same body, which then may not have relative links."""
        host, number = page
        copy, mirror = SimPage(host, number + 1), SimPage(host + 1, number)
        return any(
            other.host < self.hosts
            and other.number < self.sizes[other.host]
            and self.original_page(other) == page
            for other in (copy, mirror)
        )

    def way(self, page: SimPage) -> str:
        """Returns how links lead to a page: ``moved`` (301), ``found`` (302), ``chain`` or ""."""
        host, number = page
        if number == 0:
            return ""
        return _WAYS[(self._start("way", host) + number) % len(_WAYS)]

    def path(self, page: SimPage) -> str:
        """Returns path and query of a page, percent-encoded."""
        host, number = page
        if number == 0:
            return "/"
        if self.role(page) in ("copy", "mirror"):
            return f"/copy/{number}.html"
        mix = self.mix("path", host, number)
        section = _SECTIONS[mix % len(_SECTIONS)]
        form = mix // 1000 % 10
        if form == 5:
            return f"/{section}/{number}/"
        if form == 6:
            return f"/view?page={number}&lang=en"
        if form == 7:
            return f"/caf%C3%A9/{number}.html"
        if form == 8:
            return f"/{section}/{section}-{number}"
        if form == 9:  # robots.txt denies /private/, but allows this
            return f"/private/open-{number}.html"
        return f"/{section}/{'part' if form > 2 else 'page'}-{number}.html"

    def url(self, page: SimPage) -> str:
        """Returns the URL of a page."""
        return self.url_at(page.host, self.path(page))

    def url_at(self, host: int, target: str) -> str:
        """Returns the URL of a path and query on a host."""
        return f"http://{self.host_name(host)}{target}"

    def entry_url(self, page: SimPage) -> str:
        """Returns the URL that links to a page have: a redirect if the page has moved."""
        name = {"moved": "old", "found": "go", "chain": "older"}.get(self.way(page))
        return self.special_url(page.host, name, page.number) if name else self.url(page)

    def special_url(self, host: int, kind: str, number: int) -> str:
        """Returns the URL of something that is not a page."""
        return self.url_at(host, _TEMPLATES[kind].format(number))

    def find(self, host: int, target: str) -> PagePlace | None:
        """Returns the content of a path and query of a host; None if there is none.

        >>> SitePlan(hosts=2, pages=20, seed=7).find(0, "/gone/3.html")
        PagePlace(kind='gone', number=3)
        """
        if target == "/":
            return PagePlace("page", 0)
        size = self.sizes[host]
        for text in _NUMBER.findall(target):
            page = SimPage(host, int(text))
            if page.number < size and self.path(page) == target:
                return PagePlace("page", page.number)
        special = _SPECIAL.fullmatch(target)
        if special is None or special[1] not in _TEMPLATES:
            return None
        kind, number = special[1], int(special[2])
        if number >= size or target != _TEMPLATES[kind].format(number):
            return None
        return PagePlace(kind, number) if self._exists(kind, SimPage(host, number)) else None

    def _exists(self, kind: str, page: SimPage) -> bool:
        ways = {"old": ("moved", "chain"), "older": ("chain",), "go": ("found",)}
        if kind in ways:
            return self.way(page) in ways[kind]
        if kind == "out":
            return self.hosts > 1
        return kind != "private" or self.has_robots(page.host)

    def redirect(self, host: int, place: PagePlace) -> tuple[int, str]:
        """Returns status and target of a redirect (``old``, ``older``, ``go`` or ``out``)."""
        page = SimPage(host, place.number)
        if place.kind == "older":
            return 301, self.special_url(host, "old", place.number)
        if place.kind == "out":
            return 302, self.url(
                self._page_of_other_host(random.Random(self.mix("out", *page)), host)
            )
        return (301 if place.kind == "old" else 302), self.url(page)

    def links(self, page: SimPage) -> tuple[SimLink, ...]:
        """Returns the links on a page in order, each URL once; navigation comes first."""
        page = self.original_page(page)
        links: dict[str, SimLink] = {}
        for link in (
            *self._navigation_links(page),
            *self._links_below(page),
            *self._related_links(page),
        ):
            links.setdefault(link.url, link)
        for link in self._special_links(page):
            links.setdefault(link.url, link)
        return tuple(links.values())

    def _link(self, page: SimPage, text: str = "", fragment: str = "") -> SimLink:
        return SimLink(self.entry_url(page), text or f"{page.number}", fragment=fragment)

    def _navigation_links(self, page: SimPage) -> Iterator[SimLink]:
        host, number = page
        yield self._link(SimPage(host, 0), "Home", "top")
        if number:
            yield self._link(SimPage(host, (number - 1) // FANOUT), "Up")
            yield self._link(SimPage(host, number - 1), "Previous")
        if 0 < number < self.sizes[host] - 1:
            yield self._link(SimPage(host, number + 1), "Next", "content")

    def _links_below(self, page: SimPage) -> Iterator[SimLink]:
        host, number = page
        first = number * FANOUT + 1
        for child in range(first, min(first + FANOUT, self.sizes[host])):
            yield self._link(SimPage(host, child))
        first = host * HOST_FANOUT + 1
        for child in range(first, min(first + HOST_FANOUT, self.hosts)) if number == 0 else ():
            yield self._link(SimPage(child, 0), self.host_name(child))

    def _related_links(self, page: SimPage) -> Iterator[SimLink]:
        # Mostly the first pages of a host have links from other hosts, as on the real web.
        host, number = page
        dice = random.Random(self.mix("related", host, number))
        for _ in range(5):
            other = SimPage(host, int(self.sizes[host] * dice.random() ** 1.5))
            if other != page:
                yield self._link(other, fragment="content" if dice.random() < 0.2 else "")
        for _ in range(2 if self.hosts > 1 else 0):
            yield self._link(self._page_of_other_host(dice, host))

    def _page_of_other_host(self, dice: random.Random, host: int) -> SimPage:
        other = int((self.hosts - 1) * dice.random() ** 2)
        other += other >= host
        return SimPage(other, int(self.sizes[other] * dice.random() ** 3))

    def _special_links(self, page: SimPage) -> Iterator[SimLink]:
        """Yields links to URLs that are not pages; every root has one of each kind."""
        host, number = page
        dice = self.mix("odd", host, number) % 16
        if number == 0 or dice < 2:
            yield SimLink(self.special_url(host, "gone", number), "missing")
        if self.has_robots(host) and (number == 0 or dice in (2, 3)):
            yield SimLink(self.special_url(host, "private", number), "private")
        if number == 0 or dice == 4:
            yield SimLink(self.special_url(host, "hidden", number), "hidden", nofollow=True)
        if self.role(page) == "nofollow":
            yield SimLink(self.special_url(host, "hidden", number), "hidden")
        if self.hosts > 1 and (number == 0 or dice in (5, 6)):
            yield SimLink(self.special_url(host, "out", number), "elsewhere")
