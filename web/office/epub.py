"""EPUB: the chapters of a book, in their order, each read as HTML."""

import dataclasses
import re

from ..html.xhtml import parse_xhtml
from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .archive import Archive, entry_name
from .collected import Collected
from .properties import BOOK, read_properties

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html"})
# A link that leads out of a book names its scheme.
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


def parse_epub(source: Source, options: ParseOptions) -> Page:
    """Parses a book: title and metadata of its package document, the text of its spine.

    Links are those that lead out of the book.

    Raises:
        ParseFailed: ``encrypted``; it is no book, or exceeds a limit: see ``Archive``.
    """
    archive = Archive(source.body)
    collected = Collected(source, options)
    package = next(iter(_references(archive, _CONTAINER, "rootfile", "full-path")), None)
    if package is None or package not in archive:
        raise ParseFailed("malformed") from KeyError("no package document")
    read_properties(archive, package, collected, BOOK)
    chapters = _chapters(archive, package)
    locked = _references(archive, _ENCRYPTION, "CipherReference", "URI")
    if not set(locked).isdisjoint(chapters):  # fonts may be, as any reader can undo that
        raise ParseFailed("encrypted")
    # The titles of chapters are no text of the book.
    options = dataclasses.replace(options, text_with_title=False)
    return collected.read(_read_chapters, archive, chapters, options)


def _references(archive: Archive, part: str, element: str, attribute: str) -> list[str]:
    """Returns the archive entries to which an attribute of these elements refers."""
    found = (names.get(attribute, "") for tag, names in archive.elements(part) if tag == element)
    return [entry_name("", reference) for reference in found]


def _chapters(archive: Archive, package: str) -> list[str]:
    """Returns the names of the entries in the spine, each once."""
    items: dict[str, str] = {}
    spine: dict[str, None] = {}
    for name, attributes in archive.elements(package):
        if name == "item" and attributes.get("media-type") in _CHAPTERS:
            items[attributes.get("id", "")] = entry_name(package, attributes.get("href", ""))
        elif name == "itemref":
            spine[attributes.get("idref", "")] = None
    return [items[id_] for id_ in spine if id_ in items]


def _read_chapters(
    archive: Archive, names: list[str], options: ParseOptions, collected: Collected
) -> None:
    for name in names:
        body = b"".join(archive.stream(name))
        chapter = parse_xhtml(Source("", body, "application/xhtml+xml"), options)
        for href, anchor in zip(chapter.hrefs, chapter.anchors, strict=True):
            if _ABSOLUTE.match(href):
                collected.link(href, anchor)
        collected.language(chapter.language or "")
        collected.add(chapter.text + " ")
