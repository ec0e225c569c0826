"""Regular expressions as Java writes them, for the rule files that Nutch users have.

Each is read by ``java_syntax`` and written for the ``regex`` package. Most also have a form for
the engine of polars, which tests a whole column at once.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, Protocol

import polars as pl
import regex

from .java_chars import Chars
from .java_classes import UNICODE_SHORT
from .java_syntax import Atomic, Back, Either, Group, Look, Mark, Node, Repeat, Row, Tree, parse

_LINE_ENDS = r"[\n\r\x85\u2028\u2029]"
_AT_END = r"(?:\Z|(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])\Z))"
# Java 17: letters and digits of all scripts, and marks on them, though \w is ASCII.
_WORD = r"[_\p{L}\p{Nd}\p{Mn}]"
_UNICODE_WORD = f"[{UNICODE_SHORT['w']}]"


def _edge(word: str) -> str:
    return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"


def _no_edge(word: str) -> str:
    return f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"


_PYTHON_MARKS = {
    "start": r"\A",
    "line_start": r"(?:(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))(?=[\s\S]))",
    "unix_line_start": r"(?:(?:\A|(?<=\n))(?=[\s\S]))",
    "end": _AT_END,
    "unix_end": r"(?=\n?\Z)",
    "line_end": r"(?:\Z|(?<!\r)(?=\n)|(?=[\r\x85\u2028\u2029]))",
    "unix_line_end": r"(?=\n|\Z)",
    "last": r"\Z",
    "match": r"\G",
    "edge": _edge(_WORD),
    "no_edge": _no_edge(_WORD),
    "unicode_edge": _edge(_UNICODE_WORD),
    "unicode_no_edge": _no_edge(_UNICODE_WORD),
    "newline": r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])",
    "grapheme": r"\X",
}
_COLUMN_MARKS = {
    "start": "^",
    "end": r"(?:(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?$)",
    "unix_end": r"(?:\n?$)",
    "last": "$",
    "edge": r"\b",
    "no_edge": r"\B",
    "unicode_edge": r"\b",
    "unicode_no_edge": r"\B",
}


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
        column: The same for polars' ``str.contains``; None where there is none. It may still
            prove too large for that engine.
        exact: Whether ``column`` hits just what ``python`` does; else it hits that and more, so
            a miss is a miss. Beyond ASCII they differ where ``\\b`` or ``\\B`` stands beside
            what is a letter to one only, as a circled one or a Roman numeral; and where ``$``
            stands before what takes the end of a line, or behind what takes half of CR LF.
        swap: For ``str.replace_all`` on visible ASCII: a pattern, and what the replacement must
            begin with, which is a group of the pattern; None where there surely is none.
        names: The groups that have names, and their numbers.
    """

    text: str
    python: Searcher
    column: str | None
    exact: bool
    swap: tuple[str, str] | None = None
    names: tuple[tuple[str, int], ...] = ()


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
    try:
        tree = parse(text)
        python = _Python(tree.groups).written(tree.root)
        # Else a reference in any case takes letters of all scripts for the same.
        flags = regex.VERSION1 | (regex.ASCII if "(?i" in python and r"\p" not in python else 0)
        compiled = regex.compile(python, flags)
        column, exact, swap = _column_forms(tree)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (regex.error, OverflowError) as error:
        raise ValueError(f"it cannot be translated: {error}") from error
    return Pattern(text, compiled, column or None, exact, swap, tuple(tree.names.items()))


class _Writer:
    """Writes trees as patterns; what engines say differently is left to others."""

    def written(self, node: Node) -> str:
        match node:
            case Row(parts):
                return "".join(map(self._inner, parts))
            case Either(parts):
                return "|".join(map(self.written, parts))
            case Group(part):
                return f"({self.written(part)})"
            case Repeat(part, least, most, how):
                single = isinstance(part, Chars | Group)
                inner = self.written(part) if single else f"(?:{self.written(part)})"
                return inner + self._times(least, most, how)
        return self._special(node)

    def _inner(self, node: Node) -> str:
        text = self.written(node)
        return f"(?:{text})" if isinstance(node, Either | Row) else text

    def _times(self, least: int, most: int | None, how: str) -> str:
        plain = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((least, most))
        if plain:
            return plain + how
        end = "" if most == least else "," if most is None else f",{most}"
        return f"{{{least}{end}}}{how}"

    def _special(self, node: Node) -> str:
        raise NotImplementedError


class _Python(_Writer):
    """Writes them for the ``regex`` package."""

    def __init__(self, groups: int) -> None:
        self._groups = groups

    def _special(self, node: Node) -> str:
        match node:
            case Chars():
                return node.python
            case Mark(kind):
                return _PYTHON_MARKS[kind]
            case Atomic(part):
                return f"(?>{self.written(part)})"
            case Look(part, behind, negative):
                return f"(?{'<' * behind}{'!' if negative else '='}{self.written(part)})"
            case Back(number, any_case):
                if number > self._groups:
                    return "(?!)"
                return f"(?i-f:\\g<{number}>)" if any_case else f"\\g<{number}>"
        raise AssertionError(node)


class _Column(_Writer):
    """Writes them for polars: what that engine does not have becomes what hits more.

    Attributes:
        exact: Whether there was nothing of the kind.
    """

    def __init__(self, tree: Tree) -> None:
        self._kept = {
            node.number: node.part for node in _nodes(tree.root) if isinstance(node, Group)
        }
        self.exact = True

    def _times(self, least: int, most: int | None, how: str) -> str:
        self.exact &= how != "+"
        return super()._times(least, most, how.replace("+", ""))

    def _special(self, node: Node) -> str:
        match node:
            case Chars():
                self.exact &= node.in_columns
                return node.column
            case Mark(kind) if kind in _COLUMN_MARKS:
                return _COLUMN_MARKS[kind]
            case Back(number) if number not in self._kept:
                return Chars(0).column
        self.exact = False
        match node:
            case Atomic(part):
                return f"(?:{self.written(part)})"
            case Mark("grapheme"):
                return r"[\s\S]+"
            case Back(number, any_case):
                # The group's own pattern takes all that it may have kept.
                part = self._kept[number]
                free = not any(isinstance(inner, Mark | Back | Look) for inner in _nodes(part))
                return f"(?:{self.written(part)})" if free and not any_case else r"[\s\S]*"
        return ""


def _column_forms(tree: Tree) -> tuple[str, bool, tuple[str, str] | None]:
    """Returns a pattern's ``column``, ``exact`` and ``swap``."""
    root, before = tree.root, ""
    match root:
        case Row((Look(Chars() as chars, True, True), *rest)) if (~chars).in_columns:
            root, before = Row(tuple(rest)), f"^|{(~chars).column}"
    writer = _Column(tree)
    text = writer.written(root)
    if before and writer.exact:
        # What stands before is then part of the match, so another may not follow at once.
        single = isinstance(root, Row) and root.parts[-1:] == (Mark("end"),) and _least_width(root)
        swap = (f"({before})(?:{text})", "${1}") if single else None
        return f"(?:{before})(?:{text})", True, swap
    # Engines differ in where nothing is found.
    return text, writer.exact, (text, "") if writer.exact and _least_width(root) else None


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case Row(parts) | Either(parts):
            for part in parts:
                yield from _nodes(part)
        case Group(part) | Repeat(part) | Atomic(part) | Look(part):
            yield from _nodes(part)


def _least_width(node: Node) -> int:
    """Returns how many characters a match has at least."""
    match node:
        case Chars() | Mark("newline" | "grapheme"):
            return 1
        case Row(parts):
            return sum(map(_least_width, parts))
        case Either(parts):
            return min(map(_least_width, parts))
        case Group(part) | Atomic(part):
            return _least_width(part)
        case Repeat(part, least):
            return least * _least_width(part)
    return 0
