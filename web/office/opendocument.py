"""OpenDocument: texts, spreadsheets and presentations."""

from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .archive import Archive
from .collected import Collected
from .properties import read_properties
from .xml_events import Attributes, Handler, read_xml

_CONTENT, _META, _MANIFEST = "content.xml", "meta.xml", "META-INF/manifest.xml"
_PARAGRAPHS = frozenset({"h", "p"})
_GAPS = frozenset({"line-break", "s", "tab"})
# Remarks, what was deleted, how numbers look: nothing that a reader reads.
_LEFT_OUT = frozenset(
    {"annotation", "automatic-styles", "font-face-decls", "scripts", "tracked-changes"}
)


def parse_opendocument(source: Source, options: ParseOptions) -> Page:
    """Parses OpenDocument: title and the like of ``meta.xml``, paragraphs, links that lead out.

    Raises:
        ParseFailed: ``encrypted``; it is none, or is too much: see ``Archive`` and ``read_xml``.
    """
    archive = Archive(source.body)
    collected = Collected(source, options)
    if _MANIFEST in archive:
        read_xml(archive.chunks(_MANIFEST), _Manifest())
    read_properties(archive, _META, collected)
    read_xml(archive.chunks(_CONTENT), _Content(collected))
    return collected.done()


class _Manifest(Handler):
    def start(self, name: str, attributes: Attributes) -> None:
        if name == "encryption-data":
            raise ParseFailed("encrypted")


class _Content(Handler):
    """Takes paragraphs and links."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected
        self._left_out = self._paragraphs = 0
        self._links: list[tuple[str, int]] = []

    def start(self, name: str, attributes: Attributes) -> None:
        if name in _LEFT_OUT:
            self._left_out += 1
        elif name in _PARAGRAPHS:
            self._paragraphs += 1
        elif name == "a":
            target = _outward(attributes.get("href", ""))
            self._links.append((target, self._collected.mark()))

    def end(self, name: str) -> None:
        if name in _LEFT_OUT:
            self._left_out -= 1
        elif name in _PARAGRAPHS:
            self._paragraphs -= 1
            self._collected.add(" ")
        elif name in _GAPS and self._paragraphs:
            self._collected.add(" ")
        elif name == "a" and self._links:
            target, begin = self._links.pop()
            self._collected.link(target, self._collected.since(begin))

    def text(self, text: str) -> None:
        if self._paragraphs and not self._left_out:
            self._collected.add(text)


def _outward(href: str) -> str:
    """Returns a link relative to the document; ``""`` for one that stays inside.

    A document is a folder to its links, OpenDocument 1.2 part 3, 3.7.

    >>> _outward("../b.odt"), _outward("#here"), _outward("Pictures/1.png")
    ('b.odt', '', '')
    """
    if href.startswith("../"):
        return href.removeprefix("../")
    has_scheme = ":" in href.partition("/")[0]
    return href if has_scheme or href.startswith("/") else ""
