"""The sections of a text, which headings begin, and the places where blocks begin."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...web.pages import spans
from ...web.pages.spans import Span

# Blocks that are nested deeper count as those of this depth.
DEEPEST = 8
_LONGEST_NAME = 200  # characters of a heading in a path
_NO_BLOCKS = spans.MARKS | {spans.BASE, spans.SECTION}
# Elements beside the content of a page: the headings around them are not theirs.
_BESIDE = frozenset({"nav", "aside", "footer"})


class Section(NamedTuple):
    """A part of a text from one heading to the next.

    Attributes:
        start: Its first character.
        path: The headings that it stands under, the outermost first.
    """

    start: int
    path: tuple[str, ...]


def find_blocks(text_spans: Iterable[Span]) -> tuple[list[list[int]], list[Span]]:
    """Returns the starts of blocks by their depth, from 1; and the spans that divide the text.

    These are headings, but not those in lists, quotes and tables, and what is beside the content.

    >>> some = [("heading", 0, 1, 1, ""), ("list", 3, 8, 1, ""), ("item", 3, 5, 1, ""), ("item", 6, 8, 1, "")]
    >>> places, dividers = find_blocks(some)
    >>> places[:4], dividers
    ([[], [0, 3], [6], []], [('heading', 0, 1, 1, '')])
    """
    depths: dict[int, int] = {}
    dividers: list[Span] = []
    open_ends: list[int] = []
    for span in text_spans:
        kind, start, end, _, of = span
        if kind in _NO_BLOCKS:
            if kind == spans.SECTION and of in _BESIDE:
                dividers.append(span)
            continue
        while open_ends and start >= open_ends[-1]:
            open_ends.pop()
        depths.setdefault(start, min(len(open_ends) + 1, DEEPEST))
        if kind == spans.HEADING and not open_ends:
            dividers.append(span)
        if kind not in spans.LEAVES:
            open_ends.append(end)
    places: list[list[int]] = [[] for _ in range(DEEPEST + 1)]
    for start in sorted(depths):
        places[depths[start]].append(start)
    return places, dividers


def find_sections(text: str, dividers: Sequence[Span]) -> list[Section]:
    """Returns the sections of a text. The first one begins at its start.

    A heading directly before one of a lower rank has no section of its own. What is beside the content
    is a section, or several, with a path of its own; after it the path before it goes on.

    Args:
        text: The text.
        dividers: As ``find_blocks`` returns them.

    >>> find_sections("A B text C", [("heading", 0, 1, 1, ""), ("heading", 2, 3, 2, ""), ("heading", 9, 10, 2, "")])
    [Section(start=0, path=('A', 'B')), Section(start=9, path=('A', 'C'))]
    """
    outline = _Outline(text)
    for kind, start, end, level, _ in dividers:
        outline.leave(start)
        if kind == spans.SECTION:
            outline.enter(start, end)
        else:
            outline.add_heading(start, end, level)
    outline.leave(len(text))
    return outline.sections


class _Outline:
    """The sections of a text up to a place."""

    def __init__(self, text: str) -> None:
        self.sections = [Section(0, ())]
        self._text = text
        self._path: list[tuple[int, str]] = []  # levels and names
        self._around: list[tuple[int, list[tuple[int, str]]]] = []  # ends and paths
        self._level = self._end = 0  # of the last heading; without one it has no level

    def enter(self, start: int, end: int) -> None:
        """Begins what is beside the content."""
        self._around.append((end, self._path))
        self._continue(start, [])

    def leave(self, place: int) -> None:
        """Ends what has ended before a place."""
        while self._around and self._around[-1][0] <= place:
            self._continue(*self._around.pop())

    def _continue(self, start: int, path: list[tuple[int, str]]) -> None:
        self._path, self._level, self._end = path, 0, start
        self.sections.append(Section(start, self._names()))

    def add_heading(self, start: int, end: int, level: int) -> None:
        """Begins the section of a heading."""
        outer = [(other, name) for other, name in self._path if other < level]
        name = " ".join(self._text[start : min(end, start + _LONGEST_NAME)].split())
        self._path = [*outer, (level, name)]
        if level > self._level and not self._text[self._end : start].strip():
            start = self.sections.pop().start
        self.sections.append(Section(start, self._names()))
        self._level, self._end = level, end

    def _names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self._path if name)
