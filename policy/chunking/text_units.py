"""Divides sections of a text into units: the largest blocks, or parts of blocks, within a limit."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .text_sections import DEEPEST
from .tokenizers import Tokenizer

# Where a block can be cut, at the end of a match; the best places first: an empty line, a line, a
# sentence, also in Chinese and Japanese, a word.
_CUTS_IN_BLOCKS = (
    re.compile(r"\n\s*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(
        "[.!?\u2026][\"'\u201d\u2019\u00bb)\\]]*\\s++(?![a-z])"
        "|[\u3002\uff01\uff1f][\u300d\u300f\u201d\u2019\uff09]*"
    ),
    re.compile(r"\s+"),
)
_IN_BLOCKS = DEEPEST + 1  # level of the first of these
_CHARACTERS = _IN_BLOCKS + len(_CUTS_IN_BLOCKS)


class Unit(NamedTuple):
    """A part of a section.

    Attributes:
        section: Number of its section.
        start: Its first character.
        end: The character after it.
        level: Of the place before it: 0 for the start of a section, more for worse places.
        tokens: Number of its tokens; -1: they are not counted yet.
    """

    section: int
    start: int
    end: int
    level: int
    tokens: int = -1


class Divider:
    """Divides sections into units.

    Args:
        text: The text.
        places: Starts of blocks by their depth, from 1.
        limit: Most tokens of a unit; one character may have more.
        tokenizer: What counts them.
    """

    def __init__(
        self, text: str, places: Sequence[Sequence[int]], limit: int, tokenizer: Tokenizer
    ) -> None:
        self._text, self._places = text, places
        self._limit, self._tokenizer = limit, tokenizer

    def divide(self, sections: Iterable[Unit]) -> list[Unit]:
        """Returns the units of sections, in order, without the white space around them.

        >>> from .tokenizers import WORD_COUNTS
        >>> units = Divider("One. Two words.", [[]] * 9, 2, WORD_COUNTS).divide([Unit(0, 0, 15, 0)])
        >>> [(unit.start, unit.end, unit.tokens) for unit in units]
        [(0, 4, 1), (5, 15, 2)]
        """
        settled: list[Unit] = []
        pending, level = self._counted(sections), 0
        while pending:
            level += 1
            parts: list[Unit] = []
            for unit in pending:
                if unit.tokens <= self._limit or unit.end - unit.start <= 1:
                    settled.append(unit)
                else:
                    parts += self._parts_of(unit, level)
            pending = self._counted(parts)
        return sorted(settled, key=lambda unit: unit.start)

    def _parts_of(self, unit: Unit, level: int) -> list[Unit]:
        cuts = self._cuts_within(unit.start, unit.end, level)
        if not cuts:
            return [unit]
        starts, ends = [unit.start, *cuts], [*cuts, unit.end]
        levels = [unit.level, *[level] * len(cuts)]
        return [Unit(unit.section, *part) for part in zip(starts, ends, levels, strict=True)]

    def _cuts_within(self, start: int, end: int, level: int) -> Sequence[int]:
        """Returns the places of a level between two others."""
        if level < _IN_BLOCKS:
            places = self._places[level]
            return places[bisect_right(places, start) : bisect_left(places, end)]
        if level < _CHARACTERS:
            matches = _CUTS_IN_BLOCKS[level - _IN_BLOCKS].finditer(self._text, start, end)
            return [place for match in matches if start < (place := match.end()) < end]
        # Most tokens are of one character or more. If these are not, they are halved.
        step = self._limit if level == _CHARACTERS else (end - start + 1) // 2
        return range(start + step, end, step)

    def _counted(self, units: Iterable[Unit]) -> list[Unit]:
        """Returns units without the white space around them, and with their tokens; empty ones go."""
        text, counted = self._text, list[Unit]()
        uncounted, texts = list[int](), list[str]()
        for unit in units:
            section, start, end, level, tokens = unit
            if tokens < 0:
                piece = text[start:end].rstrip()
                words = piece.lstrip()
                if not words:
                    continue
                end = start + len(piece)
                unit = Unit(section, end - len(words), end, level)
                uncounted.append(len(counted))
                texts.append(words)
            counted.append(unit)
        for at, tokens in zip(uncounted, self._tokenizer.count(texts), strict=True):
            section, start, end, level, _ = counted[at]
            counted[at] = Unit(section, start, end, level, tokens)
        return counted
