import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nutbeam.policy.generating import threshold as module
from nutbeam.policy.generating.threshold import (
    GRID,
    Leaders,
    positions,
    rank,
    score_of,
    summarize,
    threshold,
)


def ranks_of(values):
    return pl.Series("rank", values, dtype=pl.UInt64)


def choose(parts, n):
    """What generate does: (the chosen, how many met in one place)."""
    bar = threshold([summarize(ranks_of(part), n) for part in parts], n)
    everything = list(itertools.chain.from_iterable(parts))
    sure = [r for r in everything if bar.sure is not None and r >= bar.sure]
    zone = [r for r in everything if r >= bar.least and (bar.sure is None or r < bar.sure)]
    assert len(sure) <= n
    return sure + sorted(zone, reverse=True)[: n - len(sure)], len(zone)


PARTS = st.lists(
    st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=40), max_size=6
)


@given(PARTS, st.integers(1, 80), st.integers(1, 8))
@example([[3] * 10], 5, 8)  # all alike
@example([[3] * 6, [3] * 6], 6, 8)
@example([[5, 3, 3, 3]], 2, 8)
@example([[1], [1]], 1, 1)
def test_exactly_the_best_n_are_chosen(parts, n, grid):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GRID", grid)
        chosen, _ = choose(parts, n)
    assert sorted(chosen, reverse=True) == sorted(itertools.chain(*parts), reverse=True)[:n]


@given(PARTS, st.integers(1, 80))
def test_leaving_out_rows_below_the_leaders_does_not_change_the_choice(parts, n):
    leaders, left = Leaders(n), []
    for number, part in enumerate(parts):
        left.append([r for r in part if r >= leaders.least])
        leaders.add(f"part {number}", ranks_of(left[-1]))
        left[-1] = [r for r in left[-1] if r >= leaders.least]
    chosen, _ = choose(left, n)
    assert sorted(chosen, reverse=True) == sorted(itertools.chain(*parts), reverse=True)[:n]


def test_a_part_that_is_seen_again_counts_once():
    leaders = Leaders(4)
    for _ in range(3):
        leaders.add("one", ranks_of([7, 9]))
    assert leaders.least == 0
    leaders.add("two", ranks_of([5, 6, 8]))
    assert leaders.least == 6


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_rank_tells_its_score(score):
    ranked = rank(pl.Series([score], dtype=pl.Float32), pl.Series(["a"])).item()
    assert score_of(ranked) == score


@pytest.mark.parametrize("n", [1, 255, 256, 257, 8191, 20_000, 50_000])
@pytest.mark.parametrize("number", [3, 300])
def test_summaries_are_small_and_few_rows_meet(n, number):
    numbers = np.random.default_rng(1)
    rows = 60_000 // number
    parts = [numbers.integers(0, 2**64, rows, dtype=np.uint64).tolist() for _ in range(number)]
    for part in parts:
        assert len(summarize(ranks_of(part), n).ranks) <= 4_096 * 8
    chosen, met = choose(parts, n)
    assert len(chosen) == n
    assert met <= 2 * n / GRID + 2  # for any number of parts


def test_summaries_stay_small_for_large_batches():
    assert len(positions(100_000_000, GRID)) <= 4_096


def test_fewer_rows_than_wanted_are_all_sure():
    bar = threshold([summarize(ranks_of([5, 0]), 10), summarize(ranks_of([]), 10)], 10)
    assert (bar.sure, bar.least) == (0, 0)


def test_no_parts():
    assert threshold([], 10).sure == 0


@given(
    st.lists(
        st.one_of(st.floats(width=32), st.sampled_from([0.0, 1.0, -1.0])), min_size=2, max_size=20
    )
)
def test_ranks_are_in_the_order_of_scores(scores):
    series = pl.Series(scores, dtype=pl.Float32)
    ranks = rank(series, pl.Series(["same key"] * len(scores))).to_list()
    for (one, first), (other, second) in itertools.combinations(zip(scores, ranks, strict=True), 2):
        if one < other:
            # The largest number and infinity count as alike.
            assert first < second or np.isinf([one, other]).any()
            assert first <= second


@pytest.mark.parametrize("score", [float("nan"), None])
def test_scores_that_are_no_number_rank_last(score):
    scores = pl.Series([score, -3.0e38, 0.0], dtype=pl.Float32)
    ranks = rank(scores, pl.Series(["a", "b", "c"]))
    assert ranks.arg_min() == 0


def test_the_order_of_ties_is_fixed_and_independent_of_the_keys():
    keys = [f"com.example:http/{n}" for n in range(1000)]
    scores = pl.Series([1.0] * 1000, dtype=pl.Float32)
    ranks = rank(scores, pl.Series(keys))
    assert ranks.n_unique() == 1000
    best = ranks.arg_sort(descending=True)[:100].to_list()
    assert 300 < sum(best) / 100 < 700  # not the first ones by key
    assert rank(scores, pl.Series(keys)).equals(ranks)
