"""Compiles Java's regular expressions, which Nutch's rule files have.

``java_syntax`` translates a pattern word by word for the ``regex`` package. Most patterns also have a
form for polars, whose engine searches a whole column at once.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import polars as pl
import regex

from ..base.columns import falses, put
from ..base.dataclass import dataclass
from ..base.wording import value_error
from .java_syntax import parse_pattern
from .java_words import Word

# How long one pattern may take for one URL, s; and the limit after that many slow URLs.
TIME_LIMIT = 0.1
_MANY, _SHORT_LIMIT = 20, 0.002
_T = TypeVar("_T")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)|\\.|\\$", re.DOTALL)
# Longest pattern, in characters with its repeats expanded, as engines expand them.
_LARGEST = 100_000


class Searcher(Protocol):
    """A compiled pattern that can search a text."""

    def search(self, string: str, *, timeout: float | None = None) -> Any:
        """Returns a match, or None if there is none; raises ``TimeoutError``."""


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern.

    Attributes:
        text: The pattern as the file has it.
        python: The compiled pattern for single texts.
        column: The pattern for polars' ``str.contains``; None if there is none. It may still be
            too large for that engine.
        exact: Whether ``column`` finds exactly what ``python`` finds. Else it finds more, so only
            its misses are sure. Even if exact, they differ where ``\\b`` is next to a letter that
            one engine does not know yet, and where a part after ``$`` matches a line end.
        swap: Pattern for ``str.replace_all`` on visible ASCII, and the start that the replacement
            needs (a group of the pattern); None if no such pattern is known to be right.
        names: The named groups, with their numbers.
    """

    text: str
    python: Searcher
    column: str | None
    exact: bool
    swap: tuple[str, str] | None = None
    names: tuple[tuple[str, int], ...] = ()


class TimeLimit:
    """Limits the time that patterns take for one URL; the limit falls after many slow URLs.

    So the time for a column of any URLs is limited.
    """

    def __init__(self) -> None:
        self._slow = 0

    def run(self, search: Callable[..., _T], *args: str) -> _T:
        """Returns the result of a method of a compiled pattern, such as ``search``.

        Raises:
            TimeoutError: It took too long.
        """
        try:
            return search(*args, timeout=TIME_LIMIT if self._slow < _MANY else _SHORT_LIMIT)
        except TimeoutError:
            self._slow += 1
            raise

    def search_column(self, pattern: Pattern, texts: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Searches texts for a pattern.

        Returns:
            For each text whether it is found or the time ran out, and whether the time ran out.
        """
        matches, slow = ~falses(len(texts)), falses(len(texts))
        if pattern.column is not None and is_column_pattern(pattern.column):
            matches = texts.str.contains(pattern.column).fill_null(False)
            if pattern.exact:
                return matches, slow
        at = matches.arg_true()
        hits = pl.Series(
            [self._is_found(pattern, text) for text in texts.gather(at)], dtype=pl.Boolean
        )
        return put(matches, at, hits.fill_null(True)), put(slow, at, hits.is_null())

    def _is_found(self, pattern: Pattern, text: str) -> bool | None:
        try:
            return self.run(pattern.python.search, text) is not None
        except TimeoutError:
            return None


@functools.cache
def is_column_pattern(text: str) -> bool:
    """Returns whether polars' engine accepts a pattern."""
    try:
        pl.Series([""]).str.contains(text)
    except pl.exceptions.ComputeError:
        return False
    return True


def compile_pattern(text: str, to_replace: bool = False) -> Pattern:
    r"""Compiles a pattern in Java's dialect.

    Args:
        text: The pattern.
        to_replace: Whether it matters where a match begins. If not, ``.*`` at the start has no
            effect, and is left out: it would be tried from each character of a URL.

    Raises:
        ValueError: The pattern does not compile; the message says why.

    >>> compile_pattern(r"(?<!:)/{2,}").column
    '(?:^|[^:])(?:/{2,})'
    >>> pattern = compile_pattern(r".*(/[^/]+)/[^/]+\1/")
    >>> pattern.column, pattern.exact
    ('(/[^/]+)/[^/]+(?:/[^/]+)/', False)
    """
    try:
        java = parse_pattern(_replace_quotes(text))
        if java.size > _LARGEST:
            raise ValueError(f"with its repeats expanded it is longer than {_LARGEST:,} characters")
        words = java.words if to_replace else _without_start(java.words)
        compiled = _compile_words(words)
        column, exact, swap = _column_forms(words, java.is_choice)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (regex.error, OverflowError) as error:
        raise ValueError(f"it cannot be translated: {error}") from error
    column_pattern = column if exact or column else None
    return Pattern(text, compiled, column_pattern, exact, swap, tuple(java.names.items()))


def _replace_quotes(text: str) -> str:
    r"""Replaces ``\Q...\E`` by escapes, which Java does first."""

    def escape_quote(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        # A digit would belong to an escape before it.
        digit = f"\\x3{match[1][0]}" if match[1][:1].isdecimal() and match[1].isascii() else ""
        rest = match[1][1:] if digit else match[1]
        return digit + re.sub(
            r"[\x00-\x7f]", lambda m: m[0] if m[0].isalnum() else "\\" + m[0], rest
        )

    return _QUOTED.sub(escape_quote, text)


def pattern_of(
    expected: str, text: str, compile: Callable[[str], Pattern] = compile_pattern, line: str = ""
) -> Pattern:
    """Compiles a pattern of the user.

    Args:
        expected: Begin of the message if it does not compile; see ``value_error``.
        text: The pattern.
        compile: Compiles it.
        line: Text to quote in the message instead of the pattern.

    Raises:
        ValueError: It does not compile.
    """
    try:
        return compile(text)
    except ValueError as error:
        raise value_error(expected, line or text, error) from error


def _without_start(words: list[Word]) -> list[Word]:
    """Returns a pattern without a part at its start that may be empty and captures nothing."""
    while len(words) > 2 and words[0].chars and words[1].python in ("*", "*?"):
        words = words[2:]
    return words


def _compile_words(words: list[Word]) -> "regex.Pattern[str]":
    # The edges of words and graphemes are those of all scripts; the flag i is for ASCII alone.
    all_scripts = any(word.name in ("edge", "no_edge", "grapheme") for word in words)
    any_case = not all_scripts and all(word.any_case for word in words)
    flags = regex.VERSION1 | (0 if all_scripts else regex.ASCII)
    if not any_case:
        return regex.compile("".join(word.python for word in words), flags)
    # Letters are faster to compile, and to find, than sets.
    letters = ((word.chars.letter if word.chars else "") or word.python for word in words)
    return regex.compile("".join(letters), flags | regex.IGNORECASE)


def _column_forms(words: list[Word], is_choice: bool) -> tuple[str, bool, tuple[str, str] | None]:
    """Returns a pattern's ``column``, ``exact`` and ``swap``."""
    edge = ""
    if not is_choice and len(words) > 3 and words[0].python == "(?<!" and words[2].kind == ")":
        edge, words = f"^|{(~words[1].chars).pattern}" if words[1].chars else "", words[3:]
    text, exact = "".join(word.column for word in words), all(word.exact for word in words)
    if not exact:
        return text, False, None
    # Engines differ in where they find an empty match.
    without_marks = "".join("(?:)" if word.kind == "mark" else word.python for word in words)
    is_wide = regex.fullmatch(without_marks, "", regex.VERSION1) is None
    if not edge:
        return text, True, (text, "") if is_wide else None
    # The character before is then part of the match, so another match cannot follow at once.
    is_single = is_wide and words[-1].name == "end"
    return f"(?:{edge})(?:{text})", True, (f"({edge})(?:{text})", "${1}") if is_single else None
