"""Finds the rule of a robots.txt that decides about a path, in a bounded number of steps.

A path is compared with those rules alone that it can meet. A rule is listed under the hash of one
of its pieces, which are what stands between its wildcards: of the piece that the fewest other rules
have. All pieces that a path begins with, ends with, or has somewhere are looked up at once. What is
found so is compared with the path, the rule that would decide first (RFC 9309 2.2.2).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .robots_paths import comparable_patterns
from .robots_rules import Rule

# For a URL; they take a millisecond or two. See ``_Steps``.
MAX_STEPS = 1_000_000
_STEPS_OF_A_PIECE = 300
# Fewer rules are not worth an index.
_FEW = 32
# Pieces in the middle are listed by their ends, of the greatest of these lengths.
_LENGTHS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32])
_NEWLINE, _STAR, _DOLLAR = b"\n*$"
_MULTIPLIER, _MIXER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_INVERSE = np.uint64(pow(int(_MULTIPLIER), -1, 1 << 64))
_BEGINNING, _END, _WHOLE, _WITHIN = np.array([1, 2, 3, 4], np.uint64) << np.uint64(60)
_ANYWHERE = np.uint32(0)  # of rules that have no piece
_HIGH = np.uint64(32)
_INDEX = "index.html"

Hashes = NDArray[np.uint32]
Numbers = NDArray[np.int64]


class TooCostly(Exception):
    """Comparing a path with all rules that it can meet takes too many steps."""


class Decision(NamedTuple):
    """What decides about a path.

    Attributes:
        allow: Whether it is allowed.
        rule: Number of the rule, among those given; None where none matches.
        steps: What finding it took.
    """

    allow: bool
    rule: int | None
    steps: int


class Matcher:
    """Rules of a robots.txt, ready to be compared with paths.

    Args:
        rules: Those of one agent.

    >>> matcher = Matcher([Rule(False, "/a", 0), Rule(True, "/a*.gif$", 9)])
    >>> matcher.decide("/a/b.gif").allow, matcher.decide("/a/b.png").allow
    (True, False)
    """

    __slots__ = ("_allow", "_ends", "_index", "_origins", "_text")

    def __init__(self, rules: Sequence[Rule]) -> None:
        patterns, self._allow, self._origins = _in_order(rules)
        self._text = _simplified("\n".join([*patterns, ""]))
        octets = np.frombuffer(self._text.encode(), np.uint8)
        self._ends = np.flatnonzero(octets == _NEWLINE).astype(np.int32)
        self._index = _Index(octets, self._ends) if len(patterns) > _FEW else None

    @property
    def size(self) -> int:
        """Memory that it takes, in bytes."""
        arrays = (self._allow, self._ends, self._origins)
        index = self._index.size if self._index is not None else 0
        return len(self._text) + sum(array.nbytes for array in arrays) + index + 800

    def decide(self, path: str, most: int = MAX_STEPS) -> Decision:
        """Returns what decides about a path; the longest rule, of equally long ones one that allows.

        Args:
            path: As ``comparable_path`` returns it.
            most: How many steps it may take.

        Raises:
            TooCostly: It would take more.
        """
        steps = _Steps(most)
        every = range(len(self._ends))
        subject = _Subject(path, steps)
        for rule in every if self._index is None else self._index.candidates(path, steps):
            start = self._ends[rule - 1] + 1 if rule else 0
            if subject.matches(self._text[start : self._ends[rule]]):
                allow = bool(self._allow[rule])
                return Decision(allow, int(self._origins[rule]), most - steps.left)
        return Decision(True, None, most - steps.left)


class _Steps:
    """What may still be done for a path.

    A piece that is looked for takes three hundred steps, and as many as characters may have to be
    compared for it: those of the piece, times the places that are tried.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, number: int) -> None:
        self.left -= number
        if self.left < 0:
            raise TooCostly


class _Subject:
    """A path that is compared with patterns."""

    def __init__(self, path: str, steps: _Steps) -> None:
        self._path, self._steps = path, steps
        self._last: dict[str, int] = {}

    def matches(self, pattern: str) -> bool:
        """Returns whether a pattern matches.

        Taking the first place for each piece is exact: it leaves most to the following ones.
        """
        path = self._path
        head, *pieces = pattern.split("*") if len(pattern) <= 2 * len(path) + 2 else ("\n",)
        self._steps.take(_STEPS_OF_A_PIECE + len(head))
        if not pieces and head.endswith("$"):
            return path == head[:-1]
        if not path.startswith(head):
            return False
        at, end = len(head), len(path)
        if pieces and pieces[-1].endswith("$"):
            tail = pieces.pop()[:-1]
            self._steps.take(_STEPS_OF_A_PIECE + len(tail))
            end -= len(tail)
            if not path.endswith(tail):
                return False
        for piece in pieces:
            if self._last_place(piece) < at:
                return False
            place = path.find(piece, at)
            self._steps.take(_STEPS_OF_A_PIECE + (place - at + 1) * len(piece))
            at = place + len(piece)
        return at <= end

    def _last_place(self, piece: str) -> int:
        """Returns the last place of a piece in the path, or -1; each is looked for once."""
        place = self._last.get(piece)
        if place is None:
            place = self._last[piece] = self._path.rfind(piece)
            tried = len(self._path) - place if place >= 0 else len(self._path)
            self._steps.take(_STEPS_OF_A_PIECE + tried * len(piece))
        return place


def _in_order(rules: Sequence[Rule]) -> tuple[list[str], NDArray[np.bool_], NDArray[np.int32]]:
    """Returns patterns, the longest first, what each says, and the number of the rule it is from."""
    denied: dict[str, int] = {}
    allowed: dict[str, int] = {}
    patterns = comparable_patterns([rule.pattern for rule in rules])
    for number, (rule, pattern) in enumerate(zip(rules, patterns, strict=True)):
        found = allowed if rule.allow else denied
        found.setdefault(pattern, number)
        if pattern.endswith("$"):  # some mean the character
            found.setdefault(f"{pattern[:-1]}%24", number)
        elif rule.allow and pattern.endswith(f"/{_INDEX}"):  # that is what the folder shows
            found.setdefault(f"{pattern.removesuffix(_INDEX)}$", number)
    every = [*allowed, *denied]
    order = np.argsort(-np.fromiter(map(len, every), np.int32, len(every)), kind="stable")
    origins = np.array([*allowed.values(), *denied.values()], np.int32)[order]
    return [every[number] for number in order], order < len(allowed), origins


def _simplified(text: str) -> str:
    """Returns patterns, each with its "\\n", without wildcards that mean nothing."""
    if "*" not in text:
        return text
    text = re.sub(r"\*{2,}", "*", text)
    return text.replace("*$\n", "\n").replace("*\n", "\n")


class _Index:
    """Which rules have which piece.

    Attributes:
        size: Memory that it takes, in bytes.
    """

    __slots__ = ("_hashes", "_least", "_lengths", "_rules", "size")

    def __init__(self, octets: NDArray[np.uint8], ends: NDArray[np.int32]) -> None:
        pieces = _pieces(octets, ends)
        rare = _rarest(pieces)
        hashes = np.full(len(ends), _ANYWHERE)
        hashes[pieces.rules[rare]] = pieces.hashes[rare]
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._rules = hashes[order], order.astype(np.int32)
        lengths = (pieces.ends - pieces.starts)[rare]
        within = pieces.within[rare]
        self._lengths = tuple(np.unique(_cut(lengths[within])).tolist())
        literal = np.bincount(pieces.rules, pieces.ends - pieces.starts, len(ends))
        self._least = np.minimum(literal, 0xFFFF).astype(np.uint16)
        arrays = (self._hashes, self._rules, self._least)
        self.size = sum(array.nbytes for array in arrays) + 600

    def candidates(self, path: str, steps: _Steps) -> list[int]:
        """Returns the rules that may match, in the order in which they decide."""
        hashes = self._hashes_of(path)
        first = np.searchsorted(self._hashes, hashes)
        first = np.unique(first[self._hashes[np.minimum(first, len(self._hashes) - 1)] == hashes])
        last = np.searchsorted(self._hashes, self._hashes[first], "right")
        ranges = [self._rules[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        rules = np.concatenate(ranges) if ranges else self._rules[:0]
        steps.take(len(rules))
        fitting = rules[self._least[rules] <= len(path)]
        fitting.sort()
        return fitting.tolist()

    def _hashes_of(self, path: str) -> Hashes:
        """Returns the hashes of all pieces that a path has, as far as some rule is listed so."""
        sums = _Sums(np.frombuffer(path.encode(), np.uint8))
        places = np.arange(len(path) + 1)
        zeros = np.zeros_like(places)
        found = [
            np.array([_ANYWHERE]),
            sums.hashes(zeros, places, _BEGINNING),
            sums.hashes(places, zeros + len(path), _END),
            sums.hashes(places[:1], places[-1:], _WHOLE),
        ]
        for length in self._lengths:
            starts = places[: max(0, len(path) - length + 1)]
            found.append(sums.hashes(starts, starts + length, _WITHIN))
        return np.concatenate(found)


class _Pieces(NamedTuple):
    """What stands between the wildcards of all rules.

    Attributes:
        rules: Numbers of their rules, ascending.
        starts: Where they begin.
        ends: Where they end.
        within: Whether they may stand anywhere, not at the beginning or the end alone.
        hashes: By which they are listed.
    """

    rules: Numbers
    starts: Numbers
    ends: Numbers
    within: NDArray[np.bool_]
    hashes: Hashes


def _pieces(octets: NDArray[np.uint8], rule_ends: NDArray[np.int32]) -> _Pieces:
    ends = np.flatnonzero((octets == _NEWLINE) | (octets == _STAR) | (octets == _DOLLAR))
    starts = np.concatenate(([0], ends[:-1] + 1))
    starts, ends = starts[starts < ends], ends[starts < ends]
    rules = np.searchsorted(rule_ends, ends)
    first = np.concatenate(([0], rule_ends[:-1] + 1))[rules] == starts
    last = octets[ends] == _DOLLAR
    within = ~first & ~last
    of_first = np.where(last, _WHOLE, _BEGINNING)
    kinds = np.where(first, of_first, np.where(last, _END, _WITHIN))
    listed = np.where(within, ends - _cut(ends - starts), starts)
    return _Pieces(rules, starts, ends, within, _Sums(octets).hashes(listed, ends, kinds))


def _rarest(pieces: _Pieces) -> Numbers:
    """Returns, for each rule that has a piece, which one the fewest rules have, of these the longest."""
    buckets = (pieces.hashes & np.uint32(0x3FFFF)).astype(np.int64)
    most = np.bincount(buckets)[buckets]
    lengths = np.minimum(pieces.ends - pieces.starts, 0xFFF)
    # Numbers of pieces are below a million: a robots.txt has 500 KiB, and an escape at most triples it.
    costs = (most << 32 | (0xFFF - lengths) << 20) | np.arange(len(most))
    first = np.flatnonzero(np.diff(pieces.rules, prepend=-1))
    if not len(first):
        return first
    return np.minimum.reduceat(costs, first) & 0xFFFFF


def _cut(lengths: Numbers) -> Numbers:
    """Returns the greatest of the lengths by which pieces are listed, that are no longer."""
    return _LENGTHS[np.searchsorted(_LENGTHS, lengths, "right") - 1]


class _Sums:
    """Hashes of all parts of a text, a few steps each: polynomials, by differences of their sums."""

    def __init__(self, octets: NDArray[np.uint8]) -> None:
        powers, self._inverses = _powers(len(octets) + 1)
        self._sums = np.zeros(len(octets) + 1, np.uint64)
        np.cumsum(octets * powers[:-1], out=self._sums[1:])

    def hashes(self, starts: Numbers, ends: Numbers, kinds: np.uint64 | NDArray) -> Hashes:
        """Returns the hashes of some parts, each of a kind."""
        parts = (self._sums[ends] - self._sums[starts]) * self._inverses[starts]
        return ((parts ^ kinds) * _MIXER >> _HIGH).astype(np.uint32)


def _powers(number: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns the first powers of the multiplier, and of its inverse."""
    if number <= len(_POWERS[0]):
        return _POWERS[0][:number], _POWERS[1][:number]
    return _new_powers(number)


def _new_powers(number: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    found = []
    for base in (_MULTIPLIER, _INVERSE):
        powers = np.full(number, base)
        powers[0] = 1
        found.append(np.cumprod(powers))
    return found[0], found[1]


_POWERS = _new_powers(8192)
