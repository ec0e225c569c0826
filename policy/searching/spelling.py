"""Finds the word of an index that a misspelt word was probably meant to be.

A word with one mistake is found by trying all such mistakes; of longer words also those with two, if
the first letter is right. More pages with a word make it more likely, more mistakes less.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

_SHORTEST, _LONGEST = 4, 40  # letters of a word that is corrected
_SURE = 5  # letters of a word whose correction is sure
_TWO_MISTAKES = 6  # letters of a word that may have two
_BEGINNING = 3  # letters that are mostly right if there are two mistakes; the first one always is
_MOST_WORDS = 50_000  # with one beginning: more are not looked at, which would take long
_OTHER_LETTERS = 4  # that two words with two mistakes may not have in common
_FEW_PAGES = 2  # with a word that is one mistake away: then two mistakes are tried, too
_COST = 1.7  # of a mistake: a word may have two if it has fifty times as many pages
_USUAL = 0.5  # less for letters that changed places, and for one letter in the place of two
_PART = 3  # letters of each part of a word that was two words
_MORE_USUAL = 20  # times as many pages as a rare word has: that may have been meant
_LATIN = "abcdefghijklmnopqrstuvwxyz"
# Letters of each script, by its first and last character.
_ALPHABETS = (
    ("a", "\u024f", _LATIN),
    ("\u0370", "\u03ff", "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώ"),
    ("\u0400", "\u04ff", "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ"),
    ("\u05d0", "\u05ea", "".join(map(chr, range(0x5D0, 0x5EB)))),
    ("\u0621", "\u064a", "".join(map(chr, (*range(0x621, 0x63B), *range(0x641, 0x64B))))),
)


class SpellingIndex(Protocol):
    """The words of an index as they are written, in lower case."""

    def pages_with_spelling(self, word: str) -> int:
        """Returns how many pages have a word."""

    def spellings(self, beginning: str) -> list[tuple[str, int]]:
        """Returns the words that begin so, each with the number of its pages."""


class Correction(NamedTuple):
    """What a misspelt word was probably meant to be.

    Attributes:
        text: A word of the index, or two.
        is_sure: Whether it may be searched without asking.
    """

    text: str
    is_sure: bool


def is_correctable(word: str) -> bool:
    """Returns whether a word may be corrected: not a short one, and not one with digits.

    >>> [is_correctable(word) for word in ("vacum", "abc", "utf8", "天気予報", "αρχεο")]
    [True, False, False, False, True]
    """
    return _SHORTEST <= len(word) <= _LONGEST and word.isalpha() and bool(_alphabet(word))


def correct_word(word: str, forms: Sequence[str], index: SpellingIndex) -> Correction | None:
    """Returns the word of the index that was probably meant; None if there is none.

    Args:
        word: A word that no page has, in lower case.
        forms: Other forms of it, so that a plural is corrected, too: without accents; stems.
        index: The words of the index.
    """
    forms = (*forms, word)
    if not is_correctable(word):
        return None
    best: dict[str, float] = {}
    for form in dict.fromkeys((word, *forms)):
        if is_correctable(form):
            for candidate, pages in _one_mistake_away(form, index):
                _keep_better(best, candidate, _likelihood(form, candidate, pages, 1))
    usual = max(best.values(), default=-math.inf) > math.log10(_FEW_PAGES) - _COST
    if not usual and len(word) >= _TWO_MISTAKES:
        for candidate, pages in _two_mistakes_away(word, index):
            _keep_better(best, candidate, _likelihood(word, candidate, pages, 2))
    if not best:
        return None
    text = max(best, key=lambda candidate: (best[candidate], candidate))
    near = min(distance(form, text, 1) for form in (word, *forms)) <= 1
    return Correction(text, near and len(word) >= _SURE and word[0] == text[0])


def usual_spelling(word: str, index: SpellingIndex) -> str | None:
    """Returns the word that far more pages have, and that is one mistake away from a rare word."""
    if not is_correctable(word) or len(word) < _SURE:
        return None
    pages = index.pages_with_spelling(word)
    near = [
        pair for pair in _one_mistake_away(word, index) if pair[1] >= _MORE_USUAL * max(1, pages)
    ]
    return max(near, key=lambda pair: pair[1])[0] if near else None


def split_word(
    word: str,
    index: SpellingIndex,
    follows: Callable[[str], bool],
    together: Callable[[str], bool],
) -> Correction | None:
    """Returns the two words of the index that were typed as one; None if there are none.

    Args:
        word: A word that no page has, in lower case.
        index: The words of the index.
        follows: Returns whether a page has two words one after the other: then they are sure.
        together: Returns whether a page has two words somewhere, as the parts of a compound.
    """
    if not is_correctable(word):
        return None
    pairs = [(word[:at], word[at:]) for at in range(_PART, len(word) - _PART + 1)]
    counted = [(min(map(index.pages_with_spelling, pair)), pair) for pair in pairs]
    likely = [pair for pages, pair in sorted(counted, reverse=True) if pages]
    for pair in likely:
        if follows(" ".join(pair)):
            return Correction(" ".join(pair), is_sure=True)
    for pair in likely:
        if min(map(len, pair)) > _PART and together(" ".join(pair)):
            return Correction(" ".join(pair), is_sure=False)
    return None


def distance(one: str, other: str, most: int) -> int:
    """Returns the number of mistakes between two words; more than ``most`` is ``most + 1``.

    A mistake is a letter too many, one too few, a wrong one, or two that changed places.

    >>> [distance(*pair, 2) for pair in (("vacum", "vacuum"), ("postgrse", "postgres"), ("abc", "xyz"))]
    [1, 1, 3]
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before, last = list[int](), [*range(len(other) + 1)]
    for at, letter in enumerate(one, 1):
        row = [at]
        for place, wanted in enumerate(other, 1):
            cost = min(last[place] + 1, row[-1] + 1, last[place - 1] + (letter != wanted))
            swapped = at > 1 < place and letter == other[place - 2] and one[at - 2] == wanted
            row.append(min(cost, before[place - 2] + 1) if swapped else cost)
        if min(row) > most:
            return most + 1
        before, last = last, row
    return min(last[-1], most + 1)


def _keep_better(best: dict[str, float], candidate: str, likelihood: float) -> None:
    best[candidate] = max(best.get(candidate, -math.inf), likelihood)


def _likelihood(word: str, candidate: str, pages: int, mistakes: int) -> float:
    cost = _COST * mistakes
    if mistakes == 1 and (sorted(word) == sorted(candidate) or set(word) == set(candidate)):
        cost -= _USUAL
    return math.log10(pages) - cost


def _one_mistake_away(word: str, index: SpellingIndex) -> Iterable[tuple[str, int]]:
    for candidate in dict.fromkeys(_mistakes(word, _alphabet(word))):
        if candidate != word and len(candidate) >= _SHORTEST - 1:
            pages = index.pages_with_spelling(candidate)
            if pages:
                yield candidate, pages


def _mistakes(word: str, alphabet: str) -> Iterable[str]:
    for at in range(len(word) + 1):
        start, end = word[:at], word[at:]
        if len(end) > 1:
            yield start + end[1] + end[0] + end[2:]
        if end:
            yield start + end[1:]
            yield from (start + letter + end[1:] for letter in alphabet)
        yield from (start + letter + end for letter in alphabet)


def _two_mistakes_away(word: str, index: SpellingIndex) -> list[tuple[str, int]]:
    """Returns words that begin as a word does: with the same letters, or else with the same letter."""
    letters = set(word)
    for beginning in (word[:_BEGINNING], word[0]):
        words = index.spellings(beginning)
        near = [
            (candidate, pages)
            for candidate, pages in (words if len(words) <= _MOST_WORDS else ())
            if abs(len(candidate) - len(word)) <= 2
            and len(letters.symmetric_difference(candidate)) <= _OTHER_LETTERS
            and candidate.isalpha()
            and distance(word, candidate, 2) == 2
        ]
        if near:
            return near
    return []


def _alphabet(word: str) -> str:
    """Returns the letters of the script of a word; empty for scripts that are not corrected."""
    for first, last, letters in _ALPHABETS:
        if first <= word[0] <= last:
            return letters
    return ""
