"""What a job may ask of a web table holds in a folder, in a store and in Bigtable alike."""

import json
import pickle

import polars as pl
import pytest
from frames import frame_of
from marking import newer
from table_changes import ROWS, change, parts_of, resolved, scores, state_of

from nutbeam.io.rows.seed_hosts import read_seed_hosts
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.manifest import load_manifest, newest_manifest, store_manifest
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.file_errors import ConflictError
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.resolve import Resolved
from nutbeam.io.tablets.tablets import Due, tablets
from nutbeam.io.upkeep.rollback import roll_back
from nutbeam.policy.components.kinds import KINDS, kind_of
from nutbeam.policy.components.link_rows import INLINKS
from nutbeam.policy.components.schema import HOSTS, STATE
from nutbeam.web.base.errors import UsageError, UserError


def test_an_empty_table(address):
    table = open_table(address)
    table.check_place()
    assert (table.snapshots(), table.latest_snapshot(), table.begun_snapshot()) == ([], 0, 0)
    assert table.settled_snapshot() == 0
    with pytest.raises(UsageError, match=r"no web table|is empty"):
        newest_manifest(address)


def test_a_table_is_the_same_in_another_process(address):
    table = open_table(address)
    assert pickle.loads(pickle.dumps(table.at(3))) == table.at(3)
    assert hash(table) == hash(open_table(address))
    assert open_table(str(table)) == table


def test_workers_find_a_table_by_an_address_that_is_whole(address, tmp_path, monkeypatch):
    typed, _, emulator = address.partition("?emulator=")
    if emulator:
        monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", emulator)
    monkeypatch.chdir(tmp_path)
    table = open_table(typed.removeprefix(f"{tmp_path}/"))
    assert table.worker_address() == address


def test_files_in_a_folder_of_this_machine_are_to_be_shared(address):
    reason = open_table(address).why_unshared()
    if address.startswith("gs://"):
        assert reason == ""
    else:
        what = "the files of {} are in" if address.startswith("bigtable://") else "the table {} is"
        assert reason == f"{what.format(repr(address))} a folder of this machine"


def test_snapshots_are_numbered_and_kept(address):
    for number in (1, 2, 3):
        change(address, state_of({f"com.a:http/{number}": 1.0}), f"n{number}")
    table = open_table(address)
    assert table.snapshots() == [1, 2, 3]
    assert table.latest_snapshot() == table.begun_snapshot() == table.settled_snapshot() == 3
    assert newest_manifest(address) == load_manifest(table, 3)
    assert json.loads(table.record(2))["operation"] == "n2.inject"
    numbers, times = zip(*table.commit_times(), strict=True)
    assert numbers == (1, 2, 3)
    assert list(times) == sorted(times)
    lists = {component.list for component in load_manifest(table, 3).components.values()}
    assert table.written_at(3, lists) > 0
    assert table.forget_snapshots(3)[0] == 2
    assert table.snapshots() == [3]
    with pytest.raises(UserError):
        table.record(2)


def test_one_of_two_commits_with_the_same_number_wins(address):
    made = change(address, state_of(ROWS), "first")
    table = open_table(address)
    second = {"snapshot": 2, "operation": "second"}
    assert store_manifest(table, type(made)(**{**vars(made), **second}))
    assert not store_manifest(table, type(made)(**{**vars(made), **second, "operation": "third"}))
    assert load_manifest(table, 2).operation == "second"


def test_rows_that_changed_since_a_snapshot_are_found(address):
    def changed(since):
        listed = load_manifest(open_table(address), since).components["state"]
        before = {file.path for file in load_files(open_table(address), listed)}
        table, known = parts_of(address)
        found = [p for t in known for p in table.changed_since("state", t, since, before)]
        keys = {key for keys, _ in found for key in keys}
        rows = dict(row for _, f in found for row in f.select("key", "score").iter_rows())
        assert set(rows) <= keys
        return rows

    change(address, state_of(ROWS), "first")
    change(address, state_of({"com.a:http/03": -3.0}), "second")
    change(address, state_of({"com.a:http/03": -4.0, "com.a:http/05": -5.0}), "third")
    assert changed(1) == {"com.a:http/03": -4.0, "com.a:http/05": -5.0}
    assert changed(2) == {"com.a:http/03": -4.0, "com.a:http/05": -5.0}
    assert changed(3) == {}


@pytest.mark.parametrize("keys", [["com.a:http/03"], [*ROWS]], ids=["few", "all"])
def test_tablets_that_have_changed_since_a_snapshot(address, keys):
    def listed(snapshot):
        known = load_manifest(open_table(address), snapshot).components.get("state")
        return load_files(open_table(address), known)

    def compared(since):
        table, now = parts_of(address)
        changed, lost = table.changed_tablets("state", listed(since), listed(2))
        assert set(changed) <= set(now)
        before = {file.path for file in listed(since)}
        seen = [k for t in changed for some, _ in table.changed_since("state", t, since, before)
                for k in some]  # fmt: skip
        return set(seen), lost

    change(address, state_of({**ROWS, "com.b:http/": 1.0}), "first")
    operation = begin(address, "filterdb", "second.filterdb")

    def without_b(old, changes):
        changed = newer(old, changes).rows
        return Resolved(changed.filter(pl.col("key") != "com.b:http/"), drops=True)

    changes = state_of({**dict.fromkeys(keys, -1.0), "com.b:http/": 1.0})
    commit(operation, resolved(operation, changes, resolver=without_b))
    seen, lost = compared(0)
    assert seen >= set(scores(address))
    assert lost == []
    seen, lost = compared(1)
    assert set(keys) <= seen
    # A row that has left the table has a key among those that have changed, or is in a range.
    assert "com.b:http/" in seen or any(low <= "com.b:http/" <= high for low, high in lost)
    assert compared(2) == (set(), [])


def test_commits_that_do_not_meet_are_both_kept(address):
    change(address, state_of(ROWS), "first")
    one, two = (begin(address, "inject", f"{name}.inject") for name in ("one", "two"))
    parts = [
        (one, resolved(one, state_of({"com.b:http/": 1.0}))),
        (two, resolved(two, frame_of(HOSTS, {"key": "com.b", "requests": 7}), "hosts")),
    ]
    for operation, written in parts:
        commit(operation, written, CommitTerms(reads=frozenset({written[0].component})))
    assert scores(address) == {**ROWS, "com.b:http/": 1.0}
    table, known = parts_of(address, "hosts")
    assert table.read("hosts", known, ["key", "requests"]).rows() == [("com.b", 7)]


def test_a_commit_that_read_rows_changed_by_another_one_is_refused(address):
    change(address, state_of(ROWS), "first")
    loser = begin(address, "inject", "loser.inject")
    written = resolved(loser, state_of({"com.a:http/00": -1.0}))
    change(address, state_of({"com.a:http/01": -2.0}), "winner")
    with pytest.raises(ConflictError):
        commit(loser, written, CommitTerms(reads=frozenset({"state"})))
    assert scores(address) == {**ROWS, "com.a:http/01": -2.0}


def test_rows_by_tablet_key_and_predicate(address):
    change(address, state_of(ROWS), "first")
    change(address, state_of({"com.a:http/03": 30.0, "com.b:http/": 40.0}), "second")
    table, known = parts_of(address)
    expected = {**ROWS, "com.a:http/03": 30.0, "com.b:http/": 40.0}
    scanned = pl.concat(rows for tablet in known for rows in table.scan("state", tablet))
    assert scanned.columns == STATE.names
    assert list(scanned.select("key", "score").iter_rows()) == sorted(expected.items())
    assert dict(table.read("state", known, ["key", "score"]).iter_rows()) == expected
    # What a newer row takes the place of does not come back where only the old one matches.
    few = table.read("state", known, ["key"], lambda rows: rows.filter(pl.col("score") < 5))
    assert sorted(few["key"]) == [f"com.a:http/{n:02d}" for n in (0, 1, 2, 4)]
    sought = pl.Series("key", ["com.a:http/03", "com.b:http/", "com.c:http/"])
    found = table.find("state", known, sought).sort("key")
    assert found.select("key", "score").rows() == [("com.a:http/03", 30.0), ("com.b:http/", 40.0)]
    assert table.find("state", known, sought.clear()).is_empty()
    pieces = pl.concat(table.find_in_frames("state", known, sought, ["key", "score"]))
    pieces = pieces.unique("key", keep="last").sort("key")
    assert pieces.equals(found.select("key", "score"))


def test_rows_of_ranges_come_in_key_order(address, resize_tables):
    resize_tables(row_group_rows=4)
    change(address, state_of(ROWS), "first")
    change(address, state_of({"com.a:http/03": 30.0, "com.b:http/": 40.0}), "second")
    table, known = parts_of(address)

    def read(*ranges):
        rows = [row for some in table.read_ranges("state", known, ranges, ["key", "score"])
                for row in some.iter_rows()]  # fmt: skip
        assert rows == sorted(rows)
        assert len({key for key, _ in rows}) == len(rows)
        return [row for row in rows if any(low <= row[0] < high for low, high in ranges)]

    assert read() == []
    assert read(("com.c", "com.d")) == []
    near = ("com.a:http/03", "com.a:http/05"), ("com.a:http/18", "com.z")
    assert read(*near) == [
        ("com.a:http/03", 30.0), ("com.a:http/04", 4.0), ("com.a:http/18", 18.0),
        ("com.a:http/19", 19.0), ("com.b:http/", 40.0),
    ]  # fmt: skip


def test_rows_that_have_ended_do_not_count_and_leave_rows(address):
    links = [{"key": f"com.a:http/{n} com.b:http/", "last_seen": 5} for n in range(9)]
    ended = [{**links[3], "gone_since": 9}]
    change(address, frame_of(INLINKS, *links), "first", "links")
    change(address, frame_of(INLINKS, *ended), "second", "links")
    table, known = parts_of(address, "links")
    rows = table.read("links", known, ["key", "gone_since"])
    counting = rows.filter(kind_of("links").counting)
    assert sorted(counting["key"]) == [row["key"] for row in links if row != links[3]]
    # A run says of a row that it has ended; in rows nothing is left of it.
    assert len(rows) == (9 if table.in_files("links") else 8)
    assert sum(tablet.rows for tablet in known) >= len(rows)


def test_columns_that_few_rows_have_are_not_overlooked(address):
    change(address, state_of(ROWS, metadata=[("a", "b")]), "first")
    table, known = parts_of(address)
    assert any(table.columns_with_values(tablet, ["metadata"]) for tablet in known)


@pytest.mark.long
def test_an_older_snapshot_stays_as_it_was(address):
    change(address, state_of(ROWS), "first")
    for number in (2, 3):
        change(address, state_of({"com.a:http/00": float(-number)}), f"n{number}")
    assert [scores(address, n)["com.a:http/00"] for n in (1, 2, 3)] == [0.0, -2.0, -3.0]


def test_changes_that_change_nothing_are_not_written(address):
    change(address, state_of(ROWS), "first")
    operation = begin(address, "inject", "again.inject")
    assert [
        file
        for part in resolved(operation, state_of({"com.a:http/07": 7.0}))
        for file in part.files
    ] == []


def test_rows_are_loaded_into_a_table_that_has_none(address):
    operation = begin(address, "copy", "load.copy")
    frames = state_of(ROWS).iter_slices(7)
    commit(operation, operation.table.load("state", frames))
    assert scores(address) == ROWS


def test_tablets_that_may_have_due_rows_are_found(address):
    change(address, state_of(ROWS, fetch_time=1_000), "first")
    table, known = parts_of(address)
    assert [table.may_have_due("state", t, Due(until=1_000)) for t in known] == [True]
    assert [table.may_have_due("state", t, Due(until=999)) for t in known] == [False]
    assert [table.may_have_due("state", t, Due(until=999, far=500)) for t in known] == [True]
    due = pl.col("fetch_time") <= 1_000
    rows = table.read("state", known, ["key"], lambda state: state.filter(due), Due(1_000))
    assert len(rows) == len(ROWS)


@pytest.mark.parametrize(
    ("component", "row"),
    [("hosts", {"key": "com.a", "backoff_until": 1_000}),
     ("links", {"key": "com.a:http/ com.b:http/", "last_seen": 1_000})],
)  # fmt: skip
def test_without_a_declared_column_every_row_may_be_due(address, component, row):
    change(address, frame_of(KINDS[component].schema, row), "first", component)
    reader = begin(address, "look", "look")
    known, none = tablets(reader.files(component)), Due(until=-(1 << 63))
    assert [reader.table.may_have_due(component, t, none) for t in known] == [True]
    assert len(reader.table.read(component, known, ["key"], None, none)) == 1


def test_hosts_that_rest_and_hosts_of_seeds(address):
    hosts = [{"key": "com.a", "backoff_until": 2_000}, {"key": "com.b", "seed": True},
             {"key": "com.c", "backoff_until": 500}]  # fmt: skip
    change(address, frame_of(HOSTS, *hosts), "first", "hosts")
    reader = begin(address, "look", "look")
    table, files = reader.table, tuple(reader.files("hosts"))
    hosts = pl.Series([f"com.{name}" for name in "abc"])
    assert table.resting_hosts("hosts", files, 1_000, lambda: hosts).to_list() == ["com.a"]
    seeds = read_seed_hosts(reader)
    assert seeds.host_keys.to_list() == ["com.b"]


def test_the_way_back_to_an_older_snapshot(address):
    change(address, state_of(ROWS), "first")
    change(address, state_of({"com.a:http/00": -1.0, "com.b:http/": 1.0}), "second")
    made = roll_back(address, 1, "back.rollback")
    assert (made.snapshot, made.restores) == (3, 1)
    assert scores(address) == ROWS
    assert scores(address, 2) == {**ROWS, "com.a:http/00": -1.0, "com.b:http/": 1.0}
