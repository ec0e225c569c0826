"""OpenDocument: texts, spreadsheets and presentations."""

import functools

from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import CHARACTERS, START
from .archive import Archive, read_parts, read_properties
from .collector import Collector

_CONTENT, _META, _MANIFEST = "content.xml", "meta.xml", "META-INF/manifest.xml"
_PARAGRAPHS = frozenset({"h", "p"})
_SHEETS = "spreadsheet"  # its rows are lines
_GAPS = frozenset({"line-break", "s", "tab"})
# Notes, text boxes and descriptions of pictures stand within the words of a paragraph.
_INSERTED = frozenset({"desc", "frame", "note", "title"})
# Remarks, deleted text, formats of numbers: no reader of the document sees them. The number of a
# note, and how to read a word, belong to no word.
_LEFT_OUT = frozenset(
    {"annotation", "automatic-styles", "font-face-decls", "note-citation", "ruby-text", "scripts",
     "tracked-changes"}
)  # fmt: skip


def parse_opendocument(source: Source, options: ParseOptions) -> Page:
    """Parses OpenDocument: metadata of ``meta.xml``, paragraphs, links that lead out.

    Raises:
        ParseFailed: ``encrypted``; it is no such document, or exceeds a limit: see ``Archive``.
    """
    archive = Archive(source.body)
    collector = Collector(source, options)
    if any(name == "encryption-data" for name, _ in archive.elements(_MANIFEST)):
        raise ParseFailed("encrypted")
    if _CONTENT not in archive:
        raise ParseFailed("malformed") from KeyError(f"no entry {_CONTENT}")
    read_properties(archive, _META, collector)
    archive.forgive(_META, _MANIFEST)
    return collector.read(read_parts, archive, functools.partial(_read_content, archive))


def _read_content(archive: Archive, collector: Collector) -> None:
    left_out = paragraphs = 0
    after_paragraph = "\n"
    links: list[tuple[str, int]] = []  # target, and where the text of the link begins
    for kind, value, attributes in archive.events(_CONTENT):
        if kind == CHARACTERS:
            if paragraphs and not left_out:
                collector.add_text(value)
        elif value in _LEFT_OUT:
            left_out += kind
        elif value in _PARAGRAPHS:
            paragraphs += kind
            collector.add_text(after_paragraph)
        elif value == _SHEETS:
            after_paragraph = " "
        elif value == "table-row":
            collector.add_text("\n")
        elif value in _INSERTED or (value in _GAPS and paragraphs and kind == START):
            collector.add_text(" ")
        elif value == "a" and kind == START:
            links.append((_outward_link(attributes.get("href", "")), collector.mark()))
        elif value == "a":
            target, begin = links.pop()
            collector.add_link(target, collector.text_since(begin))


def _outward_link(href: str) -> str:
    """Returns a link relative to the document; ``""`` for one that stays inside.

    A document is a folder to its links, OpenDocument 1.2 part 3, 3.7.

    >>> _outward_link("../b.odt"), _outward_link("#here"), _outward_link("Pictures/1.png")
    ('b.odt', '', '')
    """
    if href.startswith("../"):
        return href.removeprefix("../")
    has_scheme = ":" in href.partition("/")[0]
    return href if has_scheme or href.startswith("/") else ""
