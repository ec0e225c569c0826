"""Collects a document piece by piece: its text up to a limit, its blocks if it has any, and its links."""

import contextlib
from collections.abc import Callable, Iterable

from ..pages.directives import header_directives, obey
from ..pages.language import declared_language
from ..pages.page import MAX_TITLE_CHARS, Page, Source, collapse, collapse_lines
from ..pages.parse_options import ParseOptions
from ..pages.spans import Span
from .table_layout import CELL_END, HEADING_MARK, PARAGRAPH_GAP, lay_out_tables, without_marks

MAX_CHARS = 8 << 20
_MAX_ANCHOR_CHARS = 1_000
_MAX_META_CHARS = 2_000


class TextLimitReached(Exception):
    """The text has reached its limit; the rest of the document is not read."""


class Collector:
    """Text and links of one document.

    Its text is made of lines, of tables, or of parts with blocks of their own.
    """

    def __init__(self, source: Source, options: ParseOptions) -> None:
        self.page = Page(base=source.url)
        self.page.directives = header_directives(source, options)
        self._pieces: list[str] = []
        self._chars_left = MAX_CHARS
        self._part_spans: list[Span] = []
        self._has_cells = False

    def add_text(self, text: str) -> None:
        """Adds text.

        Raises:
            TextLimitReached: The text has reached its limit.
        """
        self._pieces.append(without_marks(text[: self._chars_left]))
        self._chars_left -= len(text)
        if self._chars_left < 0:
            self.note_cut("characters")
            raise TextLimitReached

    def add_heading(self, text: str) -> None:
        """Adds the heading of a table, on a line of its own."""
        self.add_text("\n")
        self._pieces.append(HEADING_MARK)
        self.add_text(collapse(text) + "\n")

    def end_cells(self, number: int = 1) -> None:
        """Ends the cell to which the text since the last one belongs, and adds empty ones."""
        self._has_cells = True
        self._pieces.append(CELL_END * number)
        self._chars_left -= number

    def add_part(self, text: str, text_spans: Iterable[Span]) -> None:
        """Adds a text with blocks of its own. All other text of the document must be added so, too.

        Raises:
            TextLimitReached: The text has reached its limit.
        """
        if not text:
            return
        start = MAX_CHARS - self._chars_left
        if self._pieces:
            start += len(PARAGRAPH_GAP)
            self.add_text(PARAGRAPH_GAP)
        end = min(start + len(text), MAX_CHARS)
        self._part_spans += (
            (kind, start + first, min(start + after, end), level, of)
            for kind, first, after, level, of in text_spans
            if start + first < end
        )
        self.add_text(text)

    def note_cut(self, at: str) -> None:
        """Records the limit at which the text was cut."""
        self.page.metas.setdefault("text_cut", at)

    @property
    def has_text(self) -> bool:
        """Whether there is text that is not only white space."""
        return any(piece and not piece.isspace() for piece in self._pieces)

    def mark(self) -> int:
        """Returns the current end of the text, for ``since``."""
        return len(self._pieces)

    def text_since(self, mark: int) -> str:
        """Returns the text since a mark, as an anchor."""
        anchor_pieces: list[str] = []
        room = 4 * _MAX_ANCHOR_CHARS
        for piece in self._pieces[mark : mark + room]:
            anchor_pieces.append(piece[:room])
            room -= len(piece)
            if room <= 0:
                break
        return collapse("".join(anchor_pieces))[:_MAX_ANCHOR_CHARS]

    def add_link(self, href: str, anchor: str = "") -> None:
        """Adds a link."""
        if href := href.strip():
            self.page.add_link(href, collapse(anchor)[:_MAX_ANCHOR_CHARS])

    def set_title(self, text: str) -> None:
        """Sets the title, unless there is one."""
        self.page.title = self.page.title or _clean_text(text)[:MAX_TITLE_CHARS]

    def set_language(self, text: str) -> None:
        """Sets the language, unless one is known."""
        self.page.language = declared_language(self.page.language, text)

    def add_meta(self, name: str, text: str) -> None:
        """Adds a value to the metadata; several values are joined by commas."""
        if text := _clean_text(text):
            previous = self.page.metas.get(name)
            joined = text if previous is None else f"{previous}, {text}"
            self.page.metas[name] = joined[:_MAX_META_CHARS]

    def read(self, take: Callable[..., object], *args: object) -> Page:
        """Reads the text with a function, up to its limit; returns the page.

        The page has its text and links as far as its directives allow.
        """
        with contextlib.suppress(TextLimitReached):
            take(*args, self)
        text = "".join(self._pieces)
        if self._part_spans:
            obey(self.page, text, self._part_spans)
        elif self._has_cells:
            obey(self.page, *lay_out_tables(text))
        else:
            obey(self.page, collapse_lines(text))
        return self.page


def _clean_text(text: str) -> str:
    return collapse(text[:_MAX_META_CHARS].replace("\0", ""))
