"""Chooses the parser for a document; unpacks documents in gzip files, such as sitemap.xml.gz."""

import dataclasses
import functools
import importlib
import re
import zlib
from collections.abc import Callable
from typing import cast

from ..content.charset import is_text
from ..content.content_type import (
    ATOM,
    RSS,
    SITEMAP,
    SITEMAP_INDEX,
    TYPE_FOUND,
    sniff,
    type_of_name,
)
from ..content.magic import without_junk
from ..content.whole_bodies import unpack_gzip
from ..pages.language import detect_language, settle_language
from ..pages.page import NoParser, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions

_Parser = Callable[[Source, ParseOptions], Page]

_XHTML = ("application/xhtml+xml", "application/vnd.wap.xhtml+xml")
_PLAIN = ("text/plain", "text/markdown", "text/tab-separated-values")
_JSON = ("application/json", "application/x-ndjson")
# Module of web/ and function in it, by MIME type. They are imported when the first such document
# comes: most crawls meet few types. The body of these is text.
_TEXT_PARSERS = {
    "text/html": ("html.html", "parse_html"),
    **dict.fromkeys(_XHTML, ("html.html", "parse_xhtml")),
    **dict.fromkeys(_PLAIN, ("parsers.text", "parse_text")),
    "text/csv": ("parsers.text", "parse_csv"),
    **dict.fromkeys((RSS, ATOM), ("parsers.feed", "parse_feed")),
    **dict.fromkeys((SITEMAP, SITEMAP_INDEX), ("parsers.sitemap", "parse_sitemap")),
    **dict.fromkeys(_JSON, ("parsers.json_text", "parse_json")),
    **dict.fromkeys(("text/xml", "application/xml"), ("parsers.text", "parse_xml")),
}
_XML_PARSERS = frozenset(_TEXT_PARSERS[mime] for mime in (RSS, SITEMAP, "text/xml"))
_BINARY_PARSERS = {
    "application/pdf": ("office.pdf", "parse_pdf"),
    "application/epub+zip": ("office.epub", "parse_epub"),
}
# Patterns, since there are many such types: documents, templates, and those with macros.
_OFFICE = re.compile(
    r"application/vnd\.(?:openxmlformats-officedocument\."
    r"(?:wordprocessing|spreadsheet|presentation)ml\..*"
    r"|ms-(?:word|excel|powerpoint)\.[a-z]+\.macroenabled\.12)"
)
_OPENDOCUMENT = re.compile(
    r"application/vnd\.oasis\.opendocument\.(?:text|spreadsheet|presentation|graphics)(?:-\w+)?"
)

_PATTERN_PARSERS = {
    _OFFICE: ("office.office", "parse_office"),
    _OPENDOCUMENT: ("office.opendocument", "parse_opendocument"),
}
_PARSER_TABLES = (_TEXT_PARSERS, _BINARY_PARSERS, _PATTERN_PARSERS)
MODULES_OF_PARSERS = frozenset(module for places in _PARSER_TABLES for module, _ in places.values())
# sitemaps.org: 50 MiB when unpacked.
MAX_UNPACKED_BYTES = 50 << 20
_FIRST_BYTES = 65_536
_GZIP = "application/gzip"
_GZIP_NAME = re.compile(r"([^/?#]*)\.gz(?:ip)?(?:[?#].*)?\Z", re.IGNORECASE)


def parse_document(source: Source, options: ParseOptions) -> Page:
    """Parses a document with the parser for its type.

    Args:
        source: The document.
        options: What to take.

    Raises:
        NoParser: No parser takes the type.
        UsageError: The plug-in that ``parsers`` names cannot be imported.
        ParseFailed: The parser fails, or ``not_text``: the type is a text type, and the body is not
            text. ``malformed_gzip``, ``too_large``: see ``_unpack_document``.

    >>> parse_document(Source("http://example.com/", b"<title>T</title>"), ParseOptions()).title
    'T'
    """
    declared_type = (source.content_type or "").partition(";")[0].strip().lower()
    mime = found_type = sniff(source.body, source.content_type)
    if mime == _GZIP:
        source = _unpack_document(source, options)
        mime = sniff(source.body, source.content_type)
    if options.parsers and (name := options.parser_plugin(mime, declared_type)):
        from .parser_plugins import parse_by_plugin  # most crawls have none

        page = parse_by_plugin(name, source, options)
        return _finish_page(page, "" if found_type == declared_type else found_type, options)
    parser, reads_text = _load(mime)
    if _find_place(mime) in _XML_PARSERS:
        source = dataclasses.replace(source, body=without_junk(source.body))
    if reads_text and not is_text(source.body, source.content_type):
        raise ParseFailed("not_text")
    page = parser(source, options)
    return _finish_page(page, "" if found_type == declared_type else found_type, options)


def _finish_page(page: Page, found_type: str, options: ParseOptions) -> Page:
    """Sets the type that the bytes of a page show, if it is not the declared one, and languages.

    Control characters are removed from all texts.
    """
    if found_type:
        page.metas[TYPE_FOUND] = found_type
    for each in (page, *(part for _, part in page.parts)):
        settle_language(each)
        each.remove_controls()
    if options.detect_language and not page.language:
        page.language = detect_language(page.text)
    return page


def has_parser(mime: str) -> bool:
    """Returns whether there is a parser for a type."""
    return mime == _GZIP or _has_own_parser(mime)


def parsed_types() -> tuple[str, ...]:
    """Returns the media types that have a parser, without those that patterns name."""
    return (*_TEXT_PARSERS, *_BINARY_PARSERS)


def _has_own_parser(mime: str) -> bool:
    return _find_place(mime) is not None


def _find_place(mime: str) -> tuple[str, str] | None:
    """Returns module and function of the parser for a type."""
    if place := _TEXT_PARSERS.get(mime) or _BINARY_PARSERS.get(mime):
        return place
    for pattern, place in _PATTERN_PARSERS.items():
        if pattern.fullmatch(mime):
            return place
    # RFC 6839: types for some purpose on top of these.
    suffix = mime.rpartition("+")[2]
    return (
        _TEXT_PARSERS[f"application/{suffix}"]
        if suffix in ("xml", "json") and "+" in mime
        else None
    )


@functools.lru_cache(maxsize=256)
def _load(mime: str) -> tuple[_Parser, bool]:
    """Returns a parser, and whether it reads text."""
    place = _find_place(mime)
    if place is None:
        raise NoParser
    module, function = place
    parser = getattr(importlib.import_module(f"nutbeam.web.{module}"), function)
    return cast(_Parser, parser), place in _TEXT_PARSERS.values()


def _unpack_document(source: Source, options: ParseOptions) -> Source:
    """Returns the document in a gzip file, with its own type.

    Content without a parser is not unpacked beyond its first bytes. Of a file that is cut, this is
    the part before the cut.

    Raises:
        NoParser: There is no parser for the content, or it is packed twice.
        ParseFailed: ``too_large``: more than 50 MiB are in it. Or ``malformed_gzip``.

    >>> import gzip
    >>> file = Source("http://example.com/sitemap.xml.gz", gzip.compress(b"<urlset></urlset>"))
    >>> _unpack_document(file, ParseOptions()).body
    b'<urlset></urlset>'
    """
    name = _GZIP_NAME.search(source.url[-100:])
    header = type_of_name(name[1]) if name else None
    mime = sniff(_unpack(source.body, _FIRST_BYTES), header)
    if not _has_own_parser(mime) and not options.parser_plugin(mime):
        raise NoParser
    body = _unpack(source.body, MAX_UNPACKED_BYTES + 1)
    if len(body) > MAX_UNPACKED_BYTES:
        raise ParseFailed("too_large")
    return dataclasses.replace(source, body=body, content_type=mime)


def _unpack(packed: bytes, most: int) -> bytes:
    try:
        return unpack_gzip(packed, most)
    except zlib.error as error:
        raise ParseFailed("malformed_gzip") from error
