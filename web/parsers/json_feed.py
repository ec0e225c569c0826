"""JSON Feed 1.0 and 1.1 (jsonfeed.org)."""

import json
from typing import Any

from .feed_elements import join_url
from .feed_items import Feed, FeedItem, FeedText

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


def storable_text(text: str) -> str:
    """Returns text without lone surrogates and NULs, which JSON's escapes can make."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _absolute_url(base: str, href: str) -> str:
    return join_url(base, href) if href else ""
