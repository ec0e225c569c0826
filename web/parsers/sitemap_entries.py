"""Reads sitemaps as lists of entries: sitemaps.org's XML, indexes, RSS, Atom, and lists of URLs.

A page of the crawl that is a sitemap is read by ``sitemap.py``: only its links count there. The job
``sitemap`` needs dates and priorities, too, and must not hold a large sitemap in memory twice.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..pages.directives import header_directives, parse_moment
from ..pages.page import ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import CHARACTERS, START, Attributes, Event, xml_events
from .sitemap_stream import INVALID, unpacked_stream, utf8_stream

URL, CHILD_SITEMAP = "url", "sitemap"
ALTERNATE, IMAGE, VIDEO = "alternate", "image", "video"
LINK_KINDS = (ALTERNATE, IMAGE, VIDEO)
FREQUENCIES = ("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")

_MAX_CHARS = 4_096
_MAX_VALUE_CHARS = 100
# Depth at which the entries of each kind of document are.
_ENTRY_DEPTHS = {"urlset": 1, "sitemapindex": 1, "rss": 2, "rdf": 1, "feed": 1}
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_LOCATIONS = frozenset({"loc", "link", "guid"})
_DATES = {"lastmod": 3, "updated": 3, "date": 2, "modified": 2, "pubdate": 2, "published": 1,
          "publication_date": 1}  # fmt: skip
# Element around a link, and the element with the link.
_EXTENSIONS = {
    ("image", "loc"): IMAGE,
    ("video", "content_loc"): VIDEO,
    ("video", "player_loc"): VIDEO,
}
_TEXTS = _LOCATIONS | _DATES.keys() | {"changefreq", "priority"} | {name for _, name in _EXTENSIONS}
# W3C dates may be those of a month, or of a year.
_NO_DAY = re.compile(r"\d{4}(?:-\d\d)?")
_HTML = re.compile(
    rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_WEB_URL = re.compile(r"(?i)https?://[^\s]")
_LINES_LOOKED_AT = 100


class SitemapEntry(NamedTuple):
    """An entry of a sitemap, or a link of an entry.

    Attributes:
        kind: ``url``, ``sitemap`` (of an index), or one of ``LINK_KINDS``.
        url: As it stands there; it may be relative.
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
        form: ``urlset``, ``sitemapindex``, ``rss``, ``rdf``, ``feed``, or ``text``.
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
        links: Kinds of links that are wanted, of ``LINK_KINDS``.

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
    reader = _Reader(max_urls, frozenset(links), dropped)
    pieces = utf8_stream(unpacked_stream(source.body, max_bytes, dropped), source.content_type)
    first = next(pieces, b"")
    whole = itertools.chain((first,), pieces)
    try:
        if not first.startswith(b"<"):
            reader.read_lines(_lines(whole))
        elif _HTML.match(first[:4096]):
            raise ParseFailed("not_a_sitemap")
        else:
            reader.read_events(xml_events(whole, "utf-8"))
    except ParseFailed as mistake:
        if not reader.entries:
            raise
        # After a limit the document ends within an element: that is no further mistake.
        if not (mistake.reason == "malformed_xml" and dropped["too_large"]):
            dropped[mistake.reason] += 1
    return SitemapContent(reader.form, reader.entries, +dropped)


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yields lines; of a line that is too long only its start."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).replace(b"\r", b"\n").split(b"\n")
        yield from (line[: 4 * _MAX_CHARS].decode("utf-8", "replace") for line in lines)
        rest = rest[: 4 * _MAX_CHARS + 1]
    yield rest.decode("utf-8", "replace")


class _Reader:
    """Collects the entries of a document.

    Args:
        most: Entries at most.
        links: Kinds of links that are wanted.
        dropped: Counts of dropped entries, by reason.
    """

    def __init__(self, most: int, links: frozenset[str], dropped: Counter[str]) -> None:
        self.form = ""
        self.entries: list[SitemapEntry] = []
        self._most, self._wanted, self._dropped = most, links, dropped
        self._urls = self._links = 0
        self._values: dict[str, str] = {}
        self._date = (0, "")
        self._found: list[SitemapEntry] = []  # links of the entry

    def read_lines(self, lines: Iterable[str]) -> None:
        """Reads a list of URLs, one a line."""
        self.form = "text"
        for number, line in enumerate(filter(None, map(str.strip, lines))):
            if _WEB_URL.match(line):
                self._add(SitemapEntry(URL, line))
            else:
                self._dropped["not_a_url"] += 1
                if number >= _LINES_LOOKED_AT and not self.entries:
                    break
        if not self.entries:
            raise ParseFailed("not_a_sitemap")

    def read_events(self, events: Iterable[Event]) -> None:
        """Reads XML of any form."""
        path: list[str] = []
        entry_depth, inside, text = 0, "", ""
        for kind, value, attributes in events:
            if kind == CHARACTERS:
                if inside and len(text) <= _MAX_CHARS:
                    text += value[: _MAX_CHARS + 1]
            elif kind == START:
                name = value.lower()
                path.append(name)
                text = ""
                if len(path) == 1:
                    entry_depth = self._begin(name)
                elif len(path) == entry_depth + 1 and name in _ENTRIES:
                    inside = name
                    self._values, self._date, self._found = {}, (0, ""), []
                elif inside and name == "link":
                    self._take_link(attributes)
            else:
                name = path.pop()
                if inside and len(path) == entry_depth:
                    self._end_entry(inside)
                    inside = ""
                elif inside and name in _TEXTS:
                    self._take(name, path[-1], len(path) - entry_depth, text.strip())
                text = ""

    def _begin(self, root: str) -> int:
        """Returns the depth of entries in a document with this root."""
        if root not in _ENTRY_DEPTHS:
            raise ParseFailed("not_a_sitemap")
        self.form = root
        return _ENTRY_DEPTHS[root]

    def _take_link(self, attributes: Attributes) -> None:
        """Processes Atom's ``link``, and ``xhtml:link`` of a sitemap."""
        href = attributes.get("href", "").strip()
        rel = attributes.get("rel", ALTERNATE).lower()
        if not href or rel != ALTERNATE:
            return
        if self.form in ("feed", "rss", "rdf"):
            self._values.setdefault("link", href)
        else:
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
        if self._links + len(self._found) >= self._most:
            self._dropped["too_many_links"] += 1
        else:
            self._found.append(SitemapEntry(kind, url))

    def _end_entry(self, name: str) -> None:
        values = self._values
        url = values.get("loc") or values.get("link") or self._permalink()
        found, self._found = self._found, []
        if not url:
            self._dropped["no_url"] += 1
            return
        kind = CHILD_SITEMAP if name == "sitemap" else URL
        added = self._add(
            SitemapEntry(kind, url, self._lastmod(), self._changefreq(), self._priority())
        )
        for link in found if added else ():
            self._links += 1
            self._append(link)

    def _permalink(self) -> str:
        """Returns the ``guid`` of an item, which is a URL unless it says otherwise."""
        guid = self._values.get("guid", "")
        return guid if _WEB_URL.match(guid) else ""

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
        self.entries.append(entry)
        return True

    def _lastmod(self) -> int | None:
        date = self._date[1]
        if not date:
            return None
        whole = date + "-01" * (2 - date.count("-")) if _NO_DAY.fullmatch(date) else date
        moment = parse_moment(whole)
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
