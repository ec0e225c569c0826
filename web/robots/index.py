"""Finds the rules of a robots.txt that may match a path, quickly even among very many.

Wildcards divide a rule into pieces. A rule is listed under the hash of its rarest piece: the piece
that the fewest other rules have. All pieces that a path begins with, ends with, or contains are
looked up at once. An index needs little more memory than the patterns themselves.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def _rarest(pieces: _Pieces) -> _Numbers:
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


def _cut(lengths: _Numbers) -> _Numbers:
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
