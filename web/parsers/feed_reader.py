"""Reads feeds in XML: RSS 0.9 to 2.0, RDF, Atom 0.3 and 1.0, with the extensions of podcasts and media.

Pages of a crawl and the job ``sitemap`` read feeds by this.
"""

import html
import re
from collections.abc import Iterable
from urllib.parse import urljoin

from ..pages.page import ParseFailed
from ..pages.xml_events import (
    CHARACTERS,
    NO_ATTRIBUTES,
    START,
    Attributes,
    Event,
    MalformedXml,
    text_events,
)
from ..pages.xml_soup import soup_events
from .feed_items import MAX_FEED_CHARS, NO_TEXT, Feed, FeedItem, FeedText
from .feed_names import FIELDS, FeedField, FeedNames

MALFORMED_FEED = "malformed_feed"
_ROOTS = frozenset({"rss", "rdf", "feed"})
_CHANNELS = frozenset({"channel", "feed"})
_ITEMS = frozenset({"item", "entry"})
# An item within one is the next: that one was left open.
_AROUND_ITEMS = _ROOTS | _CHANNELS | _ITEMS
_MEDIA_GROUPS = frozenset({"media:group", "media:content"})
_FURTHER_PAGES = frozenset({"next", "prev-archive"})
_WEB_URL = re.compile(r"(?i)https?://[^\s]")
# In an Atom text that does not say what it is: mark-up all the same.
_MARKUP = re.compile(r"</[A-Za-z]\w*\s*>|<(?:br|hr|img|p)\b[^<>]*>|&#?\w+;", re.IGNORECASE)
_PLAIN_TYPES = frozenset({"text", "plain", "text/plain"})
_MARKUP_TYPES = frozenset({"html", "xhtml", "text/html", "application/xhtml+xml"})
_MAX_VALUE_CHARS = 4_096
# A link of another type than HTML is the worse one.
_OTHER_TYPE_RANK = 1


def read_feed(text: str, url: str, most_items: int) -> Feed:
    """Reads a feed.

    Mistakes of mark-up are tolerated. Of a feed that is cut, the part before the cut is read.

    Args:
        text: The document, decoded.
        url: Absolute URL of the document.
        most_items: How many items to keep; others are counted.

    Raises:
        ParseFailed: ``malformed_feed``: it is no feed. ``xml_entities``: it declares entities.
            ``too_complex``: it nests too deep. ``too_large``: it has over 16 Mi characters.

    >>> body = "<rss><channel><title>News</title><item><title>A & B</title><link>/a</link></item>"
    >>> feed = read_feed(body, "http://example.com/feed", 10)
    >>> feed.channel.title.value, feed.items[0].title.value, feed.items[0].link
    ('News', 'A & B', 'http://example.com/a')
    """
    if len(text) > MAX_FEED_CHARS:
        raise ParseFailed("too_large")
    try:
        return _Reader(url, most_items).read(text_events(text, prefixes=True))
    except MalformedXml:
        return _Reader(url, most_items).read(soup_events(text))


class _Reader:
    """Fills a feed from events.

    The fields of an item are its own elements, and those of a ``media:group`` in it. An element
    within a field is mark-up of its text.
    """

    def __init__(self, url: str, most_items: int) -> None:
        self._url = url
        self._most = most_items
        self._form = ""
        self._channel = FeedItem()
        self._names = FeedNames()
        self._feed: Feed | None = None
        self._path: list[str] = []
        self._bases = [url]
        self._item: FeedItem | None = None
        self._item_depth = 0
        # Rank of the element that each field of channel and item comes from.
        self._ranks: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._field: FeedField | None = None
        self._field_depth = 0
        self._attributes: Attributes = NO_ATTRIBUTES
        self._pieces: list[str] = []
        self._has_elements = False

    def read(self, events: Iterable[Event]) -> Feed:
        for kind, value, attributes in events:
            if kind == CHARACTERS:
                if self._field is not None:
                    self._pieces.append(html.escape(value) if self._has_elements else value)
            elif kind == START:
                self._start(value, attributes)
            else:
                self._end(value)
        if self._feed is None:
            raise ParseFailed(MALFORMED_FEED)
        return self._feed

    def _start(self, name: str, attributes: Attributes) -> None:
        if attributes:
            self._names.declare(attributes)
        base = attributes.get("xml:base", "").strip()
        joined = _joined(self._bases[-1], base) if 0 < len(base) <= _MAX_VALUE_CHARS else ""
        self._bases.append(joined if 0 < len(joined) <= _MAX_VALUE_CHARS else self._bases[-1])
        plain = self._names.plain(name)
        depth = len(self._path)
        self._path.append(plain)
        if self._field is not None and not (self._field.name == "author" and plain == "name"):
            self._start_markup(name, attributes)
        elif depth == 0:
            self._begin_feed(plain, attributes)
        elif plain in _ITEMS and self._path[-2] in _AROUND_ITEMS:
            self._begin_item(depth, attributes)
        elif plain in _CHANNELS and depth == 1:
            self._note_feed()
            self._channel.language = attributes.get("xml:lang", "") or self._channel.language
        elif (field := FIELDS.get(plain)) is not None and self._has_fields(plain, depth):
            self._begin_field(field, attributes)

    def _end(self, name: str) -> None:
        depth = len(self._path) - 1
        if self._field is not None:
            if depth == self._field_depth:
                self._end_field()
            elif self._field.is_text:
                self._pieces.append(f"</{_local(name)}>")
        elif self._item is not None and depth == self._item_depth:
            self._item = None
        self._path.pop()
        self._bases.pop()

    def _begin_feed(self, root: str, attributes: Attributes) -> None:
        if root not in _ROOTS:
            raise ParseFailed(MALFORMED_FEED)
        self._form = root
        self._channel = FeedItem(language=attributes.get("xml:lang", ""))
        if root == "feed":
            self._note_feed()

    def _note_feed(self) -> Feed:
        """Returns the feed: there is one from its channel or its first item on."""
        if self._feed is None:
            self._feed = Feed(self._form, self._channel)
        return self._feed

    def _begin_item(self, depth: int, attributes: Attributes) -> None:
        feed = self._note_feed()
        self._item = FeedItem(language=attributes.get("xml:lang", ""))
        self._item_depth = depth
        self._ranks[1].clear()
        if len(feed.items) < self._most:
            feed.items.append(self._item)
        else:
            feed.items_left_out += 1
        self._take_link(attributes.get("rdf:about", ""), FIELDS["id"].rank)

    def _has_fields(self, plain: str, depth: int) -> bool:
        """Returns whether an element may be a field, by the element around it."""
        parent = self._path[-2]
        if plain == "name":
            return parent == "author"
        if self._item is not None:
            in_group = parent in _MEDIA_GROUPS and plain.startswith("media:")
            return in_group or depth == self._item_depth + 1
        return parent in _CHANNELS and depth <= 2

    def _begin_field(self, field: FeedField, attributes: Attributes) -> None:
        self._field, self._field_depth = field, len(self._path) - 1
        self._attributes, self._pieces, self._has_elements = attributes, [], False

    def _start_markup(self, name: str, attributes: Attributes) -> None:
        """Keeps an element within a text as HTML."""
        if self._field is None or not self._field.is_text:
            return
        if not self._has_elements:
            self._pieces = [html.escape("".join(self._pieces))]
            self._has_elements = True
        shown = (
            f' {_local(key)}="{html.escape(value)}"'
            for key, value in attributes.items()
            if not key.startswith("xmlns")
        )
        self._pieces.append(f"<{_local(name)}{''.join(shown)}>")

    def _end_field(self) -> None:
        field, attributes = self._field, self._attributes
        self._field = None
        value = "".join(self._pieces).strip()
        self._pieces = []
        if field is None:
            return
        if field.name == "link":
            self._end_link(field, attributes, value)
        elif field.name == "tags":
            name = attributes.get("term") or attributes.get("label") or value
            self._holder().add_tag(" ".join(name[:_MAX_VALUE_CHARS].split()))
        elif field.is_text:
            text = self._text(attributes, value)
            if text.value and self._takes(field.name, field.rank):
                setattr(self._holder(), field.name, text)
                self._holder().base = self._bases[-1] if self._bases[-1] != self._url else ""
        elif value and self._takes(field.name, field.rank):
            setattr(self._holder(), field.name, value[:_MAX_VALUE_CHARS])

    def _holder(self) -> FeedItem:
        """Returns the item or the channel that a field belongs to."""
        return self._channel if self._item is None else self._item

    def _takes(self, name: str, rank: int) -> bool:
        """Returns whether a value of a field counts more than the one that is there."""
        ranks = self._ranks[self._item is not None]
        if ranks.get(name, rank + 1) <= rank:
            return False
        ranks[name] = rank
        return True

    def _text(self, attributes: Attributes, value: str) -> FeedText:
        """Returns a text; none for content that is no text, or stands elsewhere."""
        kind = attributes.get("type", "").strip().lower().partition(";")[0]
        if self._has_elements or kind in _MARKUP_TYPES:
            return FeedText(value, True)
        if kind in _PLAIN_TYPES and attributes.get("mode") != "escaped":
            return FeedText(value)
        if attributes.get("src") or ("/" in kind and not kind.startswith("text/")):
            return NO_TEXT
        is_markup = self._form != "feed" or _MARKUP.search(value) is not None
        return FeedText(value, is_markup)

    def _end_link(self, field: FeedField, attributes: Attributes, value: str) -> None:
        href = attributes.get("href", "").strip()
        if field.rank:  # guid or id, which need not be a URL
            said = (text for name, text in attributes.items() if name.lower() == "ispermalink")
            if next(said, "").strip().lower() != "false":
                self._take_link(value, field.rank)
        elif not href:
            if value and self._takes("link", 0):
                self._holder().link = _joined(self._bases[-1], value)
        else:
            rel = attributes.get("rel", "").strip().lower() or "alternate"
            target = _joined(self._bases[-1], href)
            rank = 0 if "html" in attributes.get("type", "html").lower() else _OTHER_TYPE_RANK
            if rel == "alternate" and self._takes("link", rank):
                self._holder().link = target
            elif rel in _FURTHER_PAGES and self._item is None:
                self._note_feed().pages.append((target, rel))

    def _take_link(self, url: str, rank: int) -> None:
        """Takes a name that is a URL as the link of an item, if there is none."""
        if self._item is not None and _WEB_URL.match(url) and self._takes("link", rank):
            self._item.link = url


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _joined(base: str, href: str) -> str:
    """Returns a link as an absolute URL, with its characters as they stand there."""
    try:
        return urljoin(base, href)
    except ValueError:  # an odd host
        return href
