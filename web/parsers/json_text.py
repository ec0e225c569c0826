"""JSON: feeds, else the strings in its values, and the URLs in those."""

import contextlib
import json
from typing import Any

from ..base.safe_json import storable_text
from ..pages.page import MAX_TITLE_CHARS, Page, ParseFailed, Source, collapse
from ..pages.parse_options import ParseOptions
from .feed import MAX_ITEMS, fill_from_feed
from .feed_elements import Feed, FeedItem, FeedText, join_url
from .text import fill_page, text_page

_VERSIONS = ("https://jsonfeed.org/version/", "http://jsonfeed.org/version/")
_WEB_URLS = ("http://", "https://")


def read_json_feed(value: Any, url: str, most_items: int) -> Feed | None:
    """Returns the feed that a value of JSON is, or None if it is none.

    Args:
        value: The document.
        url: Absolute URL of the document.
        most_items: How many items to keep; others are counted.

    >>> value = {"version": "https://jsonfeed.org/version/1.1", "title": "News",
    ...          "items": [{"id": "1", "url": "/a", "content_text": "A"}]}
    >>> read_json_feed(value, "http://example.com/feed.json", 10).items[0].link
    'http://example.com/a'
    """
    if not isinstance(value, dict) or not _string(value, "version").startswith(_VERSIONS):
        return None
    channel = FeedItem(
        title=FeedText(_string(value, "title")),
        summary=FeedText(_string(value, "description")),
        link=_absolute_url(url, _string(value, "home_page_url")),
        language=_string(value, "language"),
    )
    items = [item for item in _list(value, "items") if isinstance(item, dict)]
    following = _absolute_url(url, _string(value, "next_url"))
    return Feed(
        "json",
        channel,
        pages=[(following, "next")] if following else [],
        items=[_item(item, url) for item in items[:most_items]],
        items_left_out=max(0, len(items) - most_items),
    )


def load_json_feed(text: str, url: str, most_items: int) -> Feed | None:
    """Returns the feed in a text, or None if it is no JSON Feed."""
    try:
        return read_json_feed(json.loads(text, strict=False), url, most_items)
    except (ValueError, RecursionError):
        return None


def _item(fields: dict[str, Any], url: str) -> FeedItem:
    name = _string(fields, "id")
    links = (_string(fields, "url"), _string(fields, "external_url"))
    link = next(filter(None, links), name if name.lower().startswith(_WEB_URLS) else "")
    item = FeedItem(
        title=FeedText(_string(fields, "title")),
        summary=FeedText(_string(fields, "summary")),
        content=_content(fields),
        link=_absolute_url(url, link),
        author=_author(fields),
        published=_string(fields, "date_published"),
        updated=_string(fields, "date_modified"),
        language=_string(fields, "language"),
    )
    for tag in _list(fields, "tags"):
        if isinstance(tag, str):
            item.add_tag(" ".join(storable_text(tag).split()))
    return item


def _content(fields: dict[str, Any]) -> FeedText:
    markup = _string(fields, "content_html")
    return FeedText(markup, True) if markup else FeedText(_string(fields, "content_text"))


def _author(fields: dict[str, Any]) -> str:
    """Returns the names of the authors; version 1.0 has one."""
    authors = _list(fields, "authors") or [fields.get("author")]
    names = (_string(author, "name") for author in authors if isinstance(author, dict))
    return ", ".join(filter(None, names))


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    return value if isinstance(value, list) else []


def _string(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return storable_text(value).strip() if isinstance(value, str) else ""


def _absolute_url(base: str, href: str) -> str:
    return join_url(base, href) if href else ""


_MAX_DEPTH = 200
# schema.org's names; JSON feeds and manifests have the first.
_TITLES = ("title", "headline", "name")
_LANGUAGES = ("inLanguage", "language", "lang")


def parse_json(source: Source, options: ParseOptions) -> Page:
    """Parses JSON, JSON-LD, or one JSON value per line.

    The text is the strings that are values, in their order, without names and
    numbers. Links are what looks like a URL in them, as in plain text. A JSON Feed is read as other
    feeds are.

    Of one value per line, those before the first mistake are read; ``dropped`` counts it as
    ``malformed_json``.

    Raises:
        ParseFailed: ``malformed_json``, or ``too_complex``: it nests deeper than 200.

    >>> body = b'{"name": "N", "url": "http://example.com/a", "size": 7}'
    >>> page = parse_json(Source("http://example.com/", body), ParseOptions())
    >>> page.title, page.text, page.hrefs
    ('N', 'N\\nhttp://example.com/a', ['http://example.com/a'])
    """
    text, page = text_page(source, options)
    try:
        value, has_mistake = _load_json(text)
    except RecursionError as error:
        raise ParseFailed("too_complex") from error
    except ValueError as error:
        raise ParseFailed("malformed_json") from error
    if (feed := read_json_feed(value, source.url, MAX_ITEMS)) is not None:
        fill_from_feed(page, feed, options)
        return page
    page.drop("malformed_json", has_mistake)
    first_value = value[0] if isinstance(value, list) and value else value
    page.title = collapse(_first_string(first_value, _TITLES))[:MAX_TITLE_CHARS]
    page.language = _first_string(first_value, _LANGUAGES)[:35] or None
    strings: list[str] = []
    _collect(value, strings)
    text = storable_text("\n".join(strings))
    fill_page(page, text, linked=text)
    return page


def _load_json(text: str) -> tuple[Any, bool]:
    """Returns the value of a text, else those of its lines up to a mistake, and whether there is one."""
    # Numbers are no text: they need not be made, and long ones are costly.
    decoder = json.JSONDecoder(
        parse_int=_skip_number, parse_float=_skip_number, parse_constant=_skip_number, strict=False
    )
    try:
        return decoder.decode(text), False
    except json.JSONDecodeError as error:
        # Not splitlines: RFC 8259, 7: strings may hold other separators of lines as they are.
        lines = [line for line in text.split("\n") if line and not line.isspace()]
        values: list[Any] = []
        with contextlib.suppress(json.JSONDecodeError):
            values.extend(map(decoder.decode, lines))
        if not values:
            raise error from None
        return values, len(values) < len(lines)


def _skip_number(digits: str) -> None:
    return None


def _first_string(value: Any, names: tuple[str, ...]) -> str:
    values = (value.get(name) for name in names) if isinstance(value, dict) else ()
    return storable_text(next((text for text in values if isinstance(text, str) and text), ""))


def _collect(value: Any, strings: list[str]) -> None:
    """Adds the strings of a value, in the order of the document, without recursion."""
    stack = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, str):
            strings.append(node)
        elif isinstance(node, dict | list):
            if depth >= _MAX_DEPTH:
                raise ParseFailed("too_complex")
            inner = list(node.values()) if isinstance(node, dict) else node
            stack += [(each, depth + 1) for each in reversed(inner)]
