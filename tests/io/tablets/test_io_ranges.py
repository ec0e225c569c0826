import itertools

import pytest
from frames import table_of
from hypothesis import example, given
from hypothesis import strategies as st
from tablet_files import KEYS, SORTED_KEYS, tablets_of

from nutbeam.io.storage.table_sizes import TableSizes
from nutbeam.io.tablets import ranges as module
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.io.tablets.ranges import Range, Sample, plan_ranges, sample_keys, split_by_range
from nutbeam.io.tablets.tablets import Tablet, host_start
from nutbeam.policy.components.schema import CHANGES
from nutbeam.web.urls.row_keys import host_key_of

MOST_RUNS = TableSizes().most_runs


def test_samples_stand_for_all_bytes():
    chunk = table_of(CHANGES, *({"key": f"k{n:05d}"} for n in reversed(range(10_000))))
    sample = sample_keys(chunk)
    assert len(sample.keys) in range(module.SAMPLES_PER_CHUNK, 2 * module.SAMPLES_PER_CHUNK)
    assert list(sample.keys) == sorted(sample.keys)
    assert sample.bytes_per_key * len(sample.keys) == pytest.approx(chunk.nbytes)
    assert sample.rows_per_key * len(sample.keys) == pytest.approx(10_000)
    assert sample_keys(CHANGES.empty_table()).keys == ()


# --- plan_ranges


@given(
    SORTED_KEYS,
    st.sets(st.integers(1, 40)),
    st.lists(st.tuples(st.lists(KEYS, max_size=10), st.floats(0.1, 5)), max_size=5),
    st.floats(0.5, 20),
)
def test_ranges_cover_all_keys_in_order(keys, cuts, samples, limit):
    tablets = tablets_of(keys, cuts)
    ranges = plan_ranges(tablets, [Sample(tuple(k), weight) for k, weight in samples], limit)
    assert ranges[0].low is None
    assert ranges[-1].high is None
    for before, after in itertools.pairwise(ranges):
        assert before.high == after.low
        assert before.low is None or before.low < before.high
    # A tablet answers for all keys that it holds, in one range or several.
    for tablet in tablets:
        parts = [part for part in ranges if part.base == tablet]
        assert all(part.whole == (len(parts) == 1) for part in parts)
        assert parts[0].low is None or parts[0].low <= tablet.first
        assert parts[-1].high is None or parts[-1].high > tablet.last
    assert [part.base for part in ranges if part.base] == [
        part.base for part in ranges
    ] or not tablets


@given(
    SORTED_KEYS,
    st.sets(st.integers(1, 40)),
    st.lists(st.lists(KEYS, max_size=30), max_size=5),
    st.integers(1, 20),
)
@example([], set(), [[f"com.a:http/{n}" for n in range(9)]], 3)
def test_only_big_hosts_are_cut(keys, cuts, samples, limit):
    tablets = tablets_of(keys, cuts)
    ranges = plan_ranges(tablets, [Sample(tuple(some), 1.0) for some in samples], limit)
    sampled = list(itertools.chain(*samples))
    held = {part.base.first for part in ranges if part.base}
    for low in (part.low for part in ranges[1:]):
        if low == host_start(low):
            continue
        # Cut through a host: it fills a range, or two tablets hold it already.
        weight = sum(host_key_of(key) == host_key_of(low) for key in sampled)
        assert weight > limit or low in held


@given(st.lists(KEYS, max_size=200), st.integers(2, 30))
def test_ranges_get_no_more_than_they_should(keys, limit):
    ranges = plan_ranges([], [Sample((key,), 1.0) for key in keys], limit)
    for part in ranges:
        inside = [
            key
            for key in keys
            if (part.low is None or key >= part.low) and (part.high is None or key < part.high)
        ]
        # One key cannot be cut.
        assert len(inside) <= limit + max((inside.count(key) for key in inside), default=0)


def test_ranges_begin_at_the_first_key_of_a_host():
    # A key before the first of the second tablet, of its host, belongs there too.
    tablets = [Tablet(DataFile("t0", 1, 1, "com.a:http/", "com.a:http/z")),
               Tablet(DataFile("t1", 1, 1, "com.c:http/m", "com.c:http/n"))]  # fmt: skip
    assert [part.low for part in plan_ranges(tablets, [])] == [None, "com.c:"]


def test_the_host_table_can_be_cut():
    keys = ["[::1]", "com.a", "com.b", "org.c"]
    tablets = [Tablet(DataFile(key, 1, 1, key, key)) for key in keys]
    ranges = plan_ranges(tablets, [Sample(tuple(keys), 1.0)], 10)
    assert [part.low for part in ranges] == [None, "com.a", "com.b", "org.c"]
    assert len(plan_ranges([], [Sample(tuple(keys), 1.0)], 1)) == 4


def test_no_tablets_and_no_changes():
    assert plan_ranges([], []) == [Range(None, None, None)]


# --- split_by_range


@given(SORTED_KEYS, st.sets(st.integers(1, 40)), st.lists(KEYS, max_size=30), st.floats(0.5, 20))
def test_splitting_is_looking_for_each_keys_range(keys, cuts, changed, limit):
    ranges = plan_ranges(tablets_of(keys, cuts), [Sample(tuple(changed), 1.0)], limit)
    chunk = table_of(CHANGES, *({"key": key, "order": at} for at, key in enumerate(changed)))
    found = dict(split_by_range(chunk, ranges))
    expected = {}
    for at, key in enumerate(changed):
        (number,) = [
            number
            for number, part in enumerate(ranges)
            if (part.low is None or part.low <= key) and (part.high is None or key < part.high)
        ]
        expected.setdefault(number, []).append((key, at))
    assert {
        number: list(zip(part["key"].to_pylist(), part["order"].to_pylist(), strict=True))
        for number, part in found.items()
        if len(part)
    } == expected
    assert all(part.schema == CHANGES for part in found.values())


# --- which tablets may be folded


def tablet(name, rows, runs, size=100, key="com.a:http/"):
    """A tablet; ``runs`` has the number of rows of each run."""
    base = DataFile(name, rows, size * rows, f"{name}:http/", f"{name}:http/z")
    files = [
        DataFile(f"{name}{n}", number, size * number, base=name, order=n, fresh=0)
        for n, number in enumerate(runs)
    ]
    return Tablet(base, tuple(files))


def chosen(known, rows=1.0):
    """Which may be folded if this many rows come to each."""
    samples = [Sample((str(one.first),), 1.0, rows) for one in known]
    return [part.base.base.path for part in plan_ranges(known, samples) if part.fold]


def test_tablets_are_folded_past_the_limits_only():
    known = [tablet("a", 1000, [10] * MOST_RUNS), tablet("b", 1000, [10] * (MOST_RUNS - 1)),
             tablet("c", 1000, [100, 100]), tablet("d", 1000, [100, 99]), tablet("e", 1, [])]  # fmt: skip
    assert chosen(known) == ["a", "c"]
    assert chosen(known, 0.0) == []  # nothing comes: nobody looks at them


def test_folding_is_bounded_and_takes_the_heaviest_tablets_first(resize_tables):
    resize_tables(fold_bytes=250_000)
    names = "abcdef"
    known = [tablet(name, 1000, [200 + at]) for at, name in enumerate(names)]
    assert chosen(known) == ["e", "f"]
    assert chosen(known, 0.0) == []


def test_overdue_tablets_are_folded_at_any_cost(resize_tables):
    resize_tables(fold_bytes=0, fold_share=0)
    known = [tablet("a", 1000, [201]), tablet("b", 1000, [401]),
             tablet("c", 10_000, [1] * 2 * MOST_RUNS)]  # fmt: skip
    assert chosen(known) == ["b", "c"]
