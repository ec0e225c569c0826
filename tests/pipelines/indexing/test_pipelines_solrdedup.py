"""solrdedup on the embedded index: duplicates over several shards."""

import polars as pl
import pytest
from crawling import files_of, manifest_of, nutbeam, rows_of
from indexed_tables import page, put

from nutbeam.io.indexing.index_run import plan_run
from nutbeam.io.indexing.index_writer import IndexTarget
from nutbeam.io.indexing.writer_kinds import open_writer
from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.index_routes import IndexRoutes, WriterRule
from nutbeam.policy.components.schema import Status
from nutbeam.web.urls.row_keys import from_key

pytest.importorskip("tantivy")
WORDS = ("--writer", "tantivy")
RULE = WriterRule("tantivy", "tantivy", {})
ROUTES = IndexRoutes((RULE,))
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
        for rows in open_writer(RULE, target).stored_documents()
        for id_ in rows.get_column("id")
    )


def journal_of(table):
    rows = rows_of(table, "index/main/indexed").filter(pl.col("deleted").is_null())
    return {
        key: (state, writers)
        for key, state, writers in rows.select("key", "state", "writers").iter_rows()
    }


@pytest.mark.few(1)
@pytest.mark.parametrize("first", ["com.a:http/1", "com.b:http/1"])
def test_the_document_of_the_first_shard_stays_if_none_has_a_time(tmp_path, first):
    table, second = str(tmp_path / "table"), "com.aa:http/2"
    words = (*WORDS, "--index_filters", "language")  # no tstamp
    for number, key in enumerate((first, second)):
        put(table, f"17-{number}", {key: page("words", score=1.0, **SAME)})
        assert nutbeam("index", table, *words) == 0
    assert nutbeam("solrdedup", table, *WORDS, "--keep", "highest_score") == 0
    assert stored(table) == [from_key(first)]


@pytest.mark.long
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
    assert nutbeam("solrdedup", table, *WORDS) == 0
    assert nutbeam("fsck", table) == 0
    # The next run brings none of them back, except one that has a new text.
    known = rows_of(table, "state").filter(pl.col("key") == "com.a:http/3").row(0, named=True)
    kept = {name: known[name] for name in ("status", "parse_status", "document", "signature")}
    put(table, "17-3", {
        "com.a:http/1": page("one is new", **OTHER),
        "com.a:http/3": {**kept, "score": 9.0},
    })  # fmt: skip
    assert nutbeam("index", table, *WORDS) == 0
    assert dict(manifest_of(table).counts) == {"indexed": 1}
    assert stored(table) == sorted([*left, "http://a.com/1"])
    put(table, "17-4", {"com.a:http/3": {"status": int(Status.DB_GONE)}})
    assert nutbeam("index", table, *WORDS) == 0
    assert stored(table) == sorted([*left, "http://a.com/1"])
    assert set(journal_of(table)) == {f"com.{n}:http/{m}" for n in "ab" for m in (1, 2)}
    assert nutbeam("compact", table, "--full", "true") == 0
    assert stored(table) == sorted([*left, "http://a.com/1"])


# The seed's cases: shards of (id, url, time, digest, boost), what is kept, and the ids that stay.
CASES = {
    "the newest of a URL": (
        [[("a", "u", 1, "1", 1), ("b", "v", 1, "2", 1)], [("c", "u", 2, "3", 1)]],
        "highest_score", "bc",
    ),
    "the newest of a URL, in the older shard": (
        [[("a", "u", 2, "1", 1)], [("c", "u", 1, "3", 9)]],
        "highest_score", "a",
    ),
    "the highest score of a digest": (
        [[("a", "u", 9, "1", 1), ("b", "v", 1, "1", 3)], [("c", "w", 5, "1", 2)]],
        "highest_score", "b",
    ),
    "the shortest URL of a digest": (
        [[("a", "uuu", 9, "1", 9), ("b", "vv", 1, "2", 3)], [("c", "w", 5, "1", 2)]],
        "shortest_url", "bc",
    ),
    "an older copy of a URL does not win by its score": (
        [[("a", "u", 1, "1", 9), ("b", "v", 1, "2", 1)], [("c", "u", 2, "2", 0)]],
        "highest_score", "b",
    ),
    "the newest of equal scores": (
        [[("a", "u", 1, "1", 1)], [("c", "w", 5, "1", 1)]],
        "highest_score_newest", "c",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_the_cases_of_the_seed_over_two_shards(case, tmp_path):
    shards, keep, left = CASES[case]
    table = str(tmp_path / "table")
    for number, rows in enumerate(shards, 1):
        operation = begin(table, "index", f"{number}.index")
        task = plan_run(operation, "main", ROUTES)
        opened = open_writer(RULE, task.target(RULE))
        documents = [
            {"id": f"http://{id_}.com/", "url": f"http://x.com/{url}", "tstamp": time,
             "digest": digest, "boost": float(boost)}
            for id_, url, time, digest, boost in rows
        ]  # fmt: skip
        opened.write(pl.DataFrame(documents), pl.Series([], dtype=pl.String))
        written = Written("index/main/shards", opened.close().files)
        commit(operation, [written, task.record()])
    assert nutbeam("solrdedup", table, *WORDS, "--keep", keep) == 0
    assert stored(table) == [f"http://{id_}.com/" for id_ in left]
