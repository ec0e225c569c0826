"""The passage of a text from which a snippet is made."""

import itertools
from collections.abc import Callable, Iterable, Mapping

_WINDOW = 220  # bytes: words of the query that are so near fit into one snippet
_AROUND = 500  # bytes before and after
_MOST_PLACES = 200  # of a word
_SAME = 1e-9  # of floats
_SHORTEST = 2  # characters of a beginning


def best_passage(text: str, beginnings: Mapping[str, float]) -> str:
    """Returns the passage of a text where most words of a query are near one another.

    A snippet needs no more than this passage, and to cut a long text into terms takes long. A short
    text is returned whole, and so is a text that has none of the words as they are written.

    Args:
        text: The text.
        beginnings: Beginnings of words, in lower case, and how much each counts.

    >>> text = "Rivers. " + "Hills. " * 500 + "A stone in the river. " + "Hills. " * 500
    >>> passage = best_passage(text, {"river": 1.0, "stone": 2.0})
    >>> "A stone in the river." in passage, len(passage) < 1_300
    (True, True)
    """
    data = text.encode("utf-8", "replace")
    most = _WINDOW + 2 * _AROUND
    if len(data) <= most:
        return text
    places = _places(data.lower(), beginnings)
    if not places:
        return text
    at = _densest(places, list(beginnings.values()))
    first, last = max(0, at - _AROUND), min(len(data), at + most - _AROUND)
    passage = data[first:last]
    if first:  # a word that was cut in two
        passage = passage.partition(b" ")[2] or passage
    if last < len(data):
        passage = passage.rpartition(b" ")[0] or passage
    return passage.decode(errors="ignore")


def _places(data: bytes, beginnings: Iterable[str]) -> list[tuple[int, int]]:
    """Returns (place, number of the beginning), sorted by place."""
    places = list[tuple[int, int]]()
    for number, word in enumerate(beginnings):
        # bytes.lower() knows ASCII only.
        for form in dict.fromkeys((word, word.capitalize())) if not word.isascii() else (word,):
            places += ((place, number) for place in _places_of(data, form.encode()))
    return sorted(places)


def _places_of(data: bytes, word: bytes) -> Iterable[int]:
    inside = word.isascii()  # other scripts may be written without spaces
    at, most = data.find(word), _MOST_PLACES
    while at >= 0 and most:
        if not (inside and at and data[at - 1 : at].isalnum()):
            most -= 1
            yield at
        at = data.find(word, at + len(word))


def _densest(places: list[tuple[int, int]], counts: list[float]) -> int:
    """Returns where the window begins whose words count most; a word counts once.

    >>> _densest([(0, 0), (900, 0), (950, 1)], [1.0, 1.0])
    900
    """
    inside, worth, last = [0] * len(counts), 0.0, 0
    best, start = -1.0, 0
    for place, number in places:
        while last < len(places) and places[last][0] <= place + _WINDOW:
            other = places[last][1]
            worth += 0.0 if inside[other] else counts[other]
            inside[other] += 1
            last += 1
        if worth > best + _SAME:
            best, start = worth, place
        inside[number] -= 1
        worth -= 0.0 if inside[number] else counts[number]
    return start


def beginnings_of(
    words: Iterable[str],
    terms_of: Callable[[str], list[str]],
    folded: Callable[[str], list[str]],
) -> dict[str, list[str]]:
    """Returns the beginnings that the forms of words share, each with its terms in an index.

    Args:
        words: Words of a query, in lower case.
        terms_of: Returns the terms of a word: its stem; of a word without spaces its characters.
        folded: Returns the same without stems.

    >>> beginnings_of(["libraries"], lambda word: ["librari"], lambda word: [word])
    {'librar': ['librari']}
    """
    terms_by_beginning = dict[str, list[str]]()
    for word in words:
        terms, plain = terms_of(word), folded(word)
        if len(terms) == len(plain) == 1:
            pairs = zip(terms[0], plain[0], strict=False)
            same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
            short = word[:same].removesuffix("i") if same < len(word) else word
            terms_by_beginning[short if len(short) >= _SHORTEST else word] = terms
        else:
            terms_by_beginning |= {term: [term] for term in itertools.islice(terms, _MOST_PLACES)}
    return terms_by_beginning
