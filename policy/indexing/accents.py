"""The spellings with accents of a word that was typed without them."""

import itertools
from collections.abc import Callable, Iterable

_ACCENTED = {
    "a": "áàâäãåă", "c": "çč", "e": "éèêëě", "i": "íìîï", "n": "ñ", "o": "óòôöõøő", "s": "šș",
    "t": "ț", "u": "úùûüű", "y": "ý", "z": "ž",
}  # fmt: skip
_MOST_ACCENTS, _MOST_TRIED, _MOST_SPELLINGS = 2, 400, 2


def accented_spellings(word: str, pages_with: Callable[[str], int]) -> list[str]:
    """Returns the spellings of a word with one or two accents that most pages have.

    A stemmer knows only words with their accents, so the word alone does not find its other forms.

    Args:
        word: A word in lower case.
        pages_with: Returns how many pages have a spelling.

    >>> accented_spellings("eleve", {"élève": 3, "elève": 1, "élevé": 9}.get)
    ['élevé', 'élève']
    """
    counted = [(pages_with(spelling) or 0, spelling) for spelling in _spellings(word)]
    best = sorted((pair for pair in counted if pair[0]), reverse=True)
    return [spelling for _, spelling in best[:_MOST_SPELLINGS]]


def _spellings(word: str) -> Iterable[str]:
    if not word.isascii() or not word.isalpha():
        return ()
    places = [at for at, letter in enumerate(word) if letter in _ACCENTED]
    chosen = itertools.chain.from_iterable(
        itertools.combinations(places, number) for number in range(1, _MOST_ACCENTS + 1)
    )
    spellings = (
        "".join(changed.get(at, letter) for at, letter in enumerate(word))
        for at_once in chosen
        for letters in itertools.product(*(_ACCENTED[word[at]] for at in at_once))
        for changed in [dict(zip(at_once, letters, strict=True))]
    )
    return itertools.islice(spellings, _MOST_TRIED)
