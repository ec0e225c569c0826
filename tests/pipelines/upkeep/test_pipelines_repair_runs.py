"""Tablets with runs on them: what shows, checks, purges or exports a table reads them folded."""

import dataclasses
import json

import polars as pl
import pytest
from command_output import printed
from crawling import latest_snapshot, manifest_of, nutbeam, state_of
from frames import frame_of

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.tablet_writer import write_run
from nutbeam.io.tablets.tablets import ROW_NUMBER, tablets
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.schema import STATE


def rows_of(names, score, said=None):
    return frame_of(STATE, *(
        {"key": f"com.{name}:http/", "score": score, "status": 1, "fetch_time": 1,
         "retries": 0, "fetch_interval": 1, "protocol_message": said}
        for name in names
    ))  # fmt: skip


def tablet_of(table):
    (found,) = tablets(load_files(table, manifest_of(table).components["state"]))
    return found


def add_run(table, names, numbers, score, name, fresh=0):
    operation = begin(str(table), "update", name)
    rows = rows_of(names, score).with_columns(pl.Series(ROW_NUMBER, numbers, dtype=pl.UInt32))
    base = tablets(operation.files("state"))[0].base
    run = write_run(operation.table, "state", base, rows, fresh, operation.snapshot + 1)
    commit(operation, [Written("state", (run,))])


@pytest.fixture
def table(tmp_path):
    """Twenty rows; a run changes b and c, a further one c, and adds e1 and z."""
    folder = tmp_path / "table"
    folder.mkdir()
    operation = begin(str(folder), "inject", "made.inject")
    rows = [
        rows_of("a", 1.0),
        rows_of("b", 1.0, "http://gone.com/"),
        rows_of("cdefghijklmnopqrst", 1.0),
    ]
    commit(operation, [Written("state", write_bases(folder, "state", [pl.concat(rows)]))])
    add_run(folder, ["b", "c"], [1, 2], 2.0, "a.update")
    add_run(folder, ["c", "e1", "z"], [2, 20, 21], 3.0, "b.update", fresh=2)
    return folder


def fsck(table, capsys, *words, code=0):
    return json.loads(printed(capsys, "fsck", table, "--format", "json", *words, code=code))


def scores(table):
    return dict(state_of(table).select("key", "score").iter_rows())


def test_history_counts_no_row_twice(table, capsys):
    shown = json.loads(printed(capsys, "history", table, "--format", "json"))
    assert [s["changes"]["state"]["added"]["rows"] for s in shown["snapshots"]] == [20, 0, 2]
    assert shown["sizes"]["state"]["rows"] == 22


def test_sql_and_export_show_each_row_once_and_newest(table, tmp_path, capsys):
    pytest.importorskip("duckdb")
    right = scores(table)
    assert (right["com.b:http/"], right["com.c:http/"], right["com.z:http/"]) == (2.0, 3.0, 3.0)
    query = "select key, score from state"
    lines = printed(capsys, "sql", table, query, "--format", "json").splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) == len(right) == 22
    assert {row["key"]: row["score"] for row in found} == right
    assert nutbeam("export", table, "--output", tmp_path / "x.parquet") == 0
    rows = pl.read_parquet(tmp_path / "x.parquet")
    assert dict(rows.select("key", "score").iter_rows()) == right
    assert rows["key"].is_sorted()


def test_a_purge_folds_runs_and_erases_superseded_rows(table, capsys):
    right = scores(table)
    below = table / tablet_of(table).base.path
    assert (
        "http://gone.com/" in pl.read_parquet(below)["protocol_message"].to_list()
    )  # b has another now
    assert nutbeam("purge", table, "--host", "gone.com", "--now") == 0
    assert tablet_of(table).runs == ()
    assert scores(table) == right
    assert not below.exists()
    assert nutbeam("purge", table, "--host", "z.com") == 0
    assert scores(table) == {key: score for key, score in right.items() if key != "com.z:http/"}
    assert fsck(table, capsys)["clean"]
    assert nutbeam("compact", table, "--full", "--snapshot_retention", "0") == 0
    assert fsck(table, capsys)["clean"]


def test_a_whole_table_with_runs(table, capsys):
    assert fsck(table, capsys)["clean"]
    assert fsck(table, capsys, "--quick")["clean"]


@pytest.mark.parametrize(
    ("at", "left"), [(0, None), (1, {"com.b:http/": 1.0}), (2, {"com.b:http/": 2.0})]
)
def test_runs_on_a_broken_file_are_dropped_with_it(table, capsys, at, left):
    paths = tablet_of(table).paths
    (table / paths[at]).unlink()
    (problem,) = fsck(table, capsys, code=3)["problems"]
    assert (problem["kind"], problem["path"]) == ("missing", paths[at])
    record = fsck(table, capsys, "--repair", "--drop")
    assert record["repaired"]["dropped"] == list(paths[at:])
    if left is None:
        assert manifest_of(table).components["state"].rows == 0
    else:
        assert left.items() <= scores(table).items()
    assert fsck(table, capsys)["clean"]
    assert nutbeam("inject", table, "http://new.com/") == 0


@pytest.mark.parametrize(
    ("names", "numbers", "fresh", "words"),
    [
        (["b"], [2], 0, "has other keys than"),
        (["b"], [None], 0, "does not number its rows"),
        (["y"], [23], 1, "does not number its rows"),
        (["y"], [22], 0, "does not number its rows"),
        (["b"], [22], 1, "has rows as new"),
        (["a", "b"], [1, 1], 0, "does not number its rows"),
    ],
)
def test_a_run_that_does_not_fit(table, capsys, names, numbers, fresh, words):
    add_run(table, names, numbers, 4.0, "bad.update", fresh)
    right = tablet_of(table).runs[-1].path
    (problem,) = fsck(table, capsys, code=3)["problems"]
    assert (problem["kind"], problem["path"]) == ("run", right)
    assert words in problem["message"]
    assert fsck(table, capsys, "--repair", "--drop")["repaired"]["dropped"] == [right]
    assert scores(table)["com.c:http/"] == 3.0


@pytest.mark.parametrize("merged", [False, True])
def test_a_lost_list_is_rebuilt(table, capsys, merged):
    if merged:
        older = tablet_of(table).runs
        operation = begin(str(table), "update", "c.update")
        rows = rows_of(["b", "c", "e1", "z"], 4.0)
        rows = rows.with_columns(pl.Series(ROW_NUMBER, [1, 2, 20, 21], dtype=pl.UInt32))
        base = tablets(operation.files("state"))[0].base
        run = write_run(operation.table, "state", base, rows, 2, operation.snapshot + 1)
        commit(operation, [Written("state", (run,), tuple(file.path for file in older))])
    before, right = scores(table), tablet_of(table)
    (table / manifest_of(table).components["state"].list).unlink()
    record = fsck(table, capsys, "--repair")
    assert record["clean"]
    assert record["repaired"]["rebuilt"] == ["state"]
    assert scores(table) == before
    found = tablet_of(table)
    assert (found.base, found.paths) == (right.base, right.paths)
    assert found.runs[-1] == dataclasses.replace(right.runs[-1], order=latest_snapshot(table) - 1)


def test_a_lost_list_of_which_rows_do_not_tell_goes_back(table, capsys):
    add_run(table, ["y"], [22], 4.0, "c.update", fresh=1)
    (table / manifest_of(table).components["state"].list).unlink()
    record = fsck(table, capsys, "--repair")
    assert (record["clean"], record["repaired"]["from"]) == (True, 3)
    assert len(scores(table)) == 22


def test_tablets_are_cut_and_none_is_lost(table, capsys, resize_tables):
    resize_tables(tablet_rows=5)
    before = scores(table)
    assert nutbeam("purge", table, "--url", "http://t.com/") == 0
    found = tablets(load_files(table, manifest_of(table).components["state"]))
    assert len(found) > 2
    assert scores(table) == {key: score for key, score in before.items() if key != "com.t:http/"}
    assert fsck(table, capsys)["clean"]
