"""Sketches: percentiles within 5 %, numbers of domains exact while small; adding has no order."""

import random

import numpy as np
import polars as pl
import pytest

from nutbeam.policy.hosting.sketches import (
    KEPT_HASHES,
    add_sketches,
    number_of_domains,
    number_of_times,
    percentile,
    sketch_domains,
    sketch_hosts,
    unite_sketches,
)


def sketch_times(times):
    """The sketch of a host with these times, ms."""
    rows = pl.DataFrame({"key": "com.a:http/", "response_ms": times})
    return sketch_hosts(rows).get_column("response_times").item()


@pytest.mark.parametrize("seed", range(5))
def test_percentiles_of_added_sketches_are_near_the_true_ones(seed):
    numbers = random.Random(seed)
    times = [round(numbers.lognormvariate(5, 1.5)) + 20 for _ in range(1000)]
    parts = [sketch_times(times[at::7]) for at in range(7)]
    numbers.shuffle(parts)
    sketch = add_sketches([add_sketches(parts[:3]), *parts[3:]])
    assert number_of_times(sketch) == 1000
    for percent in (50, 75, 95, 99):
        right = float(np.percentile(times, percent, method="inverted_cdf"))
        assert percentile(sketch, percent) == pytest.approx(right, rel=0.06), percent


def test_percentiles_differ_and_few_times_are_enough():
    # In Nutch each percentile is the median.
    sketch = sketch_times([10, 10, 10, 1000])
    assert [percentile(sketch, p) for p in (0, 50, 100)] == [10, 10, pytest.approx(1000, rel=0.05)]
    assert percentile(None, 50) is None
    assert percentile(sketch_times([0]), 50) == 1
    assert percentile(sketch_times([2**31 - 1]), 50) > 1e9


def test_domains_count_once():
    names = [f"d{n}.com" for n in range(100)]
    sketch = unite_sketches([sketch_domains(names[:70]), sketch_domains(names[30:])])
    assert number_of_domains(sketch) == 100
    assert sketch == sketch_domains(reversed(names))
    assert number_of_domains(None) == 0


def test_many_domains_are_estimated_in_little_space():
    sketch = unite_sketches(sketch_domains([f"d{n}.com"]) for n in range(20_000))
    assert len(sketch) == 8 * KEPT_HASHES
    assert number_of_domains(sketch) == pytest.approx(20_000, rel=0.2)
