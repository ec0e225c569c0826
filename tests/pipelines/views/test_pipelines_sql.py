"""sql asks one snapshot of a table, reads nothing else, and changes nothing."""

import csv
import io
import json
import shutil
import sys

import polars as pl
import pytest
from crawling import (
    crawl,
    files_of,
    json_lines,
    links_of,
    manifest_of,
    nutbeam,
    reach,
    state_of,
    tree,
)
from simulated_web import SimWeb

from nutbeam.policy.schema import STATUS_NAMES

duckdb = pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=2, pages=8, seed=7, crawl_delay=0) as server:
        yield server


@pytest.fixture(scope="module")
def table(web, tmp_path_factory):
    """A table with a whole crawl; tests only read it."""
    folder = tmp_path_factory.mktemp("sql") / "table"
    assert crawl(folder, web, *web.seeds, "http://[::1]:1/x%5C1") == 0
    return folder


@pytest.fixture
def ask(table, capsys):
    def run(query, *words, code=0):
        before = tree(table, ignore=())
        capsys.readouterr()
        assert nutbeam("sql", table, query, *words) == code
        assert tree(table, ignore=()) == before
        captured = capsys.readouterr()
        if code:
            assert captured.out == ""
            assert captured.err.count("\n") == 1
            assert "internal error" not in captured.err
            return captured.err.strip()
        return captured.out

    return run


def rows_of(ask, query):
    return json_lines(ask(query, "--format", "json"))


def test_the_state_is_that_of_the_newest_snapshot(table, ask):
    found = rows_of(ask, "select url, key, status, score from state order by key")
    right = state_of(table).select("url", "key", "status", "score")
    assert pl.DataFrame(found, schema=right.schema).equals(right)


def test_each_view_has_what_the_snapshot_has(table, ask):
    manifest = manifest_of(table)
    for view in ("state", "hosts"):
        assert rows_of(ask, f"select count(*) as n from {view}") == [
            {"n": manifest.components[view].rows}
        ]
    for view in ("fetchlist", "pages", "host_findings", "documents", "outcome"):
        totals = {
            name.split("/")[1]: c.rows
            for name, c in manifest.components.items()
            if name.endswith(f"/{view}")
        }
        found = rows_of(ask, f"select batch, count(*) as n from {view} group by batch")
        assert {row["batch"]: row["n"] for row in found} == {b: n for b, n in totals.items() if n}
    found = rows_of(ask, "select * from batches order by batch")
    assert [row["batch"] for row in found] == sorted(manifest.batches)
    assert found[0]["phase"] == "updated"


def test_views_can_be_joined(table, ask):
    query = """
        select s.url, status_name(s.status) as status, d.title, len(d.outlinks) as links,
               utc(s.fetch_time) as due
        from state s join documents d on d.key = s.key and d.batch = s.batch_id
        where s.status = 2 order by links desc, url limit 3"""
    found = rows_of(ask, query)
    assert [row["status"] for row in found] == ["db_fetched"] * 3
    assert found[0]["links"] >= found[-1]["links"]
    assert found[0]["due"][:2] == "20"
    names = rows_of(ask, "select distinct status, status_name(status) as name from state")
    assert {row["status"]: row["name"] for row in names}.items() <= STATUS_NAMES.items()


def test_links_are_those_of_the_newest_document_of_each_page(table, tmp_path, capsys):
    table = shutil.copytree(table, tmp_path / "table")
    before = links(table, capsys)
    assert list(before[0]) == ["url", "key", "target_url", "target_key", "anchor", "rel"]
    assert len({row["url"] for row in before}) > 8
    with SimWeb(hosts=2, pages=8, seed=8, crawl_delay=0) as web:  # the same hosts, other texts
        assert nutbeam("crawl", table, "--rounds", "1", "--add_days", "62", *reach(web)) == 0
    after = links(table, capsys)
    assert {row["url"] for row in before} & {row["url"] for row in after}
    stored = [pl.read_parquet(file)["outlinks"].list.len().sum() for file in documents_of(table)]
    assert sum(stored) > len(after)
    # A file that took another one's place goes by the other one's name.
    source = after[0]["url"]
    assert nutbeam("purge", table, "--url", source) == 0
    named = {table / path for path in state_of(table)["document"].drop_nulls()}
    assert not named <= set(documents_of(table))
    rest = links(table, capsys)
    assert rest
    assert source not in {row["url"] for row in rest}


def documents_of(table):
    names = [name for name in manifest_of(table).components if name.endswith("/documents")]
    return [file for name in names for file in files_of(table, name)]


def links(table, capsys):
    """Asserts that the view has the links that the table has; returns them."""
    capsys.readouterr()
    assert nutbeam("sql", table, "select * from links", "--format", "json") == 0
    rows = json_lines(capsys.readouterr().out)
    assert sorted(str([*row.values()]) for row in rows) == sorted(
        str([*r]) for r in links_of(table)
    )
    return rows


def test_hosts_by_name(table, ask):
    found = {row["host"] for row in rows_of(ask, "select host from hosts")}
    assert {"h0.example.com", "[::1]"} <= found


def test_output_for_people_and_for_scripts(ask):
    query = "select 1 as a, '=1+1' as b, [1, null] as c, 'x'::blob as d, null as e, 'a\x1b[2J' as f"
    out = ask(query)
    assert "│ a " in out
    assert "\x1b" not in out
    (row,) = rows_of(ask, query)
    assert row == {"a": 1, "b": "=1+1", "c": [1, None], "d": "78", "e": None, "f": "a\x1b[2J"}
    lines = list(csv.reader(io.StringIO(ask(query, "--format", "csv"))))
    assert lines[0] == ["a", "b", "c", "d", "e", "f"]
    assert lines[1][:5] == ["1", "'=1+1", "[1, null]", "78", ""]


def test_people_see_the_first_rows(ask):
    out = ask("select * from range(500) t(n)", "--max_rows", "7")
    assert out.endswith("the first 7 rows; --max_rows 0 shows all\n")
    assert "│ 6 " in out
    assert "│ 7 " not in out
    assert len(rows_of(ask, "select * from range(5000) t(n)")) == 5000


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec 1", "syntax error"),
        ("select nothing from state", "nothing"),
        ("select * from nowhere", "nowhere"),
        ("", "missing argument QUERY"),
        ("select 1; select 2", "sql takes one SELECT"),
        ("create table x as select 1", "sql takes one SELECT"),
        ("drop view state", "sql takes one SELECT"),
        ("copy state to '{here}/x.csv'", "sql takes one SELECT"),
        ("attach '{here}/x.db'", "sql takes one SELECT"),
        ("install httpfs", "sql takes one SELECT"),
        ("load json", "sql takes one SELECT"),
        ("set enable_external_access = true", "sql takes one SELECT"),
        ("pragma database_list", "sql takes one SELECT"),
        ("select * from read_text('/etc/hostname')", "ermission"),
        ("select * from '{here}/other.parquet'", "ermission"),
        ("select * from read_parquet('http://127.0.0.1:9/x.parquet')", ""),
        ("select * from glob('/etc/*')", "ermission"),
        ("select cast('x' as integer)", "x"),
    ],
)
def test_what_cannot_be_asked(ask, tmp_path, query, message):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    error = ask(query.replace("{here}", str(tmp_path)), code=2)
    assert message in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.parquet"]


def test_variables_of_the_program_are_not_seen(ask):
    assert "manifest" in ask("select * from manifest", code=2)


def test_a_fresh_table_has_all_views(tmp_path, capsys):
    assert nutbeam("inject", tmp_path / "t", "http://a.example.com/") == 0
    capsys.readouterr()
    for view in (
        "state",
        "hosts",
        "fetchlist",
        "pages",
        "host_findings",
        "documents",
        "outcome",
        "links",
        "batches",
    ):
        assert (
            nutbeam("sql", tmp_path / "t", f"select count(*) as n from {view}", "--format", "json")
            == 0
        )
        assert json.loads(capsys.readouterr().out) == {"n": int(view in ("state", "hosts"))}


def test_files_of_an_older_version_lack_columns(tmp_path, capsys):
    assert nutbeam("inject", tmp_path / "t", "http://a.example.com/") == 0
    (path,) = files_of(tmp_path / "t", "state")
    shutil.copy(path, tmp_path / "copy")
    pl.read_parquet(tmp_path / "copy").drop("metadata", "simhash").write_parquet(path)
    capsys.readouterr()
    assert nutbeam("sql", tmp_path / "t", "select url, simhash from state", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"url": "http://a.example.com/", "simhash": None}


def test_a_file_that_is_missing_or_damaged(tmp_path, capsys):
    assert nutbeam("inject", tmp_path / "t", "http://a.example.com/") == 0
    (path,) = files_of(tmp_path / "t", "state")
    for damage in (lambda: path.write_bytes(b"PAR1 no more"), path.unlink):
        damage()
        capsys.readouterr()
        assert nutbeam("sql", tmp_path / "t", "select * from state") == 3
        error = capsys.readouterr().err
        assert str(path) in error
        assert error.endswith(f": run nutbeam fsck {tmp_path / 't'}\n")


def test_without_duckdb(table, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert nutbeam("sql", table, "select 1") == 2
    assert capsys.readouterr().err == "nutbeam sql: sql needs DuckDB: pip install 'nutbeam[sql]'\n"


def test_csv_is_for_sql_alone(table, capsys):
    assert nutbeam("readdb", table, "--format", "csv") == 2
    assert "--format must be text or json for readdb, got 'csv'" in capsys.readouterr().err
