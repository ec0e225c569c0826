"""OpenDocument: texts, spreadsheets and presentations."""

import functools

from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import CHARACTERS, START
from .archive import Archive, read_parts, read_properties
from .collector import Collector
from .table_layout import MOST_EMPTY

_CONTENT, _META, _MANIFEST = "content.xml", "meta.xml", "META-INF/manifest.xml"
_PARAGRAPHS = frozenset({"h", "p"})
_SHEETS = "spreadsheet"  # its rows are lines
_CELLS = frozenset({"covered-table-cell", "table-cell"})
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
    cells: _SheetCells | None = None
    links: list[tuple[str, int]] = []  # target, and where the text of the link begins
    for kind, value, attributes in archive.events(_CONTENT):
        if kind == CHARACTERS:
            if paragraphs and not left_out:
                collector.add_text(value.replace("\n", " ") if cells else value)
        elif value in _LEFT_OUT:
            left_out += kind
        elif value in _PARAGRAPHS:
            paragraphs += kind
            if cells and kind == START:
                cells.begin_text()
            collector.add_text(after_paragraph)
        elif value == _SHEETS:
            after_paragraph, cells = " ", _SheetCells(collector)
        elif value == "table-row":
            collector.add_text("\n")
            if cells:
                cells.begin_row()
        elif value in _CELLS and cells:
            if kind == START:
                cells.begin(attributes.get("number-columns-repeated", ""))
            else:
                cells.end()
        elif value in _INSERTED or (value in _GAPS and paragraphs and kind == START):
            collector.add_text(" ")
        elif value == "a" and kind == START:
            links.append((_outward_link(attributes.get("href", "")), collector.mark()))
        elif value == "a":
            target, begin = links.pop()
            collector.add_link(target, collector.text_since(begin))


class _SheetCells:
    """Ends the cells of a sheet in its text; empty ones only where another one follows in the row."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._number = 1  # of columns of the cell
        self._empty = 0  # cells before it that are not ended
        self._has_text = False

    def begin_row(self) -> None:
        """Notes that a row begins or ends."""
        self._empty = 0

    def begin(self, repeated: str) -> None:
        """Begins a cell.

        Args:
            repeated: For how many columns it stands.
        """
        self._number = int(repeated) if repeated.isdecimal() and len(repeated) < 6 else 1
        self._has_text = False

    def begin_text(self) -> None:
        """Notes that a cell has text, which comes next."""
        if 0 < self._empty <= MOST_EMPTY:
            self._collector.end_cells(self._empty)
        self._empty, self._has_text = 0, True

    def end(self) -> None:
        """Ends a cell."""
        if self._has_text:
            self._collector.end_cells()
        self._empty += self._number - self._has_text
        self._has_text = False


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
