"""Workbooks: the cells of all sheets, row by row; their text boxes and comments."""

import re

from ..pages.xml_events import CHARACTERS, END, START, Attributes
from .archive import Archive
from .collected import MAX_CHARS, Collected
from .ooxml_dates import Shown, read_date_styles, shown_date
from .ooxml_parts import relations_of
from .ooxml_words import read_words
from .properties import without_escapes

_FORMULA = re.compile(r'\s*(?:_xlfn\.)?HYPERLINK\(\s*"([^"]+)"', re.IGNORECASE)
_MAX_FORMULA_CHARS = 8_192
_MAX_SHARED = 1_000_000
_MAX_LINKED_CELLS = 100_000
# Where programs put these parts; a damaged list of parts says nothing else.
_USUAL_SHARED, _USUAL_STYLES = "xl/sharedStrings.xml", "xl/styles.xml"
_USUAL_SHEET = "xl/worksheets/sheet{}.xml"
_TRUE = frozenset({"1", "on", "true"})
_TRUTH = {"0": "FALSE", "1": "TRUE"}


def read_workbook(archive: Archive, main: str, collected: Collected) -> None:
    """Takes the names of the sheets, the values and links of their cells, text boxes and comments."""
    relations = relations_of(archive, main)
    if texts := relations.first.get("sharedStrings"):
        archive.require(texts)
    shared = _shared_texts(archive, texts or _USUAL_SHARED)
    sheets: list[tuple[str, str]] = []
    is_1904 = False
    for name, attributes in archive.elements(main):
        if name == "sheet":
            id_ = attributes.get(":id", "")
            part = relations.inside.get(id_, _USUAL_SHEET.format(len(sheets) + 1))
            sheets.append((attributes.get("name", ""), part))
        elif name == "workbookPr":
            is_1904 = attributes.get("date1904", "").lower() in _TRUE
    styles = archive.events(relations.first.get("styles", _USUAL_STYLES))
    dates = read_date_styles(styles, is_1904)
    for name, part in dict.fromkeys(sheets):  # no sheet twice
        collected.add(f" {without_escapes(name)} ")
        if archive.require(part):
            around = relations_of(archive, part)
            _Cells(collected, shared, dates, around.outside).read(archive, part)
            read_words(archive, around.first.get("drawing"), collected)
            # A copy for programs that know no threads begins with an explanation.
            comments = around.first.get("threadedComment") or around.first.get("comments")
            _read_comments(archive, comments, collected)


def _read_comments(archive: Archive, part: str | None, collected: Collected) -> None:
    """Takes the comments on cells, without the names of their authors."""
    element, is_phonetic = "", False
    for kind, value, _ in archive.events(part):
        if kind == CHARACTERS:
            if element in ("t", "text") and not is_phonetic and not value.isspace():
                collected.add(without_escapes(value))
            continue
        element = value if kind == START else ""
        if value == "rPh":
            is_phonetic = kind == START
        elif kind == END and value in ("comment", "threadedComment"):
            collected.add(" ")


def _shared_texts(archive: Archive, part: str | None) -> list[str]:
    """Returns the texts that cells refer to by number."""
    texts: list[str] = []
    pieces: list[str] = []
    left = MAX_CHARS
    element = ""
    phonetic = False
    for kind, value, _ in archive.events(part):
        if kind == CHARACTERS:
            if element == "t" and not phonetic:
                pieces.append(value)
                left -= len(value)
            continue
        element = value if kind == START else ""
        if value == "rPh":
            phonetic = kind == START
        elif value == "si" and kind == END:
            texts.append(without_escapes("".join(pieces)))
            pieces = []
        if len(texts) > _MAX_SHARED or left < 0:
            break
    return texts


class _Cells:
    """Takes the cells of one sheet, and the links at them."""

    def __init__(
        self,
        collected: Collected,
        shared: list[str],
        dates: dict[str, Shown],
        outside: dict[str, str],
    ) -> None:
        self._collected = collected
        self._shared = shared
        self._dates = dates
        self._outside = dict(outside)
        # Texts by cell, as links come after the cells that they are at.
        self._texts: dict[str, str] = {}
        self._cell: Attributes = {}
        self._value: list[str] = []
        self._formula = ""
        self._is_phonetic = False

    def read(self, archive: Archive, part: str) -> None:
        """Collects the texts of a worksheet's cells, and the links at them."""
        element = ""
        for kind, value, attributes in archive.events(part):
            if kind == CHARACTERS:
                self._text(element, value)
                continue
            element = value if kind == START else ""
            if value == "c" and kind == START:
                self._cell, self._value, self._formula = attributes, [], ""
            elif value == "c":
                self._take_cell()
            elif value == "rPh":
                self._is_phonetic = kind == START
            elif value == "row" and kind == END:
                self._collected.add(" ")
            elif value == "hyperlink" and kind == START:
                self._link(attributes)
        for target in self._outside.values():  # at no cell
            self._collected.link(target)

    def _text(self, element: str, text: str) -> None:
        if element == "f":
            self._formula = (self._formula + text)[:_MAX_FORMULA_CHARS]
        elif element in ("t", "v") and not self._is_phonetic:
            self._value.append(text)

    def _link(self, attributes: Attributes) -> None:
        target = self._outside.pop(attributes.get(":id", ""), "")
        cell = attributes.get("ref", "").partition(":")[0]
        self._collected.link(target, self._texts.get(cell) or attributes.get("display", ""))

    def _take_cell(self) -> None:
        text, kind = "".join(self._value), self._cell.get("t")
        if kind == "s":
            number = text.strip()
            place = int(number) if number.isdecimal() and len(number) < 10 else len(self._shared)
            text = self._shared[place] if place < len(self._shared) else ""
        elif kind == "b":
            text = _TRUTH.get(text, text)
        elif kind in ("str", "inlineStr"):
            text = without_escapes(text)
        elif kind in (None, "n") and (shown := self._dates.get(self._cell.get("s", ""))):
            text = shown_date(text, shown)
        if formula := _FORMULA.match(self._formula):
            self._collected.link(formula[1], text)
        if text:
            if self._outside and len(self._texts) < _MAX_LINKED_CELLS:
                self._texts[self._cell.get("r", "")] = text
            self._collected.add(text + " ")
