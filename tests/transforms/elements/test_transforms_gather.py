"""GroupChunks: few large chunks go through a shuffle, with the rows of many small ones."""

from collections import Counter

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from running import run

from nutbeam.transforms.elements import chunk_flow as module
from nutbeam.transforms.elements.chunk_flow import GroupChunks
from nutbeam.transforms.elements.chunks import MAX_ROWS, Chunk


def grouped(pairs):
    """Returns (key, sizes of its chunks, its values) of each key."""

    def build(pipeline):
        given = pipeline | beam.Create([pairs]) | beam.FlatMap(iter)
        given.element_type = beam.typehints.Tuple[int, Chunk]
        return given | GroupChunks() | beam.Map(_shown)

    return sorted(run(build))


def _shown(pair):
    chunks = list(pair[1])
    return pair[0], [len(c) for c in chunks], sorted(v for c in chunks for v in c["v"].to_pylist())


def small_chunks(number):
    rng = np.random.default_rng(number)
    keys = rng.integers(0, 7, number).tolist()
    return [(key, pa.table({"v": rng.integers(0, 99, 5)})) for key in keys]


@pytest.mark.parametrize(("most", "chunks"), [(64 << 20, 1), (2_000, 9)])
def test_small_chunks_of_a_key_are_joined_and_no_row_is_lost(monkeypatch, most, chunks):
    monkeypatch.setattr(module, "GATHERED_BYTES", most)
    pairs = small_chunks(400)
    found = grouped(pairs)
    right = {
        key: sorted(v for k, chunk in pairs if k == key for v in chunk["v"].to_pylist())
        for key in range(7)
    }
    assert {key: values for key, _, values in found} == right
    assert max(len(sizes) for _, sizes, _ in found) <= chunks < Counter(k for k, _ in pairs)[0]


def test_large_chunks_are_not_joined_and_none_is_too_large():
    large = pa.table({"v": np.arange(131_072)})
    half = large.slice(0, 100_000)
    found = grouped([(1, large), (1, half), (1, half), (1, half)])
    assert max(found[0][1]) <= MAX_ROWS
    assert sum(found[0][1]) == 431_072
