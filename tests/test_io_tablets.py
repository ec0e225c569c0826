import itertools

import polars as pl
import pytest
from frames import frame_of, table_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nutbeam.io import files as files_module
from nutbeam.io import tablets as module
from nutbeam.io.files import collect, scan
from nutbeam.io.manifest import DataFile
from nutbeam.io.tablets import (
    Range,
    Resolved,
    Sample,
    TabletWriter,
    host_start,
    plan_ranges,
    resolve_range,
    sample_keys,
    split_by_range,
    within,
)
from nutbeam.policy.schema import CHANGES, HOSTS, OUTCOME, STATE
from nutbeam.web.urls import host_of

# Hosts that lie close to each other, in key order or not; "." < ":" < letters.
HOSTS_OF_KEYS = ["com.a", "com.a.b", "com.a-b", "com.a1", "com.b", "[::1]", "localhost"]
KEYS = st.builds(
    lambda host, path: f"{host}:http/{path}",
    st.sampled_from(HOSTS_OF_KEYS),
    st.sampled_from(["", *"abcdefgh", "a]b:c", "x:y"]),
)
SORTED_KEYS = st.lists(KEYS, unique=True, max_size=40).map(sorted)
FILES = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def tablets_of(keys, cuts):
    """Tablets that hold keys, cut anywhere."""
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(keys)}), len(keys)]
    return [
        DataFile(f"t{low}", high - low, 1, keys[low], keys[high - 1])
        for low, high in itertools.pairwise(edges)
        if high > low
    ]


@pytest.mark.parametrize(
    ("key", "start"),
    [("com.a:http/", "com.a:"), ("com.a:http:81/x]:y", "com.a:"), ("[::1]:http/", "[::1]:"),
     ("com.a", "com.a"), ("[::1]", "[::1]"), ("localhost:http/a:b", "localhost:")],
)  # fmt: skip
def test_host_start(key, start):
    assert host_start(key) == start


def test_samples_stand_for_all_bytes():
    chunk = table_of(CHANGES, *({"key": f"k{n:05d}"} for n in reversed(range(10_000))))
    sample = sample_keys(chunk)
    assert len(sample.keys) in range(module.SAMPLES_PER_CHUNK, 2 * module.SAMPLES_PER_CHUNK)
    assert list(sample.keys) == sorted(sample.keys)
    assert sample.bytes_per_key * len(sample.keys) == pytest.approx(chunk.nbytes)
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
        weight = sum(host_of(key) == host_of(low) for key in sampled)
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


def test_hosts_are_brought_together_where_only_the_tablets_part_them():
    # A key before the first of the second tablet, of its host, belongs there too.
    tablets = [DataFile("t0", 1, 1, "com.a:http/", "com.a:http/z"),
               DataFile("t1", 1, 1, "com.c:http/m", "com.c:http/n")]  # fmt: skip
    assert [part.low for part in plan_ranges(tablets, [])] == [None, "com.c:"]


def test_the_host_table_can_be_cut():
    keys = ["[::1]", "com.a", "com.b", "org.c"]
    tablets = [DataFile(key, 1, 1, key, key) for key in keys]
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


@given(SORTED_KEYS, st.one_of(st.none(), KEYS), st.one_of(st.none(), KEYS))
def test_within(keys, low, high):
    rows = pl.DataFrame({"key": keys}, schema={"key": pl.String})
    if low is not None and high is not None and low > high:
        low, high = high, low
    expected = [key for key in keys if (low is None or key >= low) and (high is None or key < high)]
    assert within(rows, low, high)["key"].to_list() == expected


# --- TabletWriter


def state(keys):
    return frame_of(
        STATE,
        *(
            {"key": key, "status": 1 + at % 3, "fetch_time": 100 + at, "score": at / 2}
            for at, key in enumerate(keys)
        ),
    )


def write(root, rows, sizes, tablet_rows):
    """Writes rows in parts of the given sizes; returns the keys of each file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TABLET_ROWS", tablet_rows)
        writer = TabletWriter(root, "state", "state")
        for size in sizes:
            writer.write(rows.head(size))
            rows = rows.slice(size)
        writer.write(rows)
        return writer.close()


def keys_of(root, files):
    return [collect(scan([root / file.path], STATE))["key"].to_list() for file in files]


@FILES
@given(SORTED_KEYS, st.lists(st.integers(0, 12), max_size=8), st.integers(1, 12))
@example([f"com.a:http/{n}" for n in range(9)], [4, 4], 3)
def test_tablets_are_cut_between_hosts(tmp_path, keys, sizes, most):
    files = write(tmp_path, state(keys), sizes, most)
    found = keys_of(tmp_path, files)
    assert list(itertools.chain(*found)) == keys
    for part in found:
        assert 0 < len(part) < 2 * most or most == 1
    size_of = {host: sum(host_of(key) == host for key in keys) for host in map(host_of, keys)}
    for before, after in itertools.pairwise(found):
        host = host_of(before[-1])
        assert host != host_of(after[0]) or size_of[host] > most


@pytest.mark.parametrize("sizes", [[], [10], [5, 5, 5, 5, 5, 5], [1] * 30, [29]])
def test_a_host_larger_than_a_tablet_takes_several(tmp_path, sizes):
    keys = [f"com.a:http/{n}" for n in range(3)]
    keys += [f"com.b:http/{n:02d}" for n in range(25)]
    keys += [f"com.c:http/{n}" for n in range(4)]
    found = keys_of(tmp_path, write(tmp_path, state(keys), sizes, 10))
    assert list(itertools.chain(*found)) == keys
    assert max(len(part) for part in found) <= 13
    assert len(found) <= 5
    # What follows a big host begins where it ends, or is in one file with its rest.
    assert keys[-4:] == found[-1][-4:]


def test_zone_maps(tmp_path):
    keys = [f"com.{host}:http/{n}" for host in "abc" for n in range(4)]
    files = write(tmp_path, state(keys), [3, 3], 4)
    for file, part in zip(files, keys_of(tmp_path, files), strict=True):
        rows = collect(scan([tmp_path / file.path], STATE))
        assert (file.first, file.last, file.rows) == (part[0], part[-1], len(part))
        assert (file.min_fetch_time, file.max_fetch_time) == (
            rows["fetch_time"].min(), rows["fetch_time"].max()
        )  # fmt: skip
        assert file.max_score == rows["score"].max()
        assert file.statuses == sum(1 << status for status in set(rows["status"]))
        assert file.bytes == (tmp_path / file.path).stat().st_size


def test_zone_maps_of_rows_that_have_no_times(tmp_path):
    writer = TabletWriter(tmp_path, "hosts", "hosts")
    writer.write(frame_of(HOSTS, {"key": "com.a"}, {"key": "com.b"}))
    (file,) = writer.close()
    assert (file.first, file.last, file.min_fetch_time, file.statuses) == (
        "com.a", "com.b", None, None
    )  # fmt: skip


def test_a_writer_without_rows_writes_nothing(tmp_path):
    writer = TabletWriter(tmp_path, "state", "state")
    writer.write(state([]))
    assert writer.close() == []
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_writer_leaves_nothing_behind(tmp_path):
    writer = TabletWriter(tmp_path, "state", "state")
    writer.write(state(["com.a:http/"]))
    writer.abandon()
    assert list((tmp_path / "state").iterdir()) == []


# --- resolve_range


def put(rows, changes):
    """A resolver: the last change of a key is its score; negative ones remove the row."""
    last = changes.sort("order").unique("key", keep="last").select("key", score="inlink_score")
    merged = rows.select("key", "score").update(last, on="key", how="full").sort("key")
    kept = merged.filter(pl.col("score") >= 0)
    outcome = frame_of(OUTCOME, *last.sort("key").to_dicts())
    rows = frame_of(STATE, *kept.to_dicts())
    return Resolved(rows, {"outcome": outcome}, {"seen": len(changes)})


@FILES
@given(
    st.dictionaries(KEYS, st.integers(0, 9), max_size=40),
    st.lists(st.tuples(KEYS, st.integers(-1, 9)), max_size=30),
    st.tuples(st.one_of(st.none(), KEYS), st.one_of(st.none(), KEYS)),
    st.booleans(),
    st.integers(1, 8),
)
def test_resolving_a_range_is_resolving_all_its_rows_at_once(
    tmp_path, old, changes, edges, has_base, group_rows
):
    low, high = edges
    if low is not None and high is not None and low >= high:
        low, high = (high, low) if high < low else (None, high)

    def inside(key):
        return (low is None or key >= low) and (high is None or key < high)

    changes = [(key, score) for key, score in changes if inside(key)]
    base = None
    if has_base and old:
        rows = frame_of(STATE, *({"key": key, "score": old[key]} for key in sorted(old)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files_module, "ROW_GROUP_ROWS", group_rows)
            patch.setattr(module, "ROW_GROUP_ROWS", group_rows)
            (base,) = write(tmp_path, rows, [], 1000)
    frame = frame_of(
        CHANGES,
        *({"key": k, "inlink_score": s, "order": at} for at, (k, s) in enumerate(changes)),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TABLET_ROWS", 7)
        written = list(
            resolve_range(
                tmp_path, "state", Range(low, high, base), frame, put, {"outcome": "o/ut"}
            )
        )
    expected = {key: score for key, score in old.items() if base and inside(key)}
    expected |= dict(changes)
    places = {place: (files, counts) for place, files, counts in written}
    assert len(places) == len(written)
    found = [
        row
        for file in places["state"][0]
        for row in collect(scan([tmp_path / file.path], STATE)).select("key", "score").rows()
    ]
    assert found == [(key, score) for key, score in sorted(expected.items()) if score >= 0]
    assert places["state"][1] == ({"seen": len(changes)} if changes else {})
    if changes:
        files, counts = places["o/ut"]
        outcome = [
            row
            for file in files
            for row in collect(scan([tmp_path / file.path], OUTCOME)).select("key", "score").rows()
        ]
        assert outcome == sorted(dict(changes).items())
        assert counts == {}
        assert all(file.path.startswith("o/ut/") for file in files)


def test_a_resolver_that_fails_leaves_no_half_file(tmp_path):
    def fail(rows, changes):
        if len(rows) == 0:
            raise RuntimeError("stop")
        return Resolved(rows)

    (base,) = write(tmp_path, state(["com.a:http/"]), [], 1000)
    frame = frame_of(CHANGES, {"key": "com.a:http/"}, {"key": "com.b:http/"})
    with pytest.raises(RuntimeError, match=r"stop"):
        list(resolve_range(tmp_path, "state", Range(None, None, base), frame, fail, {}))
    assert [str(path.relative_to(tmp_path)) for path in (tmp_path / "state").iterdir()] == [
        base.path
    ]


def test_rewriting_again_and_again_does_not_crumble_the_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "ROW_GROUP_ROWS", 10)
    monkeypatch.setattr(module, "ROW_GROUP_ROWS", 10)
    (base,) = write(tmp_path, state([f"com.a:http/{n:03d}" for n in range(0, 200, 2)]), [], 1000)
    for round_ in range(8):
        keys = [f"com.a:http/{n:03d}" for n in range(2 * round_ + 1, 200, 25)]
        frame = frame_of(CHANGES, *({"key": key, "inlink_score": 1.0} for key in keys))
        ((_, (base,), _), *_) = resolve_range(
            tmp_path, "state", Range(None, None, base), frame, put, {"outcome": "o"}
        )
    groups = files_module.row_group_count(tmp_path / base.path)
    assert groups == -(-base.rows // 10)
