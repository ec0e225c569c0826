"""Rows are taken out of a web table in a folder, in a store and in Bigtable alike."""

import pytest
from table_changes import ROWS, change, parts_of, resolved, scores, state_of

from nutbeam.io.bigtable.snapshot_log import SnapshotLog
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table import folder_table
from nutbeam.io.table.edits import Edited
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.upkeep import purge
from nutbeam.policy.blocklist import Names
from nutbeam.web.base.errors import UserError


def without(key):
    return purge.purge_of(Names(urls=(key,)))


def edited(table, edit, name):
    operation = begin(table, "purge", name)
    parts = [
        part
        for tablet in tablets(operation.files("state"))
        for part in operation.root.edit("state", tablet, edit)
    ]
    return operation, parts


def test_what_is_taken_out_cannot_be_read_any_more(table):
    gone = "com.a:http/05"
    change(table, state_of(ROWS), "first")
    operation, parts = edited(table, without(gone), "purge")
    made = commit(operation, parts)
    assert made.counts["rows/state"] == 1
    left = {key: score for key, score in ROWS.items() if key != gone}
    assert scores(table) == left
    assert scores(table, 1) == ROWS
    root = open_table(table)
    purge.delete_purged(root, made.snapshot, Names(urls=(gone,)))
    assert scores(table) == left
    with pytest.raises(UserError):
        scores(table, 1)


def test_an_edit_that_finds_nothing_writes_nothing(table):
    change(table, state_of(ROWS), "first")
    assert edited(table, without("com.z:http/"), "purge")[1] == []


def test_an_edit_is_made_again_where_rows_were_changed_since(table):
    gone = "com.a:http/05"
    change(table, state_of(ROWS), "first")
    operation, parts = edited(table, without(gone), "purge")
    before = tablets(operation.files("state"))
    change(table, state_of({gone: 50.0, "com.a:http/06": 60.0}), "second")
    root, now = parts_of(table)
    again = list(root.edit_again("state", without(gone), Edited(1, before, parts), now))
    later = begin(table, "purge", "again")
    commit(later, again)
    left = {key: score for key, score in ROWS.items() if key != gone}
    assert scores(table) == {**left, "com.a:http/06": 60.0}


class Crash(Exception):
    pass


def test_a_commit_that_was_cut_off_is_there_as_a_whole_or_not_at_all(table, monkeypatch):
    change(table, state_of(ROWS), "first")
    after = {**ROWS, "com.a:http/00": -1.0, "com.b:http/": 1.0}
    operation = begin(table, "inject", "cut.inject")
    parts = resolved(operation, state_of({"com.a:http/00": -1.0, "com.b:http/": 1.0}))

    def crash(*_, **__):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotLog, "apply", crash)
        patch.setattr(folder_table, "create_exclusive", crash)
        with pytest.raises(Crash):
            commit(operation, parts)
    root = open_table(table)
    assert root.latest_snapshot() == 1
    assert scores(table) == ROWS  # readers do not see half of it
    settled = root.settled_snapshot()
    assert settled == root.latest_snapshot() == root.begun_snapshot()
    assert scores(table) == (after if settled == 2 else ROWS)
    commit(operation, parts)  # the same again: it counts once
    assert (root.latest_snapshot(), scores(table)) == (2, after)
    assert change(table, state_of({"com.c:http/": 1.0}), "next").snapshot == 3
