"""Finds pairs of 64-bit hashes that differ in few bits, and which pages of such pairs stay.

Not all pairs are compared. The bits are divided into one band more than bits may differ. So two hashes that are near have
equal bits in at least one band (Manku, Jain, Das Sarma: Detecting near-duplicates for web
crawling, 2007). Only hashes with an equal band are compared. If too many hashes have an equal
band, the other bits are divided into bands again.

Pages are taken from the best to the worst. A page that is near a page that stays is a duplicate
of the best such page, else it stays. So no two pages that stay are near each other, and each
duplicate is near the page that stays instead of it: chains do not grow.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...web.base.columns import limited_ranges

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]
Pairs = tuple[Places, Places]
# Scopes, and the hashes in them.
Scoped = tuple[Hashes, Hashes]

BITS = 64
ALL_BITS = 2**BITS - 1
# Hashes with an equal band are compared one by one up to this number.
CROWD = 512
# How often the bits are divided into bands, at most. Without a limit, hashes that are all near each
# other would be divided again and again, by (distance + 1) bands each time.
LEVELS = 3
# Hashes that are compared at once: they and the results fit into a core's cache.
BLOCK = 16_384
# Pairs that are gathered before they are yielded.
MOST_PAIRS = 1 << 18


class DifferingBits(NamedTuple):
    """In which bits hashes may differ, and in how many of them.

    Attributes:
        distance: In how many bits a pair may differ.
        bits: Mask of the bits in which hashes may differ.
        level: How often the bits were divided into bands.
    """

    distance: int
    bits: int = ALL_BITS
    level: int = 0


class Runs(NamedTuple):
    """Hashes with an equal band, one after another.

    Attributes:
        order: Positions of hashes, run by run.
        ends: End of each run in ``order``.
        sizes: Length of each run.
    """

    order: Places
    ends: Places
    sizes: Places


def bands(distance: int, bits: int = ALL_BITS) -> list[int]:
    """Divides bits into ``distance + 1`` masks of nearly equal size.

    Args:
        distance: In how many bits hashes may differ.
        bits: Mask of the bits to divide.

    >>> [hex(mask) for mask in bands(3, 0xFFFF)]
    ['0xf', '0xf0', '0xf00', '0xf000']
    """
    places = [place for place in range(BITS) if bits >> place & 1]
    count = distance + 1
    edges = [len(places) * at // count for at in range(count + 1)]
    parts = (places[start:end] for start, end in itertools.pairwise(edges))
    return [sum(1 << place for place in part) for part in parts]


def band_values(hashes: Hashes, mask: int) -> Hashes:
    """Returns the bits of a band, shifted to the right end."""
    low = (mask & -mask).bit_length() - 1
    return (hashes & np.uint64(mask)) >> np.uint64(max(low, 0))


def near_hashes(hashes: Hashes, distance: int) -> Iterator[Pairs]:
    """Yields all pairs of hashes that differ in at most ``distance`` bits, each pair once.

    Args:
        hashes: The hashes; equal ones are near each other, too.
        distance: Number of bits, from 0 to 63.

    Yields:
        Positions in ``hashes``: those of the first of each pair, and of the second.

    >>> found = near_hashes(np.array([0b1111, 0b0001, 0b0111], dtype=np.uint64), 2)
    >>> [(i, j) for first, second in found for i, j in zip(first, second)] # doctest: +SKIP
    [(0, 2), (1, 2)]
    """
    for number in range(distance + 1):
        yield from pairs_of_band(hashes, number, DifferingBits(distance))


def pairs_of_band(hashes: Hashes, number: int, differing_bits: DifferingBits) -> Iterator[Pairs]:
    """Yields the near pairs whose first equal band is the band with this number.

    Memory: a few times that of ``hashes``, and ``MOST_PAIRS``.

    Args:
        hashes: The hashes.
        number: Number of the band.
        differing_bits: In which bits the hashes may differ.
    """
    distance, bits, level = differing_bits
    masks = bands(distance, bits)
    values = band_values(hashes, masks[number])
    if not int(values.max(initial=0)) >> 16:
        values = values.astype(np.uint16)  # numpy sorts these in linear time
    order = np.argsort(values, kind="stable")
    ends = np.flatnonzero(np.diff(values[order], append=values[order[-1:]] + 1)) + 1
    runs = Runs(order, ends, np.diff(ends, prepend=0))
    rest = DifferingBits(distance, bits & ~masks[number], level + 1)
    for first, second in _pairs_of_runs(hashes, runs, rest):
        differing = hashes[first] ^ hashes[second]
        new = np.ones(len(first), dtype=bool)
        for mask in masks[:number]:
            new &= (differing & np.uint64(mask)) != 0
        if new.any():
            yield first[new], second[new]


def _pairs_of_runs(hashes: Hashes, runs: Runs, differing_bits: DifferingBits) -> Iterator[Pairs]:
    """Yields the near pairs within runs; hashes of one run differ only in these bits."""
    order, ends, sizes = runs
    distance, bits, level = differing_bits
    divisible = level < LEVELS and bits.bit_count() > distance
    crowds = np.flatnonzero(sizes > CROWD) if divisible else ()
    for crowd in crowds:
        run = order[ends[crowd] - sizes[crowd] : ends[crowd]]
        for number in range(distance + 1):
            for first, second in pairs_of_band(hashes[run], number, differing_bits):
                yield run[first], run[second]
    small = np.flatnonzero((sizes > 1) & ((sizes <= CROWD) | (not divisible)))
    # Runs of similar length are compared together.
    small = small[np.argsort(sizes[small], kind="stable")]
    for start, end in limited_ranges(sizes[small], BLOCK):
        chosen = small[start:end]
        yield from _compare_runs(hashes, Runs(order, ends[chosen], sizes[chosen]), distance)


def _compare_runs(hashes: Hashes, runs: Runs, distance: int) -> Iterator[Pairs]:
    """Yields the near pairs within runs, after comparing all pairs of each run."""
    order, ends, sizes = runs
    run = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(run)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = order[np.repeat(ends - sizes, sizes) + within]
    values = hashes[places]
    pairs: list[Pairs] = []
    for step in range(1, int(sizes.max())):
        near = np.flatnonzero(np.bitwise_count(values[step:] ^ values[:-step]) <= distance)
        near = near[run[near] == run[near + step]]
        if len(near):
            pairs.append((places[near], places[near + step]))
        if sum(len(first) for first, _ in pairs) > MOST_PAIRS:
            yield _join_pairs(pairs)
            pairs = []
    if pairs:
        yield _join_pairs(pairs)


def _join_pairs(pairs: list[Pairs]) -> Pairs:
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)


def near_any(hashes: Hashes, others: Hashes, distance: int) -> NDArray[np.bool_]:
    """Returns for each hash whether one of the others differs in at most ``distance`` bits.

    >>> near_any(np.array([7, 64], dtype=np.uint64), np.array([1], dtype=np.uint64), 1).tolist()
    [False, False]
    >>> near_any(np.array([7, 64], dtype=np.uint64), np.array([1], dtype=np.uint64), 2).tolist()
    [True, True]
    """
    near = np.zeros(len(hashes), dtype=bool)
    for mask in bands(distance):
        open_ = np.flatnonzero(~near)
        for position, _ in _near_in_band(hashes[open_], others, mask, distance):
            near[open_[position]] = True
    return near


def first_near(hashes: Scoped, others: Scoped, distance: int) -> Places:
    """Returns for each hash the position of the first of the others that is near it, or -1.

    Args:
        hashes: Scopes and hashes; only those of one scope can be near each other.
        others: The same.
        distance: In how many bits near hashes may differ.

    >>> scopes, hashes = np.array([0, 0, 1]), np.array([7, 64, 1], dtype=np.uint64)
    >>> others = np.array([0, 0]), np.array([3, 1], dtype=np.uint64)
    >>> first_near((scopes, hashes), others, 1).tolist()
    [0, -1, -1]
    """
    none = len(others[1])
    first = np.full(len(hashes[1]), none, dtype=np.int64)
    for mask in bands(distance):
        for position, other in _near_in_band(hashes[1], others[1], mask, distance):
            same = hashes[0][position] == others[0][other]
            np.minimum.at(first, position[same], other[same])
    return np.where(first < none, first, -1)


def _near_in_band(hashes: Hashes, others: Hashes, mask: int, distance: int) -> Iterator[Pairs]:
    """Yields the positions of hashes, and of others that are near them and equal in a band."""
    values = band_values(others, mask)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    wanted = band_values(hashes, mask)
    low = np.searchsorted(ordered, wanted, side="left")
    counts = np.searchsorted(ordered, wanted, side="right") - low
    for start, end in limited_ranges(counts, MOST_PAIRS):
        part = slice(start, end)
        position = np.repeat(np.arange(start, end), counts[part])
        starts = np.repeat(low[part] - np.cumsum(counts[part]) + counts[part], counts[part])
        other = order[starts + np.arange(len(position))]
        hits = np.bitwise_count(hashes[position] ^ others[other]) <= distance
        yield position[hits], other[hits]


# Pairs of near hashes that are in memory at a time: 16 MB. With more, dense hashes take longer.
LED_PAIRS = 1 << 20


def leaders(nodes: int, better: Places, worse: Places) -> Places:
    """Returns for each node the best leader near it, or -1 for a leader.

    Args:
        nodes: Number of nodes, which are numbered from the best (0) to the worst.
        better: The better node of each near pair.
        worse: The other node of each near pair.

    >>> leaders(4, np.array([0, 1, 2]), np.array([1, 2, 3])).tolist()
    [-1, 0, -1, 2]
    """
    winner = np.full(nodes, -1, dtype=np.int64)
    order = np.argsort(better, kind="stable")
    heads, starts = np.unique(better[order], return_index=True)
    edges = [*starts.tolist(), len(order)]
    ordered = worse[order]
    for head, (start, end) in zip(heads.tolist(), itertools.pairwise(edges), strict=True):
        if winner[head] < 0:
            near = ordered[start:end]
            winner[near[winner[near] < 0]] = head
    return winner


def near_leaders(scopes: Hashes, hashes: Hashes, distance: int) -> Places:
    """Returns for each hash the best leader near it, or -1 for a leader.

    Memory: ``LED_PAIRS`` pairs, however many there are. If there are more, the better half is led
    first; its leaders take most of the others.

    Args:
        scopes: Scope of each hash; only hashes of one scope can be near each other.
        hashes: The hashes, from the best to the worst.
        distance: In how many bits near hashes may differ.

    >>> near_leaders(np.zeros(4, np.uint64), np.array([0, 1, 3, 7], np.uint64), 1).tolist()
    [-1, 0, -1, 2]
    """
    winner = np.full(len(hashes), -1, dtype=np.int64)
    leading = np.empty(0, dtype=np.int64)  # leaders among the better hashes
    waiting = [np.arange(len(hashes))]
    while waiting:
        nodes = waiting.pop()
        if len(leading):
            at_leader = first_near(
                (scopes[nodes], hashes[nodes]), (scopes[leading], hashes[leading]), distance
            )
            winner[nodes[at_leader >= 0]] = leading[at_leader[at_leader >= 0]]
            nodes = nodes[at_leader < 0]
        pairs = _few_pairs(scopes[nodes], hashes[nodes], distance)
        if pairs is None:
            waiting += [nodes[len(nodes) // 2 :], nodes[: len(nodes) // 2]]
            continue
        led = leaders(len(nodes), pairs.min(axis=0), pairs.max(axis=0))
        winner[nodes[led >= 0]] = nodes[led[led >= 0]]
        leading = np.concatenate([leading, nodes[led < 0]])
    return winner


def _few_pairs(scopes: Hashes, hashes: Hashes, distance: int) -> Places | None:
    """Returns the near pairs, in two rows; None for many pairs of more than two hashes."""
    near_pairs, number = [np.empty((2, 0), dtype=np.int64)], 0
    for pair in near_hashes(scopes ^ hashes, distance):
        pair_rows = np.stack(pair)
        pair_rows = pair_rows[:, scopes[pair_rows[0]] == scopes[pair_rows[1]]]
        near_pairs.append(pair_rows)
        number += pair_rows.shape[1]
        if number > LED_PAIRS and len(hashes) > 2:
            return None
    return np.concatenate(near_pairs, axis=1)
