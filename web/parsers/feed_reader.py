"""Reads feeds in XML: RSS 0.9 to 2.0, RDF, Atom 0.3 and 1.0, with the extensions of podcasts and media.

Pages of a crawl and the job ``sitemap`` read feeds by this.
"""

import base64
import html
import re
from collections.abc import Iterable

from ..pages.page import ParseFailed
from ..pages.xml_events import (
    CHARACTERS,
    NO_ATTRIBUTES,
    START,
    Attributes,
    Event,
    MalformedXml,
    soup_events,
    text_events,
)
from .feed_elements import (
    ENDS_AT_NEXT,
    FIELDS,
    ITEMS,
    MAX_FEED_CHARS,
    MAX_PAGES,
    NO_TEXT,
    ONCE,
    BaseUrls,
    Feed,
    FeedField,
    FeedItem,
    FeedNames,
    FeedText,
)

MALFORMED_FEED = "malformed_feed"
_ROOTS = frozenset({"rss", "rdf", "feed"})
_CHANNELS = frozenset({"channel", "feed"})
# An item within one is the next: that one was left open.
_AROUND_ITEMS = _ROOTS | _CHANNELS | ITEMS
_MEDIA_GROUPS = frozenset({"media:group", "media:content"})
_FURTHER_PAGES = frozenset({"next", "prev-archive"})
WEB_URL = re.compile(r"(?i)https?://[^\s]")
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
        return _Reader(url, most_items).read(soup_events(text, ENDS_AT_NEXT, FIELDS.keys() | ITEMS))


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
        self._bases = BaseUrls(url)
        self._item: FeedItem | None = None
        self._item_depth = 0
        self._is_left_out = False  # the item
        # Rank of the element that each field of channel and item comes from.
        self._ranks: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._field: FeedField | None = None
        self._inner_depth = 0  # of elements within a field
        self._attributes: Attributes = NO_ATTRIBUTES
        self._pieces: list[str] = []
        self._has_elements = False

    def read(self, events: Iterable[Event]) -> Feed:
        for kind, value, attributes in events:
            if kind == CHARACTERS:
                if self._field is not None:
                    self._pieces.append(_escape_text(value) if self._has_elements else value)
            elif self._field is None:
                self._start(value, attributes) if kind == START else self._end()
            elif kind == START:
                self._start_within(self._field, value, attributes)
            elif self._inner_depth:
                self._inner_depth -= 1
                if self._field.is_text:
                    self._pieces.append(f"</{_local(value)}>")
            else:
                self._end_field()
                self._leave()
        if self._feed is None:
            raise ParseFailed(MALFORMED_FEED)
        return self._feed

    def _start(self, name: str, attributes: Attributes) -> None:
        if attributes:
            self._names.declare(attributes)
        self._bases.push(attributes.get("xml:base", ""))
        plain = self._names.plain(name)
        depth = len(self._path)
        self._path.append(plain)
        if depth == 0:
            if not self._form or plain in _ROOTS:  # else it is junk after the feed
                self._begin_feed(plain, attributes)
        elif plain in ITEMS and self._path[-2] in _AROUND_ITEMS:
            self._begin_item(depth, attributes)
        elif plain in _CHANNELS and depth == 1:
            self._note_feed()
            self._channel.language = attributes.get("xml:lang", "") or self._channel.language
        elif (field := FIELDS.get(plain)) is not None and self._has_fields(plain, depth):
            self._begin_field(field, attributes)

    def _start_within(self, field: FeedField, name: str, attributes: Attributes) -> None:
        """Starts an element within a field: mark-up, or the name of an author."""
        if field.name == "author" and self._names.plain(name) == "name":
            self._end_field()
            self._start(name, attributes)
            return
        self._inner_depth += 1
        if field.is_text:
            if not self._has_elements:
                self._pieces = [_escape_text("".join(self._pieces))]
                self._has_elements = True
            self._pieces.append(_tag(name, attributes) if attributes else f"<{_local(name)}>")

    def _end(self) -> None:
        if self._item is not None and len(self._path) - 1 == self._item_depth:
            self._item, self._is_left_out = None, False
        self._leave()

    def _leave(self) -> None:
        self._path.pop()
        self._bases.pop()

    def _begin_feed(self, root: str, attributes: Attributes) -> None:
        if root not in _ROOTS and root != "entry":  # an entry alone: RFC 4287 2
            raise ParseFailed(MALFORMED_FEED)
        self._form = "feed" if root == "entry" else root
        self._channel = FeedItem(language=attributes.get("xml:lang", ""))
        if self._form == "feed":
            self._note_feed()
        if root == "entry":
            self._begin_item(0, attributes)

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
        self._is_left_out = len(feed.items) >= self._most
        if self._is_left_out:
            feed.items_left_out += 1
        else:
            feed.items.append(self._item)
        self._take_link(attributes.get("rdf:about", ""), FIELDS["id"].rank)

    def _has_fields(self, plain: str, depth: int) -> bool:
        """Returns whether an element may be a field, by the element around it."""
        parent = self._path[-2]
        if self._is_left_out:
            return False
        if plain == "name":
            return parent == "author"
        if self._item is not None:
            in_group = parent in _MEDIA_GROUPS and plain.startswith("media:")
            return in_group or depth == self._item_depth + 1
        return parent in _CHANNELS and depth <= 2

    def _begin_field(self, field: FeedField, attributes: Attributes) -> None:
        if (
            field.name in ONCE
            and self._ranks[self._item is not None].get(field.name, 99) <= field.rank
        ):
            return  # there is one that counts at least as much
        self._field, self._inner_depth = field, 0
        self._attributes, self._pieces, self._has_elements = attributes, [], False

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
                base = self._bases.current()
                self._holder().base = base if base != self._url else ""
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
        if attributes.get("mode") == "base64":  # Atom 0.3
            value = _from_base64(value) if kind.startswith("text/") else ""
        if self._has_elements or kind in _MARKUP_TYPES:
            return FeedText(value, True)
        if kind in _PLAIN_TYPES and attributes.get("mode") != "escaped":
            return FeedText(value)
        if attributes.get("src") or ("/" in kind and not kind.startswith("text/")):
            return NO_TEXT
        is_markup = self._form != "feed" or _MARKUP.search(value) is not None
        return FeedText(value, is_markup)

    def _end_link(self, field: FeedField, attributes: Attributes, value: str) -> None:
        href = (attributes.get("href") or attributes.get("url", "")).strip().replace("&amp;", "&")
        value = value.replace("&amp;", "&")  # in CDATA, or escaped twice
        if field.rank:  # guid or id, which need not be a URL
            flags = (text for name, text in attributes.items() if name.lower() == "ispermalink")
            is_link = next(flags, "").strip().lower()
            if is_link != "false":
                self._take_link(self._bases.join(value) if is_link == "true" else value, field.rank)
        elif not href:
            if value and self._takes("link", 0):
                self._holder().link = self._bases.join(value)
        else:
            rel = attributes.get("rel", "").strip().lower() or "alternate"
            rank = 0 if "html" in attributes.get("type", "html").lower() else _OTHER_TYPE_RANK
            if rel == "alternate" and self._takes("link", rank):
                self._holder().link = self._bases.join(href)
            elif rel in _FURTHER_PAGES and self._item is None:
                pages = self._note_feed().pages
                if len(pages) < MAX_PAGES:
                    pages.append((self._bases.join(href), rel))

    def _take_link(self, url: str, rank: int) -> None:
        """Takes a name that is a URL as the link of an item, if there is none."""
        if self._item is not None and WEB_URL.match(url) and self._takes("link", rank):
            self._item.link = url


def _from_base64(value: str) -> str:
    try:
        return base64.b64decode(value).decode("utf-8", "replace")
    except ValueError:
        return ""


def _tag(name: str, attributes: Attributes) -> str:
    """Returns the start tag of an element within a text, as HTML."""
    attribute_texts = (
        f' {_local(key)}="{html.escape(value)}"'
        for key, value in attributes.items()
        if not key.startswith("xmlns")
    )
    return f"<{_local(name)}{''.join(attribute_texts)}>"


def _local(name: str) -> str:
    return name.rpartition(":")[2] if ":" in name else name


def _escape_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;") if "&" in text or "<" in text else text
