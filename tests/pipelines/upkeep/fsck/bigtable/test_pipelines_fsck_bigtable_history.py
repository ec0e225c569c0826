"""fsck finds damage to the history of a table in Bigtable, and finishes commits that were cut off."""

import contextlib
import json

import polars as pl
import pytest
from bigtable_damage import put
from bigtable_fsck import BAD, commit_rows, history_row, newest, own, rows_of_with, set_own
from cell_kinds import HOST_CELL
from crawling import (
    crawl,
    manifest_of,
    nutbeam,
    place_in,
    rows_of,
    statuses_of,
)
from damaging import kinds
from short_form import first

from nutbeam.io.bigtable.client import BigtableTable
from nutbeam.io.bigtable.snapshot_log import HEAD_ROW, SnapshotLog, open_log
from nutbeam.io.bigtable.stored_rows import write_changes
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files

pytestmark = pytest.mark.bigtable


# The history.


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("which", ["newest", "middle"])
@pytest.mark.parametrize("damage", ["gone", "record", "commit"])
def test_a_row_of_the_history(table, web, fsck, which, damage, capsys):
    snapshot = newest(table)
    number = snapshot if which == "newest" else snapshot - 3
    before = own(table, history_row(number))
    if damage == "gone":
        open_log(table).rows.delete(history_row(number))
    else:
        log = open_log(table)
        log.rows.put(history_row(number), {damage.encode(): b'{"snapshot"'}, number)
    state = rows_of(table, "state")
    record = fsck(table, code=3)
    assert kinds(record) == [("manifest", f"snapshot/{number:08}")]
    if which == "newest" and damage != "commit":
        assert nutbeam("readdb", table, "--stats") == 3
        assert f"run nutbeam fsck {table}" in capsys.readouterr().err
    record = fsck(table, "--repair")
    assert record["clean"]
    if which == "newest":  # the manifest row has it, too
        assert own(table, history_row(number)) == before
        assert newest(table) == snapshot
    elif damage == "commit":  # the record says when it was made
        assert open_log(table).times()[number] == json.loads(before[b"record"])["time"]
        assert newest(table) == snapshot
    else:
        assert record["repaired"]["lost"] == [number]
        assert newest(table) == snapshot + 1
    assert rows_of(table, "state").equals(state)
    crawl(table, web)
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert fsck(table)["clean"]


def test_snapshots_that_compact_deleted_are_no_gap(table, fsck):
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert len(open_log(table).snapshots()) < newest(table)
    assert fsck(table)["clean"]


@pytest.mark.long
def test_an_operation_that_pinned_a_missing_snapshot_is_repaired(table, fsck):
    # As after Bigtable's rows were restored from a backup, and the files were not.
    number = newest(table)
    pinned = begin(table, "inject", "ahead.inject")
    path = place_in(table, "operations") / "ahead.inject.json"
    record = json.loads(path.read_bytes()) | {"snapshot": number + 2}
    path.write_text(json.dumps(record))
    assert pinned.snapshot == number
    found = fsck(table, code=3)
    assert kinds(found) == [("manifest", f"snapshot/{number + n:08}") for n in (1, 2)]
    assert "an operation has read" in found["problems"][0]["message"]
    assert fsck(table, "--repair")["clean"]
    assert newest(table) == number + 3
    assert begin(table, "inject", "ahead.inject").snapshot == number + 3


@pytest.mark.long
@pytest.mark.parametrize("value", [b"{", b"[]", b'{"format": 1}', b""])
def test_the_manifest_row_is_damaged(table, value, capsys):
    set_own(table, HEAD_ROW, commit=value)
    for command in ("fsck", "generate", "readdb"):
        capsys.readouterr()
        assert nutbeam(command, table) == 3
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert "the manifest row is damaged" in line
        assert "backup" in line


# Commits that were cut off.


def cut_off(table, monkeypatch, *words):
    """Runs a job that dies after its commit, before the first row is written."""
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotLog, "apply", die)
        assert nutbeam(*words) == 130
    head = open_log(table).head()
    assert head.applying
    return head, open_log(table).changes(head)


def die(*_):
    raise KeyboardInterrupt


MORE = "http://h0.example.com/more"
OTHERS = (MORE, "http://www.example.org/")


@pytest.mark.long
def test_a_commit_that_was_cut_off_is_no_damage_and_can_be_finished(
    table, fsck, monkeypatch, capsys
):
    head, _ = cut_off(table, monkeypatch, "inject", table, MORE)
    record = fsck(table)
    assert (record["clean"], record["unfinished"]) == (True, head.snapshot)
    assert record["left"]["orphans"] == fsck(table, "--quick")["left"]["orphans"]
    assert nutbeam("fsck", table) == 0
    assert f"snapshot {head.snapshot} is not wholly applied" in capsys.readouterr().out
    record = fsck(table, "--repair")
    assert (record["clean"], record["finished"]) == (True, head.snapshot)
    assert "unfinished" not in record
    assert MORE in statuses_of(table)
    assert newest(table) == head.snapshot


def test_the_first_commit_of_all_was_cut_off(tables, fsck, monkeypatch):
    table = tables.fresh()
    cut_off(table, monkeypatch, "inject", table, MORE)
    assert fsck(table)["unfinished"] == 1
    assert fsck(table, "--repair")["clean"]
    assert MORE in statuses_of(table)


@pytest.mark.long
@pytest.mark.parametrize("damage", first(1, ["gone", "a bit", "cut", "garbage"]))
def test_a_file_of_changes_is_lost(table, web, fsck, monkeypatch, capsys, damage):
    head, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    state = set(rows_of(table, "state")["key"])
    keys = {c.path: set(pl.read_parquet(place_in(table, c.path))["key"]) for c in changes}
    path, *others = (c.path for c in changes if c.component == "state")
    spoil(place_in(table, path), damage)
    # Nothing can be committed, and that is said.
    for command in ("generate", "compact"):
        capsys.readouterr()
        assert nutbeam(command, table) == 3
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert path in line
        assert f"run nutbeam fsck {table}" in line
    assert nutbeam("readdb", table, "--stats") == 0  # readers see the one before
    record = fsck(table, code=3)
    assert kinds(record) == [("changes", path)]
    assert f"without it snapshot {head.snapshot} cannot be finished" in str(record)
    assert kinds(fsck(table, "--repair", code=3)) == [("changes", path)]
    assert nutbeam("fsck", table, "--repair") == 3
    advice = capsys.readouterr().out.splitlines()[-1]
    assert advice == (
        "1 problem is left; restore the files from a copy, or leave them out with --drop"
    )
    assert open_log(table).head() == head
    record = fsck(table, "--repair", "--drop")
    assert record["clean"]
    assert record["finished"] == head.snapshot
    assert record["repaired"]["dropped"] == [path]
    assert newest(table) == head.snapshot + 1
    manifest = manifest_of(table)
    assert (manifest.job, manifest.counts["dropped"]) == ("fsck", 1)
    # What could be read is there.
    assert set(rows_of(table, "state")["key"]) == state.union(*(keys[path] for path in others))
    assert "org.example.www" in rows_of(table, "hosts")["key"].to_list()
    crawl(table, web)
    assert fsck(table)["clean"]


def spoil(path, damage):
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-10])
    elif damage == "garbage":  # its end is whole
        data = bytearray(path.read_bytes())
        data[4:40] = bytes(36)
        path.write_bytes(data)
    else:
        path.write_bytes(next(unnoticed(path.read_bytes())))


def unnoticed(data):
    """Yields a file with one bit flipped such that a reader gets other rows, and no error."""
    right = pl.read_parquet(data)
    for at in range(4, len(data)):
        flipped = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with contextlib.suppress(pl.exceptions.PolarsError, OSError):
            if not pl.read_parquet(flipped).equals(right):
                yield flipped


@pytest.mark.long
def test_the_rows_that_are_lost_are_counted(table, fsck, monkeypatch):
    _, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    paths = [c.path for c in changes if c.component == "state"]
    for path in paths:
        spoil(place_in(table, path), "gone")
    record = fsck(table, "--repair", "--drop")
    assert record["repaired"]["rows"] == {"state/lost": 2}
    assert record["repaired"]["dropped"] == paths


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("step", ["leave_out", "apply", "finish", "store"])
def test_a_repair_that_was_cut_off_is_repeated(table, fsck, monkeypatch, step):
    head, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    path = next(c.path for c in changes if c.component == "state")
    place_in(table, path).unlink()
    whole = getattr(SnapshotLog, step)

    def done_and_dead(*args):
        whole(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotLog, step, done_and_dead)
        assert nutbeam("fsck", table, "--repair", "--drop") == 130
    record = fsck(table, "--repair", "--drop")
    assert record["clean"]
    assert newest(table) == head.snapshot + 1
    assert manifest_of(table).counts["dropped"] == 1
    assert fsck(table)["clean"]


def test_a_concurrent_roll_forward_does_no_harm(table, fsck, monkeypatch):
    head, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    path = next(c.path for c in changes if c.component == "state")
    file = place_in(table, path)
    data = file.read_bytes()
    file.unlink()
    leave_out = SnapshotLog.leave_out

    def another_first(log, *args):
        file.write_bytes(data)  # it was only out of reach
        open_log(table).roll_forward()
        return leave_out(log, *args)

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotLog, "leave_out", another_first)
        assert fsck(table, "--repair", "--drop")["clean"]
    assert newest(table) == head.snapshot
    assert MORE in statuses_of(table)


def test_left_over_files_of_changes(table, fsck):
    before = fsck(table)["left"]["orphans"]
    state = rows_of(table, "state")
    write_changes(open_table(table).files, "state", state.head(2))
    assert fsck(table)["left"]["orphans"] == before + 1
    # What a purge has written says until when old versions are kept.
    write_changes(open_table(table).files, "state", state.head(2), purges=True)
    assert fsck(table)["left"]["orphans"] == before + 1


@pytest.mark.long
def test_all_damages_at_once(table, web, fsck, monkeypatch):
    head, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    for change in changes:
        place_in(table, change.path).unlink()
    components = manifest_of(table).components
    place_in(table, components["state"].list).unlink()
    put(table, rows_of(table, "hosts")["key"][0], BAD, head.snapshot - 1, HOST_CELL)
    open_log(table).rows.delete(history_row(head.snapshot - 3))
    fetchlist = next(n for n in components if n.endswith("/outcome"))
    place_in(table, load_files(open_table(table), components[fetchlist])[0].path).unlink()
    found = fsck(table, code=3)
    assert {p["kind"] for p in found["problems"]} >= {
        "changes",
        "list",
        "cell",
        "manifest",
        "missing",
    }
    assert fsck(table, "--repair", "--drop")["clean"]
    crawl(table, web)
    assert nutbeam("readdb", table, "--stats") == 0
    assert fsck(table)["clean"]


@pytest.mark.parametrize(("commits", "code"), [(1, 0), (4, 3)])
def test_commits_while_rows_are_read(table, monkeypatch, capsys, commits, code):
    state, snapshot = rows_of(table, "state"), newest(table)
    ranges = BigtableTable.ranges

    def late(self, number):
        while newest(table) < snapshot + commits:
            commit_rows(table, state.head(1).with_columns(score=pl.lit(float(newest(table)))))
        return ranges(self, number)

    monkeypatch.setattr(BigtableTable, "ranges", late)
    capsys.readouterr()
    assert nutbeam("fsck", table) == code
    captured = capsys.readouterr()
    if code:
        assert f"snapshot {snapshot} of {table} is too old" in captured.err
    else:
        assert f"snapshot {snapshot} is whole" in captured.out


@pytest.mark.long
def test_after_a_rollback_and_a_purge(table, fsck):
    snapshot, state = newest(table), rows_of(table, "state")
    key = state["key"][0]
    commit_rows(table, rows_of_with(state, key, 7.0))
    assert nutbeam("inject", table, MORE) == 0
    assert nutbeam("rollback", table, "--to", snapshot) == 0
    assert fsck(table)["clean"]
    put(table, key, BAD, newest(table))  # what is below was undone
    assert fsck(table, "--repair", "--drop")["repaired"]["rows"] == {"state/given_back": 1}
    assert rows_of(table, "state").equals(state)
    assert nutbeam("purge", table, "--host", "h1.example.com", "--now") == 0
    record = fsck(table)
    assert record["clean"]
    assert record["rows"]["state"] < len(state)
