"""What purge leaves of a URL in the files of indexes and in views: nothing, when retention is over."""

import os
import time
from pathlib import Path

import pytest
from bulk_servers import bulk_server, items
from crawling import nutbeam, rows_of
from index_bytes import holders
from indexed_tables import page, put

pytest.importorskip("tantivy")
URL, KEY, WORD = "http://a.com/secret", "com.a:http/secret", "zyxwvsecret"
NEEDLES = (URL, KEY, WORD)
TERMS = (("id", URL), ("words", WORD), ("content", f"en:{WORD}"))


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with two indexes; one of its URLs is in shards, merged shards, and dead letters."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "usual"))
    table = str(tmp_path / "table")
    with bulk_server() as server:
        for number in range(9):
            pages = {f"com.a:http/{number}": page(f"other words of page {number}")}
            if not number:
                pages |= {KEY: page(f"the {WORD} of this page"),
                          "com.a:http/x": page(f"x mentions {URL} in its text")}  # fmt: skip
            put(table, f"17-{number + 1}", pages)
            assert nutbeam("index", table) == 0
        parameters = f"url={server.url},patience=5"
        refused = (400, "mapper_parsing_exception")
        server.script = [
            (200, items(("http://a.com/0", 201), (URL, *refused), ("http://a.com/x", *refused)))
        ]
        words = ("--index", "two", "--writer", "opensearch", "--writer_parameters", parameters)
        assert nutbeam("index", table, *words, "--batch", "17-1") == 0
    assert nutbeam("compact", table) == 0
    return table


def kinds(paths):
    return {path.split("/")[0] if not path.startswith("index") else "/".join(path.split("/")[:3])
            for path in paths}  # fmt: skip


def age(table):
    """Makes files look written long ago."""
    for path in Path(table).rglob("*"):
        os.utime(path, (time.time() - 900_000,) * 2)


def searches(folder, table, *indexes):
    words = ("--cache_folder", folder) if folder else ()
    return [nutbeam("search", table, WORD, *words, "--index", index) for index in indexes]


@pytest.mark.long
def test_a_purged_url_is_in_no_file_and_no_view_when_retention_is_over(table, tmp_path):
    own = tmp_path / "own"
    assert searches("", table, "main") == searches(own, table, "main") == [0]
    before = holders(table, NEEDLES, TERMS)
    assert {"index/main/shards", "index/main/indexed", "index/two/dead_letters",
            "index/two/indexed", "batches", "state"} <= kinds(before)  # fmt: skip
    shards = [path for path in before if path.startswith("index/main/shards")]
    assert len(shards) == 2  # of the run, and the merged one
    for cache in (own, tmp_path / "usual"):
        names = {
            path.rpartition("/")[2].rpartition(".")[2] for path in holders(cache, NEEDLES, TERMS)
        }
        assert {"json"} <= names

    assert nutbeam("purge", table, "--url", URL) == 0
    assert holders(tmp_path / "usual", NEEDLES, TERMS) == []
    left = rows_of(table, "index/two/dead_letters")
    assert left["key"].to_list() == ["com.a:http/x"]
    assert left["document"].to_list() == [None]  # it had the URL in it
    assert searches(own, table, "main") == [1]
    assert holders(own, (KEY, WORD), TERMS) == []

    age(table)
    assert nutbeam("compact", table, "--snapshot_retention", "0") in (0, 1)
    assert holders(table, (KEY, WORD), TERMS) == []
    # Texts of other pages stay as they are.
    assert kinds(holders(table, (URL,))) == {"batches", "index/main/shards"}
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
def test_with_now_a_purged_url_is_gone_at_once(table, tmp_path):
    assert holders(table, (KEY, WORD), TERMS)
    assert nutbeam("purge", table, "--url", URL, "--now") == 0
    assert holders(table, (KEY, WORD), TERMS) == []


@pytest.mark.long
def test_views_in_a_chosen_cache_go_with_all_indexes_when_one_is_opened(table, tmp_path):
    own = tmp_path / "own"
    assert nutbeam("index", table, "--index", "three") == 0
    assert searches(own, table, "main", "three") == [0, 0]
    assert nutbeam("purge", table, "--url", URL) == 0
    assert holders(own, NEEDLES, TERMS)
    assert searches(own, table, "main") == [1]  # index three is not opened
    assert holders(own, (KEY, WORD), TERMS) == []
    assert searches(own, table, "three") == [1]


@pytest.mark.long
def test_a_cache_belongs_to_a_table_and_not_to_the_way_its_address_is_written(
    table, tmp_path, monkeypatch
):
    own = tmp_path / "own"
    assert searches(own, table, "main") == [0]
    monkeypatch.chdir(tmp_path)
    assert searches(own, "table", "main") == searches(own, "./table/", "main") == [0]
    assert len(list((own / "indexes").iterdir())) == 1
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    put("table", "17-1", {KEY: page(f"another {WORD}")})
    assert nutbeam("index", "table") == 0
    assert searches(own, "table", "main") == [0]
    assert len(list((own / "indexes").iterdir())) == 2
