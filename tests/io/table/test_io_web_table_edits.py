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
from nutbeam.policy.components.blocklist import Names
from nutbeam.policy.purging import purge_of
from nutbeam.web.base.errors import UserError


def without(key):
    return purge_of(Names(urls=(key,)))


def edited(address, edit, name):
    operation = begin(address, "purge", name)
    parts = [
        part
        for tablet in tablets(operation.files("state"))
        for part in operation.table.edit("state", tablet, edit)
    ]
    return operation, parts


def test_purged_rows_cannot_be_read_any_more(address):
    gone = "com.a:http/05"
    change(address, state_of(ROWS), "first")
    operation, parts = edited(address, without(gone), "purge")
    made = commit(operation, parts)
    assert made.counts["rows/state"] == 1
    left = {key: score for key, score in ROWS.items() if key != gone}
    assert scores(address) == left
    assert scores(address, 1) == ROWS
    table = open_table(address)
    purge.delete_purged(table, made.snapshot, purge_of(Names(urls=(gone,))))
    assert scores(address) == left
    with pytest.raises(UserError):
        scores(address, 1)


def test_an_edit_that_finds_nothing_writes_nothing(address):
    change(address, state_of(ROWS), "first")
    assert edited(address, without("com.z:http/"), "purge")[1] == []


def test_an_edit_is_made_again_where_rows_were_changed_since(address):
    gone = "com.a:http/05"
    change(address, state_of(ROWS), "first")
    operation, parts = edited(address, without(gone), "purge")
    before = tablets(operation.files("state"))
    change(address, state_of({gone: 50.0, "com.a:http/06": 60.0}), "second")
    table, now = parts_of(address)
    again = list(table.edit_again("state", without(gone), Edited(1, before, parts), now))
    later = begin(address, "purge", "again")
    commit(later, again)
    left = {key: score for key, score in ROWS.items() if key != gone}
    assert scores(address) == {**left, "com.a:http/06": 60.0}


class Crash(Exception):
    pass


def test_a_commit_that_was_cut_off_is_there_as_a_whole_or_not_at_all(address, monkeypatch):
    change(address, state_of(ROWS), "first")
    after = {**ROWS, "com.a:http/00": -1.0, "com.b:http/": 1.0}
    operation = begin(address, "inject", "cut.inject")
    parts = resolved(operation, state_of({"com.a:http/00": -1.0, "com.b:http/": 1.0}))

    def crash(*_, **__):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotLog, "apply", crash)
        patch.setattr(folder_table, "create_exclusive", crash)
        with pytest.raises(Crash):
            commit(operation, parts)
    table = open_table(address)
    assert table.latest_snapshot() == 1
    assert scores(address) == ROWS  # readers do not see half of it
    settled = table.settled_snapshot()
    assert settled == table.latest_snapshot() == table.begun_snapshot()
    assert scores(address) == (after if settled == 2 else ROWS)
    commit(operation, parts)  # the same again: it counts once
    assert (table.latest_snapshot(), scores(address)) == (2, after)
    assert change(address, state_of({"com.c:http/": 1.0}), "next").snapshot == 3
