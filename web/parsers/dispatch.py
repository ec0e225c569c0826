"""Which parser takes a document."""

import importlib
from collections.abc import Callable
from typing import cast

from ..content_type import sniff
from .language import detect_language
from .options import ParseOptions
from .page import NoParser, Page, Source

Parser = Callable[[Source, ParseOptions], Page]

# Module in this room and function in it, by MIME type. They are imported when the first such
# document comes: most crawls meet few types.
_PARSERS = {
    "text/html": ("html", "parse_html"),
    "application/xhtml+xml": ("html", "parse_html"),
    "text/plain": ("text", "parse_text"),
}
_loaded: dict[str, Parser] = {}


def parse(source: Source, options: ParseOptions) -> Page:
    """Parses a document with the parser for its type.

    Args:
        source: The document.
        options: What to take.

    Raises:
        NoParser: No parser takes the type.
        ParseFailed: The page is too much for any parser.

    >>> parse(Source("http://example.com/", b"<title>T</title>"), ParseOptions()).title
    'T'
    """
    mime = sniff(source.body, source.content_type)
    page = (_loaded.get(mime) or _load(mime))(source, options)
    if options.detect_language and not page.language:
        page.language = detect_language(page.text)
    return page


def _load(mime: str) -> Parser:
    if mime not in _PARSERS:
        raise NoParser
    module, function = _PARSERS[mime]
    loaded = cast(Parser, getattr(importlib.import_module(f".{module}", __package__), function))
    _loaded[mime] = loaded
    return loaded
