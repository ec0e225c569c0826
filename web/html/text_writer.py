"""Writes a text and its spans: white space is collapsed, and lines and tabs separate what stands apart."""

import re
from typing import Any, TypeAlias, cast

from ..pages import spans
from ..pages.spans import Span
from .tag_attributes import unescape

# What stands in a run of text until it is written: the start and the end of a mark, and a break of a line.
OPEN, CLOSE, BREAK = "\x01", "\x02", "\x03"
_SIGNS = re.compile("([\x01\x02\x03])")
# Where spaces or breaks are to be moved, or nothing is marked; most blocks of text have none of these.
_UNTIDY = (f"{OPEN} ", f" {CLOSE}", OPEN + CLOSE, BREAK)
_EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*+\n)++")
_NO_START = -1

# A span that is not complete yet.
Entry: TypeAlias = list[Any]
Leaf = tuple[str, int, str]
PLAIN: Leaf = (spans.PARAGRAPH, 0, "")


class TextWriter:
    """Takes runs of text and where blocks and marks begin and end.

    Attributes:
        run: Pieces of the block of text that is being read, escaped.
        leaf: What this block is.
        cells: Data cells that are open, at most one: blocks in it are no blocks.
        is_preformatted: Whether the run is text that stays as it stands.
        length: Number of characters that are written.
    """

    def __init__(self) -> None:
        self.run: list[str] = []
        self.leaf = PLAIN
        self.cells = 0
        self.is_preformatted = False
        self._pieces: list[str] = []
        self.length = 0
        self._newlines = self._tabs = 0
        self._starts_cell = False
        self._row_at = 0  # number of the first entry in the row
        self._entries: list[Entry] = []
        self._open_blocks: list[Entry] = []
        self._run_marks: list[Entry] = []
        self._open_marks: list[tuple[str, str]] = []
        self._open_kinds: set[str] = set()
        self._cells_columns = 1

    def break_line(self, newlines: int) -> None:
        """Ends a block of text; before the next there are at least as many line breaks."""
        if self.is_preformatted:
            if self.run and self.run[-1][-1:] != "\n":
                self.run.append("\n")
            return
        if self.run:
            self.flush()
        if newlines > self._newlines and not self._starts_cell:
            self._newlines = min(newlines, 1) if self.cells else newlines

    def open_block(self, kind: str, level: int = 0, of: str = "") -> None:
        """Begins a block that holds others; in a cell with data there are none."""
        entry: Entry = [kind, _NO_START, 0, level, of]
        if not self.cells:
            self._entries.append(entry)
        self._open_blocks.append(entry)

    def close_block(self) -> None:
        """Ends the block that began last."""
        block = self._open_blocks.pop()
        block[2] = self.length
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
            self._newlines = 0
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
        if kind in self._open_kinds:
            kind = ""
        self._open_marks.append((kind, of))
        if kind:
            self._open_kinds.add(kind)
            self.run.append(OPEN)
            self._run_marks.append([kind, _NO_START, 0, 0, of])

    def close_mark(self) -> None:
        """Ends the mark that began last."""
        if self._open_marks and not self.is_preformatted:
            kind, _ = self._open_marks.pop()
            if kind:
                self._open_kinds.remove(kind)
                self.run.append(CLOSE)

    def add_image(self, instead: str, of: str) -> None:
        """Adds the text that stands in for an image, escaped."""
        if not self.is_preformatted:
            self.run += (OPEN, instead, CLOSE)
            self._run_marks.append([spans.IMAGE, _NO_START, 0, 0, of])

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
        while last >= 0 and (run[last] in (OPEN, CLOSE) or run[last].isspace()):
            last -= 1
        if last >= 0 and run[last] != BREAK:
            run.append(BREAK)
            return
        if last >= 0:
            del run[last]
        self.break_line(2)

    def flush(self) -> None:
        """Writes the run."""
        text = " ".join(unescape("".join(self.run)).split())
        if self._run_marks or BREAK in text:
            self._write_marked(text)
        elif text:
            self._write(text)
            self._add_leaf(text)
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
        text = _EMPTY_LINES.sub("", text).rstrip()
        if text:
            self._write(text)
            self.leaf = (spans.PREFORMATTED, 0, language)
            self._add_leaf(text)
        self.leaf, self.is_preformatted = PLAIN, False
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
        for kind, of in self._open_marks:
            if kind:
                self.run.append(OPEN)
                self._run_marks.append([kind, _NO_START, 0, 0, of])

    def _write(self, text: str) -> None:
        """Appends a text, after what separates it from the one before; blocks begin with their first text."""
        gap = "\n" * self._newlines + "\t" * self._tabs if self.length else ""
        if gap:
            self._pieces.append(gap)
            self.length += len(gap)
        self._newlines = self._tabs = 0
        self._starts_cell = False
        for entry in reversed(self._open_blocks):
            if entry[1] != _NO_START:
                break
            entry[1] = self.length
        self._pieces.append(text)
        self.length += len(text)

    def _add_leaf(self, text: str) -> None:
        if not self.cells:
            kind, level, of = self.leaf
            self._entries.append([kind, self.length - len(text), self.length, level, of])

    def _write_marked(self, text: str) -> None:
        """Writes a text with signs in it."""
        is_tidy = not any(signs in text for signs in _UNTIDY)
        plain, entries = (place_tidy_marks if is_tidy else place_marks)(text, self._run_marks)
        if not plain:
            return
        self._write(plain)
        start = self.length - len(plain)
        self._add_leaf(plain)
        for entry in entries:
            entry[1] += start
            entry[2] += start
        self._entries += entries


def place_tidy_marks(text: str, marks: list[Entry]) -> tuple[str, list[Entry]]:
    """Returns the same as ``place_marks``, in a third of the time, of a text without any of ``_UNTIDY``.

    >>> place_tidy_marks("a \x01b\x02", [["strong", -1, 0, 0, ""]])
    ('a b', [['strong', 2, 3, 0, '']])
    """
    pieces = _SIGNS.split(text)
    open_marks, length, coming = list[Entry](), len(pieces[0]), iter(marks)
    for sign, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        if sign == OPEN:
            entry = next(coming)
            entry[1] = length
            open_marks.append(entry)
        else:
            open_marks.pop()[2] = length
        length += len(piece)
    for entry in open_marks:
        entry[2] = length
    if open_marks:
        marks = [entry for entry in marks if _fit(entry, length)]
    return "".join(pieces[::2]), marks


def place_marks(text: str, marks: list[Entry]) -> tuple[str, list[Entry]]:
    """Returns a text without signs, and its marks with their places; those of nothing are left out.

    Spaces at the ends of a mark are outside of it. Breaks at the ends of the text are left out.

    Args:
        text: The text; a run of white space in it is one space.
        marks: Its marks in their order; ``OPEN`` begins the next.

    >>> place_marks("a\x01 b \x02c", [["strong", -1, 0, 0, ""]])
    ('a b c', [['strong', 2, 3, 0, '']])
    """
    entries, open_marks, waiting = list[Entry](), list[Entry](), list[Entry]()
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
        elif piece == OPEN:
            entry = next(coming)
            entries.append(entry)
            open_marks.append(entry)
            waiting.append(entry)
        elif piece == CLOSE:
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


def _fit(entry: Entry, length: int) -> bool:
    """Cuts a mark to the length of its text; returns whether anything is left of it."""
    if entry[2] > length:
        entry[2] = length
        entry[1] = min(entry[1], length)
    return bool(entry[2] > entry[1])
