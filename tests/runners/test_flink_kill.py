"""``kill -9`` of workers on a real Flink cluster: the same operation ends in the same table."""

import polars as pl
import pytest
from crawling import (
    asked,
    assert_same,
    contents,
    latest_snapshot,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
)
from flink.cluster import wait_for
from flink.jobs import (
    attempts,
    bring_in,
    choose,
    flushed_by_partition,
    kill,
    launched,
    released,
    whole,
)
from simulated_web import SimWeb

from nutbeam.web.urls.row_keys import from_key

pytestmark = pytest.mark.flink
PHASES = ("inject", "generate", "parse", "updatedb", "dedup")  # and fetch, below
AFTER = {"fetch": ("parse", "updatedb", "dedup"), "parse": ("updatedb", "dedup"),
         "updatedb": ("dedup",)}  # fmt: skip
JOBS = {"fetch": "fetch", "parse": "parse", "updatedb": "update"}


@pytest.fixture(scope="module")
def web():
    # Each host is asked by one thread, so a fetch takes about 8 seconds.
    with SimWeb(hosts=6, pages=20, seed=7, crawl_delay=0, latency=0.4) as server:
        yield server


@pytest.fixture(scope="module")
def quick():
    with SimWeb(hosts=4, pages=60, seed=9, crawl_delay=0) as server:
        yield server


def in_this_process(table, web):
    """Makes the table that all others must equal."""
    choose(table, web)
    bring_in(table, web, "fetch", *AFTER["fetch"])


def in_the_middle(table):
    """Returns a partition of which there are pages on disk, but not all; None if there is none."""
    for number, pages in flushed_by_partition(table).items():
        if pages and number in attempts(table) and not released(table, number):
            return number
    return None


def safe(table):
    """Returns the URLs in whole files of pages."""
    return {from_key(k) for p in whole(table, "pages") for k in pl.read_parquet(p)["key"]}


def parents(flink, part):
    """Returns the ids of the workers that have a child whose command has this part."""
    workers = {worker.pid for worker in flink.workers()}
    return [p.parent for p in flink.processes() if part in p.command and p.parent in workers]


def task_manager_of(flink, pid):
    """Returns the id of the TaskManager that a worker belongs to; None if that one is gone."""
    parent = {process.pid: process.parent for process in flink.processes()}
    while pid in parent and pid not in flink.task_manager_pids():
        pid = parent[pid]
    return pid if pid in parent else None


def orphans(flink):
    """Returns the workers whose TaskManager is gone."""
    return [worker for worker in flink.workers() if not task_manager_of(flink, worker.pid)]


def has_failed_but_went_on(flink, command):
    """Returns whether a kill has hit the only job of a command, and it was brought to its end."""
    (job,) = command.jobs()
    return bool(flink.failures(job)) and flink.jobs()[job] == "FINISHED"


def check_end(job, web, table, here):
    """Asserts that an operation "x" is done, once, and that the table ends up as the other one."""
    before, requests = latest_snapshot(table), len(asked(web))
    words = reach(web) if job == "fetch" else []
    assert nutbeam(job, table, "--operation", "x", *words) == 0
    assert latest_snapshot(table) == before
    assert len(asked(web)) == requests
    assert [m.operation for m in manifests_of(table)].count(f"x.{JOBS[job]}") == 1
    bring_in(table, web, *AFTER[job])
    assert_same(contents(table), contents(here))


@pytest.mark.parametrize("victim", ["worker", pytest.param("TaskManager", marks=pytest.mark.long)])
def test_a_kill_in_the_middle_of_fetch_causes_no_repeated_requests(flink, web, tmp_path, victim):
    here, there = tmp_path / "here", tmp_path / "there"
    in_this_process(here, web)
    urls = choose(there, web, "--num_fetchers", 2)
    start = len(asked(web))
    words = ["fetch", there, "--operation", "x", "--flush_seconds", 0.2, *reach(web)]
    with launched(flink, *words) as fetching:
        fetching.wait_for(lambda: in_the_middle(there) is not None, "pages were flushed")
        partition = in_the_middle(there)
        (pid,) = attempts(there)[partition]
        had, before = safe(there), len(asked(web))
        assert pid in [worker.pid for worker in flink.workers()]
        if victim == "worker":
            kill(pid)
        else:
            flink.replace_task_manager(task_manager_of(flink, pid))
        assert had
        assert before - start < len(urls)
        assert fetching.ended() == 0
        assert has_failed_but_went_on(flink, fetching)
    again = asked(web)[before:]
    assert again
    assert had.isdisjoint(again)
    counts = manifest_of(there).counts
    assert counts["adopted"] >= 1
    assert counts["pages"] == len(urls)
    assert len(attempts(there)[partition]) == 2
    check_end("fetch", web, there, here)


@pytest.mark.long
def test_a_kill_in_the_middle_of_parse(flink, quick, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    in_this_process(here, quick)
    choose(there, quick)
    # A file for each page.
    assert nutbeam("fetch", there, *reach(quick), "--flush_seconds", 0) == 0
    files, before = len(whole(there, "pages")), latest_snapshot(there)
    assert files > 100
    with launched(flink, "parse", there, "--operation", "x") as parsing:
        parsing.wait_for(lambda: whole(there, "documents"), "a file was parsed")
        # Whoever has children that parse.
        kill(parents(flink, "parse_worker")[0])
        assert len(whole(there, "documents")) < files
        assert latest_snapshot(there) == before
        assert parsing.ended() == 0
        assert has_failed_but_went_on(flink, parsing)
    check_end("parse", quick, there, here)


@pytest.mark.long
def test_a_kill_in_the_middle_of_update(flink, quick, tmp_path, resize_tables):
    here, there = tmp_path / "here", tmp_path / "there"
    in_this_process(here, quick)
    resize_tables(tablet_rows=8)  # many to be rewritten
    choose(there, quick)
    bring_in(there, quick, "fetch", "parse")
    known, before = set(there.glob("state/*.parquet")), latest_snapshot(there)
    # Workers of jobs that have ended may still be there, and do nothing.
    idle = {worker.pid for worker in flink.workers()}
    assert len(known) > 20
    with launched(flink, "updatedb", there, "--operation", "x") as updating:
        written = lambda: set(there.glob("state/[!.]*.parquet")) - known
        updating.wait_for(written, "a tablet was written")
        for worker in flink.workers():
            if worker.pid not in idle:
                kill(worker.pid)
        assert latest_snapshot(there) == before
        assert updating.ended() == 0
        assert has_failed_but_went_on(flink, updating)
    check_end("updatedb", quick, there, here)


def in_the_middle_of(flink, command):
    """Returns whether steps of a command's job have ended while others run."""
    steps = [
        step["status"] for job in command.jobs() for step in flink.rest(f"/jobs/{job}")["vertices"]
    ]
    return {"FINISHED", "RUNNING"} <= set(steps)


@pytest.mark.long
@pytest.mark.parametrize("phase", PHASES)
def test_kills_of_all_task_managers_change_no_table(flink, quick, tmp_path, phase):
    here, there = tmp_path / "here", tmp_path / "there"
    urls = sorted(quick.site.urls("page"))
    words = {"inject": urls, "fetch": reach(quick)}
    order = ("inject", "generate", "fetch", "parse", "updatedb", "dedup")
    for table, done in ((here, order), (there, order[: order.index(phase)])):
        for job in done:
            assert nutbeam(job, table, *words.get(job, [])) == 0
    with launched(flink, phase, there, "--operation", "x", *words.get(phase, [])) as command:
        command.wait_for(lambda: in_the_middle_of(flink, command), "a step ended while others ran")
        for pid in flink.task_manager_pids():
            flink.replace_task_manager(pid)
        wait_for(lambda: not orphans(flink), "workers without a TaskManager to end", 30)
        assert command.ended() == 0
        assert has_failed_but_went_on(flink, command)
    for job in order[order.index(phase) + 1 :]:
        assert nutbeam(job, there, *words.get(job, [])) == 0
    assert_same(contents(there), contents(here))
