"""purge beside a crawl: it commits within one phase, and the crawl goes on."""

import contextlib
import itertools
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import made_up
import polars as pl
import pyarrow.parquet as pq
import pytest
from crawling import manifest_of, nutbeam, reach
from frames import table_of
from interleaving import Running, gates, launch
from made_up import MadeUpWeb
from simulated_web import served_web
from waiting import PATIENCE, wait_until
from web_tables import Snapshot, newest

from nutbeam.io.batches.batches import batch_component, write_file
from nutbeam.io.snapshots.commit import CommitTerms
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.file_errors import ConflictError, PurgedMeanwhile
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.written import Written
from nutbeam.io.upkeep import over_purges
from nutbeam.io.upkeep import purge as purge_module
from nutbeam.policy.components.blocklist import Names, blocklist_of
from nutbeam.policy.components.document_schema import DOCUMENTS
from nutbeam.policy.purging import Purge
from nutbeam.web.urls.row_keys import host_key

WEB = MadeUpWeb()
HOST = "h1.example.com"
LINK = "com.example.h1:http/linked"
GONE = blocklist_of(Names(hosts=(host_key(HOST),)).rows(0))


@pytest.fixture
def table(backend):
    """A table with a batch that is updated, and one that is not."""
    made = backend.fresh()
    launch("inject", made, {"seeds": WEB.urls(range(12))}, operation="seeds")
    for number in range(2):
        launch("generate", made, top_n=4, operation=f"g{number}")
        WEB.fetch(made, manifest_of(made).batch, f"f{number}")
    launch("updatedb", made, operation="u0")
    yield made
    backend.remove(made)


def phases(table):
    """Yields the phases of a crawl that goes on for ever."""
    for number in itertools.count():
        yield lambda n=number: launch("generate", table, top_n=2, operation=f"r{n}", add_days=90)
        yield lambda n=number: WEB.fetch(table, open_batch(table), f"r{n}")
        yield lambda n=number: launch("updatedb", table, operation=f"r{n}")
        yield lambda n=number: launch("dedup", table, operation=f"r{n}")


def open_batch(table):
    known = manifest_of(table).batches
    return max(name for name, batch in known.items() if batch.phase == "generated")


def purge(table, **options):
    return Running("purge", lambda: launch("purge", table, operation="p", host=(HOST,), **options))


def advance_far(job):
    """Lets a job on, to its end or until it waits for another one."""
    job.advance()
    while not job.done and not job.at.endswith(".pause_in_hold"):
        job.advance()


def assert_gone(table):
    """Asserts that no row of the newest snapshot is of the host, and that the table is whole."""
    for component, rows in Snapshot(table).contents().items():
        if rows is not None and component != "blocklist":
            of_hosts = component.endswith(("hosts", "host_findings"))
            keys = rows["key"]
            assert not (GONE.blocks_hosts(keys) if of_hosts else GONE.blocks(keys)).any(), component
    assert nutbeam("fsck", table) == 0


@pytest.fixture
def tries(monkeypatch):
    """Collects the snapshots on which the purge tries to commit."""
    found, commit = [], purge_module.commit_once

    def counted(operation, *args):
        found.append(operation.snapshot)
        return commit(operation, *args)

    monkeypatch.setattr(purge_module, "commit_once", counted)
    return found


@pytest.mark.long
@pytest.mark.folder_first
def test_a_phase_commits_between_each_of_its_steps(table, tries):
    following, phase, commits = phases(table), None, 0
    with gates(waits=True):
        job = purge(table)
        while not job.done:
            before = newest(table)
            if phase is None or phase.done:
                phase = Running("phase", next(following))
            advance_far(phase)
            commits += newest(table) - before
            assert phase.error is None, phase.error
            job.advance()
        assert job.error is None, job.error
        assert commits >= 6
        assert len(tries) <= 2
        made = manifest_of(table)
        assert made.operation == "p.purge"
        assert_gone(table)
        # The phase that has waited goes on, and so does the crawl.
        phase.finish()
        assert phase.error is None, phase.error
    for one in itertools.islice(following, 8):
        one()
    assert newest(table) > made.snapshot + 6
    assert_gone(table)


@pytest.mark.folder_first
def test_it_waits_for_a_job_under_way_and_says_so(table, caplog):
    with gates(waits=True):
        update = Running("update", lambda: launch("updatedb", table, operation="slow"))
        while not update.at.endswith("Table.resolve"):
            update.advance()
        job = purge(table)
        advance_far(job)
        assert job.at.endswith("purge.pause_in_hold")
        assert "purge 'p.purge' waits for update 'slow.update' to commit" in caplog.text
        update.finish()
        assert update.error is None
        job.finish()
        assert job.error is None
    assert manifest_of(table).operation == "p.purge"
    assert_gone(table)


@pytest.mark.folder_first
def test_it_does_not_wait_for_a_job_of_its_own_process_that_had_nothing_to_do(tmp_path, caplog):
    table = tmp_path / "table"
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    assert nutbeam("linkrank", table) == 1  # it has pinned a snapshot, and commits none
    assert nutbeam("purge", table, "--url", "http://a.example.com/", "--wait_seconds", "1") == 0
    assert "waits for" not in caplog.text


def test_it_does_not_wait_for_jobs_that_were_rolled_back(table, caplog):
    assert nutbeam("rollback", table, "--to", 1) == 0
    launch("purge", table, operation="p", host=(HOST,), wait_seconds=5)
    assert "waits for" not in caplog.text
    assert manifest_of(table).operation == "p.purge"
    assert_gone(table)


@pytest.mark.long
@pytest.mark.folder_first
def test_purge_waits_at_most_wait_seconds_and_the_other_job_begins_again(table):
    with gates(waits=True):
        update = Running("update", lambda: launch("updatedb", table, operation="slow"))
        while not update.at.endswith("Table.resolve"):
            update.advance()
        job = purge(table, wait_seconds=0)
        job.finish()
        assert job.error is None
        update.finish()
        assert isinstance(update.error, ConflictError)
    launch("updatedb", table, operation="slow")
    assert manifest_of(table).operation == "slow.update"
    assert_gone(table)


@pytest.mark.long
@pytest.mark.folder_first
def test_a_fetch_that_runs_is_neither_waited_for_nor_lost(table):
    launch("generate", table, top_n=8, operation="last")
    batch = manifest_of(table).batch
    listed = Snapshot(table).of_batch(batch, "fetchlist")["key"]
    assert GONE.blocks(listed).any()
    with gates(waits=True):
        fetch = Running("fetch", lambda: WEB.fetch(table, batch, "long"))
        while fetch.at != "nutbeam.io.upkeep.over_purges.commit_once":
            fetch.advance()
        job = purge(table)
        job.finish()
        assert job.error is None
        fetch.finish()
        assert fetch.error is None
    assert manifest_of(table).operation == "long.fetch"
    pages = Snapshot(table).of_batch(batch, "pages")["key"]
    assert set(pages) == set(listed.filter(~GONE.blocks(listed)))
    assert manifest_of(table).counts["dropped/purged"] > 0
    assert_gone(table)
    launch("updatedb", table, batch=batch)
    assert_gone(table)


@pytest.mark.folder_first
def test_an_operation_whose_files_a_purge_has_deleted_is_pinned_again_by_its_next_attempt(table):
    launch("generate", table, top_n=8, operation="last")
    batch = manifest_of(table).batch
    fetch = begin(table, "fetch", "long.fetch", batch)
    launch("purge", table, operation="p", host=(HOST,), now=True, wait_seconds=0)
    with pytest.raises(PurgedMeanwhile, match="run it again"):
        fetch.files(batch_component(batch, "fetchlist"))
    again = begin(table, "fetch", "long.fetch", batch)
    assert again.snapshot == newest(table)
    assert again.files(batch_component(batch, "fetchlist"))


@pytest.mark.few(1)
@pytest.mark.folder_first
@pytest.mark.parametrize("now", [False, True])
def test_purged_pages_that_a_fetch_writes_after_a_purge_are_nowhere_on_disk(
    table, monkeypatch, now
):
    launch("generate", table, top_n=8, operation="last")
    batch, write, purges = manifest_of(table).batch, made_up.write_file, []

    def purge_first(*args, **how):
        if not purges:
            purges.append(launch("purge", table, operation="p", host=(HOST,), now=now))
        return write(*args, **how)

    monkeypatch.setattr(made_up, "write_file", purge_first)
    if now:  # the snapshot that the fetch reads is deleted: it must be run again
        with pytest.raises(PurgedMeanwhile):
            WEB.fetch(table, batch, "long")
    WEB.fetch(table, batch, "last")
    assert manifest_of(table).operation == "last.fetch"
    found = [path for path in purged_on_disk(table) if path.startswith(f"batches/{batch}/")]
    # An older snapshot may still have its list of URLs.
    assert found == [] if now else {path.split("/")[2] for path in found} <= {"fetchlist"}
    assert_gone(table)


@pytest.mark.long
@pytest.mark.folder_first
def test_a_commit_step_that_runs_again_deletes_nothing_that_is_needed(table):
    """Neither what an older snapshot names, nor documents that a parse is writing."""
    launch("purge", table, operation="first", host=(HOST,))
    launch("generate", table, top_n=8, operation="last")
    batch = manifest_of(table).batch
    WEB.fetch(table, batch, "last")
    fetched, before = newest(table), Snapshot(table).files(f"batches/{batch}/pages")
    done = begin(table, "fetch", "last.fetch", batch)
    launch("purge", table, operation="p", host=("h2.example.com",))
    files = open_table(table).files
    (page,) = (file.path for file in before)
    mentions = table_of(DOCUMENTS, {"key": "com.example.h3:http/", "outlinks": [{"key": LINK}]})
    written = write_file(open_table(table), batch, "documents", [mentions], partition=0)
    beat = files / f"batches/{batch}/leases/p00000-000001.beat"
    beat.parent.mkdir(parents=True, exist_ok=True)
    beat.write_text(json.dumps({"hosts": {HOST: [None, 0], "h3.example.com": [None, 0]}}))
    fetch_writes = [Written(f"batches/{batch}/{kind}") for kind in ("pages", "documents")]
    made = over_purges.commit_over_purges(done, fetch_writes, CommitTerms(), Purge)
    assert made.snapshot == fetched
    assert (files / page).exists()
    assert (files / written.path).exists()
    assert list(json.loads(beat.read_text())["hosts"]) == ["h3.example.com"]
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
@pytest.mark.folder_first
def test_purge_reads_only_new_components_again(table, monkeypatch):
    reads = []
    with gates(waits=True):
        job = purge(table)
        while job.at != "nutbeam.io.upkeep.purge.rebase":
            job.advance()
        launch("generate", table, top_n=2, operation="more", add_days=90)
        real = purge_module._edit
        monkeypatch.setattr(
            purge_module, "_edit", lambda t, name, *how: reads.append(name) or real(t, name, *how)
        )
        job.finish()
    assert job.error is None
    assert [name.rpartition("/")[2] for name in reads] == ["fetchlist"]
    assert_gone(table)


# In processes of their own, over a simulated web.


web = served_web(hosts=3, pages=60)


def started(*words):
    command = [sys.executable, "-P", "-m", "nutbeam", *map(str, words)]
    return subprocess.Popen([*command, "--progress", "false"], stderr=subprocess.PIPE, text=True)


@pytest.fixture
def crawling(backend, web):
    """A table, and a crawl of it in many short rounds that has made some."""
    made = backend.fresh()
    more = [f"http://h{n}.example.com/" for n in range(3)]
    words = ["crawl", made, *more, "--rounds", "-1", "--top_n", "3", *reach(web)]
    process = started(*words)
    await_snapshot(made, 12, process)
    yield made, process
    process.kill()
    process.communicate(timeout=PATIENCE)
    backend.remove(made)


def await_snapshot(table, number, process):
    """Waits until a crawl has come to a snapshot."""
    assert wait_until(lambda: newest(table) >= number, process), process.communicate()[1]


def end(table, process):
    """Ends a crawl after its round, as its user would."""
    files = open_table(table).files
    (files / ".STOP").touch()
    error = process.communicate(timeout=PATIENCE)[1]
    (files / ".STOP").unlink()
    assert process.returncode == 0, error
    return error


def purged_on_disk(table):
    """Returns the data files with rows of the host, whether a snapshot names them or not."""
    found = []
    for path in open_table(table).files.rglob("*.parquet"):
        if path.parent.name in ("lists", "blocklist"):
            continue
        with contextlib.suppress(FileNotFoundError):  # a crawl that runs deletes files
            if "key" in pq.read_schema(path).names:
                keys = pl.Series(
                    pq.read_table(path, columns=["key"])["key"].to_pylist(), dtype=pl.String
                )
                if GONE.blocks(keys).any() or GONE.blocks_hosts(keys).any():
                    found.append(path.relative_to(open_table(table).files).as_posix())
    return found


@pytest.mark.long
@pytest.mark.folder_first
def test_a_purge_beside_a_crawl_that_runs(crawling):
    table, crawl = crawling
    assert purged_on_disk(table)
    assert nutbeam("purge", table, "--host", HOST, "--now") == 0
    assert crawl.poll() is None  # while the crawl goes on
    await_snapshot(table, newest(table) + 8, crawl)
    error = end(table, crawl)
    assert "Traceback" not in error
    assert purged_on_disk(table) == []
    assert_gone(table)


@pytest.mark.long
@pytest.mark.folder_first
def test_a_file_that_is_being_written_is_deleted_and_written_again(
    backend, web, monkeypatch, caplog
):
    """Its rows may be purged ones, and nobody can tell before it is whole."""
    table, rename, purges = backend.fresh(), Path.rename, []

    def purge_first(self, target):
        if "documents" in self.parts and not purges:
            purges.append(started("purge", table, "--host", HOST, "--now"))
            assert purges[0].communicate(timeout=PATIENCE)[1] == ""
            assert not self.exists()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", purge_first)
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "2", *reach(web)) == 0
    assert purges[0].returncode == 0
    assert "a purge has committed first, the phase is run again" in caplog.text
    assert purged_on_disk(table) == []
    assert nutbeam("fsck", table) == 0
    backend.remove(table)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_purge_that_is_killed_beside_a_crawl(crawling, seed):
    table, crawl = crawling
    for _ in range(4):
        purge = started("purge", table, "--host", HOST, "--operation", "order", "--now")
        time.sleep(random.Random(seed).uniform(1.0, 4.0))
        purge.kill()
        purge.communicate(timeout=PATIENCE)
        await_snapshot(table, newest(table) + 3, crawl)  # nobody waits for who is dead
    assert nutbeam("purge", table, "--host", HOST, "--operation", "order", "--now") == 0
    await_snapshot(table, newest(table) + 3, crawl)
    end(table, crawl)
    assert purged_on_disk(table) == []
    assert_gone(table)
