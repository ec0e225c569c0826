"""Finds the rule of a robots.txt that decides about a path, in a bounded number of steps.

An index finds the rules that may match, quickly even among very many. They are compared with the path,
the longest rule first, because the longest match decides (RFC 9309 2.2.2). The limit is a number of
steps, not a time, so the result is the same on each machine.

Wildcards divide a rule into pieces. The index lists a rule under the hash of its rarest piece: the
piece that the fewest other rules have. All pieces that a path begins with, ends with, or contains are
looked up at once. An index needs little more memory than the patterns themselves.

Paths and patterns are compared in a form of ASCII (RFC 9309 2.2.2): characters that a URL may contain
are not escaped; all others are escapes in upper case. Escapes of "/", "%", "*" and "$" stay, because
these four characters have a special meaning. Many patterns are converted together, in a few passes.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from .rules import RobotsRule

_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~="
_KEPT = _PLAIN + "/%"
# Of patterns; "\n" ends one.
_KEPT_IN_PATTERNS = f"{_KEPT}*$\n"
_ESCAPES = {chr(octet): f"%{octet:02X}" for octet in range(256)}
_IN_PATH = {ord(char): escape for char, escape in _ESCAPES.items() if char not in _KEPT}
_IN_PATTERNS = {
    code: _ESCAPES[chr(code)] for code in _IN_PATH if chr(code) not in _KEPT_IN_PATTERNS
}
_UNKEPT = re.compile(rf"[^{re.escape(_KEPT)}]")
_UNKEPT_IN_PATTERNS = re.compile(rf"[^{re.escape(_KEPT_IN_PATTERNS)}]")
_DIGITS = "0123456789abcdefABCDEF"
# The meaning of two digits after a "%"; octets that are not ASCII are decoded together later.
_OCTETS = {
    digits.encode(): bytes([octet]) if octet > 127 or chr(octet) in _PLAIN else b"%%%02X" % octet
    for digits in (high + low for high in _DIGITS for low in _DIGITS)
    for octet in [int(digits, 16)]
}
_END_MARK = "\0"
_ABSOLUTE = ("http://", "https://")


def comparable_path(url: str) -> str:
    """Returns path and query of a URL in the form for comparison with patterns.

    Raises:
        ValueError: The URL has no valid host.

    >>> comparable_path("http://a/%7ea/ä?b=%2f#c")
    '/~a/%C3%A4%3Fb=%2F'
    """
    url = url.partition("#")[0]
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}" if "?" in url else parts.path
    path = _decode_escapes(path)
    if _UNKEPT.search(path):
        path = path.translate(_IN_PATH)
    return path if path.startswith("/") else f"/{path}"


def comparable_patterns(patterns: Sequence[str]) -> list[str]:
    """Returns patterns in the form for comparison with paths.

    "*" means any text, and "$" at the end means the end. If a pattern is a whole URL by mistake, it
    is interpreted as a path that contains this URL.

    >>> comparable_patterns(["/%7ea*?b", "/a$b$", "/%2a%24"])
    ['/~a*%3Fb', '/a%24b$', '/%2A%24']
    """
    lines = [f"/{line}" if line.startswith(_ABSOLUTE) else line for line in patterns]
    text = _decode_escapes("\n".join([*lines, ""]))
    if _UNKEPT_IN_PATTERNS.search(text):
        text = text.translate(_IN_PATTERNS)
    if "$" in text:
        text = text.replace("$\n", f"{_END_MARK}\n").replace("$", "%24").replace(_END_MARK, "$")
    return text.split("\n")[:-1]


def _decode_escapes(text: str) -> str:
    """Returns text, one character per octet, in which unneeded escapes are decoded.

    All octets that are not UTF-8 are equal, as in the text of robots.txt.
    """
    if text.isascii() and "%" not in text:
        return text
    first, *rest = text.encode("utf-8", "replace").split(b"%")
    octets = [_OCTETS.get(part[:2], b"%" + part[:2]) + part[2:] for part in rest]
    whole = b"".join([first, *octets])
    return whole.decode("utf-8", "replace").encode().decode("latin-1")


# Limit of steps per URL; they take a millisecond or two. See ``_Subject``.
MAX_STEPS = 1_000_000
_STEPS_OF_A_PIECE = 300
# Fewer rules are not worth an index.
_FEW = 32
_PAGE = "index.html"
# Pieces in the middle are listed by their last characters, as many as the greatest of these
# numbers that fits.
_LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32])
_NEWLINE, _STAR, _DOLLAR = b"\n*$"
_MULTIPLIER, _MIXER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_INVERSE = np.uint64(pow(int(_MULTIPLIER), -1, 1 << 64))
_BEGINNING, _END, _WHOLE, _WITHIN = np.array([1, 2, 3, 4], np.uint64) << np.uint64(60)
_ANYWHERE = np.uint32(0)  # hash for rules without pieces
_HIGH = np.uint64(32)

_Hashes = NDArray[np.uint32]
_Numbers = NDArray[np.int64]


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
        patterns, self._allow, self._origins = _order_rules(rules)
        self._text = _drop_idle_wildcards("\n".join([*patterns, ""]))
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
                return Decision(allow, int(self._origins[rule]), most - subject.steps_left)
        return Decision(True, None, most - subject.steps_left)


class _Subject:
    """A path that is compared with patterns, and the number of steps that are left for it.

    The search for a piece costs 300 steps, plus one step for each possible comparison of
    characters: the length of the piece times the number of positions.
    """

    def __init__(self, path: str, steps_left: int) -> None:
        self._path, self.steps_left = path, steps_left
        self._last: dict[str, int] = {}

    def take(self, number: int) -> None:
        """Counts steps.

        Raises:
            TooCostly: Fewer steps are left.
        """
        self.steps_left -= number
        if self.steps_left < 0:
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


def _order_rules(
    rules: Sequence[RobotsRule],
) -> tuple[list[str], NDArray[np.bool_], NDArray[np.int32]]:
    """Returns (patterns, longest first; whether each allows; the index of its rule)."""
    denied: dict[str, int] = {}
    allowed: dict[str, int] = {}
    patterns = comparable_patterns([rule.pattern for rule in rules])
    for number, (rule, pattern) in enumerate(zip(rules, patterns, strict=True)):
        numbers = allowed if rule.allow else denied
        numbers.setdefault(pattern, number)
        if pattern.endswith("$"):  # a final "$" may also mean the character
            numbers.setdefault(f"{pattern[:-1]}%24", number)
        elif rule.allow and pattern.endswith(f"/{_PAGE}"):  # it is the page of the folder
            numbers.setdefault(f"{pattern.removesuffix(_PAGE)}$", number)
    every = [*allowed, *denied]
    order = np.argsort(-np.fromiter(map(len, every), np.int32, len(every)), kind="stable")
    origins = np.array([*allowed.values(), *denied.values()], np.int32)[order]
    return [every[number] for number in order], order < len(allowed), origins


def _drop_idle_wildcards(text: str) -> str:
    """Returns patterns, each with its "\\n", without wildcards that have no effect."""
    if "*" not in text:
        return text
    text = re.sub(r"\*{2,}", "*", text)
    return text.replace("*$\n", "\n").replace("*\n", "\n")


class Index:
    """An index of rules by their pieces.

    Args:
        octets: Patterns, each with a newline.
        ends: Positions of the newlines.

    Attributes:
        size: Its memory in bytes.
    """

    __slots__ = ("_hashes", "_least", "_lengths", "_rules", "size")

    def __init__(self, octets: NDArray[np.uint8], ends: NDArray[np.int32]) -> None:
        pieces = _split_pieces(octets, ends)
        rare = _rarest_pieces(pieces)
        hashes = np.full(len(ends), _ANYWHERE)
        hashes[pieces.rules[rare]] = pieces.hashes[rare]
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._rules = hashes[order], order.astype(np.int32)
        lengths = (pieces.ends - pieces.starts)[rare]
        within = pieces.within[rare]
        self._lengths = tuple(np.unique(_listed_lengths(lengths[within])).tolist())
        literal = np.bincount(pieces.rules, pieces.ends - pieces.starts, len(ends))
        self._least = np.minimum(literal, 0xFFFF).astype(np.uint16)
        arrays = (self._hashes, self._rules, self._least)
        self.size = sum(array.nbytes for array in arrays) + 600

    def candidates(self, path: str) -> list[int]:
        """Returns the rules that may match, in the order of their priority."""
        hashes = self._hashes_of(path)
        first = np.searchsorted(self._hashes, hashes)
        first = np.unique(first[self._hashes[np.minimum(first, len(self._hashes) - 1)] == hashes])
        last = np.searchsorted(self._hashes, self._hashes[first], "right")
        ranges = [self._rules[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        rules = np.concatenate(ranges) if ranges else self._rules[:0]
        fitting = rules[self._least[rules] <= len(path)]
        fitting.sort()
        return fitting.tolist()

    def _hashes_of(self, path: str) -> _Hashes:
        """Returns the hashes of all pieces of a path under which a rule may be listed."""
        sums = _Sums(np.frombuffer(path.encode(), np.uint8))
        places = np.arange(len(path) + 1)
        zeros = np.zeros_like(places)
        hashes = [
            np.array([_ANYWHERE]),
            sums.hashes(zeros, places, _BEGINNING),
            sums.hashes(places, zeros + len(path), _END),
            sums.hashes(places[:1], places[-1:], _WHOLE),
        ]
        for length in self._lengths:
            starts = places[: max(0, len(path) - length + 1)]
            hashes.append(sums.hashes(starts, starts + length, _WITHIN))
        return np.concatenate(hashes)


class _Pieces(NamedTuple):
    """The pieces between the wildcards of all rules.

    Attributes:
        rules: Numbers of their rules, ascending.
        starts: Positions of their starts.
        ends: Positions of their ends.
        within: Whether they may be anywhere in a path, not only at its beginning or end.
        hashes: Hashes under which they are listed.
    """

    rules: _Numbers
    starts: _Numbers
    ends: _Numbers
    within: NDArray[np.bool_]
    hashes: _Hashes


def _split_pieces(octets: NDArray[np.uint8], rule_ends: NDArray[np.int32]) -> _Pieces:
    ends = np.flatnonzero((octets == _NEWLINE) | (octets == _STAR) | (octets == _DOLLAR))
    starts = np.concatenate(([0], ends[:-1] + 1))
    starts, ends = starts[starts < ends], ends[starts < ends]
    rules = np.searchsorted(rule_ends, ends)
    first = np.concatenate(([0], rule_ends[:-1] + 1))[rules] == starts
    last = octets[ends] == _DOLLAR
    within = ~first & ~last
    of_first = np.where(last, _WHOLE, _BEGINNING)
    kinds = np.where(first, of_first, np.where(last, _END, _WITHIN))
    listed = np.where(within, ends - _listed_lengths(ends - starts), starts)
    return _Pieces(rules, starts, ends, within, _Sums(octets).hashes(listed, ends, kinds))


def _rarest_pieces(pieces: _Pieces) -> _Numbers:
    """Returns the rarest piece of each rule with pieces; the longest one if several are as rare."""
    buckets = (pieces.hashes & np.uint32(0x3FFFF)).astype(np.int64)
    most = np.bincount(buckets)[buckets]
    lengths = np.minimum(pieces.ends - pieces.starts, 0xFFF)
    # Of a piece 24 bits are its number: a robots.txt of 500 KiB has less than a million.
    costs = (most << 36 | (0xFFF - lengths) << 24) | np.arange(len(most))
    first = np.flatnonzero(np.diff(pieces.rules, prepend=-1))
    if not len(first):
        return first
    return np.minimum.reduceat(costs, first) & 0xFFFFFF


def _listed_lengths(lengths: _Numbers) -> _Numbers:
    """Returns, for each length, the greatest of ``_LENGTHS`` that is not longer."""
    return _LENGTHS[np.searchsorted(_LENGTHS, lengths, "right") - 1]


class _Sums:
    """Hashes of any parts of a text, each in a few steps: differences of sums of a polynomial."""

    def __init__(self, octets: NDArray[np.uint8]) -> None:
        powers, self._inverses = _powers(len(octets) + 1)
        self._sums = np.zeros(len(octets) + 1, np.uint64)
        np.cumsum(octets * powers[:-1], out=self._sums[1:])

    def hashes(self, starts: _Numbers, ends: _Numbers, kinds: np.uint64 | NDArray) -> _Hashes:
        """Returns the hashes of some parts, each of a kind."""
        parts = (self._sums[ends] - self._sums[starts]) * self._inverses[starts]
        return ((parts ^ kinds) * _MIXER >> _HIGH).astype(np.uint32)


def _powers(number: int) -> NDArray[np.uint64]:
    """Returns the first powers of the multiplier, and of its inverse, in two rows."""
    return _POWERS[:, :number] if number <= _POWERS.shape[1] else _new_powers(number)


def _new_powers(number: int) -> NDArray[np.uint64]:
    powers = np.repeat(np.array([[_MULTIPLIER], [_INVERSE]]), number, axis=1)
    powers[:, 0] = 1
    return np.cumprod(powers, axis=1)


_POWERS = _new_powers(8192)
