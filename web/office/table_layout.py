"""Lays out the cells of workbooks: rows as lines with tabs, and the spans that say so."""

from collections.abc import Sequence

from ..pages import spans
from ..pages.page import collapse
from ..pages.spans import Span

# What ends a cell, and what a heading begins with, in the text of a document that is being read. Both are
# white space, as are all that documents bring.
CELL_END, HEADING_MARK = "\x1f", "\x1e"
PARAGRAPH_GAP = "\n\n"
MOST_EMPTY = 256  # cells that keep the columns of those after them; more are left out
_MOST_CELLS = 100_000  # that have spans
_MARKS = str.maketrans({"\0": None, CELL_END: " ", HEADING_MARK: " "})


def without_marks(text: str) -> str:
    """Returns a text of a document without NULs, and without what marks cells and headings here."""
    return text.translate(_MARKS) if _may_have_marks(text) else text


def _may_have_marks(text: str) -> bool:
    return "\0" in text or CELL_END in text or HEADING_MARK in text


def lay_out_tables(marked_text: str) -> tuple[str, list[Span]]:
    """Returns a text with tables, and its spans; none if there are more cells than have spans.

    Args:
        marked_text: Lines; each cell of a row ends with ``CELL_END``, headings begin with ``HEADING_MARK``.

    >>> text, text_spans = lay_out_tables("\x1eS\\na \x1f\x1fb\x1f\\n\x1fc\x1f\\nd\\n")
    >>> text
    'S\\n\\na\\t\\tb\\n\\tc\\n\\nd'
    >>> [(kind, text[start:end]) for kind, start, end, *_ in text_spans][:3]
    [('heading', 'S'), ('table', 'a\\t\\tb\\n\\tc'), ('row', 'a\\t\\tb')]
    """
    layout = _Layout()
    rows: list[list[str]] = []
    for line in marked_text.split("\n"):
        if CELL_END in line:
            rows.append(list(map(collapse, line.split(CELL_END))))
        elif text := collapse(line):
            layout.add_table(rows)
            rows = []
            is_heading = line.startswith(HEADING_MARK)
            layout.add_block(spans.HEADING if is_heading else spans.PARAGRAPH, text)
    layout.add_table(rows)
    return PARAGRAPH_GAP.join(layout.blocks), layout.spans if layout.cells <= _MOST_CELLS else []


class _Layout:
    """Blocks of a text, one after another, and their spans."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.spans: list[Span] = []
        self.cells = 0
        self._start = 0

    def add_block(self, kind: str, text: str) -> None:
        """Adds a block."""
        self.spans.append((kind, self._start, self._start + len(text), 1, ""))
        self._append(text)

    def add_table(self, rows: Sequence[list[str]]) -> None:
        """Adds a table, without empty rows, and without empty columns at its start."""
        rows = [row for row in rows if any(row)]
        if not rows:
            return
        first = min(next(at for at, cell in enumerate(row) if cell) for row in rows)
        lines, row_spans, start = [], list[Span](), self._start
        for row in rows:
            last = max(at for at, cell in enumerate(row) if cell)
            cells = row[first : last + 1]
            self.cells += len(cells)
            line = "\t".join(cells)
            lines.append(line)
            if self.cells <= _MOST_CELLS:
                row_spans.append((spans.ROW, start, start + len(line), 0, ""))
                for cell in cells:
                    row_spans.append((spans.CELL, start, start + len(cell), 0, ""))
                    start += len(cell) + 1
        table = "\n".join(lines)
        self.spans.append((spans.DATA_TABLE, self._start, self._start + len(table), 0, ""))
        self.spans += row_spans
        self._append(table)

    def _append(self, text: str) -> None:
        self.blocks.append(text)
        self._start += len(text) + len(PARAGRAPH_GAP)
