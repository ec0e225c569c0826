"""Which parser takes a document."""

import importlib
from collections.abc import Callable
from typing import cast

from ..content.charset import is_text
from ..content.content_type import ATOM, RDF, RSS, SITEMAP, SITEMAP_INDEX, sniff
from ..pages.language import detect_language, settle_language
from ..pages.page import NoParser, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions

Parser = Callable[[Source, ParseOptions], Page]

_OPENXML, _MS = "application/vnd.openxmlformats-officedocument", "application/vnd.ms"
_OFFICE_OPEN_XML = (
    f"{_OPENXML}.wordprocessingml.document",
    f"{_OPENXML}.wordprocessingml.template",
    f"{_OPENXML}.spreadsheetml.sheet",
    f"{_OPENXML}.spreadsheetml.template",
    f"{_OPENXML}.presentationml.presentation",
    f"{_OPENXML}.presentationml.slideshow",
    f"{_OPENXML}.presentationml.template",
    f"{_MS}-word.document.macroenabled.12",
    f"{_MS}-word.template.macroenabled.12",
    f"{_MS}-excel.sheet.macroenabled.12",
    f"{_MS}-excel.template.macroenabled.12",
    f"{_MS}-powerpoint.presentation.macroenabled.12",
    f"{_MS}-powerpoint.slideshow.macroenabled.12",
    f"{_MS}-powerpoint.template.macroenabled.12",
)
_OPENDOCUMENT = tuple(
    f"application/vnd.oasis.opendocument.{kind}"
    for kind in (
        *("text", "text-template", "text-master", "spreadsheet", "spreadsheet-template"),
        *("presentation", "presentation-template", "graphics"),
    )
)

# Module of web/ and function in it, by MIME type. They are imported when the first such
# document comes: most crawls meet few types.
_PARSERS = {
    "text/html": ("html.html", "parse_html"),
    "application/xhtml+xml": ("html.xhtml", "parse_xhtml"),
    "application/vnd.wap.xhtml+xml": ("html.xhtml", "parse_xhtml"),
    "text/plain": ("parsers.text", "parse_text"),
    "text/csv": ("parsers.text", "parse_csv"),
    "text/markdown": ("parsers.text", "parse_text"),
    "text/tab-separated-values": ("parsers.text", "parse_text"),
    RSS: ("parsers.feed", "parse_feed"),
    ATOM: ("parsers.feed", "parse_feed"),
    SITEMAP: ("parsers.sitemap", "parse_sitemap"),
    SITEMAP_INDEX: ("parsers.sitemap", "parse_sitemap"),
    "application/json": ("parsers.json_text", "parse_json"),
    "application/feed+json": ("parsers.json_text", "parse_json"),
    "application/geo+json": ("parsers.json_text", "parse_json"),
    "application/ld+json": ("parsers.json_text", "parse_json"),
    "application/x-ndjson": ("parsers.json_text", "parse_json"),
    "application/xml": ("parsers.xml_text", "parse_xml"),
    "text/xml": ("parsers.xml_text", "parse_xml"),
    RDF: ("parsers.xml_text", "parse_xml"),
    "image/svg+xml": ("parsers.xml_text", "parse_xml"),
    "application/gzip": ("parsers.gzipped", "parse_gzipped"),
    "application/pdf": ("office.pdf", "parse_pdf"),
    "application/epub+zip": ("office.epub", "parse_epub"),
    **dict.fromkeys(_OFFICE_OPEN_XML, ("office.office", "parse_office")),
    **dict.fromkeys(_OPENDOCUMENT, ("office.opendocument", "parse_opendocument")),
}
# Of types that are registered for some purpose on top of these (RFC 6839).
_SUFFIXES = {"+xml": _PARSERS["application/xml"], "+json": _PARSERS["application/json"]}
# Of these the body is text as it comes.
_TEXTS = frozenset(
    {
        *("html.html", "html.xhtml", "parsers.text", "parsers.feed", "parsers.sitemap"),
        *("parsers.json_text", "parsers.xml_text"),
    }
)
_loaded: dict[str, tuple[Parser, bool]] = {}


def parse(source: Source, options: ParseOptions) -> Page:
    """Parses a document with the parser for its type.

    Args:
        source: The document.
        options: What to take.

    Raises:
        NoParser: No parser takes the type.
        ParseFailed: The page is too much for any parser, or ``not_text``: it is
            said to be text and is not.

    >>> parse(Source("http://example.com/", b"<title>T</title>"), ParseOptions()).title
    'T'
    """
    mime = sniff(source.body, source.content_type)
    parser, reads_text = _loaded.get(mime) or _load(mime)
    if reads_text and not is_text(source.body, source.content_type):
        raise ParseFailed("not_text")
    page = parser(source, options)
    for each in (page, *(part for _, part in page.parts)):
        settle_language(each)
    if options.detect_language and not page.language:
        page.language = detect_language(page.text)
    return page


def has_parser(mime: str) -> bool:
    """Tells whether a parser takes documents of a type."""
    return _place(mime) is not None


def _place(mime: str) -> tuple[str, str] | None:
    return _PARSERS.get(mime) or _SUFFIXES.get(mime[mime.rfind("+") :] if "+" in mime else "")


def _load(mime: str) -> tuple[Parser, bool]:
    place = _place(mime)
    if place is None:
        raise NoParser
    module, function = place
    parser = cast(Parser, getattr(importlib.import_module(f"nutbeam.web.{module}"), function))
    if mime in _PARSERS:  # servers make up others without end
        _loaded[mime] = parser, module in _TEXTS
    return parser, module in _TEXTS
