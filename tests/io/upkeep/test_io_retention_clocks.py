"""What a sweep deletes when the clock was wrong."""

import time

from growing_old import DAY, WEEK, make, pass_time, paths, put, written

from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.io.upkeep.retention import delete_expired, disturbed_by


def test_files_that_a_clock_ahead_has_left_grow_old_all_the_same(table):
    put(table, "state/orphan")
    pass_time(table, -54 * 365)
    make(table, "right", written(table, "state", "state/d", replaced=["state/c"]))
    found = delete_expired(open_table(str(table)), WEEK)
    assert found.pop("clock") > 5
    assert found == {}
    assert disturbed_by(open_table(str(table)), "compact") == []
    pass_time(table, 8)
    assert delete_expired(open_table(str(table)), WEEK)["deleted/snapshots"] == 3
    assert paths(table, "state") == ["state/all", "state/d"]


def test_an_operation_of_a_clock_ahead_is_under_way_for_a_day_at_most(table):
    begin(str(table), "inject", "dead.inject")
    pass_time(table, -54 * 365)
    make(table, "right", written(table, "state", "state/d"))
    assert disturbed_by(open_table(str(table)), "compact") == ["dead.inject"]
    delete_expired(open_table(str(table)), WEEK)
    pass_time(table, 2)
    assert disturbed_by(open_table(str(table)), "compact") == []


def test_no_file_is_deleted_or_touched_while_the_clock_is_late(table):
    pass_time(table, -400)
    before = {path: path.stat().st_mtime for path in table.rglob("*") if path.is_file()}
    assert delete_expired(open_table(str(table)), WEEK) == {}
    assert {path: path.stat().st_mtime for path in before} == before


def test_a_commit_sets_batches_of_the_future_right(table):
    ahead = int(time.time() + 54 * 365 * DAY) * 1000
    known = {"phase": "generated", "partitions": 1, "urls": 1}
    times = {"created": ahead, "blocks_until": ahead + WEEK * 1000}
    operation = begin(str(table), "generate", "g.generate", batch="b", now=ahead)
    commit(operation, [], CommitTerms(batch=Batch(**known, **times)))
    fetching = begin(str(table), "fetch", "f.fetch", batch="b")
    made = make(table, "other", written(table, "hosts", "hosts/a"))
    batch = made.batches["b"]
    assert batch.created == made.time
    assert batch.blocks_until == made.time + WEEK * 1000
    assert made.latest_time == ahead
    # Who works on the batch does not mind.
    done = commit(fetching, [], CommitTerms(batch=Batch(**known | {"phase": "fetched"}, **times)))
    assert (done.batches["b"].phase, done.batches["b"].created) == ("fetched", fetching.now)
