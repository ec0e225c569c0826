"""Reads sitemaps as lists of entries: sitemaps.org's XML, indexes, feeds, and lists of URLs.

A page of the crawl that is a sitemap is read by ``sitemap.py``: only its links count there. The job
``sitemap`` needs dates and priorities, too, and must not hold a large sitemap in memory twice.
Feeds are read as pages of the crawl that are feeds.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..content.content_type import ALTERNATE, IMAGE, VIDEO
from ..pages.directives import header_directives
from ..pages.page import ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import CHARACTERS, START, Attributes, Event, repair_pieces, xml_events
from .feed_elements import MAX_FEED_CHARS, Feed
from .feed_reader import WEB_URL, read_feed
from .json_text import load_json_feed
from .sitemap import (
    ENTRIES,
    INVALID,
    moment_of_lastmod,
    unpacked_stream,
    url_of_markup,
    utf8_stream,
)

URL, CHILD_SITEMAP = "url", "sitemap"
FREQUENCIES = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")

_MAX_CHARS = 4_096
_MAX_VALUE_CHARS = 100
_ROOTS = frozenset({"urlset", "sitemapindex"})
_ENTRY_DEPTH = 1
# Of several dates the one with the highest number counts.
_DATES = {"lastmod": 2, "publication_date": 1}
# Element around a link, and the element with the link.
_EXTENSIONS = {
    ("image", "loc"): IMAGE,
    ("video", "content_loc"): VIDEO,
    ("video", "player_loc"): VIDEO,
}
_TEXTS = _DATES.keys() | {"loc", "changefreq", "priority"} | {name for _, name in _EXTENSIONS}
# The root element, after declarations and comments.
_ROOT = re.compile(
    rb"(?:\s++|<!--(?:(?!-->).)*+-->|<\?(?:(?!\?>).)*+\?>"
    rb"|<!doctype[^<>\[]*+(?:\[[^\]]*+\]\s*+)?>)*+<(?:[\w.-]{1,40}:)?([a-z]{1,40})[\s/>]",
    re.IGNORECASE | re.DOTALL,
)
_FEEDS = frozenset({b"rss", b"rdf", b"feed"})
_HTML = frozenset({b"html", b"head", b"body"})
_NO_SITEMAP = "not_a_sitemap"
_LINES_LOOKED_AT = 100


class SitemapEntry(NamedTuple):
    """An entry of a sitemap, or a link of an entry.

    Attributes:
        kind: ``url``, ``sitemap`` (of an index), or one of ``content_type.LINK_KINDS``.
        url: It may be relative. As it stands in a text, else as ``url_of_markup`` has it.
        lastmod: UTC ms of the last change; None: not known.
        changefreq: One of ``FREQUENCIES``, or None.
        priority: 0 to 1, or None.
    """

    kind: str
    url: str
    lastmod: int | None = None
    changefreq: str | None = None
    priority: float | None = None


class SitemapContent(NamedTuple):
    """The content of a sitemap.

    Attributes:
        form: ``urlset``, ``sitemapindex``, ``rss``, ``rdf``, ``feed``, ``json``, or ``text``.
        entries: Its entries; the links of an entry follow it.
        dropped: Counts of what was lost, by reason; ``malformed``: URLs with bytes that are invalid
            in the encoding of the document.
    """

    form: str
    entries: list[SitemapEntry]
    dropped: Counter[str]


def read_sitemap(
    source: Source, max_urls: int = 50_000, max_bytes: int = 50 << 20, links: Iterable[str] = ()
) -> SitemapContent:
    """Reads a sitemap as a stream; what comes after a limit or a mistake is lost, and counted.

    Args:
        source: The document; gzip is unpacked, whatever its name and type are.
        max_urls: Entries at most, and links of entries at most; more are counted as
            ``too_many_urls`` and ``too_many_links``.
        max_bytes: Size at most, unpacked; ``too_large``.
        links: Kinds of links that are wanted, of ``content_type.LINK_KINDS``.

    Raises:
        ParseFailed: Nothing can be read of it: ``not_a_sitemap`` (HTML, other XML, text without
            URLs), ``not_text``, ``malformed_gzip``, ``malformed_xml``, ``xml_entities``,
            ``too_complex``, ``page_nofollow`` (X-Robots-Tag).

    >>> body = b"<urlset><url><loc>/a</loc><lastmod>2026-01-02</lastmod></url></urlset>"
    >>> content = read_sitemap(Source("http://example.com/sitemap.xml", body))
    >>> content.form, content.entries[0].url, content.entries[0].lastmod
    ('urlset', '/a', 1767312000000)
    """
    if "nofollow" in header_directives(source, ParseOptions()):
        raise ParseFailed("page_nofollow")
    dropped: Counter[str] = Counter()
    unpacked = unpacked_stream(source.body, max_bytes, dropped)
    charset, pieces = utf8_stream(unpacked, source.content_type)
    reader = _Reader(max_urls, frozenset(links), dropped, charset)
    first = next(pieces, b"")
    all_pieces = itertools.chain((first,), pieces)
    root_match = _ROOT.match(first)
    root = root_match[1].lower() if root_match else b""
    try:
        if first.startswith(b"{"):
            reader.read_feed(load_json_feed(_text(all_pieces, dropped), source.url, max_urls))
        elif not first.startswith(b"<"):
            reader.read_lines(_lines(all_pieces))
        elif root in _HTML:
            raise ParseFailed(_NO_SITEMAP)
        elif root in _FEEDS:
            reader.read_feed(read_feed(_text(all_pieces, dropped), source.url, max_urls))
        else:
            reader.read_events(xml_events(repair_pieces(all_pieces), "utf-8"))
    except ParseFailed as mistake:
        if not reader.entries:
            raise
        # After a limit the document ends within an element: that is no further mistake.
        if not (mistake.reason == "malformed_xml" and dropped["too_large"]):
            dropped[mistake.reason] += 1
    return SitemapContent(reader.form, reader.entries, +dropped)


def _text(pieces: Iterable[bytes], dropped: Counter[str]) -> str:
    """Returns the start of a document, as much as a feed may have."""
    text = b"".join(pieces).decode("utf-8", "replace")
    dropped["too_large"] += len(text) > MAX_FEED_CHARS
    return text[:MAX_FEED_CHARS]


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yields lines; of a line that is too long only its start."""
    line_start = b""
    for piece in pieces:
        *lines, line_start = (line_start + piece).replace(b"\r", b"\n").split(b"\n")
        yield from (line[: 4 * _MAX_CHARS].decode("utf-8", "replace") for line in lines)
        line_start = line_start[: 4 * _MAX_CHARS + 1]
    yield line_start.decode("utf-8", "replace")


class _Reader:
    """Collects the entries of a document.

    Args:
        most: Entries at most.
        links: Kinds of links that are wanted.
        dropped: Counts of dropped entries, by reason.
        charset: Name of the encoding of the document.
    """

    def __init__(
        self, most: int, links: frozenset[str], dropped: Counter[str], charset: str
    ) -> None:
        self.form = ""
        self._charset = charset
        self.entries: list[SitemapEntry] = []
        self._most, self._wanted, self._dropped = most, links, dropped
        self._urls = self._links = 0
        self._values: dict[str, str] = {}
        self._date = (0, "")
        self._entry_links: list[SitemapEntry] = []  # links of the entry

    def read_lines(self, lines: Iterable[str]) -> None:
        """Reads a list of URLs, one a line."""
        self.form = "text"
        for number, line in enumerate(filter(None, map(str.strip, lines))):
            if WEB_URL.match(line):
                self._add(SitemapEntry(URL, line))
            else:
                self._dropped["not_a_url"] += 1
                if number >= _LINES_LOOKED_AT and not self.entries:
                    break
        if not self.entries:
            raise ParseFailed(_NO_SITEMAP)

    def read_feed(self, feed: Feed | None) -> None:
        """Takes the items of a feed; None: there is no feed."""
        if feed is None:
            raise ParseFailed(_NO_SITEMAP)
        self.form = feed.form
        for item in feed.items:
            self._date = (0, (item.updated or item.published)[:_MAX_VALUE_CHARS])
            if item.link:
                self._add(SitemapEntry(URL, item.link, self._lastmod()))
            else:
                self._dropped["no_url"] += 1
        if feed.items_left_out:
            self._dropped["too_many_urls"] += feed.items_left_out

    def read_events(self, events: Iterable[Event]) -> None:
        """Reads the XML of a sitemap or of an index."""
        path: list[str] = []
        inside, text = "", ""
        for kind, value, attributes in events:
            if kind == CHARACTERS:
                if inside and len(text) <= _MAX_CHARS:
                    text += value[: _MAX_CHARS + 1]
            elif kind == START:
                name = value.lower()
                path.append(name)
                text = ""
                if len(path) == 1:
                    self._begin(name)
                elif len(path) == _ENTRY_DEPTH + 1 and name in ENTRIES:
                    inside = name
                    self._values, self._date, self._entry_links = {}, (0, ""), []
                elif inside and name == "link":
                    self._take_link(attributes)
            else:
                name = path.pop()
                if inside and len(path) == _ENTRY_DEPTH:
                    self._end_entry(inside)
                    inside = ""
                elif inside and name in _TEXTS:
                    self._take(name, path[-1], len(path) - _ENTRY_DEPTH, text.strip())
                text = ""

    def _begin(self, root: str) -> None:
        if root not in _ROOTS:
            raise ParseFailed(_NO_SITEMAP)
        self.form = root

    def _take_link(self, attributes: Attributes) -> None:
        """Processes ``xhtml:link``."""
        href = attributes.get("href", "").strip()
        if href and attributes.get("rel", ALTERNATE).lower() == ALTERNATE:
            self._take_extension(ALTERNATE, href)

    def _take(self, name: str, parent: str, depth: int, text: str) -> None:
        """Processes the text of an element of an entry, or of an extension in it."""
        if not text:
            return
        if name in _DATES and depth <= 2:
            self._date = max(self._date, (_DATES[name], text[:_MAX_VALUE_CHARS]))
        elif depth == 1:
            self._values.setdefault(name, text)
        elif (parent, name) in _EXTENSIONS:
            self._take_extension(_EXTENSIONS[parent, name], text)

    def _take_extension(self, kind: str, url: str) -> None:
        if kind not in self._wanted:
            return
        if self._links + len(self._entry_links) >= self._most:
            self._dropped["too_many_links"] += 1
        else:
            self._entry_links.append(SitemapEntry(kind, url))

    def _end_entry(self, name: str) -> None:
        values = self._values
        url = values.get("loc")
        links, self._entry_links = self._entry_links, []
        if not url:
            self._dropped["no_url"] += 1
            return
        kind = CHILD_SITEMAP if name == "sitemap" else URL
        is_added = self._add(
            SitemapEntry(kind, url, self._lastmod(), self._changefreq(), self._priority())
        )
        for link in links if is_added else ():
            self._links += 1
            self._append(link)

    def _add(self, entry: SitemapEntry) -> bool:
        self._urls += 1
        if self._urls > self._most:
            self._dropped["too_many_urls"] += 1
            return False
        return self._append(entry)

    def _append(self, entry: SitemapEntry) -> bool:
        if len(entry.url) > _MAX_CHARS:
            self._dropped["url_too_long"] += 1
            return False
        if INVALID in entry.url:
            self._dropped["malformed"] += 1
            return False
        url = entry.url if self.form == "text" else url_of_markup(entry.url, self._charset)
        self.entries.append(entry if url == entry.url else entry._replace(url=url))
        return True

    def _lastmod(self) -> int | None:
        date = self._date[1]
        if not date:
            return None
        moment = moment_of_lastmod(date)
        if moment is None or moment <= 0:
            self._dropped["bad_lastmod"] += 1
            return None
        return moment

    def _changefreq(self) -> str | None:
        value = self._values.get("changefreq", "").lower()
        if value and value not in FREQUENCIES:
            self._dropped["bad_changefreq"] += 1
            return None
        return value or None

    def _priority(self) -> float | None:
        value = self._values.get("priority", "")
        if not value:
            return None
        try:
            number = float(value[:_MAX_VALUE_CHARS])
        except ValueError:
            number = -1.0
        if 0.0 <= number <= 1.0:  # NaN is refused, too
            return number
        self._dropped["bad_priority"] += 1
        return None
