"""Finds the rule of a robots.txt that decides about a path, in a bounded number of steps.

An index finds the rules that may match. They are compared with the path, the longest rule first,
because the longest match decides (RFC 9309 2.2.2). The limit is a number of steps, not a time, so
the result is the same on each machine.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .index import Index
from .paths import comparable_patterns
from .rules import RobotsRule

# Limit of steps per URL; they take a millisecond or two. See ``_Subject``.
MAX_STEPS = 1_000_000
_STEPS_OF_A_PIECE = 300
# Fewer rules are not worth an index.
_FEW = 32
_NEWLINE = 10
_PAGE = "index.html"


class TooCostly(Exception):
    """The comparison of a path with the rules takes too many steps."""


class Decision(NamedTuple):
    """The decision about a path.

    Attributes:
        allow: Whether it is allowed.
        rule: Index of the deciding rule; None if no rule matches.
        steps: Number of steps of the comparison.
    """

    allow: bool
    rule: int | None
    steps: int


class Matcher:
    """Rules of a robots.txt, ready to be compared with paths.

    Args:
        rules: The rules for one agent.

    >>> matcher = Matcher([RobotsRule(False, "/a", 0), RobotsRule(True, "/a*.gif$", 9)])
    >>> matcher.decide("/a/b.gif").allow, matcher.decide("/a/b.png").allow
    (True, False)
    """

    __slots__ = ("_allow", "_ends", "_index", "_origins", "_text")

    def __init__(self, rules: Sequence[RobotsRule]) -> None:
        patterns, self._allow, self._origins = _in_order(rules)
        self._text = _simplified("\n".join([*patterns, ""]))
        octets = np.frombuffer(self._text.encode(), np.uint8)
        self._ends = np.flatnonzero(octets == _NEWLINE).astype(np.int32)
        self._index = Index(octets, self._ends) if len(patterns) > _FEW else None

    @property
    def size(self) -> int:
        """Its memory in bytes."""
        arrays = (self._allow, self._ends, self._origins)
        index = self._index.size if self._index is not None else 0
        return len(self._text) + sum(array.nbytes for array in arrays) + index + 800

    def decide(self, path: str, most: int = MAX_STEPS) -> Decision:
        """Returns the decision about a path: the longest rule counts; if equal, one that allows.

        Args:
            path: Result of ``comparable_path``.
            most: Limit of steps.

        Raises:
            TooCostly: The decision would need more steps.
        """
        every = range(len(self._ends))
        subject = _Subject(path, most)
        rules = every if self._index is None else self._index.candidates(path)
        subject.take(len(rules))
        for rule in rules:
            start = self._ends[rule - 1] + 1 if rule else 0
            if subject.matches(self._text[start : self._ends[rule]]):
                allow = bool(self._allow[rule])
                return Decision(allow, int(self._origins[rule]), most - subject.left)
        return Decision(True, None, most - subject.left)


class _Subject:
    """A path that is compared with patterns, and the number of steps that are left for it.

    The search for a piece costs 300 steps, plus one step for each possible comparison of
    characters: the length of the piece times the number of positions.
    """

    def __init__(self, path: str, left: int) -> None:
        self._path, self.left = path, left
        self._last: dict[str, int] = {}

    def take(self, number: int) -> None:
        """Counts steps.

        Raises:
            TooCostly: Fewer steps are left.
        """
        self.left -= number
        if self.left < 0:
            raise TooCostly

    def matches(self, pattern: str) -> bool:
        """Returns whether a pattern matches.

        Taking the first position of each piece is exact: it leaves the longest rest for the others.
        """
        path = self._path
        head, *pieces = pattern.split("*") if len(pattern) <= 2 * len(path) + 2 else ("\n",)
        self.take(_STEPS_OF_A_PIECE + len(head))
        if not pieces and head.endswith("$"):
            return path == head[:-1]
        if not path.startswith(head):
            return False
        at, end = len(head), len(path)
        if pieces and pieces[-1].endswith("$"):
            tail = pieces.pop()[:-1]
            self.take(_STEPS_OF_A_PIECE + len(tail))
            end -= len(tail)
            if not path.endswith(tail):
                return False
        for piece in pieces:
            if self._last_place(piece) < at:
                return False
            place = path.find(piece, at)
            self.take(_STEPS_OF_A_PIECE + (place - at + 1) * len(piece))
            at = place + len(piece)
        return at <= end

    def _last_place(self, piece: str) -> int:
        """Returns the last position of a piece in the path, or -1; caches the result."""
        place = self._last.get(piece)
        if place is None:
            place = self._last[piece] = self._path.rfind(piece)
            tried = len(self._path) - place if place >= 0 else len(self._path)
            self.take(_STEPS_OF_A_PIECE + tried * len(piece))
        return place


def _in_order(
    rules: Sequence[RobotsRule],
) -> tuple[list[str], NDArray[np.bool_], NDArray[np.int32]]:
    """Returns (patterns, longest first; whether each allows; the index of its rule)."""
    denied: dict[str, int] = {}
    allowed: dict[str, int] = {}
    patterns = comparable_patterns([rule.pattern for rule in rules])
    for number, (rule, pattern) in enumerate(zip(rules, patterns, strict=True)):
        found = allowed if rule.allow else denied
        found.setdefault(pattern, number)
        if pattern.endswith("$"):  # a final "$" may also mean the character
            found.setdefault(f"{pattern[:-1]}%24", number)
        elif rule.allow and pattern.endswith(f"/{_PAGE}"):  # it is the page of the folder
            found.setdefault(f"{pattern.removesuffix(_PAGE)}$", number)
    every = [*allowed, *denied]
    order = np.argsort(-np.fromiter(map(len, every), np.int32, len(every)), kind="stable")
    origins = np.array([*allowed.values(), *denied.values()], np.int32)[order]
    return [every[number] for number in order], order < len(allowed), origins


def _simplified(text: str) -> str:
    """Returns patterns, each with its "\\n", without wildcards that have no effect."""
    if "*" not in text:
        return text
    text = re.sub(r"\*{2,}", "*", text)
    return text.replace("*$\n", "\n").replace("*\n", "\n")
