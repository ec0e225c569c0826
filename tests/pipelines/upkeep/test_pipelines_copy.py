"""copy makes the same table elsewhere, row by row, or none."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from crawling import (
    assert_whole,
    crawl,
    files_of,
    in_each_phase,
    latest_snapshot,
    manifest_of,
    nutbeam,
    state_of,
    tree,
)
from simulated_web import served_web
from stores_here import here_and_in_a_store
from waiting import wait_until
from web_tables import Snapshot

from nutbeam.io.parsing.shared_pools import shared_pool
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.pipelines.upkeep import copy_table

web = served_web(hosts=2, pages=4, scope="module")


@pytest.fixture(scope="module")
def original(web, tmp_path_factory):
    """A table with several tablets, runs, a blocklist, and a batch in each phase; tests only read it."""
    folder = tmp_path_factory.mktemp("copy") / "table"
    return in_each_phase(folder, web, ("purge", folder, "--url", f"{web.seeds[0]}none"))


def same(copy, original):
    """Asserts that a table says what another one says, row by row."""
    one, other = Snapshot(str(copy)), Snapshot(str(original))
    assert one.manifest().batches == other.manifest().batches
    found, right = one.contents(), other.contents()
    assert found.keys() == right.keys()
    for name, rows in right.items():
        assert rows.equals(found[name]), name
    blocked = [table.manifest().components["blocklist"].rows for table in (one, other)]
    assert blocked[0] == blocked[1]


@pytest.fixture
def parsers():
    """New processes that parse: they know the stores that this test knows."""
    shared_pool.cache_clear()
    yield
    shared_pool.cache_clear()


@pytest.mark.long
@pytest.mark.few(1)
@here_and_in_a_store
def test_the_copy_is_the_same_table_and_goes_on(address, parsers, original, web, capsys, tmp_path):
    before = tree(original, ignore=())
    assert nutbeam("copy", original, address, "--format", "json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["counts"]["rows/state"] == len(state_of(original))
    assert tree(original, ignore=()) == before
    assert manifest_of(address).snapshot == 1
    same(address, original)
    assert nutbeam("fsck", address) == 0
    # And back.
    back = tmp_path / "back"
    assert nutbeam("copy", address, back) == 0
    same(back, original)
    # Its bodies are found, and it is crawled on.
    assert nutbeam("pages", address, "-o", tmp_path / "pages.jsonl") == 0
    assert nutbeam("pages", original, "-o", tmp_path / "pages0.jsonl") == 0
    assert (tmp_path / "pages.jsonl").read_text() == (tmp_path / "pages0.jsonl").read_text()
    assert crawl(address, web) == 0
    assert_whole(address, web.site)
    assert nutbeam("fsck", address) == 0


def test_a_refused_copy_writes_nothing(original, tmp_path, capsys):
    table = shutil.copytree(original, tmp_path / "table")
    (tmp_path / "music").mkdir()
    (tmp_path / "music" / "song.mp3").write_bytes(b"la")
    before = tree(tmp_path, ignore=())
    for to, word in [
        (table, "there is a table at"),
        (tmp_path / "music", "is not empty: it has 'song.mp3'"),
        (original, "cannot be inside the other"),
        (original / "copy", "cannot be inside the other"),
        ("ftp://host/table", "or bigtable://PROJECT/INSTANCE/TABLE, got 'ftp://host/table'"),
    ]:
        capsys.readouterr()
        assert nutbeam("copy", original, to) == 2
        error = capsys.readouterr().err
        assert word in error
        assert error.count("\n") == 1
    assert nutbeam("copy", tmp_path / "none", tmp_path / "copy") == 2
    assert tree(tmp_path, ignore=()) == before


def test_the_same_operation_again_changes_nothing(original, tmp_path, capsys):
    words = ["copy", original, tmp_path / "copy", "--operation", "mine"]
    assert nutbeam(*words) == 0
    before = tree(tmp_path / "copy", ignore=())
    assert nutbeam(*words) == 0
    assert tree(tmp_path / "copy", ignore=()) == before


def test_a_table_that_was_begun_there_meanwhile_stays(original, tmp_path, monkeypatch, capsys):
    to, real = tmp_path / "copy", copy_table.commit

    def late(*args, **kwargs):
        assert nutbeam("inject", to, "http://a.example.com/") == 0
        return real(*args, **kwargs)

    monkeypatch.setattr(copy_table, "commit", late)
    assert nutbeam("copy", original, to) == 3
    assert "in the meantime; nothing was written" in capsys.readouterr().err
    assert state_of(to)["url"].to_list() == ["http://a.example.com/"]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["state", "pages", "list"])
def test_damaged_files_are_not_copied(original, tmp_path, kind, capsys):
    table = shutil.copytree(original, tmp_path / "table")
    manifest = manifest_of(table)
    name = next(name for name in manifest.components if name.endswith(kind) or kind == "list")
    path = table / manifest.components[name].list if kind == "list" else files_of(table, name)[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    assert nutbeam("copy", table, tmp_path / "copy") == 3
    error = capsys.readouterr().err
    assert path.name in error
    assert error.endswith(f": run nutbeam fsck {table}\n")
    assert latest_snapshot(tmp_path / "copy") == 0


@pytest.mark.long
def test_a_copy_that_was_killed_is_no_table(original, tmp_path, capsys):
    """It is killed at more and more files, until it is through."""
    to = tmp_path / "copy"
    command = [sys.executable, "-P", "-m", "nutbeam", "copy", original, to]
    for files in (1, 3, 6, 9):
        process = subprocess.Popen([*map(str, command), "--progress", "false"])
        wait_until(lambda files=files: len(list(to.rglob("*.parquet"))) >= files, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if latest_snapshot(to):
            break
        for words in (["readdb", to], ["generate", to], ["pages", to]):
            capsys.readouterr()
            assert nutbeam(*words) == 2
            assert "it has no manifest" in capsys.readouterr().err
    else:
        assert nutbeam("copy", original, to) == 0
    same(to, original)
    for path in to.rglob("*"):
        then = path.stat().st_mtime - 9 * 86_400
        os.utime(path, (then, then))
    assert nutbeam("compact", to) == 0
    assert nutbeam("fsck", to) == 0
    same(to, original)


def test_a_snapshot_that_is_replaced_meanwhile_is_copied_as_it_was(original, tmp_path, monkeypatch):
    table, real = shutil.copytree(original, tmp_path / "table"), copy_table.copy_file

    def late(*args):
        monkeypatch.setattr(copy_table, "copy_file", real)
        assert nutbeam("inject", table, "http://late.example.com/") == 0
        commit(begin(str(table), "inject", "more"), [])
        return real(*args)

    monkeypatch.setattr(copy_table, "copy_file", late)
    assert nutbeam("copy", table, tmp_path / "copy") == 0
    assert latest_snapshot(place_of(str(table))) == latest_snapshot(original) + 2
    same(tmp_path / "copy", original)


@pytest.mark.bigtable
def test_a_table_in_bigtable_that_does_not_exist_is_a_mistake_of_the_user(
    original, bigtable, tmp_path, capsys
):
    absent = str(bigtable.new_address())
    for source, target in ((original, absent), (absent, tmp_path / "copy")):
        assert nutbeam("copy", source, target) == 2
        assert f"no table at {absent}: nutbeam table create makes it" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


@pytest.mark.long
@pytest.mark.bigtable
def test_into_bigtable_and_back_is_the_same_table(web, original, bigtable, tmp_path, capsys):
    there, back = bigtable.make(tmp_path / "there"), tmp_path / "back"
    assert nutbeam("copy", original, there) == 0
    assert nutbeam("copy", there, back) == 0
    same(there, original)
    same(back, original)
    assert "seed_hosts" not in manifest_of(back).components
    # Another one of its kind, and each goes on.
    other = bigtable.make(tmp_path / "other")
    assert nutbeam("copy", there, other) == 0
    same(other, original)
    capsys.readouterr()
    assert nutbeam("copy", original, there) == 2
    assert "there is a table at" in capsys.readouterr().err
    for table in (back, other):
        assert crawl(table, web) == 0
        assert_whole(table, web.site)
