"""JSON: feeds, else the strings in its values, and the URLs in those."""

import contextlib
import json
from typing import Any

from ..pages.page import MAX_TITLE_CHARS, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.white_space import collapse
from .feed import MAX_ITEMS, fill_from_feed
from .json_feed import read_json_feed, storable_text
from .text import fill_page, text_page

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
    ('N', 'N http://example.com/a', ['http://example.com/a'])
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
