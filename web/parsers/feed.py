"""Feeds: RSS 0.9 to 2.0, RDF and Atom, by feedparser."""

import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..html.html import parse_html
from ..pages.directives import obey_nofollow
from ..pages.page import MAX_TITLE_CHARS, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.white_space import collapse
from ..pages.xml_events import MalformedXml, text_events
from ..urls import row_keys as urls
from ..urls.userinfo import parse_target
from .text import text_page

MAX_ITEMS = 1_000
# feedparser builds objects of everything; no honest feed is that long.
_MAX_CHARS = 16 << 20
_MAX_ATTRIBUTES = 1_000
_MAX_AUTHOR_CHARS = 200
_MAX_TAGS = 50
_DOCTYPE = re.compile(
    r"(\A(?:\s++|<!--(?:(?!-->).)*+-->|<\?(?:(?!\?>).)*+\?>)*+)<!doctype[^<>\[]*+(?:\[.*?\]\s*+)?>",
    re.IGNORECASE | re.DOTALL,
)
_ELEMENT = re.compile(r"<\w")
_Fields = Mapping[str, Any]
# The text is decoded, so the encoding in its XML declaration no longer holds.
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
    text, page = text_page(source, options)
    _refuse_hostile(text)
    feed, items = _read(text, source.url)
    page.language = str(feed.get("language") or "")[:35] or None
    page.drop("feed_max_items", max(0, len(items) - MAX_ITEMS))
    reader = _Reader(page, options)
    reader.read(feed, items[:MAX_ITEMS])
    obey_nofollow(page)
    return page


class _Reader:
    """Fills a page from the channel and the items of a feed."""

    def __init__(self, page: Page, options: ParseOptions) -> None:
        self._page = page
        self._with_parts = options.feed_documents
        # Texts in a feed have no navigation to leave out, and no robots meta elements.
        self._options = ParseOptions(
            outlinks_ignore_tags=options.outlinks_ignore_tags,
            form_use_action=options.form_use_action,
            text_with_title=False,
        )

    def read(self, feed: _Fields, items: list[_Fields]) -> None:
        """Extracts texts, links and parts."""
        page = self._page
        title = self._plain(_detail(feed, "title"))
        texts = [title, self._plain(_detail(feed, "subtitle"))]
        _add_links(page, feed, "")
        parts: dict[str, Page] = {}
        for item in items:
            item_title = self._plain(_detail(item, "title"))
            texts += [item_title, self._plain(_detail(item, "summary") or _content(item))]
            _add_links(page, item, item_title)
            url = self._part_url(item) if self._with_parts else None
            if url is not None and url not in parts:
                parts[url] = self._part(url, item, item_title)
        page.parts = list(parts.items())
        if "noindex" not in page.directives:
            page.title = title[:MAX_TITLE_CHARS]
            page.text = " ".join(filter(None, texts))

    def _part_url(self, item: _Fields) -> str | None:
        """Returns the URL of an item that becomes a document; counts items on other hosts."""
        feed_url, link = self._page.base, _link(item)
        url = parse_target(link, feed_url) if link else None
        if url is None or url == feed_url:
            return None
        if urls.host(url) != urls.host(feed_url):
            self._page.drop("foreign_item")
            return None
        return url

    def _part(self, url: str, item: _Fields, title: str) -> Page:
        part = self._as_page(_content(item) or _detail(item, "summary"), url)
        part.directives |= self._page.directives
        part.title = title[:MAX_TITLE_CHARS]
        if "noindex" in self._page.directives:
            part.title = part.text = ""
        part.metas = _metas(item)
        part.language = str(item.get("language") or "")[:35] or part.language
        obey_nofollow(part)
        return part

    def _plain(self, field: Any) -> str:
        value = _value(field)
        if "<" not in value and "&" not in value:
            return collapse(value)
        return self._as_page(field, self._page.base).text

    def _as_page(self, field: Any, url: str) -> Page:
        """Parses a text with mark-up as a page."""
        body = _value(field).encode("utf-8", "replace")
        if isinstance(field, Mapping) and field.get("type") == "text/plain":
            return Page(text=collapse(_value(field)), base=url, body=body)
        return parse_html(Source(url, body, "text/html; charset=utf-8"), self._options)


def _refuse_hostile(text: str) -> None:
    """Refuses feeds that could grow without limit, before feedparser reads them."""
    if len(text) > _MAX_CHARS:
        raise ParseFailed("too_large")
    with contextlib.suppress(MalformedXml):
        for _, _, attributes in text_events(text):
            # feedparser looks through all of an element's attributes for each of them.
            if len(attributes) > _MAX_ATTRIBUTES:
                raise ParseFailed("too_complex")


def _read(text: str, url: str) -> tuple[_Fields, list[_Fields]]:
    """Returns the fields of a feed and of its items, as feedparser reads them."""
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
    """Bounds the parts of feedparser that take quadratic time: addresses in authors, and tags."""
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
    parsers._add_tag = _add_tag
    try:
        yield
    finally:  # parse filters may use it, too
        parsers._sync_author_detail, parsers._add_tag = own


def _add_tag(parser: Any, term: str | None, *_: Any) -> None:
    tags = parser._get_context().setdefault("tags", [])
    # An element of its name makes feedparser put a text there.
    few = isinstance(tags, list) and len(tags) < _MAX_TAGS
    if few and term and all(tag["term"] != term for tag in tags):
        tags.append({"term": term})


def _add_links(page: Page, fields: _Fields, anchor: str) -> None:
    """Adds the links of a feed or an item: the page it is about, the next page of the feed."""
    if link := _link(fields):
        page.add_link(link, anchor[:MAX_TITLE_CHARS])
    for other in _each(fields, "links"):
        rel = str(other.get("rel") or "").lower()
        # RFC 5005 3 and 4: a feed in several documents.
        if rel in ("next", "prev-archive") and other.get("href"):
            page.add_link(str(other["href"]).strip(), rel=rel)


def _link(fields: _Fields) -> str:
    """Returns the URL; an element ``links`` makes feedparser put something else there."""
    link = fields.get("link")
    return link.strip() if isinstance(link, str) else ""


def _detail(fields: _Fields, name: str) -> Any:
    return fields.get(f"{name}_detail") or fields.get(name)


def _content(item: _Fields) -> Any:
    return next(iter(_each(item, "content")), None)


def _each(fields: _Fields, name: str) -> list[_Fields]:
    """Returns the entries of a list.

    If a feed has an element with the name of the list, feedparser has a text in place of the list.
    """
    found = fields.get(name)
    entries = found if isinstance(found, list) else ()
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _metas(fields: _Fields) -> dict[str, str]:
    # feedparser has the one time under the name of the other, too.
    updated = fields.get("updated") if "updated" in fields else None
    found = {
        "author": fields.get("author"),
        "published": fields.get("published") or updated,
        "updated": updated,
    }
    made = {name: collapse(str(value))[:MAX_TITLE_CHARS] for name, value in found.items() if value}
    terms = [collapse(str(tag.get("term")))[:MAX_TITLE_CHARS] for tag in _each(fields, "tags")]
    return made | ({"tag": "\n".join(terms)} if terms else {})


def _value(field: Any) -> str:
    return str((field.get("value") if isinstance(field, Mapping) else field) or "")
