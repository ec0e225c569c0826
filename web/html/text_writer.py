"""Writes a text and its spans: white space is collapsed, and lines and tabs separate what stands apart."""

import re
from typing import Any, TypeAlias, cast

from ..pages import spans
from ..pages.spans import Span
from .tag_attributes import unescape

# What stands in a run of text until it is written: the start and the end of a mark, and a break of a line.
MARK_START, MARK_END, LINE_BREAK = "\x01", "\x02", "\x03"
_SIGNS = re.compile("([\x01\x02\x03])")
# Where spaces or breaks are to be moved, or nothing is marked; most blocks of text have none of these.
_UNTIDY = (f"{MARK_START} ", f" {MARK_END}", MARK_START + MARK_END)
_EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*+\n)++")
_NO_START = -1

# A span that is not complete yet.
OpenSpan: TypeAlias = list[Any]
LeafKind = tuple[str, int, str]
PLAIN_LEAF: LeafKind = (spans.PARAGRAPH, 0, "")


class TextWriter:
    """Takes runs of text and where blocks and marks begin and end.

    Attributes:
        run: Pieces of the block of text that is being read, escaped.
        leaf: What this block is.
        newlines: Number of line breaks before the next block.
        cells: Data cells that are open, at most one: blocks in it are no blocks.
        is_preformatted: Whether the run is text that stays as it stands.
        length: Number of characters that are written.
    """

    def __init__(self) -> None:
        self.run: list[str] = []
        self.leaf = PLAIN_LEAF
        self.cells = 0
        self.is_preformatted = False
        self._pieces: list[str] = []
        self.length = 0
        self.newlines = self._tabs = 0
        self._starts_cell = False
        self._row_at = 0  # number of the first entry in the row
        self._entries: list[OpenSpan] = []
        self._open_blocks: list[OpenSpan] = []
        # The last ones of these, of which nothing is written yet.
        self._waiting_blocks: list[OpenSpan] = []
        self._run_marks: list[OpenSpan] = []
        self._open_marks: dict[str, str] = {}
        self._open_kinds: list[str] = []  # of them, and of marks that only wait for their end
        self._cells_columns = 1

    def break_line(self, newlines: int) -> None:
        """Ends a block of text; before the next there are at least as many line breaks."""
        if self.is_preformatted:
            if self.run and self.run[-1][-1:] != "\n":
                self.run.append("\n")
            return
        if self.run:
            self.flush()
        if newlines > self.newlines and not self._starts_cell:
            self.newlines = min(newlines, 1) if self.cells else newlines

    def open_block(self, kind: str, level: int = 0, of: str = "") -> None:
        """Begins a block that holds others; in a cell with data there are none."""
        entry: OpenSpan = [kind, _NO_START, 0, level, of]
        if not self.cells:
            self._entries.append(entry)
        self._open_blocks.append(entry)
        self._waiting_blocks.append(entry)

    def close_block(self) -> None:
        """Ends the block that began last."""
        block = self._open_blocks.pop()
        block[2] = self.length
        if self._waiting_blocks:
            self._waiting_blocks.pop()
        if block[0] != spans.SECTION and self._ends_with_rule():
            self._entries.pop()

    def open_row(self) -> None:
        """Begins a row of a table with data."""
        self.break_line(1)
        self.open_block(spans.ROW)
        self._row_at = len(self._entries)

    def open_cell(self, level: int, columns: int, is_first: bool) -> None:
        """Begins a cell of a table with data."""
        self.break_line(0)
        if not is_first:
            self._tabs += 1
        self.open_block(spans.CELL, level, str(columns) if columns > 1 else "")
        self.cells, self._starts_cell, self._cells_columns = 1, True, columns

    def close_cell(self) -> None:
        """Ends the cell."""
        self.break_line(0)
        self.close_block()
        self._tabs += self._cells_columns - 1
        if not self._starts_cell:
            self.newlines = 0
        self.cells, self._starts_cell = 0, False

    def close_row(self) -> None:
        """Ends a row of a table with data; its empty cells have a place, unless all are empty."""
        self.break_line(1)
        self._tabs = 0
        row = self._open_blocks[-1]
        self.close_block()
        if row[1] != _NO_START:
            at = row[1]
            for cell in self._entries[self._row_at :]:
                if cell[0] == spans.CELL and cell[1] == _NO_START:
                    cell[1] = cell[2] = at
                at = max(at, cell[2])

    def open_mark(self, kind: str, of: str = "") -> None:
        """Begins a mark; one without a kind, or in another one of its kind, only waits for its end."""
        if self.is_preformatted:
            return
        if kind in self._open_marks:
            kind = ""
        self._open_kinds.append(kind)
        if kind:
            self._open_marks[kind] = of
            self.run.append(MARK_START)
            self._run_marks.append([kind, _NO_START, 0, 0, of])

    def close_mark(self) -> None:
        """Ends the mark that began last."""
        if self._open_kinds and not self.is_preformatted and (kind := self._open_kinds.pop()):
            del self._open_marks[kind]
            self.run.append(MARK_END)

    def add_mark(self, kind: str, text: str, of: str = "") -> None:
        """Adds a mark with all that is in it, which is an escaped text."""
        if (
            kind
            and not self.is_preformatted
            and kind not in self._open_marks
            and not text.isspace()
        ):
            self.run += (MARK_START, text, MARK_END)
            self._run_marks.append([kind, _NO_START, 0, 0, of])
        else:
            self.run.append(text)

    def add_rule(self) -> None:
        """Adds a line between two blocks that stand in the same one."""
        self.break_line(2)
        around = self._open_blocks[-1:]
        is_first = any(block[1] == _NO_START and block[0] != spans.SECTION for block in around)
        if self.length and not (is_first or self.cells or self.is_preformatted):
            self._entries.append([spans.RULE, self.length, self.length, 0, ""])

    def _ends_with_rule(self) -> bool:
        return bool(self._entries) and self._entries[-1][:2] == [spans.RULE, self.length]

    def add_break(self) -> None:
        """Breaks the line; one that follows no text in its line ends the block, too."""
        run = self.run
        if self.is_preformatted:
            run.append("\n")
            return
        last = len(run) - 1
        while last >= 0 and (
            run[last] in (MARK_START, MARK_END) or not run[last].replace("&nbsp;", "").strip()
        ):
            last -= 1
        if last >= 0 and run[last] != LINE_BREAK:
            run.append(LINE_BREAK)
            return
        if last >= 0:
            del run[last]
        self.break_line(2)

    def flush(self) -> None:
        """Writes the run."""
        text = " ".join(unescape("".join(self.run)).split())
        if self._run_marks or LINE_BREAK in text:
            self._write_marked(text)
        elif text:
            self._write_leaf(text)
        self._begin_run()

    def begin_preformatted(self) -> None:
        """Begins a run that stays as it stands, without marks."""
        if not self.is_preformatted:
            self.is_preformatted = True
            self.run.clear()
            self._run_marks = []

    def end_preformatted(self, language: str) -> None:
        """Writes the run as it stands, as preformatted text."""
        if not self.is_preformatted:
            return
        text = unescape("".join(self.run)).replace("\xa0", " ")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = _EMPTY_LINES.sub("", text).rstrip()
        if text:
            self.leaf = (spans.PREFORMATTED, 0, language)
            self._write_leaf(text)
        self.leaf, self.is_preformatted = PLAIN_LEAF, False
        self._begin_run()

    def finish(self) -> tuple[str, list[Span]]:
        """Returns the text and the spans."""
        if self.run:
            self.flush()
        complete = [tuple(entry) for entry in self._entries if entry[1] != _NO_START]
        return "".join(self._pieces), cast(list[Span], complete)

    def _begin_run(self) -> None:
        """Begins a run; marks that are open go on in it."""
        self.run.clear()
        self._run_marks = []
        for kind, of in self._open_marks.items():
            self.run.append(MARK_START)
            self._run_marks.append([kind, _NO_START, 0, 0, of])

    def _write_leaf(self, text: str) -> None:
        """Appends a text, after what separates it from the one before; blocks begin with their first text."""
        if self.length:
            gap = "\n" * self.newlines + "\t" * self._tabs
            self._pieces.append(gap)
            self.length += len(gap)
        start = self.length
        self._pieces.append(text)
        self.length += len(text)
        self.newlines = self._tabs = 0
        self._starts_cell = False
        for block in self._waiting_blocks:
            block[1] = start
        self._waiting_blocks.clear()
        if not self.cells:
            kind, level, of = self.leaf
            self._entries.append([kind, start, self.length, level, of])

    def _write_marked(self, text: str) -> None:
        """Writes a text with signs in it."""
        marks = self._run_marks
        after_space, before_space, nothing = _UNTIDY
        if LINE_BREAK in text or after_space in text or before_space in text or nothing in text:
            plain, marks = place_marks(text, marks)
            if plain:
                self._write_leaf(plain)
                start = self.length - len(plain)
                for mark in marks:
                    mark[1] += start
                    mark[2] += start
                self._entries += marks
        elif plain := text.replace(MARK_START, "").replace(MARK_END, ""):
            self._write_leaf(plain)
            self._entries += place_tidy_marks(text, marks, self.length - len(plain))


def place_tidy_marks(text: str, marks: list[OpenSpan], start: int) -> list[OpenSpan]:
    """Returns the marks of a text with their places; ``place_marks`` does it if the text has any of ``_UNTIDY``.

    Args:
        text: The text with signs.
        marks: Its marks in their order; ``MARK_START`` begins the next.
        start: Place of the text.

    >>> place_tidy_marks("a \x01b\x02", [["strong", -1, 0, 0, ""]], 5)
    [['strong', 7, 8, 0, '']]
    """
    opened, open_marks = 0, list[OpenSpan]()
    opening, closing = text.find(MARK_START), text.find(MARK_END)
    while opening >= 0 or closing >= 0:
        if closing < 0 or 0 <= opening < closing:
            mark = marks[opened]
            mark[1] = opening + start
            open_marks.append(mark)
            opened += 1
            opening = text.find(MARK_START, opening + 1)
        else:
            open_marks.pop()[2] = closing + start
            closing = text.find(MARK_END, closing + 1)
        start -= 1  # for the sign, which is not in the text that is written
    if not open_marks:
        return marks
    end = len(text) + start
    for mark in open_marks:
        mark[2] = end
    return [mark for mark in marks if _fit(mark, end)]


def place_marks(text: str, marks: list[OpenSpan]) -> tuple[str, list[OpenSpan]]:
    """Returns a text without signs, and its marks with their places; those of nothing are left out.

    Spaces at the ends of a mark are outside of it. Breaks at the ends of the text are left out.

    Args:
        text: The text; a run of white space in it is one space.
        marks: Its marks in their order; ``MARK_START`` begins the next.

    >>> place_marks("a\x01 b \x02c", [["strong", -1, 0, 0, ""]])
    ('a b c', [['strong', 2, 3, 0, '']])
    """
    entries, open_marks, waiting = list[OpenSpan](), list[OpenSpan](), list[OpenSpan]()
    pieces, length, space, coming = list[str](), 0, False, iter(marks)
    for number, piece in enumerate(_SIGNS.split(text)):
        if number % 2 == 0:
            if not piece:
                continue
            core = piece.strip(" ")
            space = space or piece[0] == " "
            if not core:
                continue
            if space and length and pieces[-1] != "\n":
                pieces.append(" ")
                length += 1
            for entry in waiting:
                entry[1] = length
            waiting.clear()
            pieces.append(core)
            length += len(core)
            space = piece[-1] == " "
        elif piece == MARK_START:
            entry = next(coming)
            entries.append(entry)
            open_marks.append(entry)
            waiting.append(entry)
        elif piece == MARK_END:
            entry = open_marks.pop()
            entry[2] = length
            if waiting and waiting[-1] is entry:
                waiting.pop()
        elif length:
            space = False
            pieces.append("\n")
            entries.append([spans.BREAK, length, length + 1, 0, ""])
            length += 1
    while pieces and pieces[-1] in "\n ":
        length -= len(pieces.pop())
    for entry in open_marks:
        entry[2] = length
    kept = [entry for entry in entries if entry[1] != _NO_START and _fit(entry, length)]
    return "".join(pieces), kept


def _fit(entry: OpenSpan, length: int) -> bool:
    """Cuts a mark to the length of its text; returns whether anything is left of it."""
    if entry[2] > length:
        entry[2] = length
        entry[1] = min(entry[1], length)
    return bool(entry[2] > entry[1])
