"""Rollback, purge, compact and commits that were cut off, on tables in Bigtable's emulator."""

import json
import os

import polars as pl
import pytest
from bigtable_rows import clock, load, state
from bigtable_samples import every_third_key
from crawling import (
    crawl,
    files_of,
    json_lines,
    manifest_at,
    manifest_of,
    manifests_of,
    nutbeam,
    place_in,
    state_of,
    statuses_of,
    tree,
)
from web_tables import Snapshot, newest

from nutbeam.io.bigtable.snapshot_log import ChangedFile, open_log
from nutbeam.io.bigtable.stored_rows import change_of, write_changes
from nutbeam.io.rows.seed_hosts import read_seed_hosts
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.file_errors import ConflictError, SnapshotTooOld
from nutbeam.io.storage.files import list_files
from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.tablets.written import Written

pytestmark = pytest.mark.bigtable


@pytest.mark.long
def test_a_rollback_restores_earlier_rows(table, here, refuse):
    """Back over new rows, changed ones and deleted ones, and forth again."""
    assert nutbeam("copy", here[0], table) == 0
    said_by = {newest(table): Snapshot(table).contents()}
    for words in (
        ["inject", table, "http://new.example.com/", "http://h0.example.com/\tnutch.score=7"],
        ["purge", table, "--host", "h1.example.com"],
        ["inject", table, "http://other.example.com/"],
    ):
        assert nutbeam(*words) == 0
        said_by[newest(table)] = Snapshot(table).contents()
    first, injected, _, last = said_by
    assert len(said_by[last]["state"]) != len(said_by[first]["state"])
    words = ["rollback", table, "--to", first, "--operation", "back"]
    assert "is a purge: a rollback to snapshot" in refuse(*words)
    assert nutbeam(*words, "--past_purge") == 0
    back = newest(table)
    assert back == last + 1
    same(Snapshot(table).contents(), said_by[first], but="blocklist")
    same(Snapshot(table, last).contents(), said_by[last])  # for readers nothing has changed
    assert manifest_of(table).components["state"].rows == len(said_by[first]["state"])
    assert nutbeam(*words, "--past_purge") == 0  # the same operation again
    assert newest(table) == back
    assert nutbeam("rollback", table, "--to", injected, "--past_purge") == 0
    same(Snapshot(table).contents(), said_by[injected], but="blocklist")
    # By now more commits have changed rows than Bigtable keeps versions.
    before = tree(table)
    line = refuse("rollback", table, "--to", injected, "--past_purge")
    assert line.startswith(f"cannot go back to snapshot {injected}: Bigtable may have removed")
    assert tree(table) == before


def same(found, right, but=""):
    """Asserts that two snapshots say the same, all but one component."""
    assert found.keys() - {but} == right.keys() - {but}
    for name in right.keys() - {but}:
        assert found[name].equals(right[name]), name


def test_a_rollback_reads_and_writes_changed_rows_only(counted):
    table, counter = counted
    load(table, state(2_000, due=0, now=clock(table)))
    snapshot, was = newest(table), state_of(table)
    assert nutbeam("inject", table, "http://new.example.com/", "http://h01.example.org/00001") == 0
    counter.read.clear()
    counter.written.clear()
    assert nutbeam("rollback", table, "--to", snapshot) == 0
    assert state_of(table).equals(was)
    keys = {"com.example.new:http/", "org.example.h01:http/00001"}
    assert {key for family, key in counter.written if family == "s"} <= keys


@pytest.mark.few(1)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_reader_of_rows_that_a_purge_erased_gets_snapshot_too_old(table, at_once):
    assert nutbeam("inject", table, "http://www.example.com/", "http://gone.example.com/") == 0
    reader = Snapshot(table)
    (part,) = reader.parts()
    assert nutbeam("purge", table, "--host", "gone.example.com", *["--now"] * at_once) == 0
    if not at_once:
        assert len(reader.read(part)) == 2
        assert nutbeam("compact", table, "--snapshot_retention", 0) == 0
    assert len(Snapshot(table).rows()) == 1
    with pytest.raises(SnapshotTooOld, match="too old"):
        reader.read(part)


def test_a_commit_that_begins_before_the_sweep_of_a_purge_fails_without_harm(table):
    assert nutbeam("inject", table, "http://www.example.com/") == 0
    operation = begin(table, "inject", "late.inject")
    rows = state_of(table).drop("url").with_columns(key=pl.lit("com.example.www:http/2"))
    found = write_changes(operation.table.files, "state", rows)
    # Nothing of the purge has anything to do with it, but its file may be gone.
    purge = ("purge", table, "--host", "nobody.example.com", "--now", "--wait_seconds", "1")
    assert nutbeam(*purge) == 0
    with pytest.raises(ConflictError, match="was purged in the meantime"):
        commit(operation, [Written("state", (found.file,))])
    assert nutbeam("inject", table, "http://www.example.com/3") == 0
    assert len(state_of(table)) == 2


def test_a_commit_that_was_cut_off_is_finished_by_the_next_job(table):
    assert nutbeam("inject", table, "http://www.example.com/") == 0
    # As if one had died between its commit and its rows.
    log = open_log(table)
    operation = begin(table, "inject", "cut.inject")
    rows = state_of(table).drop("url").with_columns(key=pl.lit("com.example.www:http/2"))
    found = write_changes(operation.table.files, "state", rows)
    dying = Dying(log)
    with pytest.raises(KeyboardInterrupt):
        dying.store(change_of("state", found.file))
    assert list(statuses_of(table)) == ["http://www.example.com/"]  # readers see the one before
    assert nutbeam("generate", table) == 0
    (batch,) = manifest_of(table).batches.values()
    assert batch.urls == 2


class Dying:
    """Commits, and dies before the first row is written."""

    def __init__(self, log):
        self.log = log

    def store(self, change: ChangedFile):
        head = self.log.head()
        record = json.loads(self.log.record(head.snapshot))
        record |= {"snapshot": head.snapshot + 1, "operation": "cut.inject"}
        del record["digest"]
        assert self.log.propose(head, json.dumps(record).encode(), [change], "cut")
        raise KeyboardInterrupt


def test_an_operation_that_was_cut_off_after_its_commit_is_done(table, monkeypatch):
    words = ("inject", table, "http://www.example.com/", "--operation", "mine")
    with monkeypatch.context() as patch:
        patch.setattr("nutbeam.io.bigtable.snapshot_log.SnapshotLog.apply", die)
        assert nutbeam(*words) == 130
    assert open_log(table).head().applying
    assert nutbeam(*words) == 0
    assert [m.operation for m in manifests_of(table)] == ["mine.inject"]
    assert list(statuses_of(table)) == ["http://www.example.com/"]


def die(*_):
    raise KeyboardInterrupt


@pytest.mark.long
def test_compact_deletes_snapshots_and_files_that_are_not_needed(table, web):
    assert crawl(table, web, *web.seeds) == 0
    state, pages = state_of(table), pages_of(table)
    assert changes_in(table)
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert not changes_in(table)
    assert len(open_log(table).snapshots()) <= 2
    assert state_of(table).equals(state)
    assert pages_of(table) == pages
    assert nutbeam("inject", table, "http://h0.example.com/more") == 0
    assert crawl(table, web) == 4  # there is no such page
    assert "http://h0.example.com/more" in statuses_of(table)


@pytest.mark.few(1)
@pytest.mark.parametrize("folder", ["state", "deleted/state", "purged/state"])
def test_compact_removes_files_of_changes_that_a_killed_job_has_not_finished(table, folder):
    assert nutbeam("inject", table, "http://h0.example.com/") == 0
    half = open_table(table).files / f"changes/{folder}/.half.parquet.0123456789abcdef"
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_bytes(b"")
    os.utime(half, (0, 0))
    assert nutbeam("compact", table) == 0
    assert not half.exists()


def test_compact_makes_one_file_of_those_that_name_the_seeds(table, capsys):
    for name in ("one", "two", "one.two"):
        assert nutbeam("inject", table, f"http://{name}.example.com/") == 0
    assert len(files_of(table, "seed_hosts")) == 3
    known = read_seed_hosts(Snapshot(table)).host_keys.to_list()
    capsys.readouterr()
    assert nutbeam("compact", table) == 0
    assert "seed_hosts/merged 3" in capsys.readouterr().out
    assert len(files_of(table, "seed_hosts")) == 1
    assert read_seed_hosts(Snapshot(table)).host_keys.to_list() == known
    made = newest(table)
    assert nutbeam("compact", table) == 0
    assert manifest_of(table).components == manifest_at(open_table(table), made).components


def changes_in(table):
    return [file.path for file in list_files(place_in(table, "changes"))]


def pages_of(table):
    output = place_in(table, "pages.jsonl")
    assert nutbeam("pages", table, "-o", output) == 0
    return json_lines(output.read_text())


def test_a_large_table_is_cut_into_tablets_that_hold_all_rows(table, monkeypatch, resize_tables):
    resize_tables(tablet_rows=100)
    monkeypatch.setattr(BigtableWebTable, "samples", every_third_key)
    rows = state(2_000, due=2_000, now=clock(table))
    load(table, rows)
    load(table, rows.head(10).with_columns(key=pl.col("key") + "x"), "more")
    found = begin(table, "generate", "x.generate")
    known = tablets(found.files("state"))
    assert len(known) > 3
    assert sum(tablet.rows for tablet in known) == 2_010
    parts = [pl.concat(found.table.scan("state", tablet)) for tablet in known]
    assert pl.concat(parts)["key"].to_list() == state_of(table)["key"].to_list()
    for part, tablet in zip(parts, known, strict=True):
        assert tablet.first is None or part["key"].min() >= tablet.first
        assert tablet.last is None or part["key"].max() < tablet.last
