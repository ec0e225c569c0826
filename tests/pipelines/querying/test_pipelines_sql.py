"""sql asks one snapshot of a table, reads nothing else, and changes nothing."""

import base64
import csv
import io
import json
import os
import shutil
import subprocess
import sys

import polars as pl
import pytest
from crawling import (
    files_of,
    json_lines,
    links_of,
    manifest_of,
    nutbeam,
    reach,
    state_of,
)
from simulated_web import SimWeb
from sql_rows import rows_of

from nutbeam.policy.components.columns import Form
from nutbeam.policy.components.kinds import KINDS, kinds_of_batches
from nutbeam.policy.components.views import shown_columns, views
from nutbeam.policy.components.vocabulary import iso, record_of

duckdb = pytest.importorskip("duckdb")
COLUMNS = shown_columns(KINDS["state"])


@pytest.mark.long
def test_the_state_is_that_of_the_newest_snapshot(table, ask):
    found = rows_of(ask, "select * from state order by key")
    right = [record_of(row, COLUMNS) for row in state_of(table).iter_rows(named=True)]
    assert found == right


@pytest.mark.long
def test_each_view_has_the_rows_of_the_snapshot(table, ask):
    manifest = manifest_of(table)
    for view in ("state", "hosts"):
        assert rows_of(ask, f"select count(*) as n from {view}") == [
            {"n": manifest.components[view].rows}
        ]
    for kind in kinds_of_batches():
        totals = {
            name.split("/")[1]: c.rows
            for name, c in manifest.components.items()
            if name.endswith(f"/{kind}")
        }
        found = rows_of(ask, f"select batch_id, count(*) as n from batch_{kind} group by batch_id")
        assert {row["batch_id"]: row["n"] for row in found} == {
            b: n for b, n in totals.items() if n
        }
    found = rows_of(ask, "select * from batches order by batch_id")
    assert [row["batch_id"] for row in found] == sorted(manifest.batches)
    assert found[0]["phase"] == "updated"
    assert found[0]["created"] == iso(manifest.batches[found[0]["batch_id"]].created)


@pytest.mark.long
def test_each_view_has_the_columns_that_are_declared(ask):
    listed = ask("show tables", "--format", "csv").split()
    assert sorted(listed[1:]) == sorted(views())
    described = (
        f"select '{name}' as view, column_name, column_type from (describe {name})"
        for name in views()
    )
    rows = rows_of(ask, " union all ".join(described))
    for name, view in views().items():
        found = [row for row in rows if row["view"] == name]
        assert [row["column_name"] for row in found] == [column.name for column in view.columns]
        types = {row["column_name"]: row["column_type"] for row in found}
        for column in view.columns:
            if column.form is not Form.PLAIN:
                seen = {Form.TIME: "TIMESTAMP", Form.DAY: "DATE"}.get(column.form, "VARCHAR")
                assert types[column.name] == seen


def test_views_can_be_joined(table, ask):
    query = """
        select s.url, s.status, d.title, len(d.outlinks) as links, s.fetch_time as due
        from state s join batch_documents d using (key, batch_id)
        where s.status = 'fetched' order by links desc, s.url limit 3"""
    found = rows_of(ask, query)
    assert [row["status"] for row in found] == ["db_fetched"] * 3
    assert found[0]["links"] >= found[-1]["links"]
    assert found[0]["due"][:2] == "20"
    recent = "select count(*) as n from state where last_fetch_time > now() - interval 1 day"
    assert rows_of(ask, recent)[0]["n"] > 16


@pytest.mark.long
def test_links_are_those_of_the_newest_document_of_each_page(table, tmp_path, capsys):
    table = shutil.copytree(table, tmp_path / "table")
    before = links(table, capsys)
    assert list(before[0]) == ["url", "target_url", "anchor", "rel", "key", "target_key"]
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
    assert nutbeam("sql", table, "select * from outlinks", "--format", "json") == 0
    rows = json_lines(capsys.readouterr().out)
    names = ("url", "key", "target_url", "target_key", "anchor", "rel")
    found = sorted(str([row[name] for name in names]) for row in rows)
    assert found == sorted(str([*r]) for r in links_of(table))
    return rows


@pytest.mark.long
def test_hosts_by_name(table, ask):
    found = {row["host"] for row in rows_of(ask, "select host from hosts")}
    assert {"h0.example.com", "[::1]"} <= found


@pytest.mark.long
def test_output_for_people_and_for_scripts(ask):
    query = "select 1 as a, '=1+1' as b, [1, null] as c, 'x'::blob as d, null as e, 'a\x1b[2J' as f"
    out = ask(query)
    assert "│ a " in out
    assert "\x1b" not in out
    (row,) = rows_of(ask, query)
    assert row == {"a": 1, "b": "=1+1", "c": [1, None], "d": "eA==", "e": None, "f": "a\x1b[2J"}
    lines = list(csv.reader(io.StringIO(ask(query, "--format", "csv"))))
    assert lines[0] == ["a", "b", "c", "d", "e", "f"]
    assert lines[1][:5] == ["1", "'=1+1", "[1, null]", "eA==", ""]


def test_people_see_the_first_rows(ask):
    out = ask("select * from range(500) t(n)", "--max_rows", "7")
    assert out.endswith("the first 7 rows; --max_rows 0 shows all\n")
    assert "│ 6 " in out
    assert "│ 7 " not in out
    assert len(rows_of(ask, "select * from range(5000) t(n)")) == 5000


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec 1", "syntax error"),
        ("select nothing from state", "nothing"),
        ("select * from nowhere", "nowhere"),
        ("", "the query is empty"),
        ("create table x as select 1", "sql takes SELECT only"),
        ("drop view state", "sql takes SELECT only"),
        ("copy state to '{here}/x.csv'", "sql takes SELECT only"),
        ("with x as (copy state to '{here}/x.csv') from x", "sql takes SELECT only"),
        (
            "from (with x as (delete from stored.batches returning *) from x)",
            "sql takes SELECT only",
        ),
        (
            "explain analyze with x as (copy state to '{here}/x.csv') from x",
            "sql takes SELECT only",
        ),
        ("attach '{here}/x.db'", "sql takes SELECT only"),
        ("install httpfs", "sql takes SELECT only"),
        ("load json", "sql takes SELECT only"),
        ("set enable_external_access = true", "sql takes SELECT only"),
        ("pragma database_list", "sql takes SELECT only"),
        (
            "select * from nowhere",
            "no view 'nowhere': the views are state, hosts, inlinks, pages, outlinks,",
        ),
        (
            "select * from fetchlist",
            "no view 'fetchlist': the views are state, hosts, inlinks, pages, outlinks,",
        ),
        ("select st_point(1, 2)", "it is in the extension spatial, and sql loads no extension"),
        ("select foo(1)", "Scalar Function with name foo does not exist"),
        ("select * from state where status = 2", "values of status are names, such as 'db_"),
        ("select * from state where fetch_time > 17e11::bigint", "times are timestamps: compare"),
        ("select * from read_text('/etc/hostname')", "sql reads only the files of the table"),
        ("select * from '{here}/other.parquet'", "ermission"),
        ("select * from read_parquet('http://127.0.0.1:9/x.parquet')", ""),
        ("select * from glob('/etc/*')", "ermission"),
        ("select cast('x' as integer)", "x"),
    ],
)
def test_invalid_queries_are_refused_and_write_no_file(ask, tmp_path, query, message):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    error = ask(query.replace("{here}", str(tmp_path)), code=2)
    assert message in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.parquet"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "query", ["select * from nowhere", "select foo(1)", "select * from state where fetch_time > 1"]
)
def test_errors_give_no_wrong_advice(ask, query):
    error = ask(query, code=2)
    assert "Did you mean" not in error
    assert "explicit cast" not in error


def test_a_plan_is_shown(ask):
    for explain in ("explain", "/* a */ EXPLAIN ANALYZE", "explain (analyze, format json)"):
        assert "_plan" in ask(f"{explain} select count(*) from batch_pages")


def test_variables_of_the_program_are_not_seen(ask):
    assert "manifest" in ask("select * from manifest", code=2)


@pytest.mark.long
def test_a_fresh_table_has_all_views(tmp_path, capsys):
    assert nutbeam("inject", tmp_path / "t", "http://a.example.com/") == 0
    capsys.readouterr()
    counts = " union all ".join(
        f"select '{view}' as v, count(*) as n from {view}" for view in views()
    )
    assert nutbeam("sql", tmp_path / "t", counts, "--format", "json") == 0
    assert {row["v"]: row["n"] for row in json_lines(capsys.readouterr().out)} == {
        view: int(view in ("state", "hosts", "host_counts")) for view in views()
    }


def test_json_has_columns_of_equal_name_and_decimals_as_numbers(ask):
    values = (
        "1 as n, 2 as n, 3 as n_1, [-0.10::decimal(4, 2)] as list, {'d': 2.50::decimal(4, 2)} as of"
    )
    whole = "12345678901234567890.5::decimal(38, 1)"
    text = ask(
        f"select {values}, {whole} as d, sum(n) as s from (select 7 as n)", "--format", "json"
    )
    assert text == (
        '{"n": 1, "n_2": 2, "n_1": 3, "list": [-0.10], "of": {"d": 2.50}, '
        '"d": 12345678901234567890.5, "s": 7}\n'
    )


@pytest.mark.long
def test_negative_decimals_are_numbers_in_csv_and_in_text(ask):
    query = "select -1.50::decimal(4, 2) as d, [-0.10::decimal(4, 2)] as list"
    assert ask(query, "--format", "csv") == "d,list\n-1.50,[-0.10]\n"
    assert "│ -1.50 │ [-0.10] │" in ask(query)


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


def test_an_error_with_a_word_like_the_name_of_the_table_is_not_damage(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert nutbeam("inject", "column", "http://a.example.com/") == 0
    assert nutbeam("sql", "column", "select nothing from state") == 2
    assert "fsck" not in capsys.readouterr().err


def test_damage_that_duckdb_reports_without_a_file_leads_to_fsck(tmp_path, capsys):
    assert nutbeam("inject", tmp_path / "t", "http://a.example.com/") == 0
    (path,) = files_of(tmp_path / "t", "state")
    intact, found = path.read_bytes(), ""
    for at in range(4, len(intact), 8):  # until the damage is such
        path.write_bytes(
            intact[:at] + bytes(byte ^ 0x55 for byte in intact[at : at + 8]) + intact[at + 8 :]
        )
        if (found := duckdb_error(path)) and str(path) not in found:
            break
    capsys.readouterr()
    assert nutbeam("sql", tmp_path / "t", "select * from state") == 3
    assert capsys.readouterr().err.endswith(f"{found}: run nutbeam fsck {tmp_path / 't'}\n")


def duckdb_error(path):
    """Returns the message of the error that reading a file raises, or nothing."""
    try:
        duckdb.sql(f"select * from '{path}'").fetchall()
    except duckdb.Error as error:
        return str(error)
    except RuntimeError:  # text that is not UTF-8
        return ""
    return ""


def test_without_duckdb(table, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert nutbeam("sql", table, "select 1") == 2
    assert capsys.readouterr().err == "nutbeam sql: sql needs DuckDB: pip install 'nutbeam[sql]'\n"


def test_csv_is_for_sql_alone(table, capsys):
    assert nutbeam("readdb", table, "--format", "csv") == 2
    assert "--format must be text or json for readdb, got 'csv'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def again(web, table, tmp_path_factory):
    """A table after a recrawl, when nothing had changed; its older files are merged."""
    folder = shutil.copytree(table, tmp_path_factory.mktemp("again") / "table")
    assert nutbeam("crawl", folder, "--rounds", "2", "--add_days", "31", *reach(web)) == 0
    assert nutbeam("compact", folder, "--full") == 0
    return folder


def counted(table, capsys, query):
    capsys.readouterr()
    assert nutbeam("sql", table, query, "--format", "json") == 0
    (row,) = json_lines(capsys.readouterr().out)
    return row["n"]


@pytest.mark.long
def test_fetched_pages_stay_fetched_when_they_were_not_modified(table, again, capsys):
    fetched = "select count(*) as n from state where status = 'fetched'"
    before = counted(table, capsys, fetched)
    assert before >= 15
    assert counted(again, capsys, fetched) == before
    assert counted(again, capsys, fetched.replace("'fetched'", "'notmodified'")) > 8
    exact = counted(again, capsys, fetched.replace("'fetched'", "'db_fetched'"))
    assert exact < before


def test_pages_have_the_newest_text_and_body_of_each_living_url(table, again, capsys):
    for folder in (table, again):
        capsys.readouterr()
        query = "select url, status, text, body, headers, last_fetch_time from pages"
        assert nutbeam("sql", folder, query, "--format", "json") == 0
        pages = {row["url"]: row for row in json_lines(capsys.readouterr().out)}
        living = state_of(folder).filter(
            pl.col("document").is_not_null() & pl.col("status").is_in([1, 2, 6])
        )
        assert sorted(pages) == sorted(living["url"])
        assert len(pages) >= 15
        files = [path for n in manifest_of(folder).components for path in files_of(folder, n)
                 if n.endswith("/pages")]  # fmt: skip
        stored = pl.concat(
            pl.read_parquet(path, columns=["key", "body", "fetch_status"]) for path in files
        )
        bodies = dict(stored.filter(pl.col("fetch_status") == 33).select("key", "body").iter_rows())
        for row in living.iter_rows(named=True):
            page = pages[row["url"]]
            assert base64.b64decode(page["body"]) == bodies[row["key"]]
            assert page["last_fetch_time"] == iso(row["last_fetch_time"])
            assert {header["name"] for header in page["headers"]} >= {"Content-Type"}
        texts = [row["text"] for row in pages.values()]
        assert all(text is not None for text in texts)


def test_a_query_without_bodies_does_not_read_them(table, ask):
    for query in ("select url from pages limit 5", "select count(*) from pages"):
        plan = ask(f"explain {query}", "--format", "json")
        assert "READ_PARQUET" in plan
        assert "body" not in plan
        assert "text" not in plan
    assert "body" in ask("explain select body from pages", "--format", "json")


def test_a_result_fits_the_width(table, monkeypatch, capsys):
    queries = (
        "select * from state limit 3",
        "select * from state limit 12",
        "select * from batch_pages limit 12",
        "select url, title, text, body from pages limit 12",
        "select url, status from state limit 12",
    )
    for width in (80, 120, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys, "stdin", io.StringIO(";\n".join(queries)))
        capsys.readouterr()
        assert nutbeam("sql", table) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        assert len(lines) > 3 * len(queries)


def test_a_few_wide_rows_are_shown_one_by_one(ask):
    lines = ask("select * from state order by key limit 2").splitlines()
    assert lines[0] == "row 1"
    assert lines[1].split()[0] == "url"
    names = [column.name for column in COLUMNS]
    assert [line.split()[0] for line in lines[1 : len(names) + 1]] == names
    assert lines[len(names) + 1] == "row 2"


def test_only_the_first_columns_of_wide_rows_are_shown(ask):
    lines = ask("select * from state limit 12").splitlines()
    assert lines[1].startswith("│ url ")
    number = len(lines[1].split("│")) - 2
    assert lines[-1].startswith(f"{number} of {len(COLUMNS)} columns: select those that you need")


# DuckDB reads the zone of the machine once, so each zone has a process.
ZONE_QUERIES = """
select count(*) as n from state where last_fetch_time > now() - interval 1 hour;
select count(*) as n from state where last_fetch_time <= now() + interval 1 minute;
select count(*) as n from state where last_fetch_time::timestamptz > now() - interval 1 hour;
select count(*) as n from state where last_fetch_time > '2020-01-01 00:00:00Z'::timestamptz;
select '2026-01-31 12:00'::timestamptz::varchar as text, current_setting('TimeZone') as zone;
select epoch_ms(now()::timestamp) - epoch_ms(now()) as ms,
       current_date - now()::date as days, current_date::timestamp = date_trunc('day', now()) as same;
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_queries_are_in_utc_in_all_time_zones(table, zone):
    words = [sys.executable, "-m", "nutbeam", "sql", table, "--format", "json"]
    done = subprocess.run(
        words, input=ZONE_QUERIES, env=os.environ | {"TZ": zone}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    tried = state_of(table).get_column("last_fetch_time").count()
    assert tried > 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        *([{"n": tried}] * 4),
        {"text": "2026-01-31 12:00:00+00", "zone": "UTC"},
        {"ms": 0, "days": 0, "same": True},
    ]
