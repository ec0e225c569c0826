"""Collects a document piece by piece: its text up to a limit, and its links."""

import contextlib
from collections.abc import Callable

from ..pages.directives import header_directives, obey
from ..pages.language import declared_language
from ..pages.page import MAX_TITLE_CHARS, Page, Source, collapse, collapse_lines
from ..pages.parse_options import ParseOptions

MAX_CHARS = 8 << 20
_MAX_ANCHOR_CHARS = 1_000
_MAX_META_CHARS = 2_000


class TextLimitReached(Exception):
    """The text has reached its limit; the rest of the document is not read."""


class Collector:
    """Text and links of one document."""

    def __init__(self, source: Source, options: ParseOptions) -> None:
        self.page = Page(base=source.url)
        self.page.directives = header_directives(source, options)
        self._pieces: list[str] = []
        self._chars_left = MAX_CHARS

    def add_text(self, text: str) -> None:
        """Adds text.

        Raises:
            TextLimitReached: The text has reached its limit.
        """
        self._pieces.append(text[: self._chars_left].replace("\0", ""))
        self._chars_left -= len(text)
        if self._chars_left < 0:
            self.note_cut("characters")
            raise TextLimitReached

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
        obey(self.page, collapse_lines("".join(self._pieces)))
        return self.page


def _clean_text(text: str) -> str:
    return collapse(text[:_MAX_META_CHARS].replace("\0", ""))
