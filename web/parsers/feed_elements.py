"""Feeds as values, with their limits; their elements, whatever prefixes they have, and base URLs (XML Base)."""

import dataclasses
import functools
import re
from typing import NamedTuple
from urllib.parse import urljoin

from ..pages.xml_events import Attributes

# Texts of feeds are kept in memory; no honest feed is that long.
MAX_FEED_CHARS = 16 << 20
MAX_TAGS = 50
MAX_PAGES = 100


class FeedText(NamedTuple):
    """A text of a feed.

    Attributes:
        value: The text, or HTML.
        is_markup: Whether it is HTML.
    """

    value: str = ""
    is_markup: bool = False


NO_TEXT = FeedText()


@dataclasses.dataclass(slots=True)
class FeedItem:
    """An item of a feed, or its channel.

    Attributes:
        title: Its title.
        summary: Its description.
        content: Its full text.
        link: URL of its page, absolute but not normalized; empty if there is none.
        base: URL that links in its texts are relative to; empty: the URL of its page.
        author: Name or address of its author.
        published: When it was published, as it stands there.
        updated: When it was changed, as it stands there.
        language: Its language, as it stands there.
        tags: Names of its categories, each once, at most 50.
    """

    title: FeedText = NO_TEXT
    summary: FeedText = NO_TEXT
    content: FeedText = NO_TEXT
    link: str = ""
    base: str = ""
    author: str = ""
    published: str = ""
    updated: str = ""
    language: str = ""
    tags: list[str] = dataclasses.field(default_factory=list)

    def add_tag(self, name: str) -> None:
        """Adds a category, unless it is there."""
        if name and len(self.tags) < MAX_TAGS and name not in self.tags:
            self.tags.append(name)


@dataclasses.dataclass(slots=True)
class Feed:
    """A feed.

    Attributes:
        form: ``rss``, ``rdf``, ``feed`` (Atom), or ``json``.
        channel: What it says about itself; ``summary`` is its subtitle.
        pages: (URL, rel) of its further pages (RFC 5005 3 and 4), at most 100.
        items: Its items, in its order.
        items_left_out: Number of items after the limit.
    """

    form: str
    channel: FeedItem = dataclasses.field(default_factory=FeedItem)
    pages: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    items: list[FeedItem] = dataclasses.field(default_factory=list)
    items_left_out: int = 0


# The elements of a feed itself have no prefix. URIs are in lower case, without a slash at the end.
_FEED_NAMESPACES = (
    "http://www.w3.org/2005/atom", "http://purl.org/atom/ns#", "http://purl.org/rss/1.0",
    "http://my.netscape.com/rdf/simple/0.9", "http://channel.netscape.com/rdf/simple/0.9",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://backend.userland.com/rss2",
)  # fmt: skip
_PREFIXES = {
    **dict.fromkeys(_FEED_NAMESPACES, ""),
    "http://purl.org/dc/elements/1.1": "dc",
    "http://purl.org/dc/terms": "dcterms",
    "http://purl.org/rss/1.0/modules/content": "content",
    "http://search.yahoo.com/mrss": "media",
    "http://www.itunes.com/dtds/podcast-1.0.dtd": "itunes",
    "http://www.w3.org/1999/xhtml": "xhtml",
}
# For prefixes that a feed does not declare.
_USUAL_PREFIXES = {"atom": "", "rdf": "", "rss": ""}
_MAX_CHARS = 4_096
# Of longer ones, only the end is split into segments.
_SHORT_CHARS = 256
_HAS_SCHEME_OR_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/?#\\]|\Z")
_STAND_IN = "http://h/"


class FeedField(NamedTuple):
    """A field of an item, or of the channel.

    Attributes:
        name: Its name in ``FeedItem``.
        rank: Of several elements for the field the one with the lowest rank counts, and of these
            the first.
        is_text: Whether it is a text for people, which may have mark-up.
    """

    name: str
    rank: int
    is_text: bool = False


# The elements of each field by their ranks, the lowest first.
_ELEMENTS = {
    "title": ("title", "dc:title", "media:title", "itunes:title"),
    "summary": (
        *("description summary subtitle tagline abstract", "dcterms:abstract media:description"),
        *("dc:description", "itunes:summary", "itunes:subtitle"),
    ),
    "content": ("content:encoded", "content fullitem", "xhtml:body body", "xhtml:div div"),
    # After links come those of another type than HTML.
    "link": ("link", "", "guid", "id"),
    "author": ("name", "author", "dc:creator", "itunes:author"),  # the name is in author
    "published": ("pubdate published issued", "dcterms:issued", "dcterms:created created"),
    "updated": ("updated modified", "dcterms:modified", "dc:date date", "lastbuilddate"),
    "language": ("language", "dc:language"),
    "tags": ("category dc:subject media:category",),
}
_TEXTS = frozenset({"title", "summary", "content"})
FIELDS = {
    element: FeedField(field, rank, field in _TEXTS)
    for field, elements_by_rank in _ELEMENTS.items()
    for rank, elements in enumerate(elements_by_rank)
    for element in elements.split()
}


ITEMS = frozenset({"item", "entry"})
# Fields of which one counts, so that further ones need not be read.
ONCE = frozenset({"title", "summary", "content", "author", "published", "updated", "language"})
# Elements that the start of the next field or item ends, if their own end tag is missing.
ENDS_AT_NEXT = FIELDS.keys() - {
    *("author", "name", "content", "fullitem", "body", "div", "xhtml:body", "xhtml:div"),
}


class FeedNames:
    """The names of elements in one document.

    >>> names = FeedNames()
    >>> names.declare({"xmlns:a": "http://www.w3.org/2005/Atom"})
    >>> names.plain("a:Title"), names.plain("media:title"), names.plain("odd:title")
    ('title', 'media:title', 'odd:title')
    """

    def __init__(self) -> None:
        self._prefixes = dict(_USUAL_PREFIXES)
        self._plain: dict[str, str] = {}

    def declare(self, attributes: Attributes) -> None:
        """Notes the namespaces that an element declares."""
        for attribute, uri in attributes.items():
            if attribute.startswith("xmlns:"):
                prefix = attribute.removeprefix("xmlns:")
                self._prefixes[prefix] = _PREFIXES.get(uri.strip().lower().rstrip("/"), prefix)
                self._plain.clear()

    def plain(self, name: str) -> str:
        """Returns a name in lower case, with the usual prefix of its namespace."""
        if (cached_name := self._plain.get(name)) is not None:
            return cached_name
        prefix, _, local = name.rpartition(":")
        space = self._prefixes.get(prefix, prefix).lower()
        plain = (f"{space}:{local}" if space else local).lower()
        if len(self._plain) < 1_000:
            self._plain[name] = plain
        return plain


class BaseUrls:
    """The base URLs of the open elements.

    They are resolved when they are used, for most are not.

    >>> bases = BaseUrls("http://example.com/feed")
    >>> bases.push("a/")
    >>> bases.push("")
    >>> bases.current(), bases.join("../b")
    ('http://example.com/a/', 'http://example.com/b')
    """

    def __init__(self, url: str) -> None:
        self._resolved = [url]
        self._xml_bases: list[str] = []

    def push(self, xml_base: str) -> None:
        """Opens an element, with its ``xml:base``; empty if it has none."""
        self._xml_bases.append(xml_base)

    def pop(self) -> None:
        """Closes the innermost element."""
        self._xml_bases.pop()
        del self._resolved[len(self._xml_bases) + 1 :]

    def current(self) -> str:
        """Returns the base URL of the innermost element."""
        resolved = self._resolved
        for xml_base in self._xml_bases[len(resolved) - 1 :]:
            base = xml_base.strip() if len(xml_base) <= _MAX_CHARS else ""
            resolved_url = join_url(resolved[-1], base) if base else ""
            resolved.append(resolved_url if 0 < len(resolved_url) <= _MAX_CHARS else resolved[-1])
        return resolved[-1]

    def join(self, href: str) -> str:
        """Returns a link as an absolute URL, with its characters as they stand there."""
        return join_url(self.current(), href)


def join_url(base: str, href: str) -> str:
    """Returns ``urljoin`` of a base and a reference; odd hosts: the reference.

    Its time does not depend on the number of segments of the base.

    >>> join_url("http://example.com/" + "a/" * 200 + "b", "../c")[-10:]
    '/a/a/a/a/c'
    """
    try:
        if len(base) <= _SHORT_CHARS or _HAS_SCHEME_OR_ROOT.match(href):
            return urljoin(base, href)
        segment_count = href.count("..") + 2
        start, *segments = _folder(base).rsplit("/", segment_count)
        if len(segments) < segment_count or start.count("/", 0, _SHORT_CHARS) < 3:
            return urljoin(base, href)
        joined_url = urljoin(_STAND_IN + "/".join(segments), href)
        return f"{start}/{joined_url.removeprefix(_STAND_IN)}"
    except ValueError:
        return href


@functools.lru_cache(16)
def _folder(base: str) -> str:
    return urljoin(base, ".")
