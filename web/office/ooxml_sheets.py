"""Workbooks: the cells of all sheets, row by row."""

import re

from .archive import Archive
from .collected import MAX_CHARS, Collected
from .ooxml_parts import Relations, relations_of
from .xml_events import Attributes, Enough, Handler, read_xml

_FORMULA = re.compile(r'\s*(?:_xlfn\.)?HYPERLINK\(\s*"([^"]+)"', re.IGNORECASE)
_MAX_FORMULA_CHARS = 8_192
_MAX_SHARED = 1_000_000
_MAX_LINKED_CELLS = 100_000
_TRUTH = {"0": "FALSE", "1": "TRUE"}


def read_workbook(archive: Archive, main: str, collected: Collected) -> None:
    """Takes the names of the sheets, and what stands in their cells."""
    sheets = _Sheets()
    read_xml(archive.chunks(main), sheets)
    relations = relations_of(archive, main)
    shared = _Shared()
    if (part := relations.first("sharedStrings")) and part in archive:
        read_xml(archive.chunks(part), shared)
    for name, id_ in sheets.found.items():
        part = relations.inside.get(id_)
        if part is None or part not in archive:
            continue
        cells = _Cells(collected, shared.texts, relations_of(archive, part))
        cells.take(f" {name} ")
        read_xml(archive.chunks(part), cells)
        cells.rest()


class _Sheets(Handler):
    """Relationship by name of the sheet, in order."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sheet" and "r:id" in attributes:
            self.found.setdefault(attributes.get("name", ""), attributes["r:id"])


class _Shared(Handler):
    """The texts that cells refer to by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._pieces: list[str] = []
        self._in_text = self._phonetic = 0
        self._left = MAX_CHARS

    def start(self, name: str, attributes: Attributes) -> None:
        self._in_text += name == "t"
        self._phonetic += name == "rPh"

    def end(self, name: str) -> None:
        self._in_text -= name == "t"
        self._phonetic -= name == "rPh"
        if name == "si":
            self.texts.append("".join(self._pieces))
            self._pieces = []
            if len(self.texts) > _MAX_SHARED or self._left < 0:
                raise Enough

    def text(self, text: str) -> None:
        if self._in_text and not self._phonetic and self._left >= 0:
            self._pieces.append(text)
            self._left -= len(text)


class _Cells(Handler):
    """Takes the cells of one sheet, and the links at them."""

    def __init__(self, collected: Collected, shared: list[str], relations: Relations) -> None:
        self._collected = collected
        self._shared = shared
        self._outside = dict(relations.outside)
        # What stands in cells, while links may come that are at them.
        self._at: dict[str, str] = {}
        self._cell = self._kind = ""
        self._value: list[str] = []
        self._formula = ""
        self._in = ""

    def take(self, text: str) -> None:
        """Takes text, which may be too much."""
        try:
            self._collected.add(text)
        except Enough:
            return

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "c":
            self._cell, self._kind = attributes.get("r", ""), attributes.get("t", "n")
            self._value, self._formula = [], ""
        elif name in ("v", "t", "f"):
            self._in = name
        elif name == "hyperlink":
            target = self._outside.pop(attributes.get("r:id", ""), None)
            if target is not None:
                cell = attributes.get("ref", "").partition(":")[0]
                anchor = self._at.get(cell) or attributes.get("display", "")
                self._collected.link(target, anchor)

    def text(self, text: str) -> None:
        if self._in == "f":
            self._formula += text[: max(0, _MAX_FORMULA_CHARS - len(self._formula))]
        elif self._in:
            self._value.append(text)

    def end(self, name: str) -> None:
        if name == self._in:
            self._in = ""
        elif name == "c":
            self._take_cell()
        elif name == "row":
            self._collected.add(" ")

    def rest(self) -> None:
        """Takes the links that are at no cell."""
        for target in self._outside.values():
            self._collected.link(target)

    def _take_cell(self) -> None:
        text = "".join(self._value)
        if self._kind == "s":
            place = int(text) if text.isdecimal() and len(text) < 10 else len(self._shared)
            text = self._shared[place] if place < len(self._shared) else ""
        elif self._kind == "b":
            text = _TRUTH.get(text, text)
        if formula := _FORMULA.match(self._formula):
            self._collected.link(formula[1], text)
        if text:
            if self._outside and len(self._at) < _MAX_LINKED_CELLS:
                self._at[self._cell] = text
            self._collected.add(text + " ")
