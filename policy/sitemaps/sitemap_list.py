"""Options of sitemaps, and which are requested: given ones, those of hosts, those that indexes name."""

import dataclasses
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import polars as pl

from ...web.base.dataclass import dataclass
from ...web.base.joined_options import joined_options
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


@dataclass(frozen=True)
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


@joined_options
class SitemapOptions(
    SitemapLimits, TargetOptions, CheckedScheduleOptions, ScoringOptions, BudgetOptions
):
    """Options of reading sitemaps, and of adding their URLs to the table."""


@dataclass(frozen=True)
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
        hops: Number of redirects in a row that led to it.
    """

    url: str
    root: str
    places: tuple[str, ...]
    depth: int = 0
    of_host: bool = False
    by_operator: bool = False
    vouching: tuple[str, ...] = ()
    hops: int = 0

    @property
    def source(self) -> str:
        """What it was reached from, as a name: a given sitemap, or a host."""
        return f"{'given' if self.by_operator else 'host'} {self.root}"


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
        done: Sources that are left out, because an earlier attempt is done with them.
    """

    def __init__(self, options: SitemapOptions, done: AbstractSet[str] = frozenset()) -> None:
        self._options = options
        # URLs of sitemaps need no match with the rules for pages, which refuse .gz.
        self._rules = UrlRules(
            dataclasses.replace(options, include=(), exclude=(), no_filter=True, no_normalize=True)
        )
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self._of_root: Counter[str] = Counter()
        self._waiting: list[Sitemap] = []
        self._done = done
        self._dropped: dict[str, Counter[str]] = defaultdict(Counter)

    @property
    def dropped(self) -> Counter[str]:
        """Counts of sitemaps that are not requested, by reason."""
        with self._lock:
            return sum(self._dropped.values(), Counter())

    def take_dropped(self, source: str) -> Counter[str]:
        """Returns the counts of a source since the last call; the source of bad URLs is empty."""
        with self._lock:
            return self._dropped.pop(source, Counter())

    def take(self) -> list[Sitemap]:
        """Returns the sitemaps since the last call."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return waiting

    def take_over(self, sitemap: Sitemap, files: int) -> None:
        """Adds a sitemap that another list has met.

        Args:
            sitemap: The sitemap.
            files: Number of sitemaps that the other list has met of its root, see ``files_of``.
        """
        with self._lock:
            root = _root_of(sitemap)
            self._of_root[root] = max(self._of_root[root], files - 1)
        self._add(sitemap)

    def files_of(self, sitemap: Sitemap) -> int:
        """Returns the number of sitemaps that were met of the root of a sitemap."""
        with self._lock:
            return self._of_root[_root_of(sitemap)]

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
        admitted_urls = (self._admit(url, sitemap.source) for url in urls)
        named = [admitted for admitted in admitted_urls if admitted is not None]
        for url in named:
            if url != sitemap.url:
                places = (place_of_sitemap(url), *sitemap.places)
                named_one = dataclasses.replace(sitemap, url=url, places=places, of_host=False)
                self._add(dataclasses.replace(named_one, hops=0))
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
        admitted = self._admit(url, parent.source)
        if admitted is None:
            return
        hosts = {site_of(parent.url), *parent.vouching}
        if parent.depth >= self._options.sitemap_depth:
            self._drop("too_deep", parent.source)
        elif self._options.sitemap_strict_parsing and site_of(admitted) not in hosts:
            self._drop("foreign", parent.source)
        else:
            # The index vouches for what it names, so its own places count, too.
            places = tuple(dict.fromkeys((*parent.places, place_of_sitemap(admitted))))
            child = dataclasses.replace(parent, url=admitted, places=places, of_host=False)
            self._add(dataclasses.replace(child, depth=parent.depth + 1, hops=0))

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
        admitted = self._admit(url, sitemap.source)
        if admitted is None:
            return None
        if hops >= self._options.sitemap_redir_max:
            self._drop("too_many_redirects", sitemap.source)
            return None
        hosts = {place.partition("/")[0] for place in (*sitemap.places, *sitemap.vouching)}
        strict = self._options.sitemap_strict_parsing and sitemap.depth > 0
        if strict and site_of(admitted) not in hosts:  # as if the index had named it
            self._drop("foreign", sitemap.source)
            return None
        places = (*sitemap.places, place_of_sitemap(admitted))
        target = dataclasses.replace(sitemap, url=admitted, places=places, of_host=False)
        target = dataclasses.replace(target, hops=hops + 1)
        return target if self._meet(target) else None

    def _admit(self, url: str, source: str = "") -> str | None:
        admitted, _, reason = self._rules.admit(
            pl.Series([url.strip()]), "default", filters=False
        ).row(0)
        if admitted is None or not host_of_url(admitted):
            self._drop(reason or "malformed", source)
            return None
        return str(admitted)

    def _add(self, sitemap: Sitemap) -> None:
        if sitemap.source not in self._done and self._meet(sitemap):
            with self._lock:
                self._waiting.append(sitemap)

    def _meet(self, sitemap: Sitemap) -> bool:
        """Returns whether a sitemap is new, and within the limit of its root."""
        with self._lock:
            if sitemap.url in self._known:
                self._dropped[sitemap.source]["repeated"] += 1
                return False
            root = _root_of(sitemap)
            if self._of_root[root] >= self._options.sitemap_files_max:
                self._dropped[sitemap.source]["too_many"] += 1
                return False
            self._known.add(sitemap.url)
            self._of_root[root] += 1
        return True

    def _drop(self, reason: str, source: str) -> None:
        with self._lock:
            self._dropped[source][reason] += 1


def _root_of(sitemap: Sitemap) -> str:
    """Returns for what the number of sitemaps is limited: a given sitemap, or a host."""
    return sitemap.root if sitemap.by_operator else site_of(sitemap.root)
