"""Resource faults: a full disk, a folder that may not be written, a clock that jumps back."""

import os
import shutil
import time

import pytest
from clocks import clock_off
from crawling import crawl, latest_snapshot, manifest_of, nutbeam, reach, state_of, tree
from short_form import first
from simulated_web import served_web

JOBS = ("inject", "generate", "fetch", "parse", "updatedb", "dedup", "compact")


web = served_web(hosts=2, pages=8, scope="module")


@pytest.fixture
def full(small_disk):
    """A small disk of its own."""
    return small_disk("1m")


def fill(folder, left):
    """Leaves a number of bytes of room."""
    usage = shutil.disk_usage(folder)
    with (folder / "ballast").open("wb") as file:
        file.write(b"\0" * max(0, usage.free - left))


def make_room(folder):
    (folder / "ballast").unlink()


@pytest.mark.long
@pytest.mark.few(2)
@pytest.mark.parametrize("left", first(2, [0, 12_288, 4096, 24_576]))
@pytest.mark.parametrize("job", JOBS)
def test_a_full_disk(web, full, tmp_path, capsys, job, left):
    table = full / "table"
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
    jobs = list(JOBS)
    words = {
        "inject": ["http://h0.example.com/new"], "fetch": [*reach(web), "--least_free", "0"],
        "compact": ["--full", "true"],
    }  # fmt: skip
    for before in jobs[: jobs.index(job)]:
        assert nutbeam(before, table, *words.get(before, [])) == 0
    fill(full, left)
    files, snapshot = tree(table), latest_snapshot(table)
    capsys.readouterr()
    code = nutbeam(job, table, "--operation", "mine", *words.get(job, []))
    error = capsys.readouterr().err
    after = tree(table)
    assert {name: after[name] for name in files} == files
    if code != 0:  # else there was room enough
        assert code == 3
        assert error.count("\n") == 1, error
        assert str(table) in error
        if "is full, and compact writes up to" in error:  # it looks before it begins
            assert "delete or move other files of the disk" in error
        else:
            assert "No space left on device" in error
            assert "make room" in error
        assert latest_snapshot(table) == snapshot
    make_room(full)
    assert nutbeam("fsck", table) == 0
    assert nutbeam(job, table, "--operation", "mine", *words.get(job, [])) == 0
    assert latest_snapshot(table) == snapshot + 1
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
@pytest.mark.few(2)
@pytest.mark.parametrize("command", ["rollback", "purge", "fsck", "export"])
def test_a_full_disk_and_the_commands_that_mend(web, full, capsys, command):
    table = full / "table"
    assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
    if command == "fsck":
        (table / manifest_of(table).components["hosts"].list).unlink()
    fill(full, 0)
    files, snapshot = tree(table), latest_snapshot(table)
    words = {
        "rollback": ["--to", 1], "purge": ["--host", "h0.example.com", "--now"],
        "fsck": ["--repair"], "export": ["-o", full / "out.parquet"],
    }[command]  # fmt: skip
    capsys.readouterr()
    assert nutbeam(command, table, *words) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no space left on device" in error.lower()
    after = tree(table)
    assert {name: after[name] for name in files} == files
    make_room(full)
    assert nutbeam(command, table, *words) == 0
    assert latest_snapshot(table) == snapshot + (command != "export")


@pytest.mark.long
def test_a_clock_that_jumps_back(web, tmp_path, monkeypatch, capsys):
    """Snapshots may be of a later time than now: jobs work on, and nothing is lost."""
    table = tmp_path / "table"
    with clock_off(monkeypatch, 86_400):
        assert nutbeam("crawl", table, *web.seeds, "--rounds", "1", *reach(web)) == 0
    known, newest = state_of(table), manifest_of(table)
    assert newest.time > time.time() * 1000
    for words in (["history"], ["readdb"], ["pages", "-o", tmp_path / "p.jsonl"]):
        assert nutbeam(words[0], table, *words[1:]) == 0
    assert nutbeam("fsck", table) == 3
    assert "clock" in capsys.readouterr().out
    assert nutbeam("inject", table, "http://h0.example.com/late") == 0
    assert manifest_of(table).time < newest.time
    # What became due by that clock is so by ours a day later.
    assert nutbeam("generate", table, "--add_days", "2") == 0
    assert nutbeam("fetch", table, *reach(web)) == 0
    assert nutbeam("parse", table) == 0
    assert nutbeam("updatedb", table) == 0
    assert nutbeam("dedup", table) == 0
    assert set(known["url"]) <= set(state_of(table)["url"])
    assert crawl(table, web, "--add_days", "2") in (0, 1)
    assert_whole_but(table, web, "http://h0.example.com/late")
    assert nutbeam("fsck", table, "--repair", "true") == 0
    assert nutbeam("rollback", table, "--to", newest.snapshot) == 0
    assert state_of(table).equals(known)


@pytest.mark.long
def test_a_stores_clock_that_jumps_back(web, tmp_path):
    """Files are younger than now, by years: they are as old as the time at which that shows."""
    table = tmp_path / "table"
    assert crawl(table, web, *web.seeds) == 0
    known, snapshots = state_of(table), latest_snapshot(table)
    later = time.time() + 2 * 365 * 86_400
    for path in table.rglob("*"):
        os.utime(path, (later, later))
    for _ in range(2):
        assert nutbeam("compact", table, "--full", "true") == 0
    assert state_of(table).equals(known)
    assert nutbeam("fsck", table) == 0
    assert nutbeam("rollback", table, "--to", snapshots) == 0  # nothing of it was deleted
    assert state_of(table).equals(known)
    assert nutbeam("generate", table, "--add_days", 40, "--top_n", 3) == 0
    assert nutbeam("fetch", table, *reach(web)) == 0
    # From then on they grow old as all files do.
    kept = len(list((table / "manifest").glob("*.json")))
    assert nutbeam("compact", table, "--full", "true", "--snapshot_retention", 0) == 0
    assert len(list((table / "manifest").glob("*.json"))) < kept
    assert nutbeam("fsck", table) == 0


def assert_whole_but(table, web, url):
    rows = state_of(table)
    assert set(web.site.reachable()) <= set(rows["url"])
    assert set(rows["url"]) - set(web.site.reachable()) <= {url}
