"""Compiles Java's regular expressions, which Nutch's rule files have.

``java_syntax`` parses a pattern, and a writer translates the tree for the ``regex`` package. Most
patterns also have a form for polars, whose engine searches a whole column at once.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import polars as pl
import regex

from ..base.columns import falses, put
from ..base.wording import value_error
from . import java_tree as java
from .chars import NONE, Chars, in_any_case
from .java_syntax import parse_pattern

_PYTHON_MARKS = {
    "start": r"\A",
    "line_start": r"(?:(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))(?=[\s\S]))",
    "unix_line_start": r"(?:(?:\A|(?<=\n))(?=[\s\S]))",
    "end": r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)",
    "unix_end": r"(?=\n?\Z)",
    "line_end": r"(?:\Z|(?<!\r)(?=\n)|(?=[\r\x85\u2028\u2029]))",
    "unix_line_end": r"(?=\n|\Z)",
    "last": r"\Z",
    "match": r"\G",
    "edge": r"\b",
    "no_edge": r"\B",
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
}


# How long one pattern may take for one URL, s; and the limit after that many slow URLs.
TIME_LIMIT = 0.1
_MANY, _SHORT_LIMIT = 20, 0.002
_T = TypeVar("_T")
# Longest pattern, in characters with its repeats expanded, as engines expand them.
_LARGEST = 100_000


class Searcher(Protocol):
    """A compiled pattern that can search a text."""

    def search(self, string: str, *, timeout: float | None = None) -> Any:
        """Returns a match, or None if there is none; raises ``TimeoutError``."""


@dataclasses.dataclass(frozen=True)
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
        tree = parse_pattern(text)
        if not to_replace:
            tree = dataclasses.replace(tree, root=_without_start(tree.root))
        if _size(tree.root) > _LARGEST:
            raise ValueError(f"with its repeats expanded it is longer than {_LARGEST:,} characters")
        compiled = _compile_tree(tree)
        column, exact, swap = _column_forms(tree)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (regex.error, OverflowError) as error:
        raise ValueError(f"it cannot be translated: {error}") from error
    column_pattern = column if exact or column else None
    return Pattern(text, compiled, column_pattern, exact, swap, tuple(tree.names.items()))


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


def _without_start(root: java.JavaNode) -> java.JavaNode:
    """Returns a pattern without a part at its start that may be empty and captures nothing."""
    match root:
        case java.Concat((java.Repeat(Chars(), 0, None, "" | "?"), *rest)) if rest:
            return _without_start(java.Concat(tuple(rest)))
    return root


def _compile_tree(tree: java.Tree) -> "regex.Pattern[str]":
    nodes = java.nodes_of(tree.root)
    # The edges of words and graphemes are those of all scripts; the flag i is for ASCII alone.
    all_scripts = any(java.Mark(kind) in nodes for kind in ("edge", "no_edge", "grapheme"))
    any_case = not all_scripts and all(
        in_any_case(node) == node if isinstance(node, Chars) else node.any_case
        for node in nodes
        if isinstance(node, Chars | java.Reference)
    )
    flags = regex.VERSION1 | (0 if all_scripts else regex.ASCII)
    flags |= regex.IGNORECASE if any_case else 0
    return regex.compile(_Writer(tree, any_case).write(tree.root), flags)


class _Writer:
    """Writes trees as patterns of the ``regex`` package."""

    def __init__(self, tree: java.Tree, any_case: bool = False) -> None:
        self._groups = tree.groups
        self._any_case = any_case

    def write(self, node: java.JavaNode) -> str:
        match node:
            case java.Concat(parts):
                return "".join(map(self._inner, parts))
            case java.Choice(parts):
                return "|".join(map(self.write, parts))
            case java.Group(part):
                return f"({self.write(part)})"
            case java.Repeat(part, least, most, how):
                single = isinstance(part, Chars | java.Group)
                inner = self.write(part) if single else f"(?:{self.write(part)})"
                return inner + self._times(least, most, how)
        return self._special(node)

    def _inner(self, node: java.JavaNode) -> str:
        text = self.write(node)
        return f"(?:{text})" if isinstance(node, java.Choice | java.Concat) else text

    def _times(self, least: int, most: int | None, how: str) -> str:
        plain = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((least, most))
        if plain:
            return plain + how
        end = "" if most == least else "," if most is None else f",{most}"
        return f"{{{least}{end}}}{how}"

    def _special(self, node: java.JavaNode) -> str:
        match node:
            case Chars():
                # Letters are faster to compile, and to find, than sets.
                return (self._any_case and node.letter) or node.pattern
            case java.Mark(kind):
                return _PYTHON_MARKS[kind]
            case java.Atomic(part):
                return f"(?>{self.write(part)})"
            case java.Lookaround(part, behind, negative):
                return f"(?{'<' * behind}{'!' if negative else '='}{self.write(part)})"
            case java.Reference(number, any_case):
                if number > self._groups:
                    return NONE.pattern
                return f"(?i-f:\\g<{number}>)" if any_case else f"\\g<{number}>"
        raise AssertionError(node)


class _Column(_Writer):
    """Writes trees as patterns for polars; parts that polars lacks become parts that match more.

    Attributes:
        exact: Whether polars can express all parts.
    """

    def __init__(self, tree: java.Tree) -> None:
        super().__init__(tree)
        self._group_parts = {
            n.number: n.part for n in java.nodes_of(tree.root) if isinstance(n, java.Group)
        }
        self.exact = True

    def _times(self, least: int, most: int | None, how: str) -> str:
        self.exact &= how != "+"
        return super()._times(least, most, how.replace("+", ""))

    def _special(self, node: java.JavaNode) -> str:
        match node:
            case Chars():
                return node.pattern
            case java.Mark(kind) if kind in _COLUMN_MARKS:
                return _COLUMN_MARKS[kind]
            case java.Reference(number) if number not in self._group_parts:
                return NONE.pattern
        self.exact = False
        match node:
            case java.Atomic(part):
                return f"(?:{self.write(part)})"
            case java.Mark("grapheme" | "newline"):
                return r"[\s\S]+"
            case java.Reference(number, any_case):
                # The group's own pattern matches each text that the group may have captured.
                part = self._group_parts[number]
                bound = java.Mark | java.Reference | java.Lookaround
                free = not any(isinstance(inner, bound) for inner in java.nodes_of(part))
                return f"(?:{self.write(part)})" if free and not any_case else r"[\s\S]*"
        return ""


def _column_forms(tree: java.Tree) -> tuple[str, bool, tuple[str, str] | None]:
    """Returns a pattern's ``column``, ``exact`` and ``swap``."""
    root, edge = tree.root, ""
    match root:
        case java.Concat((java.Lookaround(Chars() as chars, True, True), *rest)):
            root, edge = java.Concat(tuple(rest)), f"^|{(~chars).pattern}"
    writer = _Column(tree)
    text = writer.write(root)
    if edge and writer.exact:
        # The character before is then part of the match, so another match cannot follow at once.
        single = isinstance(root, java.Concat) and root.parts[-1:] == (java.Mark("end"),)
        swap = (f"({edge})(?:{text})", "${1}") if single and _least_width(root) else None
        return f"(?:{edge})(?:{text})", True, swap
    # Engines differ in where they find an empty match.
    return text, writer.exact, (text, "") if writer.exact and _least_width(root) else None


def _least_width(node: java.JavaNode) -> int:
    """Returns how many characters a match has at least."""
    match node:
        case Chars() | java.Mark("newline" | "grapheme"):
            return 1
        case java.Choice(parts):
            return min(map(_least_width, parts))
        case java.Repeat(part, least):
            return least * _least_width(part)
        case java.Lookaround():
            return 0
    return sum(map(_least_width, java.children(node)))


def _size(node: java.JavaNode) -> int:
    """Returns the length of a pattern with all its repeats expanded."""
    size = sum(map(_size, java.children(node))) or 1
    return max(node.least, node.most or 1) * size if isinstance(node, java.Repeat) else size
