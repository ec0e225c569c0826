"""EPUB: the chapters of a book, in their order, each read as HTML."""

import contextlib
import dataclasses
import re

from ..html.html import parse_html
from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .archive import Archive, entry_name, folder_of
from .collected import Collected
from .properties import Properties
from .xml_events import Attributes, Enough, Handler, read_xml

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html"})
# What leads out of a book names its scheme.
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_VOID = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
# XHTML ends an element at once where HTML waits for its end tag.
_EMPTY = re.compile(rf"<(?!(?:{_VOID})\b)([a-z][a-z0-9]*)((?:\s[^<>]*)?)/>".encode(), re.IGNORECASE)


def parse_epub(source: Source, options: ParseOptions) -> Page:
    """Parses a book: title and the like of its package document, the text of its spine.

    Links are those that lead out of the book.

    Raises:
        ParseFailed: ``encrypted``; it is none, or is too much: see ``Archive`` and ``read_xml``.
    """
    archive = Archive(source.body)
    collected = Collected(source, options)
    container = _Container()
    read_xml(archive.chunks(_CONTAINER), container)
    if container.package is None:
        raise ParseFailed("malformed") from KeyError("no package document")
    book = _Package(collected, folder_of(container.package))
    read_xml(archive.chunks(container.package), book)
    locked = _Locked()
    if _ENCRYPTION in archive:
        read_xml(archive.chunks(_ENCRYPTION), locked)
    chapters = book.chapters()
    if not locked.names.isdisjoint(chapters):  # fonts may be, as any reader can undo that
        raise ParseFailed("encrypted")
    # The titles of chapters are no text of the book.
    options = dataclasses.replace(options, text_with_title=False)
    with contextlib.suppress(Enough):
        for name in chapters:
            if name in archive:
                _read_chapter(archive.read(name), collected, options)
    return collected.done()


def _read_chapter(body: bytes, collected: Collected, options: ParseOptions) -> None:
    body = _EMPTY.sub(rb"<\1\2></\1>", body)
    chapter = parse_html(Source("", body, "application/xhtml+xml"), options)
    links = zip(chapter.hrefs, chapter.anchors, strict=True)
    for href, anchor in links:
        if _ABSOLUTE.match(href):
            collected.link(href, anchor)
    collected.language(chapter.language or "")
    collected.add(chapter.text + " ")


class _Container(Handler):
    package: str | None = None

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "rootfile" and self.package is None:
            self.package = entry_name("", attributes.get("full-path", ""))


class _Package(Properties):
    """Metadata, what entries there are, and in which order they are read."""

    def __init__(self, collected: Collected, folder: str) -> None:
        metas = {"creator": "author", "description": "description", "subject": "keywords"}
        super().__init__(collected, metas)
        self._folder = folder
        self._items: dict[str, str] = {}
        self._spine: dict[str, None] = {}  # no chapter twice

    def chapters(self) -> list[str]:
        """Returns the names of the entries that are read."""
        return [self._items[id_] for id_ in self._spine if id_ in self._items]

    def start(self, name: str, attributes: Attributes) -> None:
        super().start(name, attributes)
        if name == "item" and attributes.get("media-type") in _CHAPTERS:
            entry = entry_name(self._folder, attributes.get("href", ""))
            self._items[attributes.get("id", "")] = entry
        elif name == "itemref":
            self._spine[attributes.get("idref", "")] = None


class _Locked(Handler):
    """Names of the entries that are encrypted."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "CipherReference":
            self.names.add(entry_name("", attributes.get("URI", "")))
