"""Jobs on tables in Bigtable's emulator: the table that comes on disk, and which rows it takes."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest
from bigtable_emulator import Counter
from bigtable_samples import every_third_key
from crawling import (
    asked,
    assert_same,
    assert_whole,
    contents,
    crawl,
    done_in,
    files_of,
    json_lines,
    manifest_at,
    manifest_of,
    manifests_of,
    nutbeam,
    place_in,
    reach,
    rows_of,
    state_of,
    statuses_of,
    tree,
)
from web_tables import Snapshot, newest

from nutbeam.io.bigtable.changes import change_of, write_changes
from nutbeam.io.bigtable.snapshot_log import Change, open_log
from nutbeam.io.rows.hosts import read_seeds_hosts, seed_files
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.errors import ConflictError, SnapshotTooOld
from nutbeam.io.storage.files import list_files
from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets import tablet_writer
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.tablets.written import Written
from nutbeam.policy.schema import HOSTS, STATE, Status, conform
from nutbeam.web.rules.url_rules import host_keys
from nutbeam.web.simweb.server import SimWeb

pytestmark = pytest.mark.bigtable
SIZE = {"hosts": 3, "pages": 6, "seed": 7, "crawl_delay": 0}
AGENT = ["--agent_name", "tester", "--agent_email", "tester@example.com"]
DAY = 86_400_000


@pytest.fixture(scope="module")
def web():
    with SimWeb(**SIZE) as server:
        yield server


@pytest.fixture
def table(bigtable, tmp_path):
    return bigtable.make(tmp_path / "files")


@pytest.fixture
def counted(bigtable, tmp_path):
    """A table behind what counts the rows that are read and written."""
    with Counter(bigtable.host) as counter:
        yield bigtable.make(tmp_path / "files", counter.host), counter


def load(table, rows, name="load", component="state"):
    """Puts rows into a table, as an inject."""
    operation = begin(table, "inject", f"{name}.inject")
    parts = operation.root.load(component, [rows])
    files = tuple(file for part in parts for file in part.files)
    return commit(operation, [Written(component, files)])


def clock(table):
    """Returns what counts as now, ms."""
    return begin(table, "inject", "clock.inject").now


def state(number, due, now):
    """Returns so many rows of the state on a hundred hosts, of which the first are due."""
    keys = sorted(f"org.example.h{n % 100:02d}:http/{n:05d}" for n in range(number))
    frame = pl.DataFrame({"key": keys}).with_columns(
        status=pl.lit(int(Status.DB_UNFETCHED)),
        score=pl.lit(1.0),
        fetch_interval=pl.lit(2_592_000),
        retries=pl.lit(0),
        fetch_time=pl.when(pl.int_range(pl.len()) < due).then(now - DAY).otherwise(now + DAY),
    )
    return pl.DataFrame(pl.from_arrow(conform(frame, STATE)))


@pytest.mark.parametrize("rows", [1_000_000, 5], ids=["one tablet", "many"])
def test_a_crawl_makes_the_table_that_it_makes_on_disk(table, web, here, rows, monkeypatch):
    monkeypatch.setattr(tablet_writer, "TABLET_ROWS", rows)
    monkeypatch.setattr(BigtableWebTable, "samples", every_third_key)
    before = len(asked(web))
    assert crawl(table, web, *web.seeds) == 0
    assert_whole(table, web.site)
    assert sorted(asked(web)[before:]) == here[1]
    assert_same(contents(table), contents(here[0]))  # state, hosts, and all files of batches
    assert done_in(table) == done_in(here[0])
    for name in ("state", "hosts"):
        found, wanted = (manifest_of(t).components[name] for t in (table, here[0]))
        assert found.rows == wanted.rows == len(rows_of(table, name))
    assert (manifest_of(table).components["state"].files > 2) == (rows == 5)
    # A seed more: who the seeds are is known to those who filter links.
    assert nutbeam("inject", table, "http://else.example.net/") == 0
    assert crawl(table, web) in (0, 1)
    assert "http://h0.example.com/" in statuses_of(table)


def test_generate_receives_due_rows_only(counted):
    table, counter = counted
    rows = state(3_000, due=60, now=clock(table))
    load(table, rows)
    hosts = conform(pl.DataFrame({"key": host_keys(rows["key"]).unique().sort()}), HOSTS)
    load(table, pl.DataFrame(pl.from_arrow(hosts)), "hosts", "hosts")
    counter.read.clear()
    counter.written.clear()
    assert nutbeam("generate", table) == 0
    due = rows["key"].head(60)
    asked_of = [("h", "org.example.h00"), ("h", "org.example.h01")]
    assert sorted(counter.read) == sorted([*asked_of, *(("s", key) for key in due)])
    assert counter.written == []
    # Who asks for one row receives one.
    counter.read.clear()
    assert nutbeam("readdb", table, "--url", "http://h00.example.org/00000") == 0
    assert counter.read == [("s", "org.example.h00:http/00000")]


def test_a_round_is_not_begun_for_nothing(counted, web, capsys):
    table, counter = counted
    now = clock(table)
    load(table, state(500, due=0, now=now))
    before = tree(table)
    counter.read.clear()
    assert nutbeam("next", table, *reach(web)) == 1
    assert counter.read == []
    assert nutbeam("crawl", table, *reach(web)) == 1
    assert tree(table) == before


def test_update_reads_and_writes_touched_rows_only(counted, web):
    table, counter = counted
    now = clock(table)
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
    load(table, state(2_000, due=0, now=now), "bulk")
    assert nutbeam("generate", table) == 0
    assert nutbeam("fetch", table, *reach(web)) == 0
    assert nutbeam("parse", table) == 0
    (batch,) = (name for name, b in manifest_of(table).batches.items() if b.phase == "parsed")
    pages = {key for path in files_of(table, f"batches/{batch}/pages")
             for key in pl.read_parquet(path)["key"]}  # fmt: skip
    links = pl.concat(
        pl.read_parquet(path)["outlinks"] for path in files_of(table, f"batches/{batch}/documents")
    )
    targets = set(links.explode().struct.field("key").drop_nulls())
    before, hosts = state_of(table).drop("url"), rows_of(table, "hosts")
    counter.read.clear()
    counter.written.clear()
    assert nutbeam("updatedb", table) == 0
    read, written = list(counter.read), list(counter.written)
    after = state_of(table).drop("url")
    changed = set(after.join(before, on=after.columns, how="anti", nulls_equal=True)["key"])
    assert changed >= pages
    assert {key for family, key in read if family == "s"} <= (pages | targets) & set(before["key"])
    assert sorted(key for family, key in written if family == "s") == sorted(changed)
    touched = set(host_keys(pl.Series("key", sorted(pages))))
    assert {key for family, key in read if family == "h"} <= touched & set(hosts["key"])
    assert {key for family, key in written if family == "h"} <= touched
    assert len(read) == len(set(read))


@pytest.fixture
def said(capsys):
    """Runs a command that must fail with one line, and returns that line."""

    def run(*words, code=2):
        capsys.readouterr()
        assert nutbeam(*words) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err.removeprefix(f"nutbeam {words[0]}: ").rstrip("\n")

    return run


JOBS = ("crawl", "inject", "generate", "fetch", "parse", "updatedb", "dedup", "compact", "next",
        "readdb", "pages", "history", "fsck")  # fmt: skip


@pytest.mark.parametrize("command", JOBS)
def test_a_table_that_does_not_exist_is_one_line(bigtable, said, command):
    address = str(bigtable.new_address())
    words = ["http://www.example.com/"] if command in ("crawl", "inject") else []
    agent = AGENT if command in ("crawl", "fetch", "next") else []
    line = said(command, address, *words, *agent, code=3)
    assert "nutbeam table create" in line
    assert address in line


@pytest.mark.parametrize("command", ["generate", "readdb"])
def test_an_emulator_that_does_not_answer_is_one_line(said, monkeypatch, command):
    monkeypatch.setattr("nutbeam.io.bigtable.channel.back_off", lambda failed: None)
    address = "bigtable://my-project/my-instance/t?emulator=127.0.0.1:1"
    line = said(command, address, code=3)
    assert f"the emulator at 127.0.0.1:1 failed 5 times in a row for {address}" in line


def test_no_credentials_are_one_line(said, monkeypatch, tmp_path):
    monkeypatch.delenv("BIGTABLE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    line = said("generate", "bigtable://my-project/my-instance/t", code=3)
    assert line.startswith("no credentials for bigtable://my-project/my-instance/t: ")
    assert line.endswith("log in with gcloud auth application-default login")


def test_files_that_workers_elsewhere_do_not_see_are_refused(table, said):
    line = said("generate", table, "--runner=FlinkRunner", "--flink_master=localhost:1")
    assert line.startswith(f"the files of {table!r} are in a folder of this machine, which workers")
    assert "--shared_path" in line


@pytest.mark.parametrize("command", [c for c in JOBS if c not in ("crawl", "inject")])
def test_a_table_without_a_snapshot_is_empty(table, said, command):
    agent = AGENT if command in ("fetch", "next") else []
    line = said(command, table, *agent)
    assert line == f"the web table at {table!r} is empty: inject puts seeds into it"


def test_what_has_nothing_for_rows_says_so(table, said):
    assert nutbeam("inject", table, "http://www.example.com/") == 0
    before = tree(table)
    line = said("sql", table, "select 1")
    assert line.startswith(f"sql works on tables of files only, so far: {table!r}")
    assert tree(table) == before


@pytest.mark.parametrize("what", ["state", "hosts", "pages", "documents"])
def test_an_export_is_that_of_a_folder(table, here, what, tmp_path):
    assert nutbeam("copy", here[0], table) == 0
    paths = [tmp_path / "folder.parquet", tmp_path / "bigtable.parquet"]
    for path, source in zip(paths, (here[0], table), strict=True):
        assert nutbeam("export", source, "-o", path, "--what", what) == 0
    right, found = (pl.read_parquet(path).sort("key") for path in paths)
    assert found.equals(right)
    assert len(found)


def test_a_rollback_makes_rows_what_they_were(table, here, said):
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
    assert "is a purge: what it took out would come back" in said(*words)
    assert nutbeam(*words, "--past_purge") == 0
    back = newest(table)
    assert back == last + 1
    same(Snapshot(table).contents(), said_by[first], but="bars")
    same(Snapshot(table, last).contents(), said_by[last])  # for readers nothing has changed
    assert manifest_of(table).components["state"].rows == len(said_by[first]["state"])
    assert nutbeam(*words, "--past_purge") == 0  # the same operation again
    assert newest(table) == back
    assert nutbeam("rollback", table, "--to", injected, "--past_purge") == 0
    same(Snapshot(table).contents(), said_by[injected], but="bars")
    # By now more commits have changed rows than Bigtable keeps versions.
    before = tree(table)
    line = said("rollback", table, "--to", injected, "--past_purge")
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


@pytest.mark.parametrize("at_once", [True, False])
def test_who_reads_what_a_purge_has_erased_is_told(table, at_once):
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


def test_what_is_about_to_be_committed_when_a_purge_sweeps_fails_and_does_no_harm(table):
    assert nutbeam("inject", table, "http://www.example.com/") == 0
    operation = begin(table, "inject", "late.inject")
    rows = state_of(table).drop("url").with_columns(key=pl.lit("com.example.www:http/2"))
    found = write_changes(operation.root.files, "state", rows)
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
    found = write_changes(operation.root.files, "state", rows)
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

    def store(self, change: Change):
        head = self.log.head()
        record = json.loads(self.log.record(head.snapshot))
        record |= {"snapshot": head.snapshot + 1, "operation": "cut.inject"}
        del record["digest"]
        assert self.log.propose(head, json.dumps(record).encode(), [change], "cut")
        raise KeyboardInterrupt


def test_an_operation_that_was_cut_off_behind_its_commit_is_done(table, monkeypatch):
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


def test_compact_deletes_what_nobody_needs(table, web):
    assert crawl(table, web, *web.seeds) == 0
    state, pages = state_of(table), pages_of(table)
    assert changes_in(table)
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert not changes_in(table)
    assert len(open_log(table).snapshots()) <= 2
    assert state_of(table).equals(state)
    assert pages_of(table) == pages
    assert nutbeam("inject", table, "http://h0.example.com/more") == 0
    assert crawl(table, web) == 0
    assert "http://h0.example.com/more" in statuses_of(table)


def test_compact_makes_one_file_of_those_that_name_the_seeds(table):
    for name in ("one", "two", "one.two"):
        assert nutbeam("inject", table, f"http://{name}.example.com/") == 0
    assert len(files_of(table, "seed_hosts")) == 3
    known = read_seeds_hosts(open_table(table), seed_files(Snapshot(table)))
    assert nutbeam("compact", table) == 0
    assert len(files_of(table, "seed_hosts")) == 1
    assert read_seeds_hosts(open_table(table), seed_files(Snapshot(table))) == known
    made = newest(table)
    assert nutbeam("compact", table) == 0
    assert manifest_of(table).components == manifest_at(open_table(table), made).components


def changes_in(table):
    return [file.path for file in list_files(place_in(table, "changes"))]


def pages_of(table):
    output = place_in(table, "pages.jsonl")
    assert nutbeam("pages", table, "-o", output) == 0
    return json_lines(output.read_text())


def test_a_large_table_is_cut_into_tablets_that_hold_all_rows(table, monkeypatch):
    monkeypatch.setattr(tablet_writer, "TABLET_ROWS", 100)
    monkeypatch.setattr(BigtableWebTable, "samples", every_third_key)
    rows = state(2_000, due=2_000, now=clock(table))
    root = open_table(table)
    load(table, rows)
    load(table, rows.head(10).with_columns(key=pl.col("key") + "x"), "more")
    found = begin(table, "generate", "x.generate")
    known = tablets(found.files("state"))
    assert len(known) > 3
    assert sum(tablet.rows for tablet in known) == 2_010
    parts = [pl.concat(root.at(found.snapshot).scan("state", tablet)) for tablet in known]
    assert pl.concat(parts)["key"].to_list() == state_of(table)["key"].to_list()
    for part, tablet in zip(parts, known, strict=True):
        assert tablet.first is None or part["key"].min() >= tablet.first
        assert tablet.last is None or part["key"].max() < tablet.last


def test_a_folder_is_crawled_without_googles_libraries(tmp_path):
    script = """if True:
        import sys
        from nutbeam.pipelines.command_line.cli import main
        code = main(["inject", sys.argv[1], "http://www.example.com/"])
        code += main(["generate", sys.argv[1]])
        print(code, sorted(name for name in sys.modules if name.startswith("google.cloud.bigtable")))
    """
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "table")],
        capture_output=True, text=True, check=True, env=dict(os.environ),
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "0 []"


def test_workers_in_other_processes_find_the_table(table):
    workers = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    assert nutbeam("inject", table, "http://www.example.com/", *workers) == 0
    assert list(statuses_of(table)) == ["http://www.example.com/"]
