"""Feeds as pages: RSS 0.9 to 2.0, RDF, Atom, and JSON Feed."""

from ..content.whatwg_encodings import encode_query
from ..html.html import parse_markup
from ..pages.directives import obey_nofollow
from ..pages.page import MAX_TITLE_CHARS, Page, Source, collapse
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import join_surrogates
from ..urls import row_keys as urls
from ..urls.userinfo import parse_target
from .feed_elements import Feed, FeedItem, FeedText
from .feed_reader import read_feed
from .text import text_page

MAX_ITEMS = 1_000


def parse_feed(source: Source, options: ParseOptions) -> Page:
    """Parses a feed in XML; see ``fill_from_feed``.

    Raises:
        ParseFailed: As ``read_feed``.

    >>> body = b"<rss><channel><title>News</title><item><title>A</title><link>/a</link></item>"
    >>> page = parse_feed(Source("http://example.com/feed", body), ParseOptions())
    >>> page.title, page.text, page.hrefs, page.anchors
    ('News', 'News\\n\\nA', ['http://example.com/a'], ['A'])
    """
    text, page = text_page(source, options)
    fill_from_feed(page, read_feed(text, source.url, MAX_ITEMS), options)
    return page


def fill_from_feed(page: Page, feed: Feed, options: ParseOptions) -> None:
    """Fills a page from a feed; its links are those of the channel and the items, with titles as anchors.

    The text is that of the titles and summaries (else contents) without mark-up.
    With ``options.feed_documents`` each item whose link is on the host of the feed
    is one of ``parts``: its title, its text (content, else summary), and the links in it.
    An item elsewhere stays a link, for a feed must not write other hosts' documents:
    ``dropped`` counts it as ``foreign_item``. Items after the 1,000th are dropped as
    ``feed_max_items``.
    """
    page.language = feed.channel.language[:35] or None
    page.drop("feed_max_items", feed.items_left_out)
    _Filler(page, options).fill(feed)
    page.encode_queries()
    obey_nofollow(page)


class _Filler:
    """Fills a page from the channel and the items of a feed."""

    def __init__(self, page: Page, options: ParseOptions) -> None:
        self._page = page
        self._with_parts = options.feed_documents
        # Texts in a feed have no navigation to leave out, and no robots meta elements.
        self._options = ParseOptions(
            outlinks_ignore_tags=options.outlinks_ignore_tags,
            form_use_action=options.form_use_action,
        )

    def fill(self, feed: Feed) -> None:
        """Extracts texts, links and parts."""
        page, channel = self._page, feed.channel
        title = collapse(self._plain_text(channel.title))
        texts = [title, self._plain_text(channel.summary)]
        self._add_link(channel, "")
        for target, rel in feed.pages:
            page.add_link(target, rel=rel)
        parts: dict[str, Page] = {}
        for item in feed.items:
            item_title = collapse(self._plain_text(item.title))
            texts += [item_title, self._plain_text(_first_text(item.summary, item.content))]
            self._add_link(item, item_title)
            url = self._part_url(item) if self._with_parts else None
            if url is not None and url not in parts:
                parts[url] = self._part(url, item, item_title)
        page.parts = list(parts.items())
        if "noindex" not in page.directives:
            page.title = title[:MAX_TITLE_CHARS]
            page.text = "\n\n".join(filter(None, texts))

    def _add_link(self, item: FeedItem, anchor: str) -> None:
        if item.link:
            self._page.add_link(item.link, anchor[:MAX_TITLE_CHARS])

    def _part_url(self, item: FeedItem) -> str | None:
        """Returns the URL of an item that becomes a document; counts items on other hosts."""
        feed_url = self._page.base
        link = encode_query(item.link, self._page.charset) if item.link else None
        url = parse_target(link, feed_url) if link else None
        if url is None or url == feed_url:
            return None
        if urls.host(url) != urls.host(feed_url):
            self._page.drop("foreign_item")
            return None
        return url

    def _part(self, url: str, item: FeedItem, title: str) -> Page:
        part = self._as_page(_first_text(item.content, item.summary), item.base or url)
        part.directives |= self._page.directives
        part.title = title[:MAX_TITLE_CHARS]
        if "noindex" in self._page.directives:
            part.title = part.text = ""
        part.metas = _metas(item)
        part.language = item.language[:35] or part.language
        obey_nofollow(part)
        return part

    def _plain_text(self, text: FeedText) -> str:
        if not text.is_markup or ("<" not in text.value and "&" not in text.value):
            return collapse(text.value)
        return self._as_page(text, self._page.base).text

    def _as_page(self, text: FeedText, url: str) -> Page:
        """Parses a text with mark-up as a page."""
        value = join_surrogates(text.value) if text.is_markup else text.value
        body = value.encode("utf-8", "replace")
        if not text.is_markup:
            return Page(text=collapse(text.value), base=url, body=body)
        return parse_markup(Source(url, body), body, self._page.charset, self._options)


def _first_text(*texts: FeedText) -> FeedText:
    return next((text for text in texts if text.value), FeedText())


def _metas(item: FeedItem) -> dict[str, str]:
    values = {
        "author": item.author,
        "published": item.published or item.updated,
        "updated": item.updated,
    }
    metas = {name: collapse(text)[:MAX_TITLE_CHARS] for name, text in values.items() if text}
    tags = [tag[:MAX_TITLE_CHARS] for tag in item.tags]
    return metas | ({"tag": "\n".join(tags)} if tags else {})
