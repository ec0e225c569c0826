"""Options of sitemaps, and which are requested: given ones, those of hosts, those that indexes name."""

import dataclasses
import re
import threading
from collections import Counter
from collections.abc import Iterable

import polars as pl

from ...web.base.options import option
from ...web.content.content_type import ALTERNATE, LINK_KINDS
from ...web.rules.url_rules import UrlRules
from ...web.urls.url_parts import host_of_url
from ..schedules.reschedule import CheckedScheduleOptions
from ..scope import TargetOptions
from ..scoring.scoring import ScoringOptions
from ..traps import BudgetOptions

DEFAULT_PATH = "/sitemap.xml"
# Why the default sitemap of a host is not requested.
OTHERS_NAMED, NONE_NAMED = "others_in_robots_txt", "none_in_robots_txt"
_PLACE = re.compile(r"[a-z][a-z0-9+.-]*://([^/?]*)(/[^?]*)?")


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


@dataclasses.dataclass(frozen=True)
class Sitemap:
    """A sitemap to request.

    Attributes:
        url: Its normalized URL.
        root: URL that it was reached from: the given sitemap, or the home page of the host that
            names it. The scope of a crawl counts from there.
        places: Hosts with folders, such as ``example.com/news/``, below which its URLs may be.
        depth: Number of indexes that led to it.
        of_host: Whether it is one that a host may have: it is requested if robots.txt names none.
        by_operator: Whether the operator has named it.
        vouching: Hosts, such as ``example.com``, whose robots.txt has named it or its index.
    """

    url: str
    root: str
    places: tuple[str, ...]
    depth: int = 0
    of_host: bool = False
    by_operator: bool = False
    vouching: tuple[str, ...] = ()


def place_of_sitemap(url: str) -> str:
    """Returns host, port and folder of a URL.

    >>> place_of_sitemap("https://example.com:8080/news/sitemap.xml?page=1")
    'example.com:8080/news/'
    """
    match = _PLACE.match(url)
    if match is None:
        return url
    return match[1] + (match[2] or "/").rpartition("/")[0] + "/"


def site_of(url: str) -> str:
    """Returns host and port of a URL.

    >>> site_of("https://example.com/news/")
    'example.com'
    """
    return place_of_sitemap(url).partition("/")[0]


class SitemapList:
    """The sitemaps of one operation, each once; safe to use in any thread.

    Args:
        options: Limits.

    Attributes:
        dropped: Counts of sitemaps that are not requested, by reason.
    """

    def __init__(self, options: SitemapOptions) -> None:
        self._options = options
        # URLs of sitemaps need no match with the rules for pages, which refuse .gz.
        self._rules = UrlRules(
            dataclasses.replace(options, include=(), exclude=(), no_filter=True, no_normalize=True)
        )
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self._of_root: Counter[str] = Counter()
        self._waiting: list[Sitemap] = []
        self.dropped: Counter[str] = Counter()

    def take(self) -> list[Sitemap]:
        """Returns the sitemaps since the last call."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return waiting

    def add_given(self, urls: Iterable[str]) -> None:
        """Adds sitemaps that the operator names."""
        for url in urls:
            if (admitted := self._admit(url)) is not None:
                places = (place_of_sitemap(admitted),)
                self._add(Sitemap(admitted, admitted, places, by_operator=True))

    def add_host(self, origin: str) -> None:
        """Adds the sitemap that a host may have; see ``add_of_robots``.

        Args:
            origin: ``scheme://host[:port]``.
        """
        admitted = self._admit(origin + DEFAULT_PATH)
        if admitted is not None:
            home = site_of(admitted)
            self._add(Sitemap(admitted, admitted, (f"{home}/",), of_host=True, vouching=(home,)))

    def add_of_robots(self, sitemap: Sitemap, urls: Iterable[str]) -> str | None:
        """Adds what robots.txt of a host names; returns why its default is not requested, or None.

        Args:
            sitemap: The default sitemap of the host.
            urls: URLs in its robots.txt.
        """
        named = [admitted for url in urls if (admitted := self._admit(url)) is not None]
        for url in named:
            if url != sitemap.url:
                places = (place_of_sitemap(url), *sitemap.places)
                self._add(dataclasses.replace(sitemap, url=url, places=places, of_host=False))
        if named:
            return None if sitemap.url in named else OTHERS_NAMED
        return None if self._options.sitemap_url_default_sitemap_xml else NONE_NAMED

    def vouch_for(self, sitemap: Sitemap, urls: Iterable[str]) -> Sitemap:
        """Returns a sitemap; it may name all URLs of its host if robots.txt of its host names it.

        Args:
            sitemap: The sitemap.
            urls: URLs in that robots.txt.
        """
        home = site_of(sitemap.url)
        if home in sitemap.vouching or not any(self._is_same(sitemap, url) for url in urls):
            return sitemap
        places = (*sitemap.places, f"{home}/")
        return dataclasses.replace(sitemap, places=places, vouching=(*sitemap.vouching, home))

    def add_child(self, parent: Sitemap, url: str) -> None:
        """Adds a sitemap that an index names; strictly, it must be on a host of its index."""
        admitted = self._admit(url)
        if admitted is None:
            return
        hosts = {site_of(parent.url), *parent.vouching}
        if parent.depth >= self._options.sitemap_depth:
            self._drop("too_deep")
        elif self._options.sitemap_strict_parsing and site_of(admitted) not in hosts:
            self._drop("foreign")
        else:
            # The index vouches for what it names, so its own places count, too.
            places = tuple(dict.fromkeys((*parent.places, place_of_sitemap(admitted))))
            child = dataclasses.replace(parent, url=admitted, places=places, of_host=False)
            self._add(dataclasses.replace(child, depth=parent.depth + 1))

    def is_own(self, sitemap: Sitemap, url: str) -> bool:
        """Returns whether the target of a redirect is the URL of the sitemap in another spelling."""
        same_host = (host_of_url(url) or "").rstrip(".") == host_of_url(sitemap.url)
        return same_host and self._is_same(sitemap, url)

    def _is_same(self, sitemap: Sitemap, url: str) -> bool:
        key = self._rules.key_of(url.strip(), "default")
        return key == self._rules.key_of(sitemap.url, "default")

    def follow_redirect(self, sitemap: Sitemap, url: str, hops: int) -> Sitemap | None:
        """Returns the target of a redirect, or None if it is not followed.

        Args:
            sitemap: The sitemap that redirects.
            url: The target.
            hops: Number of redirects that led to ``sitemap``.
        """
        admitted = self._admit(url)
        if admitted is None:
            return None
        if hops >= self._options.sitemap_redir_max:
            self._drop("too_many_redirects")
            return None
        hosts = {place.partition("/")[0] for place in (*sitemap.places, *sitemap.vouching)}
        strict = self._options.sitemap_strict_parsing and sitemap.depth > 0
        if strict and site_of(admitted) not in hosts:  # as if the index had named it
            self._drop("foreign")
            return None
        places = (*sitemap.places, place_of_sitemap(admitted))
        target = dataclasses.replace(sitemap, url=admitted, places=places, of_host=False)
        return target if self._meet(target) else None

    def _admit(self, url: str) -> str | None:
        admitted, _, reason = self._rules.admit(
            pl.Series([url.strip()]), "default", filters=False
        ).row(0)
        if admitted is None or not host_of_url(admitted):
            self._drop(reason or "malformed")
            return None
        return str(admitted)

    def _add(self, sitemap: Sitemap) -> None:
        if self._meet(sitemap):
            with self._lock:
                self._waiting.append(sitemap)

    def _meet(self, sitemap: Sitemap) -> bool:
        """Returns whether a sitemap is new, and within the limit of its root."""
        with self._lock:
            if sitemap.url in self._known:
                self.dropped["repeated"] += 1
                return False
            root = sitemap.root if sitemap.by_operator else site_of(sitemap.root)
            if self._of_root[root] >= self._options.sitemap_files_max:
                self.dropped["too_many"] += 1
                return False
            self._known.add(sitemap.url)
            self._of_root[root] += 1
        return True

    def _drop(self, reason: str) -> None:
        with self._lock:
            self.dropped[reason] += 1
