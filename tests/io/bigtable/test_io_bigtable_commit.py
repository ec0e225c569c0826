"""Snapshots in a real emulator: commits, crashes, races."""

import os
import random
import signal
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from bigtable_crash import STEPS
from bigtable_emulator import Proxy
from cell_kinds import STATE_CELL
from committing import ROWS, changes_of, read, record_of, versions, write_changes
from frames import table_of
from here import TESTS
from waiting import PATIENCE

from nutbeam.io.bigtable.admin import create_table
from nutbeam.io.bigtable.cells import encode
from nutbeam.io.bigtable.client import BigtableTable
from nutbeam.io.bigtable.snapshot_log import HEAD_ROW, SnapshotLog, open_log
from nutbeam.io.storage.file_errors import SnapshotTooOld
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.policy.components.schema import STATE
from nutbeam.web.base.errors import UserError

pytestmark = pytest.mark.bigtable


@pytest.fixture
def log(bigtable, tmp_path):
    address = bigtable.new_address()
    create_table(address, str(tmp_path))
    return open_log(address)


def another(log):
    """The same table, as another process sees it: over a connection of its own."""
    return SnapshotLog(BigtableTable(log.table.address), log.files)


def store(log, snapshot, tables=None):
    root = place_of(log.settings().files)
    changes = write_changes(root, changes_of(snapshot) if tables is None else tables)
    return log.store(snapshot, record_of(snapshot), changes)


def test_a_new_table_is_at_snapshot_0(log):
    assert log.pin() == 0
    assert log.record(0) == b""
    assert versions(log) == set()


def test_commits_are_seen_as_a_whole_one_after_the_other(log):
    for snapshot in (1, 2, 3):
        assert store(log, snapshot)
        assert log.pin() == snapshot
        assert log.record(snapshot) == record_of(snapshot)
        assert versions(log) == {snapshot}
        assert len(read(log)) == ROWS
    # Those before are still there.
    assert [versions(log, snapshot) for snapshot in (1, 2)] == [{1}, {2}]
    assert [log.record(snapshot) for snapshot in (1, 2)] == [record_of(1), record_of(2)]


def test_a_commit_may_change_nothing_and_may_delete(log):
    store(log, 1)
    assert store(log, 2, {})
    assert versions(log) == {1}
    gone = write_changes(place_of(log.settings().files), changes_of(3), deleted=("state",))
    assert log.store(3, record_of(3), gone)
    assert read(log) == []
    assert versions(log) == {3}  # the host
    assert len(read(log, snapshot=2)) == ROWS


def test_the_second_writer_of_a_number_changes_nothing(log):
    assert store(log, 1)
    before = read(log)
    assert not store(log, 1)
    assert not store(log, 3)  # nor one that skips a number
    assert read(log) == before
    assert log.pin() == 1


def test_one_of_two_writers_that_read_the_same_snapshot_wins(log):
    root, head = place_of(log.settings().files), log.head()
    mine, theirs = (write_changes(root, changes_of(n)) for n in (1, 2))
    other = another(log)
    assert log.propose(head, b"mine", mine, "mine")
    assert other.propose(head, b"theirs", theirs, "theirs") is None
    assert log.pin() == 0  # not applied yet
    assert other.roll_forward().id == "mine"
    assert log.record(1) == b"mine"
    assert versions(log) == {1}


def run_until(log, step):
    script = TESTS / "support" / "bigtable_crash.py"
    return subprocess.run(
        [sys.executable, str(script), str(log.table.address), step],
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.few(3)
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_table_is_old_or_new(log, step):
    store(log, 1)
    pinned = log.pin()
    killed = run_until(log, step)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    committed = step != "written"
    # A reader pinned before sees no change, a new one the old or the new state, whole.
    assert versions(log, pinned) == {1}
    assert log.pin() == (2 if step == "done" else 1)
    assert versions(log) == {log.pin()}
    assert len(read(log)) == ROWS
    # The next commit finds what was left and brings it to its end first.
    following = 3 if committed else 2
    assert not store(log, 2) or not committed
    if committed:
        assert log.pin() == 2
        assert log.record(2) == record_of(2)
        assert versions(log) == {2}
        assert store(log, 3)
    assert log.pin() == following
    assert versions(log) == {following}
    assert {row["retries"] for row in read(log, snapshot=following - 1)} == {following - 1}


@pytest.mark.long
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.long)])
def test_killed_at_random_moments(log, kills):
    """A process commits without end; it is killed, again and again."""
    random.seed(7)
    code = (
        "import sys; from committing import *\n"
        "from nutbeam.io.storage.place_addresses import place_of\n"
        "from nutbeam.io.bigtable.snapshot_log import open_log\n"
        "log = open_log(sys.argv[1]); root = place_of(log.settings().files); print(flush=True)\n"
        "while True:\n"
        "    n = log.roll_forward().snapshot + 1\n"
        "    log.store(n, record_of(n), write_changes(root, changes_of(n)))\n"
        "    print(n, flush=True)\n"
    )
    last = 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(log.table.address)], stdout=subprocess.PIPE,
            text=True, env={**os.environ, "PYTHONPATH": str(TESTS / "support")},
        )  # fmt: skip
        process.stdout.readline()
        for _ in range(random.randrange(1, 4)):
            said = int(process.stdout.readline())
        threading.Event().wait(random.random() * 0.02)
        process.kill()
        process.wait()
        process.stdout.close()
        pinned = log.pin()
        assert pinned >= said > last
        assert versions(log) == {pinned}
        assert len(read(log)) == ROWS
        newest = log.roll_forward().snapshot
        assert newest - pinned in (0, 1)
        assert versions(log) == {newest}
        last = newest


@pytest.mark.long
def test_no_commit_of_concurrent_writers_is_lost(log):
    """4 threads raise one number 20 times each, each on top of what it has read."""
    root, threads, times = place_of(log.settings().files), 4, 20
    seen = []

    def count():
        mine = another(log)
        for _ in range(times):
            while True:
                head = mine.roll_forward()
                value = sum(row["retries"] for row in read(mine, snapshot=head.snapshot))
                row = table_of(STATE, {"key": "com.a:http/", "retries": value + 1})
                number = head.snapshot + 1
                if mine.store(number, b"x", write_changes(root, {"state": row})):
                    seen.append((number, value + 1))
                    break

    workers = [threading.Thread(target=count) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert log.pin() == threads * times
    assert [row["retries"] for row in read(log)] == [threads * times]
    assert sorted(seen) == [(n, n) for n in range(1, threads * times + 1)]


def test_a_late_writer_that_writes_again_changes_nothing(log):
    store(log, 1)
    head = log.head()
    changes = write_changes(place_of(log.settings().files), changes_of(2))
    late = log.propose(head, record_of(2), changes, "late")
    other = another(log)
    assert store(other, 3)
    before = [read(log, snapshot=n) for n in (1, 2, 3)]
    # It wakes up, and goes on where it was.
    for change in changes:
        log.apply(change, late.snapshot)
    assert log.changes(late) == []
    assert log.finish(late).snapshot == 3
    assert log.roll_forward(late).snapshot == 3
    assert [read(log, snapshot=n) for n in (1, 2, 3)] == before
    assert versions(log) == {3}


def test_two_may_roll_the_same_forward(log):
    store(log, 1)
    changes = write_changes(place_of(log.settings().files), changes_of(2))
    head = log.propose(log.head(), record_of(2), changes, "mine")
    threads = [threading.Thread(target=another(log).roll_forward, args=(head,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.pin() == 2
    assert versions(log) == {2}


def test_a_reader_is_safe_for_three_commits_and_then_says_so(log):
    store(log, 1)
    for snapshot in (2, 3, 4):
        store(log, snapshot)
        log.check_fresh(1)
        assert versions(log, 1) == {1}
    store(log, 5)
    with pytest.raises(
        match=r"snapshot 1 of bigtable://.* is too old: the table is at 5, and keeps 4 versions",
    ):
        log.check_fresh(1)
    log.check_fresh(2)


def test_commits_that_change_no_rows_make_no_snapshot_old(log):
    store(log, 1)
    for snapshot in range(2, 9):
        store(log, snapshot, {} if snapshot % 2 else None)  # 2, 4, 6, 8 change rows
        assert log.times().keys() == set(range(1, snapshot + 1))
    for snapshot in (2, 3, 4):
        log.check_fresh(snapshot)
        assert versions(log, snapshot) == {snapshot - snapshot % 2}
    with pytest.raises(SnapshotTooOld):
        log.check_fresh(1)


def test_a_commit_that_has_begun_makes_old_snapshots_too_old(log):
    for snapshot in (1, 2, 3, 4):
        store(log, snapshot)
    changes = write_changes(place_of(log.settings().files), changes_of(5))
    log.propose(log.head(), record_of(5), changes, "begun")
    with pytest.raises(SnapshotTooOld):
        log.check_fresh(1)


@pytest.mark.few(1)
@pytest.mark.parametrize("at", range(3))
def test_an_answer_that_is_lost_is_no_conflict(bigtable, tmp_path, monkeypatch, at):
    """The commit comes in, its answer does not: it is found to be ours."""
    with Proxy(bigtable.host) as proxy:
        address = bigtable.new_address(proxy.host)
        create_table(address, str(tmp_path))
        log = SnapshotLog(BigtableTable(address), tmp_path)
        send = log.rows._check
        calls = []

        def lossy(*args, **mutations):
            calls.append(args)
            matched = send(*args, **mutations)
            if len(calls) - 1 == at:
                proxy.cut_after, proxy.cuts = 0, 1
                return send(
                    *args, **mutations
                )  # the next answer is cut off; here the predicate fails
            return matched

        monkeypatch.setattr(log.rows, "_check", lossy)
        monkeypatch.setattr("nutbeam.io.bigtable.channel.back_off", lambda failed: None)
        assert store(log, 1)
        assert store(log, 2)
        assert versions(log) == {2}
        assert log.pin() == 2


def test_a_row_of_our_own_is_created_once(log):
    won = []

    def race(me):
        mine = another(log)
        cells = {b"by whom": me.encode()}
        won.extend(name for name in range(20) if mine.rows.create(b"\0o/%d" % name, cells))

    threads = [threading.Thread(target=race, args=(me,)) for me in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(20))
    assert log.rows.get(b"\0o/0")[b"by whom"] in (b"a", b"b", b"c", b"d")
    assert log.rows.get(b"\0o/nobody") == {}
    assert versions(log) == set()


def test_the_history_is_listed_and_forgotten_but_for_the_newest(log):
    assert log.snapshots() == []
    for snapshot in range(1, 8):
        store(log, snapshot, {})
    assert log.snapshots() == [1, 2, 3, 4, 5, 6, 7]
    assert log.forget(2) == 1
    assert log.snapshots() == [2, 3, 4, 5, 6, 7]
    assert log.forget(100) == 5
    assert log.snapshots() == [7]
    assert log.record(7) == record_of(7)
    with pytest.raises(UserError, match="no snapshot 6 in"):
        log.record(6)
    assert store(log, 8)


def test_large_records(log):
    record = bytes(5_000_000)
    assert log.store(1, record, [])
    assert log.record(1) == record


def test_a_table_of_a_newer_format_is_refused(log):
    log.rows.put(HEAD_ROW, {b"commit": b'{"format": 9}'}, 1)
    with pytest.raises(UserError, match="the table has format 9, this version reads up to 1"):
        log.pin()


def test_a_damaged_manifest_row_is_one_line(log):
    log.rows.put(HEAD_ROW, {b"commit": b"{"}, 1)
    with pytest.raises(UserError, match=r"the manifest row is damaged: b'{'"):
        log.pin()


def test_no_web_table(bigtable, log):
    with pytest.raises(UserError, match=r"no table at bigtable://.*: nutbeam table create"):
        open_log(bigtable.new_address())
    with pytest.raises(UserError, match="no snapshot 3 in"):
        log.record(3)


def test_a_file_of_changes_that_is_missing_leaves_the_table_readable(log):
    store(log, 1)
    changes = write_changes(place_of(log.settings().files), changes_of(2))
    (place_of(log.settings().files) / changes[0].path).unlink()
    with pytest.raises(UserError, match="data file is missing"):
        log.store(2, b"x", changes)
    assert log.pin() == 1
    assert versions(log) == {1}


def test_a_row_that_bigtable_would_refuse_is_named_when_applied(log):
    rows = {"state": table_of(STATE, {"key": "k" * 5_000})}
    with pytest.raises(UserError, match="key_too_long"):
        store(log, 1, rows)
    assert log.pin() == 0


def test_an_old_cell_written_late_stays_deleted_by_its_tombstone(log):
    store(log, 1)
    gone = write_changes(
        place_of(log.settings().files), {"state": changes_of(1)["state"]}, ("state",)
    )
    log.store(2, b"x", gone)
    again = encode(changes_of(1)["state"], STATE_CELL)
    log.table.write(STATE_CELL, again, 1)  # late
    assert read(log) == []
    assert isinstance(again, pa.Table)
