"""Cuts a text into pieces with a limit of tokens: at headings, blocks, sentences, words.

::

    sections     # A ........  ## A.1 ........................  # B ...
    units        [h][p][p]     [h][p][s][s][s][table][row][row]  [h][p]
    pieces       [       ]     [        ][          ][        ]  [    ]

A section reaches from one heading to the next, and is cut without regard to the others. It is divided
into units within the limit: blocks, and of a block that is longer its items, rows, lines, sentences
or words. Pieces are runs of units. Of several places for a cut the content beside them decides, and
not how far they are from the start: so the cuts after a change are soon the same as before it.
"""

import zlib
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from ...web.pages.spans import Span
from .text_sections import find_blocks, find_sections
from .text_units import Divider, Unit
from .tokenizers import Tokenizer

_HASHED = 64  # characters


class TextPiece(NamedTuple):
    """A piece of a text.

    Attributes:
        start: Its first character.
        end: The character after it.
        tokens: Number of its tokens.
        heading_path: The headings that it stands under, the outermost first.
    """

    start: int
    end: int
    tokens: int
    heading_path: tuple[str, ...]


def cut_into_pieces(
    text: str, text_spans: Sequence[Span], limit: int, tokenizer: Tokenizer
) -> list[TextPiece]:
    """Returns the pieces of a text, in order; only white space is between them.

    Args:
        text: The text.
        text_spans: Its spans; without any, lines and empty lines divide it.
        limit: Most tokens of a piece, at least 1. A single character may have more.
        tokenizer: What counts them.

    >>> from .tokenizers import WORD_COUNTS
    >>> some = [("heading", 0, 1, 1, ""), ("paragraph", 3, 17, 1, ""), ("heading", 19, 20, 2, "")]
    >>> for piece in cut_into_pieces("A\\n\\nOne. Two of x.\\n\\nB\\n\\nFour", some, 3, WORD_COUNTS):
    ...     print(piece)
    TextPiece(start=0, end=7, tokens=2, heading_path=('A',))
    TextPiece(start=8, end=17, tokens=3, heading_path=('A',))
    TextPiece(start=19, end=26, tokens=2, heading_path=('A', 'B'))
    """
    places, dividers = find_blocks(text_spans)
    sections = find_sections(text, dividers)
    starts = [section.start for section in sections]
    ranges = zip(starts, [*starts[1:], len(text)], strict=True)
    units = Divider(text, places, limit, tokenizer).divide(
        Unit(number, start, end, 0) for number, (start, end) in enumerate(ranges)
    )
    joiner = _Joiner(text, limit, tokenizer)
    return [
        TextPiece(run[0].start, run[-1].end, tokens, sections[number].path)
        for number, of_section in groupby(units, key=lambda unit: unit.section)
        for run, tokens in joiner.join(list(of_section))
    ]


class _Joiner:
    """Joins the units of a section to runs within the limit."""

    def __init__(self, text: str, limit: int, tokenizer: Tokenizer) -> None:
        self._text, self._limit, self._tokenizer = text, limit, tokenizer

    def join(self, units: Sequence[Unit]) -> list[tuple[Sequence[Unit], int]]:
        """Returns the runs, with their tokens."""
        if len(units) == 1:
            return [(units, units[0].tokens)]
        return self._within_limit(self._runs(units, self._limit), self._limit)

    def _within_limit(
        self, runs: Sequence[Sequence[Unit]], planned: int
    ) -> list[tuple[Sequence[Unit], int]]:
        """Returns runs with their tokens; those with too many are divided.

        A tokenizer may find more tokens in a run than in its units.

        Args:
            runs: Runs of units.
            planned: Most tokens of a run, by those of its units.
        """
        counts = self._tokenizer.count([self._text[run[0].start : run[-1].end] for run in runs])
        fitting: list[tuple[Sequence[Unit], int]] = []
        for run, tokens in zip(runs, counts, strict=True):
            if tokens <= self._limit or len(run) == 1:
                fitting.append((run, tokens))
            else:
                fewer = min(planned - planned // 8 - 1, planned * self._limit // tokens)
                fitting += self._within_limit(self._runs(run, fewer), fewer)
        return fitting

    def _runs(self, units: Sequence[Unit], most: int) -> list[Sequence[Unit]]:
        """Returns units as runs: each has one unit, or several within a limit of tokens.

        A run that others follow ends in the second half of what has room: at the best place there.
        """
        runs: list[Sequence[Unit]] = []
        first, last = 0, len(units)
        while first < last:
            sizes = [units[first].tokens]
            after = first + 1
            while after < last and (size := sizes[-1] + self._added(units, after)) <= most:
                sizes.append(size)
                after += 1
            if after < last:
                ends = [first + 1 + at for at, size in enumerate(sizes) if 2 * size >= most]
                after = min(ends or [after], key=lambda end: self._rank(units[end], end))
            runs.append(units[first:after])
            first = after
        return runs

    def _added(self, units: Sequence[Unit], at: int) -> int:
        """Returns by how many tokens a unit makes a run longer."""
        between = self._text[units[at - 1].end : units[at].start]
        return self._tokenizer.gap(between) + units[at].tokens

    def _rank(self, unit: Unit, at: int) -> tuple[int, int, int]:
        """Returns how good a cut before a unit is: less is better.

        Blocks come before sentences. Of places of one level the hash of what follows decides, and
        of equal texts the last one.
        """
        start = self._text[unit.start : min(unit.end, unit.start + _HASHED)]
        return unit.level, zlib.crc32(start.encode("utf-8", "replace")), -at
