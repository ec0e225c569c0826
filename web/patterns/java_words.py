"""The words of a parsed pattern: how the ``regex`` package and polars write each of them."""

import dataclasses

from ..base.dataclass import dataclass
from .chars import Chars, in_any_case

# For the ``regex`` package, for polars, and whether both mean the same.
_MARKS = {
    "start": (r"\A", "^", True),
    "line_start": (
        r"(?:(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))(?=[\s\S]))", "", False,
    ),
    "unix_line_start": (r"(?:(?:\A|(?<=\n))(?=[\s\S]))", "", False),
    "end": (
        r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)",
        r"(?:(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?$)", True,
    ),
    "unix_end": (r"(?=\n?\Z)", r"(?:\n?$)", True),
    "line_end": (r"(?:\Z|(?<!\r)(?=\n)|(?=[\r\x85\u2028\u2029]))", "", False),
    "unix_line_end": (r"(?=\n|\Z)", "", False),
    "last": (r"\Z", "$", True),
    "match": (r"\G", "", False),
    "edge": (r"\b", r"\b", True),
    "no_edge": (r"\B", r"\B", True),
    "newline": (r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])", r"[\s\S]+", False),
    "grapheme": (r"\X", r"[\s\S]+", False),
}  # fmt: skip
MARK_ESCAPES = {
    "A": "start", "z": "last", "G": "match", "b": "edge", "B": "no_edge", "R": "newline",
    "X": "grapheme",
}  # fmt: skip
# Kinds of words that depend on more than the characters that they match.
BOUND = ("mark", "reference", "look")


@dataclasses.dataclass(slots=True)
class Word:
    """A word of a pattern.

    Attributes:
        kind: ``chars``, ``mark`` (a position, a line end or a grapheme), ``reference``, ``(``,
            ``look`` (the begin of a lookahead or lookbehind), ``)``, ``|`` or ``times``.
        python: The word for the ``regex`` package.
        column: The word for polars; it may match more.
        exact: Whether ``column`` matches the same as ``python``.
        any_case: Whether it matches a letter in both cases if it matches it in one.
        chars: The set of characters, if it is one.
        name: The name of a mark, the number of a reference's group.
    """

    kind: str
    python: str
    column: str
    exact: bool = True
    any_case: bool = True
    chars: Chars | None = None
    name: str = ""


@dataclass(frozen=True)
class JavaPattern:
    """A parsed pattern.

    Attributes:
        words: Its words.
        names: The numbers of its named groups.
        size: Its length in characters and marks with all repeats expanded.
        is_choice: Whether it has alternatives outside of groups.
    """

    words: list[Word]
    names: dict[str, int]
    size: int
    is_choice: bool


def chars_word(chars: Chars) -> Word:
    """Returns the word for one of some characters."""
    any_case = in_any_case(chars) == chars
    return Word("chars", chars.pattern, chars.pattern, True, any_case, chars)


def mark_word(name: str) -> Word:
    """Returns the word for a mark."""
    return Word("mark", *_MARKS[name], name=name)


def reference_word(number: int, any_case: bool, words: list[Word] | None) -> Word:
    """Returns the word for a reference to a group; its words are None if it is not complete."""
    python = f"(?i-f:\\g<{number}>)" if any_case else f"\\g<{number}>"
    column = r"[\s\S]*"
    # The group's own pattern matches each text that the group may have captured.
    if words and not any_case and not any(word.kind in BOUND for word in words):
        column = f"(?:{''.join(word.column for word in words)})"
    return Word("reference", python, column, False, any_case, name=str(number))
