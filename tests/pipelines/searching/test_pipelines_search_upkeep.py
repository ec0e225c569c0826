"""compact, purge, copy and rollback know the shards of an index."""

import json

import pytest
from crawling import nutbeam
from index_shards import commit_shards, page, write_shards
from indexed_tables import page as state_page
from indexed_tables import put

from nutbeam.io.indexing.unpacked_index import table_cache
from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.policy.components.index_schema import index_component


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "table"
    assert nutbeam("inject", folder, "http://a.com/", "http://b.com/") == 0
    for number in range(9):
        pages = [page(f"http://a.com/{n}", f"v{number}", "river") for n in range(number, 10)]
        commit_shards(folder, write_shards(folder, pages, (), number + 1), f"op{number}")
    return folder


@pytest.fixture
def found(capsys):
    def search(table, *words):
        capsys.readouterr()
        nutbeam("search", table, "river", "--format", "json", "--top", "50", *words)
        lines = capsys.readouterr().out.splitlines()
        return {record["url"]: record["title"] for record in map(json.loads, lines)}

    return search


def shards(table):
    return newest_manifest(str(table)).components[index_component("main", "shards")].files


EVERY = {f"http://a.com/{n}": f"v{min(n, 8)}" for n in range(10)}


@pytest.mark.long
def test_compact_merges_shards_and_search_finds_the_same(table, found):
    assert found(table) == EVERY
    assert shards(table) == 9
    assert nutbeam("compact", table) == 0
    assert shards(table) == 1
    assert found(table) == EVERY
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
def test_purge_takes_a_page_out_of_shards_and_unpacked_indexes(table, found, tmp_path):
    assert found(table) == EVERY
    assert table_cache(str(table)).is_dir()
    assert nutbeam("purge", table, "--url", "http://a.com/9", "--now") == 0
    assert not table_cache(str(table)).exists()
    assert found(table) == {url: v for url, v in EVERY.items() if url != "http://a.com/9"}
    assert nutbeam("fsck", table) == 0
    assert nutbeam("copy", table, tmp_path / "copy") == 0
    assert len(found(tmp_path / "copy")) == 9


@pytest.mark.long
def test_a_rollback_brings_the_index_back(table, found):
    before = newest_manifest(str(table)).snapshot
    new = write_shards(table, [page("http://b.com/", "new", "river")], list(EVERY), 100)
    commit_shards(table, new, "later")
    assert found(table) == {"http://b.com/": "new"}
    assert nutbeam("rollback", table, "--to", before) == 0
    assert found(table) == EVERY


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("index", ["main", "other"])
@pytest.mark.parametrize("how", ["flipped", "cut", "gone"])
def test_the_line_about_a_damaged_shard_names_the_command_that_repairs_it(
    tmp_path, monkeypatch, capsys, index, how
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = tmp_path / "table"
    put(table, "17-1", {"com.a:http/1": state_page("river")})
    assert nutbeam("index", table, "--index", index) == 0
    (shard,) = table.glob(f"index/{index}/shards/*.parquet")
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 255
    shard.write_bytes(data if how == "flipped" else data[: len(data) // 2])
    if how == "gone":
        shard.unlink()
    capsys.readouterr()
    assert nutbeam("search", table, "river", "--index", index) == 3
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    *_, command = line.strip().split(": run nutbeam ")
    assert nutbeam(*command.split()) == 0
    assert nutbeam("search", table, "river", "--index", index) == 0
