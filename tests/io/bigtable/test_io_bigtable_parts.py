"""What the back end in Bigtable decides without Bigtable: limits, ranges, pace."""

import itertools

import pyarrow as pa
import pytest
from cell_kinds import STATE_CELL
from frames import table_of
from hypothesis import given
from hypothesis import strategies as st

from nutbeam.io.bigtable.cells import encode
from nutbeam.io.bigtable.channel import Pace, back_off
from nutbeam.io.bigtable.key_ranges import KeyRange, plan_key_ranges
from nutbeam.io.bigtable.request_parts import (
    MAX_CELL_BYTES,
    MAX_ROW_KEY_BYTES,
    check_limits,
    split_by_limits,
)
from nutbeam.io.tablets.tablets import host_start
from nutbeam.policy.components.declaration import Kind, RowKey, RowLayout
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import STATE, TEXT
from nutbeam.web.base.errors import UserError


def cells(*rows):
    keys, values = zip(*rows, strict=True)
    return pa.table({"key": pa.array(keys, pa.large_binary()),
                     "cell": pa.array(values, pa.large_binary())})  # fmt: skip


BEYOND = [
    ("key_empty", (b"", b"x")),
    ("key_too_long", (b"k" * (MAX_ROW_KEY_BYTES + 1), b"x")),
    ("cell_too_large", (b"k", bytes(MAX_CELL_BYTES + 1))),
    ("row_too_large", (b"k", bytes(52 << 20))),  # five versions are more than 256 MiB
]


@pytest.mark.parametrize(("reason", "row"), BEYOND)
def test_rows_beyond_the_limits_of_bigtable_are_named(reason, row):
    rows = cells((b"a", b"1"), row, (b"z", b""))
    with pytest.raises(UserError, match=rf"Bigtable does not take row b'.*' \({reason}\): its key"):
        check_limits(rows)


def test_rows_just_within_the_limits_are_accepted():
    check_limits(cells((b"k" * MAX_ROW_KEY_BYTES, b"x"), (b"k", bytes(51 << 20))))


def test_rows_whose_cells_exceed_the_limits_are_left_out_and_counted():
    rows = table_of(
        STATE, {"key": "a"}, {"key": "k" * (MAX_ROW_KEY_BYTES + 1)}, {"key": "b", "etag": "e" * (52 << 20)},
        {"key": ""}, {"key": ""}, {"key": "k" * MAX_ROW_KEY_BYTES},
    )  # fmt: skip
    kept, dropped = split_by_limits(rows, STATE_CELL)
    assert kept.column("key").to_pylist() == ["a", "k" * MAX_ROW_KEY_BYTES]
    assert dropped == {"key_too_long": 1, "row_too_large": 1, "key_empty": 2}
    assert split_by_limits(kept, STATE_CELL) == (kept, {})


KEYS_ONLY = pa.schema([("key", TEXT)])


def test_components_with_the_same_keys_share_the_limit_of_a_row(monkeypatch):
    rows = table_of(STATE, {"key": "a", "etag": "e" * (26 << 20)})
    for name, key, left in (("other", RowKey.HOST, 1), ("more", RowKey.URL, 0)):
        kind = Kind(name, KEYS_ONLY, key=key, layout=RowLayout.ROWS)
        monkeypatch.setitem(KINDS, name, kind)
        assert len(split_by_limits(rows, STATE_CELL)[0]) == left
    check_limits(encode(rows, STATE_CELL))  # a change that was committed before must be applied


KEYS = st.builds(
    lambda host, path: f"com.{host}:http/{path}".encode(),
    st.sampled_from("abcdef"), st.text("xyz", max_size=3),
)  # fmt: skip


@given(st.lists(KEYS, unique=True, max_size=30), st.integers(1, 8), st.data())
def test_ranges_cover_all_keys_once(keys, number, data):
    sizes = data.draw(st.lists(st.integers(0, 9), min_size=len(keys) + 1, max_size=len(keys) + 1))
    offsets = list(itertools.accumulate(sizes))
    samples = list(zip([*sorted(keys), b""], offsets, strict=True))
    ranges = plan_key_ranges(samples, number)
    assert 1 <= len(ranges) <= number
    assert ranges[0].low is None
    assert ranges[-1].high is None
    for one, following in itertools.pairwise(ranges):
        assert one.high == following.low
    cuts = [part.high for part in ranges[:-1]]
    assert cuts == sorted(set(cuts))
    # A cut goes through a host only where another cut is before it, within the host or at its start.
    for before, cut in itertools.pairwise(["", *cuts]):
        assert cut == host_start(cut) or before >= host_start(cut)


def test_ranges_are_of_about_as_many_bytes():
    samples = [(f"com.h{n:03d}:http/".encode(), 10 * (n + 1)) for n in range(100)] + [(b"", 1_010)]
    ranges = plan_key_ranges(samples, 4)
    assert ranges == [
        KeyRange(None, "com.h025:"), KeyRange("com.h025:", "com.h051:"),
        KeyRange("com.h051:", "com.h077:"), KeyRange("com.h077:", None),
    ]  # fmt: skip


def test_our_own_rows_are_no_place_to_cut():
    samples = [(b"\0manifest", 60), (b"\0snapshot/00000001", 80), (b"", 100)]
    assert plan_key_ranges(samples, 5) == [KeyRange(None, None)]
    assert plan_key_ranges([], 5) == [KeyRange(None, None)]


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_nothing_is_slowed_down_as_long_as_the_server_says_nothing():
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    for _ in range(1_000):
        pace.wait()
    pace.slow_down()
    pace.wait()
    assert clock.now == 0


def test_requests_are_spaced_at_the_rate_that_the_server_sets():
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.learn(0.7, 10)
    assert pace.rate == 7
    for _ in range(36):
        pace.wait()
    assert clock.now == pytest.approx(5)


def test_the_rate_changes_once_a_period_and_by_a_bounded_factor():
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.learn(0.0, 10)
    assert pace.rate == 7  # never by more than 30 %
    pace.learn(1.3, 10)
    assert pace.rate == 7  # not yet
    clock.now = 10
    pace.learn(9.0, 10)
    assert pace.rate == pytest.approx(9.1)
    clock.now = 20
    pace.slow_down()
    assert pace.rate == pytest.approx(6.37)


def test_the_rate_has_bounds():
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    for at in range(200):
        clock.now = at * 10.0
        pace.learn(0.1, 10)
    assert pace.rate == 0.1
    for at in range(200, 400):
        clock.now = at * 10.0
        pace.learn(2.0, 10)
    assert pace.rate == 100_000


def test_waits_grow_and_are_bounded():
    waits = []
    for failed in range(100):
        back_off(failed, waits.append)
    assert max(waits[:1]) <= 0.1
    assert max(waits) <= 6.4
