"""solrdedup on the embedded index: duplicates over several shards."""

import polars as pl
import pytest
from crawling import files_of, nutbeam, rows_of
from indexed_tables import page, put

from nutbeam.io.index.index_writer import IndexTarget, open_writer
from nutbeam.io.table.opening import open_table
from nutbeam.policy.indexing.index_routes import WriterRule
from nutbeam.policy.schema import Status

pytest.importorskip("tantivy")
WORDS = ("--writer", "tantivy")
SAME, OTHER = {"signature": b"\1" * 16}, {"signature": b"\2" * 16}


@pytest.fixture
def table(tmp_path):
    """A table whose index has two shards."""
    table = str(tmp_path / "table")
    put(table, "17-1", {
        "com.a:http/1": page("one", score=1.0, **SAME),
        "com.a:http/2": page("two", score=5.0, **SAME),
        "com.b:http/1": page("without a digest"),
    })  # fmt: skip
    assert nutbeam("index", table, *WORDS) == 0
    put(table, "17-2", {
        "com.a:http/3": page("three", score=2.0, **SAME),
        "com.b:http/2": page("new", **OTHER),
    })  # fmt: skip
    assert nutbeam("index", table, *WORDS) == 0
    assert len(files_of(table, "index/main/shards")) == 2
    return table


def stored(table):
    """Returns the URLs that the index has."""
    target = IndexTarget("main", "w", {}, open_table(table), 0, "")
    return sorted(
        id_
        for rows in open_writer(WriterRule("w", "tantivy", {}), target).stored()
        for id_ in rows.get_column("id")
    )


def journal_of(table):
    rows = rows_of(table, "index/main/indexed").filter(pl.col("deleted").is_null())
    return {
        key: (state, writers)
        for key, state, writers in rows.select("key", "state", "writers").iter_rows()
    }


def test_the_best_of_equal_documents_stays_over_two_shards(table, capsys):
    capsys.readouterr()
    assert nutbeam("solrdedup", table, *WORDS) == 0
    assert capsys.readouterr().out == "5 documents, 2 duplicates deleted\n"
    left = ["http://a.com/2", "http://b.com/1", "http://b.com/2"]
    assert stored(table) == left
    held = (1, ["tantivy"])
    assert journal_of(table) == {
        "com.a:http/1": (2, []), "com.a:http/2": held, "com.a:http/3": (2, []),
        "com.b:http/1": held, "com.b:http/2": held,
    }  # fmt: skip
    assert nutbeam("solrdedup", table, *WORDS) == 1
    assert nutbeam("fsck", table) == 0
    # The next run brings none of them back, except one that has a new text.
    put(table, "17-3", {
        "com.a:http/1": page("one is new", **OTHER),
        "com.a:http/3": {"status": int(Status.DB_FETCHED), "score": 9.0},
    })  # fmt: skip
    assert nutbeam("index", table, *WORDS) == 0
    assert stored(table) == sorted([*left, "http://a.com/1"])
    assert nutbeam("compact", table, "--full", "true") == 0
    assert stored(table) == sorted([*left, "http://a.com/1"])
