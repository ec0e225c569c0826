"""``kill -9`` of a crawl at random moments, and the next one brings it to the right end."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from crawling import (
    asked,
    assert_whole,
    crawl,
    json_lines,
    latest_snapshot,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
)
from ending import session
from simulated_web import SimWeb
from waiting import PATIENCE, wait_until, wait_until_none

from nutbeam.io.storage.local_place import LocalPlace
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.web.urls.row_keys import from_key

OPTIONS = ["--rounds", "-1", "--flush_seconds", "0.05", "--progress", "false"]


@pytest.fixture(scope="module")
def web():
    # The latency makes fetching the longest part: a crawl takes about 3 seconds.
    with SimWeb(hosts=3, pages=12, seed=7, crawl_delay=0, latency=0.03) as server:
        yield server


def start(table, web, *more):
    """Starts a crawl in a session of its own; what it starts is in that session, too."""
    words = ["crawl", str(table), *web.seeds, *OPTIONS, *reach(web), *more]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "nutbeam", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def kill(process, *, group):
    """Kills a crawl, with or without what it has started, and waits until all of that is gone."""
    if group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()  # its children have to see it for themselves
    error = process.communicate(timeout=PATIENCE)[1].decode()
    # 1: the one before had come to its end, and nothing was due any more.
    assert process.returncode in (-signal.SIGKILL, 0, 1), error
    assert error == ""
    wait_until_none(lambda: session(process.pid))


def flushed(table):
    """Returns the URLs in whole files of pages, committed or not."""
    paths = sorted(Path(table).glob("batches/*/pages/[!.]*.parquet"))
    keys = [key for path in paths for key in pl.read_parquet(path, columns=["key"])["key"]]
    return {from_key(key) for key in keys}


def read_pages(table, capsys):
    """Returns what a reader gets of a table, with duplicates: it must never see a page twice."""
    if latest_snapshot(LocalPlace(table)) == 0:
        return []
    capsys.readouterr()
    assert nutbeam("pages", table, "--status", "fetched,unfetched,duplicate") == 0
    records = json_lines(capsys.readouterr().out)
    urls = [record["url"] for record in records]
    assert len(urls) == len(set(urls))
    return urls


def check_files(table):
    """Asserts that all that the newest snapshot names is there, whole and once."""
    manifest = manifest_of(table)
    for name, component in manifest.components.items():
        files = load_files(LocalPlace(table), component)
        assert len({f.path for f in files}) == len(files), name
        for file in files:
            assert pl.read_parquet(Path(table) / file.path).height == file.rows, file


# Ten kills: how many there are before a crawl is left in peace.
@pytest.mark.long
@pytest.mark.parametrize(("seed", "kills"), [(1, 5), pytest.param(2, 5, marks=pytest.mark.long)])
def test_a_killed_crawl_is_finished_by_the_next_one(web, tmp_path, capsys, seed, kills):
    table, dice = tmp_path / "table", random.Random(seed)
    seen, asked_at = set(), len(asked(web))
    for number in range(kills):
        process = start(table, web)
        time.sleep(1.0 + 1.8 * dice.random())  # the first second goes to imports
        kill(process, group=number % 2 == 0)
        # What was on disk before is not asked for again, by this crawl or the next.
        now = asked(web)
        assert seen.isdisjoint(now[asked_at:])
        seen, asked_at = flushed(table), len(now)
        found = read_pages(table, capsys)
        assert set(found) <= web.site.urls("page")
    # 1 if the last one was already through, 4 if only pages without content were left.
    assert crawl(table, web, *web.seeds) in (0, 1, 4)
    assert seen.isdisjoint(asked(web)[asked_at:])
    assert_whole(table, web.site)
    assert sorted(read_pages(table, capsys)) == sorted(web.site.urls("page"))
    check_files(table)
    assert {batch.phase for batch in manifest_of(table).batches.values()} == {"updated"}
    assert not [path for path in table.rglob("*") if "lock" in path.name]
    # Nothing is left to be done.
    before = len(web.requests())
    assert crawl(table, web, *web.seeds) == 1
    assert len(web.requests()) == before


@pytest.mark.long
def test_a_kill_in_the_middle_of_a_fetch_loses_only_unflushed_pages(web, tmp_path):
    """Here the moment is chosen: files of pages are there, and the batch is not fetched."""
    table = tmp_path / "table"
    process = start(table, web)
    try:
        wait_until(lambda: len(list(table.glob("batches/*/pages/[!.]*.parquet"))) >= 6, process)
    finally:
        kill(process, group=False)
    safe, before = flushed(table), len(asked(web))
    open_batches = [b for b in manifest_of(table).batches.values() if b.phase != "updated"]
    assert len(open_batches) == 1
    assert crawl(table, web, "--rounds", "1") == 0
    again = asked(web)[before:]
    assert again
    assert safe.isdisjoint(again)
    adopted = [m.counts.get("adopted", 0) for m in manifests_of(table) if m.job == "fetch"]
    assert sum(adopted) > 0
    counts = [m.counts for m in manifests_of(table)]
    chosen = sum(c.get("chosen", 0) for c in counts)
    pages = sum(c.get("pages", 0) for c in counts)
    assert pages == chosen
    assert crawl(table, web) in (0, 1)
    assert_whole(table, web.site)


@pytest.mark.long
def test_the_same_operation_goes_on_after_a_kill(web, tmp_path, capsys):
    """As a scheduler does that starts a job again under the id that it gave it."""
    table = tmp_path / "table"
    process = start(table, web, "--operation", "nightly")
    try:
        wait_until(lambda: len(list(table.glob("manifest/*.json"))) >= 9, process)
    finally:
        kill(process, group=True)
    capsys.readouterr()
    assert crawl(table, web, *web.seeds, "--operation", "nightly", "--format", "json") == 0
    record = json.loads(capsys.readouterr().out)
    assert_whole(table, web.site)
    # What it reports is what the operation did in all its attempts.
    batches = [m.batch for m in manifests_of(table) if m.job == "update"]
    assert len(batches) == len(set(batches)) == record["rounds"]
