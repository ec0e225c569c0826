"""Near pairs by bands against all pairs, and leaders against a loop."""

import numpy as np
import pytest

from nutbeam.policy.dedup import near_pairs as module
from nutbeam.policy.dedup.near_pairs import bands, leaders, near_any, near_hashes


def cloud(random, count, flips, most):
    """Distinct hashes around few centres; ``flips`` bits of the lowest ``most`` are changed."""
    hashes = random.integers(0, 2**64, 4, dtype=np.uint64)[random.integers(0, 4, count)]
    for _ in range(flips):
        hashes = hashes ^ (np.uint64(1) << random.integers(0, most, count, dtype=np.uint64))
    return np.unique(hashes)


def all_pairs(hashes, distance):
    numbers = [int(value) for value in hashes]
    return {
        (i, j)
        for j in range(len(numbers))
        for i in range(j)
        if (numbers[i] ^ numbers[j]).bit_count() <= distance
    }


def found_pairs(hashes, distance):
    found = [
        (min(i, j), max(i, j))
        for first, second in near_hashes(hashes, distance)
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.few(2)
@pytest.mark.parametrize("crowd", [512, 3])
@pytest.mark.parametrize("distance", [0, 1, 3, 7, pytest.param(20, marks=pytest.mark.long)])
def test_bands_find_all_pairs_once(monkeypatch, crowd, distance):
    monkeypatch.setattr(module, "CROWD", crowd)
    monkeypatch.setattr(module, "BLOCK", 40)
    random = np.random.default_rng(distance)
    for count, flips, most in ((0, 1, 64), (1, 1, 64), (120, 4, 64), (120, 6, 12), (90, 2, 5)):
        hashes = cloud(random, count, flips, most)
        assert found_pairs(hashes, distance) == all_pairs(hashes, distance)


def test_equal_hashes_are_near():
    assert found_pairs(np.zeros(3, dtype=np.uint64), 0) == {(0, 1), (0, 2), (1, 2)}


def test_every_bit_is_in_one_band():
    for distance in range(64):
        masks = bands(distance)
        assert len(masks) == distance + 1
        assert sum(masks) == 2**64 - 1


def test_near_any_agrees_with_all_pairs(monkeypatch):
    monkeypatch.setattr(module, "MOST_PAIRS", 16)
    random = np.random.default_rng(5)
    for most in (64, 10):
        hashes = cloud(random, 150, 3, most)
        others = cloud(random, 40, 3, most) if most == 64 else hashes[::7] ^ np.uint64(11)
        expected = [any(int(a ^ b).bit_count() <= 2 for b in others) for a in hashes]
        assert near_any(hashes, others, 2).tolist() == expected
    assert not near_any(hashes, others[:0], 2).any()


def test_a_band_with_very_many_equal_values():
    # All hashes have one equal band of two.
    random = np.random.default_rng(6)
    hashes = random.integers(0, 2**32, 100_000)
    hashes = np.unique(hashes.astype(np.uint64))
    near = hashes[:2_000] ^ np.uint64(1 << 40)
    found = found_pairs(np.concatenate([hashes, near]), 1)
    assert {(at, len(hashes) + at) for at in range(2_000)} <= found


def plain_leaders(nodes, pairs):
    winner = [-1] * nodes
    for node in range(nodes):
        near = sorted(b for b, w in pairs if w == node and winner[b] < 0)
        winner[node] = near[0] if near else -1
    return winner


def test_leaders_agree_with_a_loop():
    random = np.random.default_rng(3)
    for nodes in (1, 2, 10, 40):
        for _ in range(20):
            ends = random.integers(0, nodes, (2, nodes * 2))
            pairs = sorted({(min(p), max(p)) for p in ends.T.tolist() if p[0] != p[1]})
            better, worse = (np.array([p[i] for p in pairs], dtype=np.int64) for i in (0, 1))
            assert leaders(nodes, better, worse).tolist() == plain_leaders(nodes, pairs)
