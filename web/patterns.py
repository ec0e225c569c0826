"""Regular expressions as Java writes them, for the rule files that Nutch users have.

Each is compiled for the ``regex`` package, which understands Java's dialect
(look-behind, possessive quantifiers, inline flags from where they stand). Most
also have a form for the engine of polars, which tests a whole column at once.
"""

import dataclasses
import functools
import math
import re
from typing import Any, Protocol

import polars as pl
import regex

# Java: \w, \d, \b and case folding are ASCII; an inline flag holds from there on.
_FLAGS = regex.VERSION1 | regex.ASCII
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)|\\.", re.DOTALL)

# What means the same in Java and in polars' engine, on visible ASCII.
_CLASS = r"\[\^?(?:[^\\\[\]&~|^-]|-(?!-)|[&~|](?![&~|])|\\[dwsDWS]|\\[^\w\s<>])+\]"
_ATOM = rf"[^\\\[\](){{}}?*+|^$]|\\[dwsDWS]|\\[^\w\s<>]|{_CLASS}"
_TIMES = r"(?:[?*+]|\{\d+(?:,\d*)?\})\??(?![?*+{])"
_CONTEXT = r"\\[bB]|[\^$|)]|\((?:\?i?:|\?i\))?"
_COMMON = re.compile(rf"(?:(?:{_ATOM})(?:{_TIMES})?|\)(?:{_TIMES})|{_CONTEXT})*")
_CONTEXT_FREE = re.compile(rf"(?:(?:{_ATOM})(?:{_TIMES})?)+")
_NOT_AFTER = re.compile(r"\(\?<!(?:([A-Za-z0-9:/&=#@%,;])|\[((?!\^)[^\[\]]+)\])\)([^|]+)")
_TOKEN = re.compile(
    rf"{_CLASS}|\\.|\((?:\?[a-z]*:|\?[a-z]+\))?|[?*+]|\{{(\d+)[^}}]*\}}|.", re.DOTALL
)
_BACK_REFERENCE = re.compile(r"(?<!\\)((?:\\\\)*)\\([1-9])(?!\d)")


# How long one pattern may take over one URL, s; and once so many URLs took it that long.
TIME_LIMIT = 0.1
_MANY, _SHORT_LIMIT = 20, 0.002


class Searcher(Protocol):
    """What of a compiled expression is used to search."""

    def search(self, string: str, *, timeout: float | None = None) -> Any:
        """Returns what was found, None for nothing; raises ``TimeoutError``."""


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A compiled pattern.

    Attributes:
        text: As it stands in the file.
        python: To search with.
        column: The same for polars' ``str.contains`` on visible ASCII; None
            where there is none. It may still prove too large for that engine.
        exact: Whether ``column`` hits just what ``python`` does; else it hits
            that and more, so a miss is a miss.
    """

    text: str
    python: Searcher
    column: str | None
    exact: bool


class Patience:
    """How long patterns may take: less for each URL when many URLs were slow.

    So a whole column ends, however its URLs were made.
    """

    def __init__(self) -> None:
        self._slow = 0

    def found(self, pattern: Pattern, url: str) -> bool:
        """Returns whether a pattern is found in a URL.

        Raises:
            TimeoutError: It took too long to tell.
        """
        try:
            return pattern.python.search(url, timeout=self._limit) is not None
        except TimeoutError:
            self._slow += 1
            raise

    def replace(self, pattern: "regex.Pattern[str]", template: str, url: str) -> str:
        """Returns a URL in which each match of a pattern is replaced; see ``found``."""
        try:
            return pattern.sub(template, url, timeout=self._limit)
        except TimeoutError:
            self._slow += 1
            raise

    @property
    def _limit(self) -> float:
        return TIME_LIMIT if self._slow < _MANY else _SHORT_LIMIT


@functools.cache
def is_column_pattern(text: str) -> bool:
    """Returns whether polars' engine takes a pattern."""
    try:
        pl.Series([""]).str.contains(text)
    except pl.exceptions.ComputeError:
        return False
    return True


def compile_pattern(text: str) -> Pattern:
    r"""Compiles a pattern in Java's dialect.

    Raises:
        ValueError: It does not compile; the message says what is wrong with it.

    >>> compile_pattern(r"(?<!:)/{2,}").column
    '(?:^|[^:])(?:/{2,})'
    >>> pattern = compile_pattern(r"(/[^/]+)/[^/]+\1/")
    >>> pattern.column, pattern.exact
    ('(/[^/]+)/[^/]+(?:/[^/]+)/', False)
    """
    plain = _QUOTED.sub(lambda match: match[0] if match[1] is None else re.escape(match[1]), text)
    try:
        compiled = regex.compile(plain, _FLAGS)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(str(error) or "it does not compile") from error
    column, exact = _column_form(plain)
    return Pattern(text, compiled, column, exact)


def _column_form(text: str) -> tuple[str | None, bool]:
    not_after = _NOT_AFTER.fullmatch(text)
    if not_after:
        text = f"(?:^|[^{not_after[1] or not_after[2]}])(?:{not_after[3]})"
    loose = _without_back_references(text)
    if not loose.isascii() or not loose.isprintable() or not _COMMON.fullmatch(loose):
        return None, False
    return loose, loose == text


def _without_back_references(text: str) -> str:
    """Puts the group's own pattern for each reference, which matches all that it can."""
    groups = re.findall(r"(?<!\\)\(([^()]*)\)", text)
    numbered = len(re.findall(r"(?<!\\)\((?!\?)", text))
    # Numbers are sure only if each capturing group is flat, and no class holds a bracket.
    if len([group for group in groups if not group.startswith("?")]) != numbered:
        return text
    flat = [group for group in groups if not group.startswith("?")]

    def source(match: re.Match[str]) -> str:
        number = int(match[2])
        if number > len(flat) or not _CONTEXT_FREE.fullmatch(flat[number - 1]):
            return match[0]
        return f"{match[1]}(?:{flat[number - 1]})"

    return _BACK_REFERENCE.sub(source, text)


def least_width(column: str) -> int:
    """Returns how many characters a match has at least, of a pattern that has an exact form.

    >>> [least_width(text) for text in ("ab?", "a|(?:b*)", "(?i)(x|yz){2}$", "[^a]+?c")]
    [1, 0, 2, 2]
    """
    # Of each open group: the least of the alternatives so far, the one at hand, its last piece.
    groups: list[list[float]] = [[math.inf, 0, 0]]
    for token in _TOKEN.finditer(column):
        text, top = token[0], groups[-1]
        if text.startswith("(") and not text.endswith(")"):
            groups.append([math.inf, 0, 0])
        elif text == "|":
            top[:] = [min(top[0], top[1]), 0, 0]
        elif text == ")" and len(groups) > 1:
            least, now, _ = groups.pop()
            groups[-1][1] += min(least, now)
            groups[-1][2] = min(least, now)
        elif text in ("?", "*"):  # also what makes a quantifier lazy, which has nothing to take
            top[1:] = [top[1] - top[2], 0]
        elif text.startswith("{"):
            top[1:] = [top[1] + top[2] * (int(token[1]) - 1), 0]
        elif text == "+":
            top[2] = 0
        else:
            width = 0 if text in ("^", "$", r"\b", r"\B") or text.startswith("(") else 1
            top[1:] = [top[1] + width, width]
    least, now, _ = groups[0]
    return int(min(least, now))
