"""The sections of a text, which headings begin, and the places where blocks begin."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...web.pages import spans
from ...web.pages.spans import Span

# Blocks that are nested deeper count as those of this depth.
DEEPEST = 8
_LONGEST_NAME = 200  # characters of a heading in a path
_NO_BLOCKS = spans.MARKS | {spans.BASE, spans.SECTION}


class Section(NamedTuple):
    """A part of a text from one heading to the next.

    Attributes:
        start: Its first character.
        path: The headings that it stands under, the outermost first.
    """

    start: int
    path: tuple[str, ...]


def find_blocks(text_spans: Iterable[Span]) -> tuple[list[list[int]], list[Span]]:
    """Returns the starts of blocks by their depth, from 1; and the headings that begin sections.

    Headings in lists, quotes and tables begin none.

    >>> some = [("heading", 0, 1, 1, ""), ("list", 3, 8, 1, ""), ("item", 3, 5, 1, ""), ("item", 6, 8, 1, "")]
    >>> places, headings = find_blocks(some)
    >>> places[:4], headings
    ([[], [0, 3], [6], []], [('heading', 0, 1, 1, '')])
    """
    depths: dict[int, int] = {}
    headings: list[Span] = []
    open_ends: list[int] = []
    for span in text_spans:
        kind, start, end, *_ = span
        if kind in _NO_BLOCKS:
            continue
        while open_ends and start >= open_ends[-1]:
            open_ends.pop()
        depths.setdefault(start, min(len(open_ends) + 1, DEEPEST))
        if kind == spans.HEADING and not open_ends:
            headings.append(span)
        if kind not in spans.LEAVES:
            open_ends.append(end)
    places: list[list[int]] = [[] for _ in range(DEEPEST + 1)]
    for start in sorted(depths):
        places[depths[start]].append(start)
    return places, headings


def find_sections(text: str, headings: Sequence[Span]) -> list[Section]:
    """Returns the sections of a text. The first one begins at its start.

    A heading directly before one of a lower rank has no section of its own.

    >>> find_sections("A B text C", [("heading", 0, 1, 1, ""), ("heading", 2, 3, 2, ""), ("heading", 9, 10, 2, "")])
    [Section(start=0, path=('A', 'B')), Section(start=9, path=('A', 'C'))]
    """
    sections = [Section(0, ())]
    path: list[tuple[int, str]] = []
    last_level, last_end = 0, 0
    for _, start, end, level, _ in headings:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, " ".join(text[start : min(end, start + _LONGEST_NAME)].split())))
        names = tuple(name for _, name in path if name)
        if level > last_level and not text[last_end:start].strip():
            sections[-1] = Section(sections[-1].start, names)
        else:
            sections.append(Section(start, names))
        last_level, last_end = level, end
    return sections
