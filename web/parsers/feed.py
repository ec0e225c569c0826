"""Feeds: RSS 0.9 to 2.0, RDF and Atom, by feedparser."""

import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..content.charset import decode
from ..html.html import parse_html
from ..pages.directives import header_directives, obey_nofollow
from ..pages.page import MAX_TITLE_CHARS, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.white_space import collapse
from ..urls import row_keys as urls
from ..urls.userinfo import parse_target
from .xml_reader import read_xml

MAX_ITEMS = 1_000
# feedparser builds objects of all; a feed of that size has no place in a crawl.
_MAX_CHARS = 16 << 20
_MAX_ATTRIBUTES = 1_000
_MAX_AUTHOR_CHARS = 200
_DOCTYPE = re.compile(
    r"(\A(?:\s++|<!--(?:(?!-->).)*+-->|<\?(?:(?!\?>).)*+\?>)*+)<!doctype[^<>\[]*+(?:\[.*?\]\s*+)?>",
    re.IGNORECASE | re.DOTALL,
)
_ELEMENT = re.compile(r"<\w")
# feedparser reads the declaration of XML again, which what was decoded contradicts.
_HEADERS = {"content-type": "application/xml; charset=utf-8"}


def parse_feed(source: Source, options: ParseOptions) -> Page:
    """Parses a feed; its links are those of the channel and the items, with titles as anchors.

    The text is that of the titles and summaries (else contents) without mark-up.
    With ``options.feed_documents`` each item whose link is on the host of the feed
    is one of ``parts``: its title, its text (content, else summary), and the links in it.
    An item elsewhere stays a link, for a feed must not write other hosts' documents:
    ``dropped`` counts it as ``foreign_item``. Items after the 1,000th are dropped as
    ``feed_max_items``.

    Raises:
        ParseFailed: ``xml_entities``: it declares entities. ``too_complex``: it nests too deep, or
            an element has over 1,000 attributes.
            ``too_large``: over 16 Mi characters. ``malformed_feed``: nothing can be read of it.

    >>> body = b"<rss><channel><title>News</title><item><title>A</title><link>/a</link></item>"
    >>> page = parse_feed(Source("http://example.com/feed", body), ParseOptions())
    >>> page.title, page.text, page.hrefs, page.anchors
    ('News', 'News A', ['http://example.com/a'], ['A'])
    """
    text, charset = decode(source.body, source.content_type)
    if len(text) > _MAX_CHARS:
        raise ParseFailed("too_large")
    # Refuses what could grow without limit, before a parser that is not ours sees it.
    read_xml(text, _check, _pass, _pass)
    feed, items = _read(text, source.url)
    page = Page(base=source.url, charset=charset, body=text.encode("utf-8", "replace"))
    page.directives = header_directives(source, options)
    page.language = str(feed.get("language") or "")[:35] or None
    page.drop("feed_max_items", len(items) - MAX_ITEMS if len(items) > MAX_ITEMS else 0)
    entries = [_Item(item, source, options, page.directives) for item in items[:MAX_ITEMS]]
    if "noindex" not in page.directives:
        title = _plain(feed.get("title_detail") or feed.get("title"), source, options)
        subtitle = _plain(feed.get("subtitle_detail") or feed.get("subtitle"), source, options)
        page.title = title[:MAX_TITLE_CHARS]
        texts = [title, subtitle, *(text for item in entries for text in (item.title, item.text))]
        page.text = " ".join(text for text in texts if text)
    _add_links(page, feed, "")
    parts: dict[str, Page] = {}
    for item in entries:
        _add_links(page, item.fields, item.title)
        if options.feed_documents and item.url is not None:
            if urls.host(item.url) != urls.host(source.url):
                page.drop("foreign_item")
            elif item.url != source.url:
                parts.setdefault(item.url, item.page)
    page.parts = list(parts.items())
    obey_nofollow(page)
    return page


class _Item:
    """An item of a feed, its texts without mark-up."""

    def __init__(
        self, fields: Mapping[str, Any], source: Source, options: ParseOptions, said: set[str]
    ) -> None:
        self.fields = fields
        link = _link(fields)
        self.url = parse_target(link, source.url) if link else None
        self.title = _plain(fields.get("title_detail") or fields.get("title"), source, options)
        content = next(iter(_each(fields, "content")), None)
        summary = fields.get("summary_detail") or fields.get("summary")
        self.text = _plain(summary or content, source, options)
        if options.feed_documents and self.url is not None:
            self.page = _marked_up(content or summary, self.url, source, options)
            self.page.directives |= said
            self.page.title = "" if "noindex" in said else self.title[:MAX_TITLE_CHARS]
            if "noindex" in said:
                self.page.text = ""
            self.page.metas = _metas(fields)
            self.page.language = str(fields.get("language") or "")[:35] or self.page.language
            obey_nofollow(self.page)


def _read(text: str, url: str) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Returns what feedparser makes of a feed: what it says of itself, and its items."""
    import feedparser  # takes 0.1 s

    text = _DOCTYPE.sub(r"\1", text, count=1)
    first = _ELEMENT.search(text)
    if first is None or "<!entity" in text[: first.start()].lower():
        raise ParseFailed("malformed_feed" if first is None else "xml_entities")
    # As a stream: a text could be taken for the name of a file or for a URL.
    stream = io.BytesIO(text.encode("utf-8", "replace"))
    try:
        with _linear():
            found = feedparser.parse(
                stream,
                response_headers={**_HEADERS, "content-location": url},
                sanitize_html=False,
                resolve_relative_uris=False,
            )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ParseFailed("malformed_feed") from error
    if not found.entries and not found.feed:
        raise ParseFailed("malformed_feed")
    return found.feed, found.entries


@contextlib.contextmanager
def _linear() -> Iterator[None]:
    """Keeps feedparser from what is quadratic in it: looking for addresses in authors, for tags."""
    from feedparser import mixin

    parsers = getattr(mixin, "_FeedParserMixin", None)
    if parsers is None:  # another version than 6.0
        yield
        return
    own = parsers._sync_author_detail, parsers._add_tag

    def sync(parser: Any, key: str = "author") -> None:
        context = parser._get_context()
        if author := context.get(key):
            context[key] = author[:_MAX_AUTHOR_CHARS]
        own[0](parser, key)

    parsers._sync_author_detail = sync
    parsers._add_tag = _no_tag  # nothing is made of them here
    try:
        yield
    finally:  # parse filters may use it, too
        parsers._sync_author_detail, parsers._add_tag = own


def _no_tag(parser: Any, *_: Any) -> None:
    parser._get_context().setdefault("tags", [])


def _add_links(page: Page, fields: Mapping[str, Any], anchor: str) -> None:
    """Adds the links of a feed or an item: the page it is about, the next page of the feed."""
    if link := _link(fields):
        page.hrefs.append(link)
        page.anchors.append(anchor[:MAX_TITLE_CHARS])
        page.rels.append("")
    for other in _each(fields, "links"):
        rel = str(other.get("rel") or "").lower()
        # RFC 5005 3 and 4: a feed in several documents.
        if rel in ("next", "prev-archive") and other.get("href"):
            page.hrefs.append(str(other["href"]).strip())
            page.anchors.append("")
            page.rels.append(rel)


def _link(fields: Mapping[str, Any]) -> str:
    """Returns the URL; an element ``links`` makes feedparser put something else there."""
    link = fields.get("link")
    return link.strip() if isinstance(link, str) else ""


def _each(fields: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Returns the entries of a list; an element of its name makes feedparser put a text there."""
    found = fields.get(name)
    entries = found if isinstance(found, list) else ()
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _metas(fields: Mapping[str, Any]) -> dict[str, str]:
    found = {
        "author": fields.get("author"),
        "published": fields.get("published") or fields.get("updated"),
    }
    return {name: collapse(str(value))[:MAX_TITLE_CHARS] for name, value in found.items() if value}


def _plain(field: Any, source: Source, options: ParseOptions) -> str:
    value = _value(field)
    if "<" not in value and "&" not in value:
        return collapse(value)
    return _marked_up(field, source.url, source, options).text


def _marked_up(field: Any, url: str, source: Source, options: ParseOptions) -> Page:
    """Returns a text with mark-up as the page it would be."""
    value = _value(field)
    if isinstance(field, Mapping) and field.get("type") == "text/plain":
        return Page(text=collapse(value), base=url, body=value.encode("utf-8", "replace"))
    body = value.encode("utf-8", "replace")
    # A part of a page has no navigation to take away, and no robots to talk to.
    plain = ParseOptions(
        outlinks_ignore_tags=options.outlinks_ignore_tags,
        form_use_action=options.form_use_action,
        max_nesting=options.max_nesting,
        text_with_title=False,
    )
    return parse_html(Source(url, body, "text/html; charset=utf-8"), plain)


def _value(field: Any) -> str:
    return str((field.get("value") if isinstance(field, Mapping) else field) or "")


def _check(name: str, attributes: Mapping[str, str]) -> None:
    # feedparser looks through all of an element's for each of them.
    if len(attributes) > _MAX_ATTRIBUTES:
        raise ParseFailed("too_complex")


def _pass(text: str) -> None:
    return None
