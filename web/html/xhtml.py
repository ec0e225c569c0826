"""Parses XHTML as HTML, after rewriting what HTML means differently."""

import html
import re

from ..content.charset import to_utf8
from ..pages.page import Page, Source
from ..pages.parse_options import ParseOptions
from .html import parse_markup, without_subset

# HTML 13.1.2: void elements; in HTML any other has no end where XML says "/>".
_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())
_SECTION = re.compile(
    # Left as they are: comments, and scripts and styles with their content.
    rb"(?P<as_is><!--(?:(?!-->).)*+(?:-->|\Z)"
    rb"|<(?P<raw>script|style)\b(?:[^<>/]|/(?!>))*+>(?:(?!</(?P=raw)).)*+)"
    rb"|<!\[CDATA\[(?P<cdata>(?:(?!\]\]>).)*+)(?:\]\]>|\Z)"
    rb"|<(?P<empty>[A-Za-z_][\w:.-]*+)(?P<rest>(?:[^<>\"'/]|/(?!>)|\"[^\"<]*+\"|'[^'<]*+')*+)/>",
    re.IGNORECASE | re.DOTALL,
)
_LANGUAGE = re.compile(rb"<html\b[^>]{0,2000}?\sxml:lang\s*=\s*[\"']([A-Za-z0-9-]{1,35})[\"']")
_HEAD_BYTES = 8192
_PREFIXED_ROOT = re.compile(rb"<([A-Za-z_][\w.-]{0,40}):html[\s>]")


def parse_xhtml(source: Source, options: ParseOptions) -> Page:
    """Parses a document that came as ``application/xhtml+xml``.

    Elements such as ``<script src="x"/>`` and ``<a id="x"/>`` end where XML ends
    them, CDATA sections are text, and elements may have the prefix of the root. A document
    that is not well-formed is read as HTML, not refused: many pages only claim to be XHTML.

    Raises:
        ParseFailed: As ``parse_html``.

    >>> body = b"<html><head><script src='x'/><title>T</title></head><body><a/>A"
    >>> page = parse_xhtml(Source("http://example.com/", body), ParseOptions())
    >>> page.title, page.hrefs, page.text
    ('T', ['x'], 'T A')
    """
    utf8, charset = to_utf8(source.body, source.content_type, source.url)
    if root := _PREFIXED_ROOT.search(utf8, 0, _HEAD_BYTES):  # HTML knows no prefixes
        utf8 = re.sub(rb"<(/?)%b:" % re.escape(root[1]), rb"<\1", utf8)
    # Without the declarations first: what looks like an element in them is none.
    rewritten = _SECTION.sub(_as_html, without_subset(utf8))
    page = parse_markup(source, rewritten, charset, options)
    if page.language is None and (declared := _LANGUAGE.search(utf8, 0, _HEAD_BYTES)):
        page.language = declared[1].decode()
    return page


def _as_html(section: re.Match[bytes]) -> bytes:
    if section["as_is"] is not None:
        return section[0]
    if section["cdata"] is not None:
        return html.escape(section["cdata"].decode("utf-8", "replace"), quote=False).encode()
    name = section["empty"]
    if name.lower() in _VOID:
        return section[0]
    return b"<%b%b></%b>" % (name, section["rest"], name)
