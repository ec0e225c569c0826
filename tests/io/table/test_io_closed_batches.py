"""Closed batches move out of the manifest, and nobody who reads a table notices."""

import dataclasses
import json
import random

import pytest
from crawling import manifest_at

from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import DEDUP, Batch
from nutbeam.io.snapshots.manifest import Manifest, load_manifest, newest_manifest
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.file_errors import SnapshotTooOld
from nutbeam.io.storage.files import (
    create_exclusive,
    list_files,
    overwrite_bytes,
    read_bytes,
    remove_file,
)
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.io.tablets.written import Written
from nutbeam.io.upkeep.batch_repair import check_batch_lists
from nutbeam.io.upkeep.repair import repair
from nutbeam.io.upkeep.retention import named_files
from nutbeam.io.upkeep.rollback import events, roll_back
from nutbeam.web.base.errors import UserError

OPEN = Batch("generated", 5, 2, 10, 99)
CLOSED = dataclasses.replace(OPEN, phase="updated", taken_in=frozenset([DEDUP]))


def written(batch, kind="pages", *, replaced=()):
    file = DataFile(f"batches/{batch}/{kind}/{len(replaced):016x}.parquet", rows=1, bytes=10)
    return Written(f"batches/{batch}/{kind}", (file,), tuple(replaced))


def add_batch(address, number, record=CLOSED, kind="pages"):
    """Commits a batch as a job does; returns its snapshot."""
    name = f"{1_700_000_000 + number}-a"
    operation = begin(address, "update", f"u{number}", batch=name)
    terms = CommitTerms(others={name: dataclasses.replace(record, updated=number)})
    part = written(name, kind)
    create_exclusive(operation.table / part.files[0].path, bytes(10))
    return commit(operation, [part], terms)


@pytest.fixture
def few(resize_tables):
    resize_tables(closed_batches=2, listed_batches=8)


def lists_of(address):
    return newest_manifest(address).closed_lists


def test_a_long_history_reads_as_if_the_manifest_had_all(address, few):
    """Batches are closed, taken in, changed, dropped and opened again, in any order."""
    dice, batches = random.Random(7), {}
    for number in range(60):
        if number < 12 or dice.random() < 0.5:
            name = f"{1_700_000_000 + number}-a"
            phase = "generated" if dice.random() < 0.2 else "updated"
            batches[name] = dataclasses.replace(OPEN, phase=phase, updated=number)
            parts, terms = [written(name)], CommitTerms(others={name: batches[name]})
        else:
            name = dice.choice(sorted(batches))
            path = f"batches/{name}/pages/{0:016x}.parquet"
            if dice.random() < 0.3:
                parts = [Written(f"batches/{name}/pages", (), (path,), tidies=True)]
                terms = CommitTerms(forgets=frozenset([name]))
                del batches[name]
            elif batches[name].phase == "updated" and dice.random() < 0.5:
                taken = batches[name].taken_in | {"links"}
                batches[name] = dataclasses.replace(batches[name], taken_in=taken)
                parts, terms = [], CommitTerms(takes_in={name: "links"})
            else:
                phase = dice.choice(["generated", "updated"])
                batches[name] = dataclasses.replace(batches[name], phase=phase)
                parts, terms = [], CommitTerms(others={name: batches[name]})
        commit(begin(address, "any", f"op{number}"), parts, terms)
        manifest = newest_manifest(address)
        plain = Manifest(batches=batches)
        assert manifest.batches == batches
        assert set(manifest.components) == {f"batches/{one}/pages" for one in batches}
        assert manifest.waiting_for("links") == plain.waiting_for("links")
        assert manifest.open_batches(50) == plain.open_batches(50)
        assert all(manifest.is_newest(name) == plain.is_newest(name) for name in batches)
        listed = [
            name
            for one in manifest.closed_lists
            for name in manifest.batches.closed.load(one).batches
        ]
        assert len(listed) == len(set(listed))
    assert manifest.closed_lists


def test_commits_write_as_few_bytes_in_a_long_history(address, few):
    sizes = []
    for number in range(60):
        snapshot = add_batch(address, number).snapshot
        sizes.append(len(open_table(address).record(snapshot)))
    assert max(sizes[20:]) < 1.5 * max(sizes[:20])
    assert len(newest_manifest(address).batches) == 60


def test_a_commit_reads_no_list_of_closed_batches(address, few):
    for number in range(20):
        add_batch(address, number)
    lists = {one.list for one in lists_of(address)}
    held = {name: read_bytes(open_table(address) / name) for name in lists}
    for name in lists:
        remove_file(open_table(address) / name)
    open_batch = f"{1_700_000_900}-a"
    operation = begin(address, "generate", "g", batch=open_batch)
    terms = CommitTerms(reads=frozenset(["batches", "state"]), batch=OPEN)
    commit(
        dataclasses.replace(operation, batch=None),
        [written(open_batch)],
        dataclasses.replace(terms, batch=None, others={open_batch: OPEN}),
    )
    assert newest_manifest(address).open_batches(50) == [open_batch]
    assert newest_manifest(address).waiting_for(DEDUP) == []
    for name, data in held.items():
        overwrite_bytes(open_table(address) / name, data)
    assert len(newest_manifest(address).batches) == 21


@pytest.mark.parametrize("stored", [False, True])
def test_a_crash_between_the_list_and_the_manifest_loses_nothing(address, few, monkeypatch, stored):
    for number in range(3):
        add_batch(address, number)
    table_class = type(open_table(address))
    store = table_class.store

    def crash(self, snapshot, record, changes):
        if stored:
            store(self, snapshot, record, changes)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(table_class, "store", crash)
        with pytest.raises(KeyboardInterrupt):
            add_batch(address, 3)
    assert len(newest_manifest(address).batches) == 3 + stored
    add_batch(address, 3)
    add_batch(address, 4)
    assert len(newest_manifest(address).batches) == 5
    assert lists_of(address)


def test_an_older_version_refuses_lists_and_reads_all_else(address, few):
    formats = []
    for number in range(5):
        snapshot = add_batch(address, number).snapshot
        record = json.loads(open_table(address).record(snapshot))
        formats.append((record["format"], "closed" in record))
    assert formats == [(3, False)] * 3 + [(4, True)] * 2


def test_a_rollback_and_history_show_closed_batches(address, few):
    for number in range(12):
        add_batch(address, number)
    roll_back(address, 5, "back")
    manifest = newest_manifest(address)
    assert set(manifest.batches) == set(manifest_at(open_table(address), 5).batches)
    shown = [[*event.changes] for event in events(open_table(address))]
    assert shown[:12] == [[f"batches/{1_700_000_000 + n}-a/pages"] for n in range(12)]
    assert len(shown[12]) == 7  # those of the batches after snapshot 5 are gone


def test_files_of_closed_batches_are_named_by_their_snapshots(address, few):
    for number in range(12):
        add_batch(address, number)
    table = open_table(address)
    named = named_files(table, [newest_manifest(address)])
    assert {f"batches/{1_700_000_000 + n}-a/pages/{0:016x}.parquet" for n in range(12)} <= named
    assert {one.list for one in lists_of(address)} <= named


def damage(table, name, how):
    if how == "missing":
        remove_file(table / name)
    else:
        overwrite_bytes(table / name, read_bytes(table / name).replace(b"updated", b"UPDATED", 1))


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_lost_list_is_found_and_made_again(tmp_path, few, how):
    address = str(tmp_path / "table")
    for number in range(12):
        add_batch(address, number)
    add_batch(address, 5, dataclasses.replace(CLOSED, phase="updated"), "documents")
    before = newest_manifest(address)
    whole = {name: before.components[name].totals for name in before.components}
    records = {(n, b.phase, b.taken_in) for n, b in before.batches.items()}
    table = open_table(address)
    lost = before.closed_lists[0]
    damage(table, lost.list, how)
    again = load_manifest(open_table(address), before.snapshot)
    assert [problem.path for problem in check_batch_lists(table, again)] == [lost.list]
    with pytest.raises(UserError, match="run nutbeam fsck"):
        dict(again.batches)
    done = repair(table, "repair", {})
    assert done.manifest is not None
    mended = newest_manifest(address)
    assert check_batch_lists(table, mended) == []
    assert {name: mended.components[name].totals for name in mended.components} == whole
    assert {(n, b.phase, b.taken_in) for n, b in mended.batches.items()} == records
    # Older snapshots cannot be read any more; cleaning skips what only they name.
    manifests = [load_manifest(table, number) for number in table.snapshots()]
    assert named_files(table, manifests, whole_from=mended.snapshot)
    assert repair(table, "again", {}).manifest is None


def test_a_reader_of_a_deleted_snapshot_gets_one_line(tmp_path, few):
    address = str(tmp_path / "table")
    for number in range(12):
        add_batch(address, number)
    table = open_table(address)
    old = load_manifest(table, 8)
    for one in set(old.closed_lists) - set(lists_of(address)):
        remove_file(table / one.list)
    table.forget_snapshots(12)
    with pytest.raises(SnapshotTooOld):
        dict(old.batches)
    assert len(newest_manifest(address).batches) == 12
    assert list_files(table / "manifest" / "closed")
