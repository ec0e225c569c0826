import json

import numpy as np
import polars as pl
import pytest
from frames import frame_of
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.policy.components.schema import STATE
from nutbeam.policy.figures import (
    COMPRESSION,
    QUANTILES,
    Statistics,
    digest_of,
    from_json,
    merge,
    merge_digests,
    quantiles,
    quantiles_of,
    statistics_of,
    summary,
    to_json,
)


def row(status=1, retries=0, fetch_interval=10, fetch_time=1000, score=1.0):
    return {"key": "k", "status": status, "retries": retries, "fetch_interval": fetch_interval,
            "fetch_time": fetch_time, "score": score}  # fmt: skip


ROWS = st.lists(
    st.builds(
        row,
        st.integers(1, 9),
        st.integers(0, 4),
        st.integers(0, 10**6),
        st.integers(0, 2**42),
        st.one_of(st.none(), st.just(float("nan")), st.integers(-1000, 1000).map(float)),
    ),
    max_size=30,
)


@pytest.mark.long
@given(ROWS, st.integers(0, 30))
def test_the_sum_of_parts_is_the_whole(rows, cut):
    parts = [statistics_of(frame_of(STATE, *some)) for some in (rows[:cut], rows[cut:])]
    assert merge(parts) == statistics_of(frame_of(STATE, *rows))


@given(ROWS)
def test_figures_survive_as_text(rows):
    statistics = statistics_of(frame_of(STATE, *rows))
    assert from_json(to_json(statistics)) == statistics


def test_nothing_added_up_is_nothing():
    assert merge([]) == merge([Statistics()]) == statistics_of(frame_of(STATE)) == Statistics()
    assert summary(Statistics()) == {"total_urls": 0, "status": {}, "retries": {}}


@pytest.mark.parametrize(
    "scores",
    [
        np.random.default_rng(1).lognormal(0, 3, 20_000),
        np.random.default_rng(2).normal(0, 1, 20_001),
        np.arange(1.0, 1001.0),
        [7.0],
        [0.0, 0.0, 5.0],
    ],
    ids=["lognormal", "normal", "ramp", "one", "zeros"],
)
def test_quantiles_are_exact_or_off_by_few_ranks(scores):
    frame = pl.DataFrame({"score": pl.Series(scores, dtype=pl.Float32)}).with_columns(
        status=pl.lit(1), retries=pl.lit(0), fetch_interval=pl.lit(1), fetch_time=pl.lit(1)
    )
    parts = [statistics_of(part) for part in frame.iter_slices(777)]
    found = quantiles(merge(parts))
    ranked = np.sort(frame["score"].to_numpy())
    for q in QUANTILES:
        rank = int(np.ceil(q * len(ranked) - 1e-6))
        if len(ranked) < 2_000:
            assert found[q] == ranked[rank - 1]
        below, upto = np.searchsorted(ranked, found[q]), np.searchsorted(ranked, found[q], "right")
        assert below - 0.001 * len(ranked) <= rank <= upto + 0.001 * len(ranked)


def test_the_summary_is_named_for_people():
    rows = [
        row(1, 0, 10, 1000, -1.0),
        row(2, 3, 30, 3000, -3.0),
        row(2, 0, 20, 2000, float("nan")),
        row(42, 0, 20, 2000, None),
    ]
    record = summary(statistics_of(frame_of(STATE, *rows)))
    json.dumps(record)
    assert record["total_urls"] == 4
    assert record["status"] == {"db_unfetched": 1, "db_fetched": 2, "unknown_42": 1}
    assert record["retries"] == {"0": 3, "3": 1}
    assert record["fetch_interval"] == {"min": 10, "avg": 20, "max": 30}
    assert record["fetch_time"] == {
        "min": "1970-01-01T00:00:01.000Z",
        "avg": "1970-01-01T00:00:02.000Z",
        "max": "1970-01-01T00:00:03.000Z",
    }
    # All scores are negative: Nutch's largest is then wrong (its defect 57).
    assert {name: record["score"][name] for name in ("min", "avg", "max")} == {
        "min": -3.0, "avg": -2.0, "max": -1.0
    }  # fmt: skip
    assert record["score_nan"] == 1


# Digests: exact for few distinct numbers, off by few ranks for many.
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
