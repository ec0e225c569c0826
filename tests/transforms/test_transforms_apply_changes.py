import apache_beam as beam
import polars as pl
import pytest
from crawling import latest_snapshot, manifest_at
from frames import frame_of, table_of
from running import STEP_FAILED, run

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.resolve import Resolved
from nutbeam.io.tablets.tablet_writer import TabletWriter
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.tablets.written import Written, check_whole
from nutbeam.policy.components.schema import CHANGES, HOSTS, OUTCOME, STATE
from nutbeam.transforms import apply_changes as module
from nutbeam.transforms.apply_changes import ApplyChanges, Target
from nutbeam.web.base.errors import UserError

# Half of all keys are on one host.
KEYS = sorted(
    f"com.big:http/{n:04d}" if n % 2 else f"com.h{n % 29:02d}:http/{n:04d}" for n in range(200)
)


def add_scores(operation):
    """A resolver that adds what changes bring, and tells of every changed key."""

    def resolve(rows, changes):
        assert rows["key"].is_sorted()
        sums = changes.group_by("key").agg(pl.col("inlink_score").sum())
        joined = rows.select("key", "score").join(sums, on="key", how="full", coalesce=True)
        kept = joined.sort("key").select(
            "key", score=pl.col("score").fill_null(0) + pl.col("inlink_score").fill_null(0)
        )
        outcome = frame_of(OUTCOME, *sums.sort("key").select("key").to_dicts())
        extra = {"outcome": outcome} if len(outcome) else {}
        return Resolved(frame_of(STATE, *kept.to_dicts()), extra, {"seen": len(changes)})

    return resolve


def take_hosts(operation):
    def resolve(rows, changes):
        return Resolved(pl.concat([rows, changes]).unique("key").sort("key"), counts={"hosts": 1})

    return resolve


TARGETS = {
    "state": Target(CHANGES, add_scores, {"outcome": "batches/{batch}/outcome"}),
    "hosts": Target(HOSTS, take_hosts),
}


@pytest.fixture
def table(tmp_path, resize_tables):
    """A table of the even keys in several tablets."""
    resize_tables(tablet_rows=25)
    writer = TabletWriter(tmp_path, "state", STATE)
    writer.write(frame_of(STATE, *({"key": key, "score": 1.0} for key in KEYS[::2])))
    operation = begin(str(tmp_path), "make", "make")
    commit(operation, [Written("state", tuple(writer.close()))])
    return str(tmp_path)


def apply(table, changes, range_bytes=None, **options):
    """Applies changes and commits them; returns what was written."""
    operation = begin(table, "test", "op", batch="b1")

    def build(pipeline):
        operations = pipeline | "Operations" >> beam.Create([operation])
        chunks = pipeline | "Changes" >> beam.Create(changes)
        return (operations, chunks) | ApplyChanges(TARGETS)

    with pytest.MonkeyPatch.context() as patch:
        if range_bytes is not None:
            real = module.plan_ranges
            patch.setattr(module, "plan_ranges", lambda files, some: real(files, some, range_bytes))
        written = run(build)
    commit(operation, written)
    return written


def rows_of(table, component, schema, *columns):
    operation = begin(table, "look", "look")
    manifest = manifest_at(operation.table, latest_snapshot(operation.table))
    files = load_files(operation.table, manifest.components.get(component))
    if component.startswith("batches/"):
        frames = [collect(scan([operation.table / file.path], schema)) for file in files]
    else:
        known = tablets(files)
        frames = [rows for t in known for rows in operation.table.scan(component, t)]
    return [row for frame in frames for row in frame.select(columns).rows()]


def changes_to(keys, rows):
    table = table_of(CHANGES, *({"key": key, "inlink_score": 1.0} for key in keys))
    return [("state", table.slice(at, rows)) for at in range(0, len(table), rows)]


@pytest.mark.few(2)
@pytest.mark.parametrize("range_bytes", [None, 2000])
@pytest.mark.parametrize("chunk_rows", [20, 500])
def test_agrees_with_the_whole_table_in_memory(table, range_bytes, chunk_rows):
    changed = [*KEYS[::3], *KEYS[::5], *["com.big:http/0001"] * 20]  # some more than once
    written = apply(table, changes_to(changed[::-1], chunk_rows), range_bytes)
    expected = dict.fromkeys(KEYS[::2], 1.0)
    for key in changed:
        expected[key] = expected.get(key, 0.0) + 1.0
    assert rows_of(table, "state", STATE, "key", "score") == sorted(expected.items())
    told = rows_of(table, "batches/b1/outcome", OUTCOME, "key")
    assert sorted(told) == [(key,) for key in sorted(set(changed))]
    assert sum(part.counts.get("seen", 0) for part in written) == len(changed)


def test_tablets_without_changes_stay_as_they_are(table):
    before = {file.path for file in begin(table, "x", "x").files("state")}
    apply(table, changes_to(KEYS[:3], 50))
    after = {file.path for file in begin(table, "y", "y").files("state")}
    assert len(after - before) == 1
    assert len(before & after) >= len(before) - 1


@pytest.mark.long
@pytest.mark.parametrize("chunk_rows", [7, 500])
def test_it_tells_how_many_changes_there_were_and_how_many_were_resolved(table, chunk_rows):
    hosts = table_of(HOSTS, {"key": "com.b"}, {"key": "com.a", "seed": True})
    changed = [*KEYS[::3], *KEYS[::5]]
    written = apply(table, [*changes_to(changed, chunk_rows), ("hosts", hosts)])
    told = [(part.due, part.done) for part in written if part.due or part.done]
    assert sum(due.get("Resolve", 0) for due, _ in told) == len(changed) + 2
    assert sum(done.get("Resolve", 0) for _, done in told) == len(changed) + 2
    check_whole("test", written, ["Resolve"])
    for lost in range(len(written)):
        part = written[lost]
        if part.due or part.done:
            with pytest.raises(UserError, match="step 'Resolve' did"):
                check_whole("test", [*written[:lost], *written[lost + 1 :]], ["Resolve"])


@pytest.mark.long
def test_no_changes_are_all_changes(table):
    check_whole("test", apply(table, []), ["Resolve"])


@pytest.mark.long
def test_several_components_at_once(table):
    hosts = table_of(HOSTS, {"key": "com.b"}, {"key": "com.a", "seed": True})
    written = [
        w for w in apply(table, [*changes_to(KEYS[:3], 50), ("hosts", hosts)]) if w.component
    ]
    assert rows_of(table, "hosts", HOSTS, "key", "seed") == [("com.a", True), ("com.b", None)]
    assert len(rows_of(table, "batches/b1/outcome", OUTCOME, "key")) == 3
    assert {part.component for part in written} == {"state", "hosts", "batches/b1/outcome"}
    assert [part.replaced for part in written if part.component != "state"] == [(), ()]


def test_a_new_table(tmp_path):
    apply(str(tmp_path), changes_to(KEYS, 100), range_bytes=2000)
    assert rows_of(str(tmp_path), "state", STATE, "key") == [(key,) for key in KEYS]


@pytest.mark.parametrize("changes", [[], [("state", CHANGES.empty_table())]])
def test_no_changes_write_nothing(table, changes):
    before = rows_of(table, "state", STATE, "key", "score")
    assert [part.files for part in apply(table, changes) if part.component] == []
    assert rows_of(table, "state", STATE, "key", "score") == before


def drop_changed(operation):
    """A resolver that deletes the rows of all changed keys but those that end with 8, and adds one."""

    def resolve(rows, changes):
        known = changes.join(rows, on="key", how="semi")
        gone = known.filter(~pl.col("key").str.ends_with("8")).get_column("key")
        new = changes.join(rows, on="key", how="anti").select("key").unique()
        left = rows.filter(~pl.col("key").is_in(gone.implode()))
        added = frame_of(STATE, *({"key": key, "score": 5.0} for key in new["key"]))
        merged = pl.concat([left, added]).sort("key")
        return Resolved(merged, counts={"gone": gone.n_unique()}, drops=operation.id != "faulty")

    return resolve


def drop(table, changed, range_bytes=None, operation="op", trial=False):
    """Deletes rows; returns what was written."""
    pinned = begin(table, "test", operation)

    def build(pipeline):
        operations = pipeline | "Operations" >> beam.Create([pinned])
        chunks = pipeline | "Changes" >> beam.Create(changes_to(changed, 50))
        targets = {"state": Target(CHANGES, drop_changed)}
        return (operations, chunks) | ApplyChanges(targets, trial)

    with pytest.MonkeyPatch.context() as patch:
        if range_bytes is not None:
            real = module.plan_ranges
            patch.setattr(module, "plan_ranges", lambda files, some: real(files, some, range_bytes))
        written = run(build)
    if not trial:
        commit(pinned, written)
    return written


# Few changes make a run elsewhere, many a new base; changes in several ranges divide a tablet.
@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(("every", "range_bytes"), [(7, None), (2, None), (2, 500)])
def test_a_resolver_may_delete_rows(table, every, range_bytes):
    for_runs = [key for key in KEYS[::2] if key.endswith("8")][:2]
    apply(table, changes_to(for_runs, 50))
    scores = dict(rows_of(table, "state", STATE, "key", "score"))
    changed = KEYS[::every]
    gone = {key for key in changed if key in scores and not key.endswith("8")}
    counted = drop(table, changed, range_bytes, operation="trial", trial=True)
    assert sum(part.counts.get("gone", 0) for part in counted) == len(gone)
    assert not [part for part in counted if part.files or part.replaced]
    written = drop(table, changed, range_bytes, operation="real")
    assert sum(part.counts.get("gone", 0) for part in written) == len(gone)
    expected = {key: score for key, score in scores.items() if key not in gone}
    expected |= {key: 5.0 for key in changed if key not in scores}
    assert rows_of(table, "state", STATE, "key", "score") == sorted(expected.items())


def test_a_row_that_a_resolver_loses_by_mistake_fails_the_job(table):
    with pytest.raises(STEP_FAILED, match="a resolver must keep all rows"):
        drop(table, KEYS[:1], operation="faulty")
