import polars as pl
import pytest
from frames import frame_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tablet_files import FILES, KEYS, SORTED_KEYS, state, write

from nutbeam.io.storage import parquet_files as files_module
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.storage.table_sizes import TableSizes, replaced_sizes
from nutbeam.io.tablets.fold import fold_tablet
from nutbeam.io.tablets.ranges import Range, Sample, plan_ranges, sample_keys, split_by_range
from nutbeam.io.tablets.resolve import (
    Resolution,
    Resolved,
    apply_changes,
    rows_in_range,
    rows_of_run,
    write_bases,
)
from nutbeam.io.tablets.tablets import ROW_NUMBER, Tablet, read_tablets, rows_with_keys, tablets
from nutbeam.io.upkeep.compaction import plan_folds
from nutbeam.policy.components.schema import CHANGES, OUTCOME, STATE, conform
from nutbeam.web.base.errors import UserError

MOST_RUNS = TableSizes().most_runs


@given(SORTED_KEYS, st.one_of(st.none(), KEYS), st.one_of(st.none(), KEYS))
def test_within(keys, low, high):
    rows = pl.DataFrame({"key": keys}, schema={"key": pl.String})
    if low is not None and high is not None and low > high:
        low, high = high, low
    expected = [key for key in keys if (low is None or key >= low) and (high is None or key < high)]
    assert rows_in_range(rows, low, high)["key"].to_list() == expected


def put(rows, changes):
    """A resolver: the last change of a key is its score; no row is removed."""
    last = changes.sort("order").unique("key", keep="last").select("key", score="inlink_score")
    merged = rows.select("key", "score").update(last, on="key", how="full").sort("key")
    outcome = frame_of(OUTCOME, *last.sort("key").to_dicts())
    rows = frame_of(STATE, *merged.to_dicts())
    return Resolved(rows, {"outcome": outcome}, {"seen": len(changes)})


@FILES
@given(
    st.dictionaries(KEYS, st.integers(0, 9), max_size=40),
    st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=30),
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
        with replaced_sizes(row_group_rows=group_rows):
            (file,) = write(tmp_path, rows, [], 1000)
            base = Tablet(file)
    frame = frame_of(
        CHANGES,
        *({"key": k, "inlink_score": s, "order": at} for at, (k, s) in enumerate(changes)),
    )
    with replaced_sizes(tablet_rows=7, row_group_rows=group_rows):
        part = Range(low, high, base, whole=False)
        written = list(
            apply_changes(tmp_path, Resolution("state", part, put, {"outcome": "o/ut"}), frame)
        )
    expected = {key: score for key, score in old.items() if base and inside(key)}
    expected |= dict(changes)
    places = {done.component: (done.files, done.counts) for done in written}
    assert len(places) == len(written)
    found = [
        row
        for file in places["state"][0]
        for row in collect(scan([tmp_path / file.path], STATE)).select("key", "score").rows()
    ]
    assert found == [(key, score) for key, score in sorted(expected.items())]
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

    (file,) = write(tmp_path, state(["com.a:http/"]), [], 1000)
    base = Tablet(file)
    frame = frame_of(CHANGES, {"key": "com.a:http/"}, {"key": "com.b:http/"})
    with pytest.raises(RuntimeError, match=r"stop"):
        list(
            apply_changes(
                tmp_path, Resolution("state", Range(None, None, base, whole=False), fail), frame
            )
        )
    assert [str(path.relative_to(tmp_path)) for path in (tmp_path / "state").iterdir()] == [
        file.path
    ]


def test_rewriting_again_and_again_does_not_crumble_the_row_groups(tmp_path, resize_tables):
    resize_tables(row_group_rows=10)
    (base,) = write(tmp_path, state([f"com.a:http/{n:03d}" for n in range(0, 200, 2)]), [], 1000)
    for round_ in range(8):
        keys = [f"com.a:http/{n:03d}" for n in range(2 * round_ + 1, 200, 25)]
        frame = frame_of(CHANGES, *({"key": key, "inlink_score": 1.0} for key in keys))
        part = Range(None, None, Tablet(base), whole=False)
        (done, *_) = apply_changes(
            tmp_path, Resolution("state", part, put, {"outcome": "o"}), frame
        )
        (base,) = done.files
    groups = files_module.row_group_count(tmp_path / base.path)
    assert groups == -(-base.rows // 10)


# --- runs


class Kept:
    """A component's live files, changed as a commit changes them, beside a dict that is right."""

    def __init__(self, root):
        self.root, self.files, self.right, self.snapshot = root, [], {}, 0

    def apply(self, changes):
        """Applies changes, all that fall on a key in their order; returns what was written."""
        self.snapshot += 1
        records = [
            {"key": key, "inlink_score": score, "order": at}
            for at, (key, score) in enumerate(changes)
        ]
        chunk = conform(frame_of(CHANGES, *records), CHANGES)
        ranges = plan_ranges(tablets(self.files), [sample_keys(chunk)])
        written = [
            done
            for number, part in split_by_range(chunk, ranges)
            for done in apply_changes(
                self.root,
                Resolution("state", ranges[number], put, {"outcome": "o"}, self.snapshot),
                pl.from_arrow(part),
            )
            if done.component == "state"
        ]  # fmt: skip
        self.replace(written)
        self.right |= dict(changes)
        return written

    def replace(self, written):
        gone = {path for done in written for path in done.replaced}
        assert gone <= {file.path for file in self.files}
        self.files = [file for file in self.files if file.path not in gone]
        self.files += [file for done in written for file in done.files]

    def compact(self, *, full):
        for group in plan_folds(tablets(self.files), full=full):
            frames = (rows for tablet in group for rows in fold_tablet(self.root, STATE, tablet))
            files = write_bases(self.root, "state", frames)
            gone = {path for tablet in group for path in tablet.paths}
            self.files = [file for file in self.files if file.path not in gone] + list(files)

    def check(self):
        known = tablets(self.files)
        right = sorted(self.right.items())
        rows = read_tablets(self.root, "state", known, ("key", "score")).sort("key").rows()
        assert rows == right
        in_order = [
            row
            for tablet in known
            for rows in fold_tablet(self.root, STATE, tablet)
            for row in rows.select("key", "score").rows()
        ]
        assert in_order == right
        assert sum(file.live_rows for file in self.files) == len(right)
        for score in (0, 3):
            found = read_tablets(
                self.root, "state", known, ("key",), lambda rows, s=score: rows.filter(score=s)
            )
            assert sorted(found["key"]) == [key for key, value in right if value == score]
        for tablet in known:
            keys = [key for key, _ in right if tablet.first <= key <= tablet.last]
            assert (keys[0], keys[-1], len(keys)) == (tablet.first, tablet.last, tablet.rows)
            sought = keys[::2]
            found = rows_with_keys(self.root, "state", tablet, pl.Series("key", sought))
            assert found.select("key", "score").rows() == [(key, self.right[key]) for key in sought]


STEPS = st.lists(
    st.one_of(
        st.lists(st.tuples(KEYS, st.integers(0, 4)), min_size=1, max_size=4),
        st.booleans(),
    ),
    max_size=14,
)


@pytest.mark.long
@settings(FILES, max_examples=12)
@given(st.lists(st.tuples(KEYS, st.integers(0, 4)), max_size=60), STEPS, st.integers(1, 9))
def test_runs_and_folds_give_the_same_rows_as_a_dict(tmp_path, first, steps, group_rows):
    with replaced_sizes(tablet_rows=15, row_group_rows=group_rows):
        kept = Kept(tmp_path)
        for step in ([first] if first else []) + steps:
            if isinstance(step, bool):
                kept.compact(full=step)
                assert all(file.base is None for file in kept.files)
            else:
                kept.apply(step)
            kept.check()


def numbered(numbers):
    return [f"com.a:http/{n:05d}" for n in numbers]


@pytest.fixture
def kept(tmp_path):
    """A tablet of a thousand rows."""
    kept = Kept(tmp_path)
    kept.apply([(key, 1) for key in numbered(range(1000))])
    return kept


def test_a_first_load_writes_bases(kept):
    (file,) = kept.files
    assert (file.base, file.rows) == (None, 1000)


def test_a_run_holds_changed_and_new_rows_and_nothing_else(kept):
    (base,) = kept.files
    kept.apply([(numbered([7])[0], 2), (numbered([8])[0], 1), ("com.b:http/", 3)])
    (run,) = [file for file in kept.files if file.base is not None]
    assert (run.base, run.rows, run.fresh) == (base.path, 2, 1)
    assert run.bytes < base.bytes
    kept.check()


def test_changes_that_change_nothing_write_nothing(kept):
    assert [done.files for done in kept.apply([(numbered([7])[0], 1)])] == [()]
    assert len(kept.files) == 1


def test_eight_runs_become_one_and_the_base_stays(kept):
    (base,) = kept.files
    for at in range(MOST_RUNS):
        kept.apply([(numbered([at])[0], 5)])
        assert len(kept.files) == at + 2
    kept.apply([(numbered([3])[0], 6), ("com.b:http/", 1)])
    assert [file.rows for file in kept.files] == [1000, MOST_RUNS + 1]
    assert base in kept.files
    kept.check()


def test_a_fifth_of_the_rows_in_runs_makes_a_new_base(kept):
    (base,) = kept.files
    kept.apply([(key, 5) for key in numbered(range(150))])
    assert base in kept.files
    kept.apply([(key, 6) for key in numbered(range(100, 201))])
    assert [(file.base, file.rows) for file in kept.files] == [(None, 1000)]
    assert base not in kept.files
    kept.check()


def test_more_changes_than_a_fifth_of_the_rows_make_a_new_base(kept):
    kept.apply([(key, 5) for key in numbered(range(201))])
    assert [file.rows for file in kept.files] == [1000]
    kept.check()


@pytest.mark.long
def test_the_bytes_of_an_update_grow_with_the_changes_and_not_with_the_table(tmp_path):
    written = {}
    for rows in (20_000, 200_000):
        kept = Kept(tmp_path / str(rows))
        kept.apply([(key, 1) for key in numbered(range(rows))])
        kept.apply([(key, 2) for key in numbered(range(0, rows, rows // 500))])
        written[rows] = sum(file.bytes for file in kept.files if file.base is not None)
        assert sum(file.rows for file in kept.files if file.base is not None) == 500
    assert written[200_000] <= 1.5 * written[20_000]


def test_a_host_larger_than_a_tablet_gets_runs_too(tmp_path, resize_tables):
    resize_tables(tablet_rows=200)
    kept = Kept(tmp_path)
    kept.apply([(key, 1) for key in numbered(range(1000))])
    assert len(kept.files) == 5
    kept.apply([(key, 2) for key in [*numbered(range(0, 1000, 30)), *numbered([5, 205, 1200])]])
    assert sum(file.base is not None for file in kept.files) == 5
    kept.check()


def test_a_tablet_that_changes_swamp_is_cut_and_rewritten(tmp_path):
    kept = Kept(tmp_path)
    kept.apply([(key, 1) for key in numbered(range(1000))])
    kept.apply([(numbered([500])[0], 3)])
    samples = [Sample(tuple(numbered([100, 300, 500, 700])), 10.0)]
    ranges = plan_ranges(tablets(kept.files), samples, 15)
    assert len(ranges) > 1
    nothing = frame_of(CHANGES)
    parts = [apply_changes(tmp_path, Resolution("state", part, put), nothing) for part in ranges]
    kept.replace([done for part in parts for done in part])
    assert all(file.base is None for file in kept.files)
    kept.check()


def test_each_of_several_ranges_finds_a_file_that_was_changed(kept):
    (base,) = kept.files
    path, samples = kept.root / base.path, [Sample(tuple(numbered([100, 300, 500, 700])), 10.0)]
    ranges = plan_ranges(tablets(kept.files), samples, 15)
    pl.read_parquet(path).with_columns(score=pl.lit(7.0, pl.Float32)).write_parquet(path)
    how = [Resolution("state", part, put) for part in ranges]
    assert len(how) > 1
    for part in how:
        with pytest.raises(UserError, match=f"damaged.*{base.path}"):
            list(apply_changes(kept.root, part, frame_of(CHANGES)))


def test_a_resolver_may_not_lose_rows():
    old = frame_of(STATE, {"key": "a"}, {"key": "b"})
    old = old.with_columns(pl.Series(ROW_NUMBER, [0, 1], dtype=pl.UInt32))
    with pytest.raises(ValueError, match="must keep all rows: of 2 there are 1"):
        rows_of_run(old, frame_of(STATE, {"key": "b"}), 2)


def test_equal_rows_of_any_type_count_as_unchanged():
    record = {"key": "a", "score": float("nan"), "signature": b"x", "metadata": [("k", "v")]}
    old = frame_of(STATE, record, {"key": "b"})
    numbers = pl.Series(ROW_NUMBER, [0, 1], dtype=pl.UInt32)
    assert len(rows_of_run(old.with_columns(numbers), old, 2)) == 0
    new = frame_of(STATE, record | {"metadata": [("k", "w")]}, {"key": "b"})
    assert rows_of_run(old.with_columns(numbers), new, 2)["key"].to_list() == ["a"]


def test_a_run_that_does_not_fit_is_named(kept):
    kept.apply([(numbered([7])[0], 2)])
    (base, run) = kept.files
    (kept.root / run.path).unlink()
    (kept.root / base.path).rename(kept.root / run.path)
    with pytest.raises(UserError, match=f"^run does not fit the tablet .*{run.path}$"):
        read_tablets(kept.root, "state", [Tablet(run, (run,))], ("key",))
