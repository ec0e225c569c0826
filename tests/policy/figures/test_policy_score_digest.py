"""Quantiles are exact for few distinct numbers, and off by few ranks for many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.policy.figures.score_digest import COMPRESSION, digest_of, merge_digests, quantiles_of
from nutbeam.policy.figures.statistics import QUANTILES

NUMBERS = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60)


@given(NUMBERS, st.integers(0, 60))
def test_few_numbers_have_exact_quantiles_in_any_division(numbers, cut):
    parts = [np.array(some, np.float32) for some in (numbers[:cut], numbers[cut:])]
    found = quantiles_of(merge_digests([digest_of(part) for part in parts]), QUANTILES)
    ranked = sorted(np.array(numbers, np.float32))
    for q, value in zip(QUANTILES, found, strict=True):
        assert value == next(v for n, v in enumerate(ranked, 1) if n >= q * len(ranked) - 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_many_numbers_are_off_by_few_ranks_and_the_digest_is_small(seed):
    dice = np.random.default_rng(seed)
    numbers = dice.lognormal(0, 3, 100_000).astype(np.float32) * dice.choice([-1, 1], 100_000)
    parts = np.split(numbers, np.sort(dice.integers(0, len(numbers), 20)))
    digest = digest_of(parts[0])
    for part in parts[1:]:  # merged one by one, the worst case
        digest = merge_digests([digest, digest_of(part)])
        assert len(digest.means) <= COMPRESSION
    assert sum(digest.counts) == len(numbers)
    ranked = np.sort(numbers)
    for q, value in zip(QUANTILES, quantiles_of(digest, QUANTILES), strict=True):
        assert abs(np.searchsorted(ranked, value) / len(ranked) - q) < 0.002
