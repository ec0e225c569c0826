"""EPUB: the chapters of a book, in their order, each read as HTML."""

import functools
import re
from collections.abc import Iterator

from ..html.html import parse_xhtml
from ..pages import spans
from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.spans import Span
from .archive import BOOK, Archive, entry_name, read_parts, read_properties
from .collector import Collector

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
# DTBook, books for the blind, were chapters in EPUB 2.
_CHAPTERS = frozenset(
    {
        *("application/xhtml+xml", "text/html"),
        *("text/x-oeb1-document", "application/x-dtbook+xml"),
    }
)
_DRAWING = "image/svg+xml"
# Types that say nothing else than that a chapter is XML, or not even that.
_UNSPECIFIC = frozenset(
    {"", "application/octet-stream", "application/xml", "text/plain", "text/xml"}
)
_CHAPTER_NAME = re.compile(r".*\.(?:x?html?|xht)", re.IGNORECASE | re.DOTALL)
_PACKAGE_END = ".opf"
_WITH_TARGETS = frozenset({spans.IMAGE_TEXT, spans.LINK})
# A link that leads out of a book names its scheme.
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


def parse_epub(source: Source, options: ParseOptions) -> Page:
    """Parses a book: title and metadata of its package document, the text of its spine.

    Links are those that lead out of the book.

    Raises:
        ParseFailed: ``encrypted``; it is no book, or exceeds a limit: see ``Archive``.
    """
    archive = Archive(source.body)
    collector = Collector(source, options)
    named_entries = _references(archive, _CONTAINER, "rootfile", "full-path")
    packages = (name for name in archive.names() if name.lower().endswith(_PACKAGE_END))
    package = next((name for name in (*named_entries, *packages) if name in archive), None)
    if package is None:
        raise ParseFailed("malformed") from KeyError("no package document")
    read_properties(archive, package, collector, BOOK)
    chapters = _chapters(archive, package)
    encrypted_names = _references(archive, _ENCRYPTION, "CipherReference", "URI")
    if not set(encrypted_names).isdisjoint(chapters):  # fonts may be, as any reader can undo that
        raise ParseFailed("encrypted")
    archive.forgive(_CONTAINER, _ENCRYPTION)
    take = functools.partial(_read_chapters, archive, chapters, options)
    return collector.read(read_parts, archive, take)


def _references(archive: Archive, part: str, element: str, attribute: str) -> list[str]:
    """Returns the archive entries to which an attribute of these elements refers."""
    references = (
        names.get(attribute, "") for tag, names in archive.elements(part) if tag == element
    )
    return [entry_name("", reference) for reference in references]


def _chapters(archive: Archive, package: str) -> list[str]:
    """Returns the names of the entries in the spine, each once."""
    items: dict[str, str] = {}
    drawings: dict[str, str] = {}
    fallbacks: dict[str, str] = {}
    spine: dict[str, None] = {}
    for name, attributes in archive.elements(package):
        if name == "item":
            id_, href = attributes.get("id", ""), attributes.get("href", "")
            if _is_chapter(attributes.get("media-type", ""), href):
                items[id_] = entry_name(package, href)
            elif attributes.get("media-type") == _DRAWING:
                drawings[id_] = entry_name(package, href)
            fallbacks[id_] = attributes.get("fallback", "")
        elif name == "itemref":
            spine[attributes.get("idref", "")] = None
    # EPUB 3.3, 4.4: an item of another type, such as a picture, may name a chapter instead of it.
    # Without one a drawing is a chapter, too.
    chapters = (
        items.get(id_) or items.get(fallbacks.get(id_, "")) or drawings.get(id_) for id_ in spine
    )
    # A damaged package may have lost its spine.
    return list(dict.fromkeys(filter(None, chapters))) or list(dict.fromkeys(items.values()))


def _is_chapter(media_type: str, href: str) -> bool:
    mime = media_type.partition(";")[0].strip().lower()
    return mime in _CHAPTERS or (mime in _UNSPECIFIC and _CHAPTER_NAME.fullmatch(href) is not None)


def _spans_in_book(chapter: Page) -> Iterator[Span]:
    """Yields the spans of a chapter; links to other places in the book have no targets."""
    for kind, start, end, level, of in chapter.spans:
        is_inner = kind in _WITH_TARGETS and _ABSOLUTE.match(of) is None
        if kind != spans.BASE:
            yield kind, start, end, level, "" if is_inner else of


def _read_chapters(
    archive: Archive, names: list[str], options: ParseOptions, collector: Collector
) -> None:
    for name in filter(archive.require, names):
        body = b"".join(archive.stream(name))
        chapter = parse_xhtml(Source("", body, "application/xhtml+xml"), options)
        for href, anchor in zip(chapter.hrefs, chapter.anchors, strict=True):
            if _ABSOLUTE.match(href):
                collector.add_link(href, anchor)
        collector.set_language(chapter.language or "")
        collector.add_part(chapter.text, _spans_in_book(chapter))
