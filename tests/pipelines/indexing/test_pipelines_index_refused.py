"""index with a server that refuses a document: it becomes a dead letter, sent again only when asked to."""

import json

import polars as pl
import pytest
from bulk_servers import bulk_server, items
from crawling import manifest_of, nutbeam, rows_of
from index_servers import index_server
from indexed_tables import page, put

from nutbeam.io.indexing.index_candidates import letter_keys
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.policy.components.schema import Status

BAD, GOOD = "http://a.com/2", "http://a.com/1"


@pytest.fixture
def server():
    with bulk_server() as found:
        yield found


def journal_of(table):
    rows = rows_of(table, "index/main/indexed").filter(pl.col("deleted").is_null())
    return dict(rows.select("key", "state").iter_rows())


def test_a_refused_document_is_a_dead_letter_until_its_page_changes(server, tmp_path, capsys):
    table = str(tmp_path / "table")
    put(table, "17-1", {"com.a:http/1": page("one"), "com.a:http/2": page("two")})
    parameters = f"url={server.url},patience=5"
    words = ("index", table, "--writer", "opensearch", "--writer_parameters", parameters)
    server.script = [(200, items((GOOD, 201), (BAD, 400, "mapper_parsing_exception")))]
    assert nutbeam(*words) == 0
    assert [sorted(ids) for ids in server.bulks] == [[GOOD, BAD]]
    assert dict(manifest_of(table).counts) == {"indexed": 1, "refused": 1}
    assert journal_of(table) == {"com.a:http/1": 1, "com.a:http/2": 2}
    capsys.readouterr()
    assert nutbeam("export", table, "--what", "dead_letters", "--format", "jsonl") == 0
    (letter,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (letter["index_name"], letter["url"], letter["writer"]) == ("main", BAD, "opensearch")
    assert letter["reason"] == "mapper_parsing_exception: a reason"
    assert json.loads(letter["document"])["content"] == "two"
    asked = "select url, state from indexed order by url"
    assert nutbeam("sql", table, asked, "--format", "csv") == 0
    assert capsys.readouterr().out.split() == ["url,state", f"{GOOD},held", f"{BAD},refused"]
    # It is not sent again, until its page has a new text.
    assert nutbeam(*words) == 1
    put(table, "17-2", {"com.a:http/3": page("three")})
    assert nutbeam(*words) == 0
    assert server.bulks[1:] == [["http://a.com/3"]]
    put(table, "17-3", {"com.a:http/2": page("two is good now")})
    assert nutbeam(*words) == 0
    assert server.bulks[2:] == [[BAD]]
    assert server.documents[BAD]["content"] == "two is good now"
    assert set(journal_of(table).values()) == {1}
    # What was accepted is no dead letter any more.
    capsys.readouterr()
    assert nutbeam("export", table, "--what", "dead_letters", "--format", "jsonl") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.long
def test_refused_documents_are_sent_once_more_and_nothing_else_is(tmp_path):
    table = str(tmp_path / "table")
    put(table, "17-1", {f"com.a:http/{n}": page(f"text {n}") for n in range(1, 6)})
    bad = [f"http://a.com/{n}" for n in range(2, 6)]
    with index_server() as server:
        words = ("index", table, "--writer", "opensearch", "--writer_parameters")
        words = (*words, f"url={server.url},patience=5")
        server.refuses = lambda id_, document: id_ in bad
        assert nutbeam(*words) == 0
        assert dead_letters(table) == [f"com.a:http/{n}" for n in range(2, 6)]
        # One has a new text, one is gone, and of the two others one is refused again.
        new = page("three is good now"), {"status": int(Status.DB_GONE)}
        put(table, "17-2", {"com.a:http/3": new[0], "com.a:http/5": new[1]})
        server.bulks.clear()
        server.refuses = lambda id_, document: id_ == bad[2]
        assert nutbeam(*words, "--retry_refused", "true") == 0
        assert sorted(id_ for ids in server.bulks for id_ in ids) == bad[:3]
        assert manifest_of(table).counts["refused"] == 1
        assert dead_letters(table) == ["com.a:http/4"]
        assert journal_of(table) == {
            "com.a:http/1": 1, "com.a:http/2": 1, "com.a:http/3": 1, "com.a:http/4": 2
        }  # fmt: skip
        assert server.texts()[bad[1]] == "three is good now"
        # The last one is sent when this is asked for.
        server.refuses = lambda id_, document: False
        server.bulks.clear()
        assert nutbeam(*words) == 1
        assert nutbeam(*words, "--retry_refused", "true") == 0
        assert server.bulks == [[bad[2]]]
        assert not dead_letters(table)
        assert nutbeam(*words, "--retry_refused", "true") == 1


def dead_letters(address):
    """Returns the keys of the pages with dead letters."""
    table = open_table(address)
    component = manifest_of(address).components["index/main/dead_letters"]
    return sorted(letter_keys(table, load_files(table, component)))
