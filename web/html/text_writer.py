"""Writes a text and its spans: white space is collapsed, and lines and tabs separate what stands apart."""

import re
from typing import cast

from ..pages import spans
from ..pages.spans import Span
from .inline_marks import (
    LINE_BREAK,
    MARK_END,
    MARK_START,
    NO_START,
    Mark,
    OpenSpan,
    are_tidy,
    place_marks,
    place_tidy_marks,
    tidy_marks,
)
from .tag_attributes import unescape

_EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*+\n)++")
_BLANK = re.compile(rf"(?:\s|&nbsp;|{MARK_START}|{MARK_END})*+\Z")
_SIGNS = re.compile(f"[{MARK_START}{MARK_END}]")

LeafKind = tuple[str, int, str]
PLAIN_LEAF: LeafKind = (spans.PARAGRAPH, 0, "")


class TextWriter:
    """Takes runs of text and where blocks begin and end.

    Args:
        marks: The marks of the whole text, for which the runs have signs.

    Attributes:
        run: Pieces of the block of text that is being read, escaped.
        leaf: What this block is.
        newlines: Number of line breaks before the next block.
        cells: Data cells that are open, at most one: blocks in it are no blocks.
        is_preformatted: Whether the run is text that stays as it stands.
        length: Number of characters that are written.
        tag: Number of the tag that is read.
        leaf_places: For each block of text, the tag at which it was written, and the length after it.
    """

    def __init__(self, marks: list[Mark]) -> None:
        self.run: list[str] = []
        self.leaf = PLAIN_LEAF
        self.cells = 0
        self.is_preformatted = False
        self._pieces: list[str] = []
        self.length = 0
        self.tag = 0
        self.leaf_places: list[tuple[int, int]] = []
        self.newlines = self._tabs = 0
        self._starts_cell = False
        self._row_at = 0  # number of the first entry in the row
        self._entries: list[OpenSpan] = []
        self._open_blocks: list[OpenSpan] = []
        # The last ones of these, of which nothing is written yet.
        self._waiting_blocks: list[OpenSpan] = []
        self._marks = marks
        self._next_mark = 0
        self._open_marks: list[Mark] = []
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

    def open_block(self, kind: str, level: int = 0, of: str = "") -> OpenSpan:
        """Begins a block that holds others, and returns its span; in a cell with data there are none."""
        entry: OpenSpan = [kind, NO_START, 0, level, of]
        if not self.cells:
            self._entries.append(entry)
        self._open_blocks.append(entry)
        self._waiting_blocks.append(entry)
        return entry

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
        if row[1] != NO_START:
            at = row[1]
            for cell in self._entries[self._row_at :]:
                if cell[0] == spans.CELL and cell[1] == NO_START:
                    cell[1] = cell[2] = at
                at = max(at, cell[2])

    def pass_marks(self, text: str) -> None:
        """Passes over the marks of a text that is not written."""
        if count := text.count(MARK_START):
            if self.is_preformatted:
                self._next_mark += count
            else:
                self.run.append((MARK_START + MARK_END) * count)

    def add_preformatted(self, text: str) -> None:
        """Adds a text that stays as it stands, without its marks; those that go on after it have no kind."""
        for sign in _SIGNS.findall(text):
            if sign == MARK_START:
                self._next_mark += 1
                self._open_marks.append(("", ""))
            else:
                self._open_marks.pop()
        self.run.append(_SIGNS.sub("", text))

    def add_rule(self) -> None:
        """Adds a line between two blocks that stand in the same one."""
        self.break_line(2)
        around = self._open_blocks[-1:]
        is_first = any(block[1] == NO_START and block[0] != spans.SECTION for block in around)
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
        while last >= 0 and _BLANK.match(run[last]):
            last -= 1
        if last >= 0 and run[last] != LINE_BREAK:
            run.append(LINE_BREAK)
            return
        if last >= 0:
            del run[last]
        self.break_line(2)

    def flush(self) -> None:
        """Writes the run."""
        text = "".join(self.run)
        if "&" in text:
            text = unescape(text)
        text = " ".join(text.split())
        self.run.clear()
        if MARK_START in text or self._open_marks or LINE_BREAK in text:
            if self._open_marks or not self._write_one_mark(text):
                self._write_marked(text)
        elif text:
            self._write_leaf(text)

    def begin_preformatted(self) -> None:
        """Begins a run that stays as it stands, without marks."""
        if not self.is_preformatted:
            self.is_preformatted = True
            self.run.clear()

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
        self.run.clear()

    def finish(self) -> tuple[str, list[Span]]:
        """Returns the text and the spans."""
        self.tag += 1
        if self.run:
            self.flush()
        complete = [tuple(entry) for entry in self._entries if entry[1] != NO_START]
        return "".join(self._pieces), cast(list[Span], complete)

    def _write_leaf(self, text: str) -> None:
        """Appends a text, after what separates it from the one before; blocks begin with their first text."""
        if self.length:
            gap = "\n" * self.newlines + "\t" * self._tabs
            self._pieces.append(gap)
            self.length += len(gap)
        start = self.length
        self._pieces.append(text)
        self.length += len(text)
        self.leaf_places.append((self.tag, self.length))
        self.newlines = self._tabs = 0
        self._starts_cell = False
        for block in self._waiting_blocks:
            block[1] = start
        self._waiting_blocks.clear()
        if not self.cells:
            kind, level, of = self.leaf
            self._entries.append([kind, start, self.length, level, of])

    def _write_one_mark(self, text: str) -> bool:
        """Writes a text that is one mark, as a link in a list is; returns whether it is."""
        inner = text[1:-1].strip(" ")
        # Signs cannot be printed.
        if text[0] != MARK_START or text[-1] != MARK_END or not (inner and inner.isprintable()):
            return False
        kind, of = self._marks[self._next_mark]
        self._next_mark += 1
        self._write_leaf(inner)
        if kind:
            self._entries.append([kind, self.length - len(inner), self.length, 0, of])
        return True

    def _write_marked(self, text: str) -> None:
        """Writes a text with signs in it; marks that were open go on in it."""
        first, self._next_mark = self._next_mark, self._next_mark + text.count(MARK_START)
        marks = [*self._open_marks, *self._marks[first : self._next_mark]]
        text = tidy_marks(MARK_START * len(self._open_marks) + text)
        if are_tidy(text):
            plain = text.replace(MARK_START, "").replace(MARK_END, "")
            self._write_leaf(plain)
            entries, self._open_marks = place_tidy_marks(text, marks, self.length - len(plain))
            self._entries += entries
            return
        plain, entries, self._open_marks = place_marks(text, marks)
        if plain:
            self._write_leaf(plain)
            start = self.length - len(plain)
            for entry in entries:
                entry[1] += start
                entry[2] += start
            self._entries += entries
