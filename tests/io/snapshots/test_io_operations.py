import dataclasses
import json
import threading
from pathlib import Path

import pytest
from crawling import latest_snapshot, manifest_at
from dropping import as_nobody
from stores_here import KINDS

from nutbeam.io.snapshots import commit as module
from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import Operation, begin, find_commit, new_id, pinned_operation
from nutbeam.io.storage.file_errors import ConflictError
from nutbeam.io.storage.files import overwrite_bytes, read_bytes, read_if_there
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.io.tablets.written import Written
from nutbeam.web.base.clock import now_ms
from nutbeam.web.base.errors import UserError

BATCH = Batch("generated", 1, 1, 10, 99)


def written(component, *paths, replaced=(), **counts):
    files = tuple(DataFile(path, rows=1, bytes=10) for path in paths)
    return Written(component, files, tuple(replaced), counts)


def live(operation_or_manifest, component="state", table=None):
    if isinstance(operation_or_manifest, Operation):
        table = operation_or_manifest.table
        operation_or_manifest = manifest_at(table, latest_snapshot(table))
    found = module.load_files(table, operation_or_manifest.components.get(component))
    return sorted(file.path for file in found)


def pytest_generate_tests(metafunc):
    """Runs what concerns a table in a folder and in each store."""
    alone = metafunc.function.__name__ == "test_the_table_may_have_moved"
    if "table" in metafunc.fixturenames and not alone:
        metafunc.parametrize("address", KINDS, indirect=True)


@pytest.fixture
def table(address):
    """A table with two tablets and an open batch."""
    first = begin(address, "generate", "first", batch="b1", now=10)
    commit(first, [written("state", "a", "b")], CommitTerms(batch=BATCH))
    return address


@pytest.mark.few(2)
def test_the_first_begin_of_an_operation_pins_its_snapshot(table):
    first = begin(table, "update", "op", batch="b1", now=20)
    assert (first.snapshot, first.now, first.batch, first.idle) == (1, 20, "b1", "")
    commit(begin(table, "inject", "other"), [])
    assert begin(table, "update", "op", batch="b1", now=30) == first


def test_the_table_may_have_moved(table, tmp_path):
    first = begin(table, "update", "op", batch="b1")
    moved = tmp_path / "moved"
    Path(table).rename(moved)
    again = begin(str(moved), "update", "op", batch="b1")
    assert again == dataclasses.replace(first, address=str(moved))


@pytest.mark.few(1)
@pytest.mark.parametrize(("job", "batch"), [("dedup", "b1"), ("update", "b2"), ("update", None)])
def test_an_id_belongs_to_one_job_and_batch(table, job, batch):
    begin(table, "update", "op", batch="b1")
    with pytest.raises(UserError, match=r"^operation 'op' is update of batch 'b1', not .*another"):
        begin(table, job, "op", batch=batch)


@pytest.mark.few(2)
def test_randomness_follows_from_the_id(table):
    assert begin(table, "a", "x").seed == begin(table, "a", "x").seed
    assert begin(table, "a", "x").seed != begin(table, "a", "y").seed


def test_concurrent_begins_of_an_operation_pin_the_same(table):
    found = []
    gate = threading.Barrier(8)

    def race(me):
        gate.wait()
        found.append(begin(table, "update", "op", now=me))

    racers = [threading.Thread(target=race, args=(me,)) for me in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert len(set(found)) == 1


@pytest.mark.few(2)
def test_a_committed_operation_is_idle_and_commits_no_more(table):
    operation = begin(table, "update", "op")
    made = commit(operation, [written("state", "c", added=1)])
    again = begin(table, "update", "op")
    assert again.idle == "done"
    assert commit(again, [written("state", "d", added=1)]) == made
    assert latest_snapshot(operation.table) == 2
    assert live(operation) == ["a", "b", "c"]


@pytest.mark.few(2)
def test_a_committed_operation_is_found_under_later_snapshots(table):
    operation = begin(table, "update", "op")
    made = commit(operation, [])
    for name in ("x", "y"):
        commit(begin(table, "inject", name), [])
    assert find_commit(operation) == made
    assert begin(table, "update", "op").idle == "done"
    assert find_commit(begin(table, "inject", "z")) is None


@pytest.mark.few(2)
def test_a_commit_records_files_counts_and_the_batch(table):
    operation = begin(table, "update", "op", batch="b1", now=77)
    batch = dataclasses.replace(BATCH, phase="updated")
    parts = [
        written("state", "c", replaced=["a"], added=1, **{"dropped/out_of_scope": 2}),
        written("batches/b1/outcome", "o", added=2),
        Written(counts={"lines": 3}),
    ]
    made = commit(operation, parts, CommitTerms(batch=batch))
    assert (made.snapshot, made.operation, made.job, made.batch, made.time) == (
        2, "op", "update", "b1", 77
    )  # fmt: skip
    assert made.counts == {"added": 3, "dropped/out_of_scope": 2, "lines": 3}
    assert made.batches == {"b1": batch}
    assert live(made, table=operation.table) == ["b", "c"]
    assert live(made, "batches/b1/outcome", operation.table) == ["o"]
    assert (made.components["state"].files, made.components["state"].rows) == (2, 2)
    assert manifest_at(operation.table, 2) == made


@pytest.mark.few(2)
def test_an_unchanged_component_keeps_its_list(table):
    operation = begin(table, "update", "op")
    before = operation.manifest().components["state"]
    assert commit(operation, [written("hosts", "h")]).components["state"] == before


@pytest.mark.few(2)
def test_all_files_of_a_component_may_go(table):
    operation = begin(table, "update", "op")
    commit(operation, [written("state", replaced=["a", "b"])])
    assert live(operation) == []


@pytest.mark.few(2)
def test_commits_of_other_operations_in_the_meantime_are_kept(table):
    mine = begin(table, "update", "mine", batch="b1")
    commit(begin(table, "fetch", "theirs"), [written("batches/b2/pages", "p")])
    made = commit(
        mine, [written("state", "c", replaced=["a"])], CommitTerms(reads=frozenset({"state"}))
    )
    assert made.snapshot == 3
    assert live(made, table=mine.table) == ["b", "c"]
    assert live(made, "batches/b2/pages", mine.table) == ["p"]


@pytest.mark.few(2)
def test_a_component_that_two_operations_write_unread_has_the_files_of_both(table):
    mine, theirs = begin(table, "a", "mine"), begin(table, "b", "theirs")
    commit(theirs, [written("host_findings", "t")])
    assert live(commit(mine, [written("host_findings", "m")]), "host_findings", mine.table) == [
        "m",
        "t",
    ]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("reads", "theirs"),
    [
        ("state", [written("state", "c")]),
        ("state", [written("state", replaced=["a"])]),
        ("hosts", [written("hosts", "h")]),
    ],
)
def test_a_commit_conflicts_if_a_component_that_it_read_has_changed(table, reads, theirs):
    mine = begin(table, "update", "mine")
    commit(begin(table, "inject", "theirs"), theirs)
    with pytest.raises(ConflictError, match=rf"^update: {reads} was changed by inject .*'theirs'"):
        commit(mine, [written("state", "x")], CommitTerms(reads=frozenset({reads})))
    assert latest_snapshot(mine.table) == 2
    assert "x" not in live(mine)


@pytest.mark.few(1)
def test_an_operation_that_lost_begins_again_under_the_same_id(table):
    """As a scheduler does that tries again: what was read before would never be true again."""
    for number in range(1, 4):
        mine = begin(table, "inject", "mine", now=number)
        assert (mine.snapshot, mine.now) == (number, number)
        assert begin(table, "inject", "mine") == mine
        commit(begin(table, "inject", f"theirs{number}"), [written("state", f"t{number}")])
        for _ in range(3):  # a runner tries a step that has failed again
            with pytest.raises(ConflictError):
                commit(mine, [written("state", "x")], CommitTerms(reads=frozenset({"state"})))
        assert pinned_operation(table, "mine") is None
    again = begin(table, "inject", "mine")
    assert begin(table, "inject", "mine") == again
    made = commit(again, [written("state", "m", added=1)], CommitTerms(reads=frozenset({"state"})))
    assert made.operation == "mine"
    assert begin(table, "inject", "mine").idle == "done"
    # Those who do not know that they have lost change nothing.
    assert commit(mine, [written("state", "x")], CommitTerms(reads=frozenset({"state"}))) == made
    assert live(again) == ["a", "b", "m", "t1", "t2", "t3"]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("batch", "record", "conflict"),
    [
        ("b2", BATCH, True),
        ("b1", dataclasses.replace(BATCH, phase="updated"), True),
        ("b1", dataclasses.replace(BATCH, phase="fetched"), False),  # still open
    ],
)
def test_the_list_of_open_batches_can_be_read(table, batch, record, conflict):
    mine = begin(table, "generate", "mine", batch="b3", now=10)
    commit(begin(table, "other", "theirs", batch=batch), [], CommitTerms(batch=record))
    if conflict:
        with pytest.raises(ConflictError, match=r"^generate: batches was changed by other"):
            commit(mine, [], CommitTerms(reads=frozenset({"batches"}), batch=BATCH))
    else:
        assert set(commit(mine, [], CommitTerms(reads=frozenset({"batches"}), batch=BATCH)).batches) == {
            "b1", "b3"
        }  # fmt: skip


@pytest.mark.few(2)
def test_a_batch_keeps_the_consumers_that_other_commits_noted_in_the_meantime(table):
    updated = dataclasses.replace(BATCH, phase="updated")
    commit(begin(table, "update", "u", batch="b1"), [], CommitTerms(batch=updated))
    one, two = (begin(table, "take", name, batch="b1") for name in ("one", "two"))
    commit(one, [], CommitTerms(takes_in={"b1": "one"}))
    made = commit(two, [], CommitTerms(takes_in={"b1": "two"}))
    assert made.batches["b1"].taken_in == {"one", "two"}
    again = begin(table, "take", "again", batch="b1")
    commit(
        begin(table, "undo", "undo"), [], CommitTerms(others={"b1": updated})
    )  # as a rollback does
    assert commit(again, [], CommitTerms(takes_in={"b1": "more"})).batches["b1"].taken_in == {
        "more"
    }


@pytest.mark.few(2)
def test_a_batch_that_is_not_updated_any_more_is_not_taken_in(table):
    taker = begin(table, "take", "t")
    assert commit(taker, [], CommitTerms(takes_in={"b1": "t", "gone": "t"})).batches == {
        "b1": BATCH
    }


def test_one_of_two_operations_with_the_same_work_on_a_batch_commits(table):
    one, two = (begin(table, "parse", name, batch="b1") for name in ("one", "two"))
    parsed = dataclasses.replace(BATCH, phase="parsed")
    commit(one, [written("batches/b1/documents", "d1")], CommitTerms(batch=parsed))
    commit(begin(table, "tidy", "t"), [])  # it has not done the work
    with pytest.raises(
        ConflictError,
        match=r"^parse: batch 'b1' is parsed in the meantime, by parse \(operation 'one'\)",
    ):
        commit(two, [written("batches/b1/documents", "d2")], CommitTerms(batch=parsed))
    assert live(one, "batches/b1/documents") == ["d1"]


@pytest.mark.long
def test_many_commits_at_once_all_count(table):
    operations = [begin(table, f"job{n}", f"op{n}") for n in range(8)]
    gate = threading.Barrier(8)

    def race(operation):
        gate.wait()
        commit(operation, [written(f"batches/{operation.id}/pages", operation.id, pages=1)])

    racers = [threading.Thread(target=race, args=(operation,)) for operation in operations]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert latest_snapshot(operations[0].table) == 9
    latest = manifest_at(operations[0].table, 9)
    assert len(latest.components) == 9
    assert {manifest_at(operations[0].table, n).operation for n in range(2, 10)} == {
        operation.id for operation in operations
    }


def test_one_operation_committed_by_many_at_once_counts_once(table):
    operation = begin(table, "update", "op")
    gate = threading.Barrier(6)
    made = []

    def race(me):
        gate.wait()
        made.append(
            commit(operation, [written("state", f"c{me}")], CommitTerms(reads=frozenset({"state"})))
        )

    racers = [threading.Thread(target=race, args=(me,)) for me in range(6)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert len(made) == 6
    assert all(one == made[0] for one in made)
    assert latest_snapshot(operation.table) == 2
    assert len(live(operation)) == 3


def test_a_lost_race_against_a_reader_of_the_same_conflicts(table, monkeypatch):
    """Somebody commits between the check and the store."""
    mine, theirs = begin(table, "update", "mine"), begin(table, "inject", "theirs")
    real = module.store_manifest

    def late(root, manifest, changes=None):
        monkeypatch.setattr(module, "store_manifest", real)
        commit(theirs, [written("state", "t")])
        return real(root, manifest)

    monkeypatch.setattr(module, "store_manifest", late)
    with pytest.raises(ConflictError):
        commit(mine, [written("state", "m")], CommitTerms(reads=frozenset({"state"})))
    assert live(mine) == ["a", "b", "t"]


def test_find(table):
    operation = begin(table, "update", "op")
    assert pinned_operation(table, "op") == operation
    assert pinned_operation(table, "unknown") is None


@pytest.mark.few(4)
@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": 1}', '{"id": "op", "new": 1}'])
def test_a_damaged_operation(table, text):
    begin(table, "update", "op")
    overwrite_bytes(place_of(table) / "operations" / "op.json", text.encode())
    with pytest.raises(UserError, match=r"^operation file is damaged: .*op.json: [^\n]*$"):
        begin(table, "update", "op")


@pytest.mark.few(2)
def test_nothing_is_pinned_in_a_damaged_table(table):
    overwrite_bytes(place_of(table) / "manifest" / "00000001.json", b"{")
    with pytest.raises(UserError, match=r"manifest is damaged"):
        begin(table, "update", "op")
    assert read_if_there(place_of(table) / "operations" / "op.json") is None


def test_a_table_that_may_not_be_written(locked):
    error = as_nobody(begin, str(locked / "table"), "inject", "op")
    assert isinstance(error, UserError)
    assert str(error) == f"cannot write {locked}/table/operations/op.json: Permission denied"


@pytest.mark.few(2)
def test_a_pinned_operation_does_not_contain_the_address_of_the_table(table):
    begin(table, "update", "op")
    record = json.loads(read_bytes(place_of(table) / "operations" / "op.json"))
    assert table not in str(record)


def test_ids_are_new_and_in_the_order_of_time():
    assert len({new_id() for _ in range(100)}) == 100
    before = now_ms() // 1000
    assert before <= int(new_id().partition("-")[0]) <= now_ms() // 1000
    made = []
    for _ in range(8):  # with eight random digits alone, 1 in 40,320 is in order
        ms = now_ms()
        made.append(new_id())
        while now_ms() == ms:
            pass
    assert made == sorted(made)
