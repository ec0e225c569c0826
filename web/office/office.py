"""Parses Office Open XML, the formats of Word, Excel and PowerPoint.

Of workbooks it reads the cells of all sheets, row by row; their text boxes and comments. Dates are
numbers of days that a cell's format shows as dates (ECMA-376 part 1, 18.8.30).
"""

import datetime
import functools
import re
from collections.abc import Callable, Iterable

from ..pages.page import Page, ParseFailed, Source, collapse
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import CHARACTERS, END, START, Attributes, Event
from .archive import Archive, read_parts, read_properties, without_escapes
from .collector import MAX_CHARS, Collector
from .ooxml_parts import read_words, relations_of
from .table_layout import MOST_EMPTY

_FORMULA = re.compile(r'\s*(?:_xlfn\.)?HYPERLINK\(\s*"([^"]+)"', re.IGNORECASE)
_MAX_FORMULA_CHARS = 8_192
_MAX_SHARED = 1_000_000
_MAX_LINKED_CELLS = 100_000
# Where programs put these parts; a damaged list of parts says nothing else.
_USUAL_SHARED, _USUAL_STYLES = "xl/sharedStrings.xml", "xl/styles.xml"
_USUAL_SHEET = "xl/worksheets/sheet{}.xml"
_TRUE = frozenset({"1", "on", "true"})
_TRUTH = {"0": "FALSE", "1": "TRUE"}
_MAX_FORMATS = 100_000
# Text in quotes, escaped letters, gaps, colours and languages in brackets, but no counts of hours.
_NO_LETTERS = re.compile(r"\"[^\"]*\"?|[\\_*].|\[(?!(?:h+|m+|s+)\])[^\]]*\]?", re.IGNORECASE)
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_DATE, _TIME, _DATE_TIME, _HOURS = "yyyy", "h", "yyyy h", "[h]"
# Formats that every workbook has, by number; from 27 on those of Chinese, Japanese and Korean.
_BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17, 27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58), _DATE),
    **dict.fromkeys((18, 19, 20, 21, 32, 33, 34, 35, 45, 47, 55, 56), _TIME),
    22: _DATE_TIME,
    46: _HOURS,
}
_EPOCH, _EPOCH_1904 = datetime.datetime(1899, 12, 30), datetime.datetime(1904, 1, 1)
# Workbooks have a 29 February 1900, so earlier days are counted from a day later.
_FIRST_RIGHT_DAY = 61
_END_OF_DAYS = 2_958_466  # 1 January 10000
_DAY_S = 86_400
_HALF_SECOND = 0.5 / _DAY_S

DateFormat = Callable[[float], str]


def read_workbook(archive: Archive, main: str, collector: Collector) -> None:
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
    if archive.is_damaged(main):
        listed_parts = {part for _, part in sheets}
        worksheets = relations.by_kind.get("worksheet", ())
        sheets += [("", part) for part in worksheets if part not in listed_parts]
    styles = archive.events(relations.first.get("styles", _USUAL_STYLES))
    date_formats = read_date_styles(styles, is_1904)
    for name, part in dict.fromkeys(sheets):  # no sheet twice
        collector.add_heading(without_escapes(name))
        if archive.require(part):
            around = relations_of(archive, part)
            _Cells(collector, shared, date_formats, around.outside).read(archive, part)
            read_words(archive, around.first.get("drawing"), collector)
            # A copy for programs that know no threads begins with an explanation.
            comments = around.first.get("threadedComment") or around.first.get("comments")
            _read_comments(archive, comments, collector)


def _read_comments(archive: Archive, part: str | None, collector: Collector) -> None:
    """Takes the comments on cells, without the names of their authors."""
    element, is_phonetic = "", False
    for kind, value, _ in archive.events(part):
        if kind == CHARACTERS:
            if element in ("t", "text") and not is_phonetic and not value.isspace():
                collector.add_text(without_escapes(value))
            continue
        element = value if kind == START else ""
        if value == "rPh":
            is_phonetic = kind == START
        elif kind == END and value in ("comment", "threadedComment"):
            collector.add_text("\n")


def _shared_texts(archive: Archive, part: str | None) -> list[str]:
    """Returns the texts that cells refer to by number."""
    texts: list[str] = []
    pieces: list[str] = []
    chars_left = MAX_CHARS
    element = ""
    phonetic = False
    for kind, value, _ in archive.events(part):
        if kind == CHARACTERS:
            if element == "t" and not phonetic:
                pieces.append(value)
                chars_left -= len(value)
            continue
        element = value if kind == START else ""
        if value == "rPh":
            phonetic = kind == START
        elif value == "si" and kind == END:
            texts.append(without_escapes("".join(pieces)))
            pieces = []
        if len(texts) > _MAX_SHARED or chars_left < 0:
            break
    return texts


class _Cells:
    """Takes the cells of one sheet, and the links at them."""

    def __init__(
        self,
        collector: Collector,
        shared: list[str],
        date_formats: dict[str, DateFormat],
        outside: dict[str, str],
    ) -> None:
        self._collector = collector
        self._shared = shared
        self._date_formats = date_formats
        self._outside = dict(outside)
        # Texts by cell, as links come after the cells that they are at.
        self._texts: dict[str, str] = {}
        self._cell: Attributes = {}
        self._value: list[str] = []
        self._formula = ""
        self._is_phonetic = False
        self._column = -1  # of the cell
        self._columns = 0  # of its row, that are written

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
                name = attributes.get("r", "")
                self._column = column_number(name) if name else self._column + 1
            elif value == "c":
                self._take_cell()
            elif value == "rPh":
                self._is_phonetic = kind == START
            elif value == "row" and kind == END:
                self._collector.add_text("\n")
                self._column, self._columns = -1, 0
            elif value == "hyperlink" and kind == START:
                self._link(attributes)
        for target in self._outside.values():  # at no cell
            self._collector.add_link(target)

    def _text(self, element: str, text: str) -> None:
        if element == "f":
            self._formula = (self._formula + text)[:_MAX_FORMULA_CHARS]
        elif element in ("t", "v") and not self._is_phonetic:
            self._value.append(text)

    def _link(self, attributes: Attributes) -> None:
        target = self._outside.pop(attributes.get(":id", ""), "")
        cell = attributes.get("ref", "").partition(":")[0]
        self._collector.add_link(target, self._texts.get(cell) or attributes.get("display", ""))

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
        elif kind in (None, "n") and (
            date_format := self._date_formats.get(self._cell.get("s", ""))
        ):
            text = date_text(text, date_format)
        if formula := _FORMULA.match(self._formula):
            self._collector.add_link(formula[1], text)
        if text:
            if self._outside and len(self._texts) < _MAX_LINKED_CELLS:
                self._texts[self._cell.get("r", "")] = text
            if self._columns < self._column <= self._columns + MOST_EMPTY:
                self._collector.end_cells(self._column - self._columns)
            self._collector.add_text(collapse(text))
            self._collector.end_cells()
            self._columns = max(self._columns, self._column) + 1


def column_number(cell: str) -> int:
    """Returns the number of the column of a cell, from 0; 0, too, if its name has none.

    >>> column_number("A1"), column_number("Z9"), column_number("AB12"), column_number("")
    (0, 25, 27, 0)
    """
    number = 0
    for letter in cell[:4]:
        if not "A" <= letter <= "Z":
            break
        number = 26 * number + ord(letter) - ord("A") + 1
    return max(number - 1, 0)


def read_date_styles(events: Iterable[Event], is_1904: bool) -> dict[str, DateFormat]:
    """Returns how numbers are shown as dates, by the style of a cell that has a date format.

    Args:
        events: The events of the part with styles.
        is_1904: Whether days are counted from 1904, as in workbooks of old Macintoshes.
    """
    formats: dict[str, str] = {str(number): code for number, code in _BUILT_IN.items()}
    styles: dict[str, DateFormat] = {}
    in_cells, number = False, 0
    for kind, name, attributes in events:
        if name == "cellXfs":
            in_cells = kind == START
        elif name == "numFmt" and kind == START and len(formats) < _MAX_FORMATS:
            formats[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name == "xf" and kind == END and in_cells:
            number += 1
        elif name == "xf" and in_cells and len(styles) < _MAX_FORMATS:
            date_format = _date_format(formats.get(attributes.get("numFmtId", ""), ""), is_1904)
            if date_format is not None:
                styles[str(number)] = date_format
    return styles


def date_text(value: str, date_format: DateFormat) -> str:
    """Returns the date that the value of a cell is; the value itself if it is none.

    >>> date_text("46024.4375", _date_format("d/m/yy h:mm", False))
    '2026-01-02 10:30:00'
    >>> date_text("1.5", _date_format("[h]:mm", False)), date_text("x", _date_format("d", False))
    ('36:00:00', 'x')
    """
    try:
        days = float(value)
    except ValueError:
        return value
    return date_format(days) if 0 <= days < _END_OF_DAYS - _HALF_SECOND else value


def _date_format(code: str, is_1904: bool) -> DateFormat | None:
    """Returns how a format shows a number, or None if not as a date."""
    if code.lower() == "general":
        return None
    first = _NO_LETTERS.sub("", code).partition(";")[0].lower()
    if _ELAPSED.search(first):
        return _hours_text
    has_time = "h" in first or "s" in first
    has_date = "y" in first or "d" in first or ("m" in first and not has_time)
    if not has_date:
        return _time_of_day if has_time else None
    form = "%Y-%m-%d %H:%M:%S" if has_time else "%Y-%m-%d"
    return lambda days: _moment(days, is_1904).strftime(form)


def _moment(days: float, is_1904: bool) -> datetime.datetime:
    if is_1904:
        return _EPOCH_1904 + datetime.timedelta(seconds=round(days * _DAY_S))
    shift = 1 if days < _FIRST_RIGHT_DAY - 1 else 0
    return _EPOCH + datetime.timedelta(days=shift, seconds=round(days * _DAY_S))


def _time_of_day(days: float) -> str:
    return _clock_text(round(days % 1 * _DAY_S) % _DAY_S)


def _hours_text(days: float) -> str:
    return _clock_text(round(days * _DAY_S))


def _clock_text(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


# Where programs put these parts; a damaged list of parts says nothing else.
_USUAL_MAIN_PARTS = ("word/document.xml", "xl/workbook.xml", "ppt/presentation.xml")
_PROPERTIES = "docProps/core.xml"
_USUAL_SLIDE = "ppt/slides/slide{}.xml"


def parse_office(source: Source, options: ParseOptions) -> Page:
    """Parses a text document, a workbook or a presentation; its main part shows which it is.

    Title, author and the like are its core properties. Text is that of the document with its foot-
    and endnotes, of all sheets with their text boxes and comments, or of all slides with their notes. Links are its hyperlinks out.

    Parts that are damaged are read up to the damage; the metadata ``text_cut`` says so.

    Raises:
        ParseFailed: It is no such document, or exceeds a limit: see ``Archive``.
    """
    archive = Archive(source.body)
    collector = Collector(source, options)
    package = relations_of(archive, "")
    main = package.first.get("officeDocument") or next(
        filter(archive.__contains__, _USUAL_MAIN_PARTS), None
    )
    root = next((name for name, _ in archive.elements(main)), None)
    if main is None or root not in _READERS:
        raise ParseFailed("malformed") from KeyError(f"unknown main part {(main or '')[:100]!r}")
    properties = package.first.get("core-properties", _PROPERTIES)
    read_properties(archive, properties, collector)
    archive.forgive(properties)
    return collector.read(read_parts, archive, functools.partial(_READERS[root], archive, main))


def _read_document(archive: Archive, main: str, collector: Collector) -> None:
    relations = relations_of(archive, main)
    styles = relations.first.get("styles", "")
    elements = archive.elements(styles)
    languages = (attributes.get("val", "") for name, attributes in elements if name == "lang")
    collector.set_language(next(languages, ""))  # the first is that of the defaults
    archive.forgive(styles)
    for part in (main, relations.first.get("footnotes"), relations.first.get("endnotes")):
        read_words(archive, part, collector)


def _read_presentation(archive: Archive, main: str, collector: Collector) -> None:
    relations = relations_of(archive, main)
    parts, elements = relations.inside, archive.elements(main)
    ids = [attributes.get(":id", "") for name, attributes in elements if name == "sldId"]
    slides = [parts.get(id_, _USUAL_SLIDE.format(number)) for number, id_ in enumerate(ids, 1)]
    if archive.is_damaged(main):
        slides += relations.by_kind.get("slide", ())
    for slide in dict.fromkeys(slides):  # no slide twice
        if archive.require(slide):
            read_words(archive, slide, collector)
            read_words(archive, relations_of(archive, slide).first.get("notesSlide"), collector)


_READERS = {
    "document": _read_document,
    "presentation": _read_presentation,
    "workbook": read_workbook,
}
