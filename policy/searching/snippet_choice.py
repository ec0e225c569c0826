"""Cuts a snippet out of a passage: where the words of a query are, from word to word."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

SNIPPET_CHARS = 220  # of a snippet
_BEFORE = 60  # characters before the first word of the query
_SENTENCE = 110  # characters before it in which a sentence may begin
_CUT = "…"
_ENDS = re.compile(r"(?:[.!?]\s+|[。！？]|\n)(?=\S)")  # noqa: RUF001 - marks of Chinese and Japanese
_SAME = 1e-9  # of floats

# Begin and end of each word of the query in a text, in characters.
Marks = tuple[tuple[int, int], ...]


class Match(NamedTuple):
    """A word of a query in a passage.

    Attributes:
        begin: Where it begins, in characters.
        end: Where it ends.
        term: The term of the query that it is.
    """

    begin: int
    end: int
    term: str


def without_title(text: str, title: str) -> str:
    """Returns a text without its first line if that is in the title, which is shown beside it.

    >>> without_title("VACUUM\\n\\nIt cleans.", "Manual: VACUUM"), without_title("A\\nB", "C"), without_title("A", "A")
    ('It cleans.', 'A\\nB', 'A')
    """
    first, _, rest = text.partition("\n")
    is_in_title = first.strip().casefold() in title.casefold()
    return rest.lstrip() if is_in_title and rest.strip() else text


def choose_snippet(
    passage: str, matches: Sequence[Match], worths: Mapping[str, float], *, cut: tuple[bool, bool]
) -> tuple[str, Marks]:
    """Returns the part of a passage whose words count most, and the marks in it.

    Args:
        passage: A part of a text.
        matches: Words of the query in it, in order.
        worths: How much each term counts; it counts once.
        cut: Whether the text has more before the passage, and after it.

    >>> passage = "Hills. " * 40 + "An old stone in the river. " + "Clouds. " * 40
    >>> matches = [Match(287, 292, "stone"), Match(300, 305, "river")]
    >>> snippet, marks = choose_snippet(passage, matches, {"stone": 1, "river": 1}, cut=(False, False))
    >>> snippet[:20], snippet[-9:], [snippet[a:b] for a, b in marks]
    ('…Hills. Hills. Hills', ' Clouds.…', ['stone', 'river'])
    """
    begin, end = _bounds(passage, _best_start(matches, worths))
    text = passage[begin:end]
    stripped = text.strip()
    begin += len(text) - len(text.lstrip())
    end = begin + len(stripped)
    before = _CUT if cut[0] or passage[:begin].strip() else ""
    after = _CUT if cut[1] or passage[end:].strip() else ""
    shift = len(before) - begin
    return before + stripped + after, _joined(
        [(m.begin + shift, m.end + shift) for m in matches if begin <= m.begin and m.end <= end]
    )


def _best_start(matches: Sequence[Match], worths: Mapping[str, float]) -> int:
    """Returns where the first word is of the window whose words count most."""
    best, start = 0.0, 0
    room = SNIPPET_CHARS - _BEFORE
    for at, first in enumerate(matches):
        terms = set[str]()
        for match in matches[at:]:
            if match.end > first.begin + room:
                break
            terms.add(match.term)
        worth = sum(worths.get(term, 0.0) for term in terms)
        if worth > best + _SAME:
            best, start = worth, first.begin
    return start


def _bounds(passage: str, start: int) -> tuple[int, int]:
    if len(passage) <= SNIPPET_CHARS:
        return 0, len(passage)
    earliest = max(0, start - _SENTENCE)
    sentences = [end.end() for end in _ENDS.finditer(passage, earliest, start)]
    if earliest == 0:
        begin = 0
    elif sentences:
        begin = sentences[0]
    else:
        begin = _after_space(passage, max(0, start - _BEFORE), start)
    begin = min(begin, _after_space(passage, len(passage) - SNIPPET_CHARS, start))
    end = begin + SNIPPET_CHARS
    if end < len(passage) and not passage[end].isspace():
        space = max(passage.rfind(mark, begin, end) for mark in " \n\t")
        end = space if space > start else end
    return begin, end


def _after_space(passage: str, at: int, latest: int) -> int:
    """Returns where the next word begins, or ``at`` if that is too late."""
    if at <= 0 or passage[at - 1].isspace():
        return max(0, at)
    match = re.compile(r"\s+").search(passage, at, latest)
    return match.end() if match else at


def _joined(marks: Sequence[tuple[int, int]]) -> Marks:
    """Returns marks; those that touch become one.

    >>> _joined([(0, 3), (3, 4), (5, 9)])
    ((0, 4), (5, 9))
    """
    joined = list[tuple[int, int]]()
    for begin, end in marks:
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return tuple(joined)
