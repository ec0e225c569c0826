"""Regular expressions as Java writes them, for the rule files that Nutch users have.

Each is read by ``java_syntax`` and written for the ``regex`` package. Most also have a form for
the engine of polars, which tests a whole column at once.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import polars as pl
import regex

from ..base.columns import falses, put
from .chars import NONE, Chars, in_any_case
from .java_syntax import parse
from .java_tree import (
    Atomic,
    Back,
    Either,
    Group,
    Look,
    Mark,
    Node,
    PatternTree,
    Repeat,
    Row,
    children,
    nodes_of,
)

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


# How long one pattern may take over one URL, s; and once so many URLs took it that long.
TIME_LIMIT = 0.1
_MANY, _SHORT_LIMIT = 20, 0.002
_T = TypeVar("_T")
# The engines write repeats out.
_LARGEST = 100_000


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
            a miss is a miss. They differ where ``\\b`` stands beside a letter that one engine
            does not know yet, and where more of a pattern follows ``$`` and takes an end of line.
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


class TimeLimit:
    """Limits the time that patterns take for one URL; the limit falls when many URLs were slow.

    So a whole column ends, however its URLs were made.
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
        found, slow = ~falses(len(texts)), falses(len(texts))
        if pattern.column is not None and is_column_pattern(pattern.column):
            found = texts.str.contains(pattern.column).fill_null(False)
            if pattern.exact:
                return found, slow
        at = found.arg_true()
        hits = pl.Series(
            [self._is_found(pattern, text) for text in texts.gather(at)], dtype=pl.Boolean
        )
        return put(found, at, hits.fill_null(True)), put(slow, at, hits.is_null())

    def _is_found(self, pattern: Pattern, text: str) -> bool | None:
        try:
            return self.run(pattern.python.search, text) is not None
        except TimeoutError:
            return None


@functools.cache
def is_column_pattern(text: str) -> bool:
    """Returns whether polars' engine takes a pattern."""
    try:
        pl.Series([""]).str.contains(text)
    except pl.exceptions.ComputeError:
        return False
    return True


def compile_pattern(text: str, to_replace: bool = False) -> Pattern:
    r"""Compiles a pattern in Java's dialect.

    Args:
        text: The pattern.
        to_replace: Whether it counts where a match begins. Else ``.*`` at its start says nothing,
            and is left out: it would be tried from each character of a URL.

    Raises:
        ValueError: It does not compile; the message says what is wrong with it.

    >>> compile_pattern(r"(?<!:)/{2,}").column
    '(?:^|[^:])(?:/{2,})'
    >>> pattern = compile_pattern(r".*(/[^/]+)/[^/]+\1/")
    >>> pattern.column, pattern.exact
    ('(/[^/]+)/[^/]+(?:/[^/]+)/', False)
    """
    try:
        tree = parse(text)
        if not to_replace:
            tree = dataclasses.replace(tree, root=_without_start(tree.root))
        if _size(tree.root) > _LARGEST:
            raise ValueError(f"its repeats written out are longer than {_LARGEST:,} characters")
        compiled = _compiled(tree)
        column, exact, swap = _column_forms(tree)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (regex.error, OverflowError) as error:
        raise ValueError(f"it cannot be translated: {error}") from error
    known = column if exact or column else None
    return Pattern(text, compiled, known, exact, swap, tuple(tree.names.items()))


def _without_start(root: Node) -> Node:
    """Returns a pattern without what may be nothing at its start, and keeps nothing."""
    match root:
        case Row((Repeat(Chars(), 0, None, "" | "?"), *rest)) if rest:
            return _without_start(Row(tuple(rest)))
    return root


def _compiled(tree: PatternTree) -> "regex.Pattern[str]":
    nodes = nodes_of(tree.root)
    # The edges of words and graphemes are those of all scripts; the flag i is for ASCII alone.
    all_scripts = any(Mark(kind) in nodes for kind in ("edge", "no_edge", "grapheme"))
    any_case = not all_scripts and all(
        in_any_case(node) == node if isinstance(node, Chars) else node.any_case
        for node in nodes
        if isinstance(node, Chars | Back)
    )
    flags = regex.VERSION1 | (0 if all_scripts else regex.ASCII)
    flags |= regex.IGNORECASE if any_case else 0
    return regex.compile(_Writer(tree, any_case).written(tree.root), flags)


class _Writer:
    """Writes trees as patterns of the ``regex`` package."""

    def __init__(self, tree: PatternTree, any_case: bool = False) -> None:
        self._groups = tree.groups
        self._any_case = any_case

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
        match node:
            case Chars():
                # Letters are faster to compile, and to find, than sets.
                return (self._any_case and node.letter) or node.pattern
            case Mark(kind):
                return _PYTHON_MARKS[kind]
            case Atomic(part):
                return f"(?>{self.written(part)})"
            case Look(part, behind, negative):
                return f"(?{'<' * behind}{'!' if negative else '='}{self.written(part)})"
            case Back(number, any_case):
                if number > self._groups:
                    return NONE.pattern
                return f"(?i-f:\\g<{number}>)" if any_case else f"\\g<{number}>"
        raise AssertionError(node)


class _Column(_Writer):
    """Writes them for polars: what that engine does not have becomes what hits more.

    Attributes:
        exact: Whether there was nothing of the kind.
    """

    def __init__(self, tree: PatternTree) -> None:
        super().__init__(tree)
        self._kept = {n.number: n.part for n in nodes_of(tree.root) if isinstance(n, Group)}
        self.exact = True

    def _times(self, least: int, most: int | None, how: str) -> str:
        self.exact &= how != "+"
        return super()._times(least, most, how.replace("+", ""))

    def _special(self, node: Node) -> str:
        match node:
            case Chars():
                return node.pattern
            case Mark(kind) if kind in _COLUMN_MARKS:
                return _COLUMN_MARKS[kind]
            case Back(number) if number not in self._kept:
                return NONE.pattern
        self.exact = False
        match node:
            case Atomic(part):
                return f"(?:{self.written(part)})"
            case Mark("grapheme" | "newline"):
                return r"[\s\S]+"
            case Back(number, any_case):
                # The group's own pattern takes all that it may have kept.
                part = self._kept[number]
                free = not any(isinstance(inner, Mark | Back | Look) for inner in nodes_of(part))
                return f"(?:{self.written(part)})" if free and not any_case else r"[\s\S]*"
        return ""


def _column_forms(tree: PatternTree) -> tuple[str, bool, tuple[str, str] | None]:
    """Returns a pattern's ``column``, ``exact`` and ``swap``."""
    root, before = tree.root, ""
    match root:
        case Row((Look(Chars() as chars, True, True), *rest)):
            root, before = Row(tuple(rest)), f"^|{(~chars).pattern}"
    writer = _Column(tree)
    text = writer.written(root)
    if before and writer.exact:
        # What stands before is then part of the match, so another may not follow at once.
        single = isinstance(root, Row) and root.parts[-1:] == (Mark("end"),) and _least_width(root)
        swap = (f"({before})(?:{text})", "${1}") if single else None
        return f"(?:{before})(?:{text})", True, swap
    # Engines differ in where nothing is found.
    return text, writer.exact, (text, "") if writer.exact and _least_width(root) else None


def _least_width(node: Node) -> int:
    """Returns how many characters a match has at least."""
    match node:
        case Chars() | Mark("newline" | "grapheme"):
            return 1
        case Either(parts):
            return min(map(_least_width, parts))
        case Repeat(part, least):
            return least * _least_width(part)
        case Look():
            return 0
    return sum(map(_least_width, children(node)))


def _size(node: Node) -> int:
    """Returns how long a pattern is with all its repeats written out."""
    size = sum(map(_size, children(node))) or 1
    return max(node.least, node.most or 1) * size if isinstance(node, Repeat) else size
