"""NearPairs over chunks, with values of a band that are too frequent for one key."""

import numpy as np
import polars as pl
import pytest
from running import apply

from nutbeam.transforms import near_pairs as module
from nutbeam.transforms.lead_near_pages import LeadNearPages, lead_near_pages
from nutbeam.transforms.near_pairs import NearPairs, make_layout, near_pairs


def hashes_of(count, scopes=1):
    """Distinct hashes, most with equal upper bits, so that three bands have one value."""
    random = np.random.default_rng(count)
    low = random.integers(0, 2**14, count).astype(np.uint64)
    high = (random.random(count) < 0.1) * random.integers(0, 2**63, count).astype(np.uint64)
    scope = random.integers(0, scopes, count).astype(np.uint64) * np.uint64(2**60 + 7)
    return pl.DataFrame({"scope": scope, "hash": low ^ high.astype(np.uint64)}).unique(
        maintain_order=True
    )


def plain(frame, distance):
    rows = frame.rows()
    return {
        (a[0], *sorted((a[1], b[1])))
        for at, a in enumerate(rows)
        for b in rows[:at]
        if a[0] == b[0] and (a[1] ^ b[1]).bit_count() <= distance
    }


def as_set(frames):
    rows = [(scope, *sorted(pair)) for frame in frames for scope, *pair in frame.rows()]
    assert len(rows) == len(set(rows))
    return set(rows)


@pytest.mark.parametrize(("scopes", "distance"), [(1, 1), (1, 3), (5, 3)])
def test_slices_of_a_band_value_find_each_pair_once(monkeypatch, scopes, distance):
    monkeypatch.setattr(module, "MOST_ROWS", 60)  # so the frequent values have several slices
    frame = hashes_of(300, scopes)
    chunks = [part.to_arrow() for part in frame.iter_slices(70)]
    found = apply(chunks, NearPairs(distance))
    expected = plain(frame, distance)
    assert expected
    assert as_set([pl.from_arrow(chunk) for chunk in found]) == expected
    assert as_set([near_pairs(frame, distance)]) == expected


def test_a_key_has_two_slices_at_most():
    counts = np.zeros((1, 4_096), np.int64)
    counts[0, 7], counts[0, 8] = 5_000_000, 3
    layout = make_layout(counts, module.MOST_ROWS)
    assert layout.slices[0, 7] == 5
    assert layout.slices[0, 8] == 1
    assert layout.partitions[0, 7] != layout.partitions[0, 8]


def test_no_hashes():
    assert apply([], NearPairs(3)) == []


def test_a_distance_that_is_none():
    with pytest.raises(ValueError, match="distance must be from 0 to 63, got 64"):
        NearPairs(64)


def test_leaders_over_partitions_are_those_of_the_whole_frame():
    frame = hashes_of(400, 3)
    rows = frame.with_columns(
        key=pl.int_range(len(frame)).cast(pl.String), status=pl.lit(2, pl.UInt8), group=pl.lit("")
    )
    lone = pl.DataFrame({"key": ["lone"], "status": [7], "group": ["x"]})
    chunks = [
        part.to_arrow() for part in pl.concat([rows, lone], how="diagonal_relaxed").iter_slices(90)
    ]
    found = apply(chunks, LeadNearPages(2, ("key",), (False,), 4))
    led = {k: w for chunk in found for k, w in pl.from_arrow(chunk).select("key", "winner").rows()}
    twin = lead_near_pages(rows, near_pairs(frame, 2), ("key",), (False,))
    assert led == {**dict(twin.select("key", "winner").rows()), "lone": "lone"}
    assert 0 < twin["leads"].sum() < len(twin)
