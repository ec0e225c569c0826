"""The embedded index with a full disk, and with shards of another version."""

import json
import shutil

import pytest
from crawling import latest_snapshot, nutbeam
from indexed_tables import page, put

from nutbeam.io.indexing import shards


@pytest.fixture
def found(capsys, tmp_path):
    def search(table, code=0):
        """Returns the titles that a search finds, or the line that says why it fails."""
        capsys.readouterr()
        words = ("--format", "json", "--cache_folder", tmp_path / "cache")
        assert nutbeam("search", table, "text", *words) == code
        said = capsys.readouterr()
        if code:
            assert said.err.count("\n") == 1
            return said.err
        return sorted(json.loads(line)["title"] for line in said.out.splitlines())

    return search


def pages(first, last):
    return {f"com.a:http/{n}": page(f"text {n}") for n in range(first, last)}


@pytest.mark.parametrize("left", [0, pytest.param(40_000, marks=pytest.mark.long),
                                  pytest.param(12_288, marks=pytest.mark.long)])  # fmt: skip
def test_a_run_on_a_full_disk_is_finished_when_there_is_room(small_disk, capsys, found, left):
    disk = small_disk("4m")
    table, ballast = disk / "table", disk / "ballast"
    put(table, "17-1", pages(0, 2))
    assert nutbeam("index", table) == 0
    put(table, "17-2", pages(1, 4))
    snapshot = latest_snapshot(table)
    ballast.write_bytes(b"\0" * max(0, shutil.disk_usage(disk).free - left))
    capsys.readouterr()
    assert nutbeam("index", table, "--operation", "mine") == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "No space left on device" in said
    assert str(table) in said
    assert latest_snapshot(table) == snapshot
    assert found(table) == ["text 0", "text 1"]
    ballast.unlink()
    assert nutbeam("index", table, "--operation", "mine") == 0
    assert found(table) == [f"text {n}" for n in range(4)]
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
def test_shards_of_another_version_are_replaced_by_a_full_index(tmp_path, monkeypatch, found):
    table = tmp_path / "table"
    put(table, "17-1", pages(0, 2))
    with monkeypatch.context() as older:
        older.setattr(shards, "shard_format", lambda: "tantivy 0.9, schema 0")
        assert nutbeam("index", table) == 0
    put(table, "17-2", pages(2, 3))
    assert nutbeam("index", table) == 0  # new pages do not wait for the repair
    assert "made by tantivy 0.9, schema 0" in found(table, code=3)
    assert nutbeam("compact", table) == 0
    assert "run nutbeam index with --full" in found(table, code=3)
    assert nutbeam("index", table, "--full", "true") == 0
    assert found(table) == ["text 0", "text 1", "text 2"]
