"""Pairs the signs of emphasis and deletion as CommonMark does, to see which would not count.

https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis has the rules: a run of signs may open
or close by the characters beside it, and pairs with the nearest run that fits.
"""

import string
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

_PUNCTUATION, _SYMBOLS = frozenset("P"), frozenset("S")


class Sign(NamedTuple):
    """One or two characters that begin or end a mark.

    Attributes:
        at: Number of its first character in the text.
        length: Number of its characters.
        mark: Number of its mark.
        opens: Whether it begins the mark.
    """

    at: int
    length: int
    mark: int
    opens: bool

    def moved(self, by: int) -> "Sign":
        """Returns the sign in a text that begins that number of characters earlier."""
        return self._replace(at=self.at + by)


class _Run:
    """Signs of one kind with nothing between them.

    Attributes:
        char: The character of its signs.
        signs: Its signs.
        length: Number of its characters.
        rest: How many of these have no partner yet.
        can_open: Whether it may open something.
        can_close: Whether it may close something.
    """

    __slots__ = ("can_close", "can_open", "char", "length", "rest", "signs")

    def __init__(self, char: str, signs: Sequence[Sign]) -> None:
        self.char, self.signs = char, signs
        self.length = self.rest = sum(sign.length for sign in signs)
        self.can_open = self.can_close = True

    def leave_out(self, marks: Container[int]) -> None:
        """Leaves out the signs of some marks."""
        length = sum(sign.length for sign in self.signs if sign.mark in marks)
        self.rest = max(0, self.rest - length)
        self.signs = [sign for sign in self.signs if sign.mark not in marks]

    def opens(self, closing: "_Run") -> bool:
        """Returns whether a later run closes what it opens (rules 9 and 10)."""
        if self.char != closing.char:
            return False
        is_of_three = (self.length + closing.length) % 3 == 0 and self.length % 3 != 0
        return not ((self.can_close or closing.can_open) and is_of_three and self.char == "*")

    def shared_length(self, closing: "_Run") -> int:
        """Returns the number of characters of the marks that it begins and a later run ends."""
        ends = {sign.mark for sign in closing.signs if not sign.opens}
        return sum(sign.length for sign in self.signs if sign.opens and sign.mark in ends)


def unpaired_marks(text: str, signs: Sequence[Sign]) -> list[int]:
    """Returns the numbers of marks whose signs would not pair, as far as it shows.

    Without these, others may not pair, which did.

    Args:
        text: The text with the signs.
        signs: The signs in it, in order.

    >>> signs = [Sign(0, 2, 0, True), Sign(4, 2, 0, False)]
    >>> unpaired_marks("**a)**", signs), unpaired_marks("**a)**b", signs)
    ([], [0])
    """
    unpaired = _unpaired(_runs(text, signs, _PUNCTUATION))
    # Symbols are punctuation since CommonMark 0.31 only.
    if not unpaired and any(_is_symbol(char) for char in _neighbours(text, signs)):
        unpaired = _unpaired(_runs(text, signs, _PUNCTUATION | _SYMBOLS))
    return unpaired


def _neighbours(text: str, signs: Sequence[Sign]) -> Iterator[str]:
    for at, length, *_ in signs:
        yield from text[max(0, at - 1) : at]
        yield from text[at + length : at + length + 1]


def _is_symbol(char: str) -> bool:
    return not char.isascii() and unicodedata.category(char)[0] in _SYMBOLS


def _runs(text: str, signs: Sequence[Sign], parting: frozenset[str]) -> Iterator[_Run]:
    """Yields the runs of signs; ``parting`` are the categories of Unicode that count as punctuation."""
    at, last = 0, len(signs)
    while at < last:
        first, start = at, signs[at].at
        char, end = text[start], start
        while at < last and signs[at].at == end and text[end] == char:
            end += signs[at].length
            at += 1
        run = _Run(char, signs[first:at])
        before, after = text[max(0, start - 1) : start] or " ", text[end : end + 1] or " "
        space_before, space_after = before.isspace(), after.isspace()
        parts_before = _is_punctuation(before, parting)
        parts_after = _is_punctuation(after, parting)
        run.can_open = not space_after and (not parts_after or space_before or parts_before)
        run.can_close = not space_before and (not parts_before or space_after or parts_after)
        yield run


def _is_punctuation(char: str, parting: frozenset[str]) -> bool:
    return char in string.punctuation or (
        not char.isascii() and unicodedata.category(char)[0] in parting
    )


def _unpaired(runs: Iterable[_Run]) -> list[int]:
    unpaired: dict[int, None] = {}
    open_runs: list[_Run] = []  # few: a mark is in none of its kind
    for run in runs:
        run.leave_out(unpaired)
        if run.rest and not _pair(open_runs, run):
            unpaired |= {sign.mark: None for sign in run.signs}
            for opening in open_runs:
                opening.leave_out(unpaired)
            open_runs = [opening for opening in open_runs if opening.rest]
    return list(unpaired)


def _pair(open_runs: list[_Run], run: _Run) -> bool:
    """Pairs a run with those that it closes, or adds it to them.

    Returns:
        Whether all that pairs are the two signs of a mark, and each sign has a partner or may get one.
    """
    if run.char == "~" and run.length > 2:
        return False
    while run.can_close and run.rest:
        fitting = [at for at, opening in enumerate(open_runs) if opening.opens(run)]
        if not fitting:
            break
        opening = open_runs[fitting[-1]]
        number = min(opening.rest, run.rest)
        if number > opening.shared_length(run):
            return False
        opening.rest -= number
        run.rest -= number
        # Runs between two that pair are text.
        del open_runs[fitting[-1] + bool(opening.rest) :]
    if run.rest and run.can_open and all(sign.opens for sign in run.signs):
        open_runs.append(run)
        return True
    return not run.rest
