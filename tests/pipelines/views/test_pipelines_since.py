"""pages --since, and pages into tables: what is new, changed and gone between two snapshots."""

import shutil
import subprocess
import sys
import time

import duckdb
import pyarrow.parquet as pq
import pytest
from crawling import json_lines, nutbeam
from pyiceberg.catalog import load_catalog

import nutbeam as nutbeam_package
from nutbeam.io.snapshots.manifest import load_manifest, newest_manifest
from nutbeam.io.table.opening import open_table
from nutbeam.policy.components.vocabulary import iso
from nutbeam.web.base.errors import UsageError

# Of each page that is as it was: of all types of columns.
RULES = r"""
[[rule]]
[rule.fields]
was = {css = "body", regex = "as it was", required = true}
number = {css = "h1", type = "decimal"}
numbers = {css = "h1", type = "list of number"}
days = {css = "h1", type = "list of date"}
told = {css = "h1", type = "bool"}
"""


def page(number, text="", *links):
    anchors = "".join(f"<a href={link}.html>{link}</a> " for link in links)
    return f"<title>P{number}</title><h1>Page {number}</h1>{anchors}{text}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table after two crawls: of 1 another text is there, 4 is gone, 6 is new, the rest is the same."""
    folder = tmp_path_factory.mktemp("since")
    site = folder / "site"
    site.mkdir()
    (site / "0.html").write_text(page(0, "", 1, 2, 4))
    for number in (1, 2, 4):
        (site / f"{number}.html").write_text(page(number, "as it was"))
    words = ("--schemes", "file", "--file_roots", site, "--rounds", "2")
    table = folder / "table"
    assert nutbeam("crawl", table, f"file://{site}/0.html", *words) == 0
    (folder / "first").write_text(str(newest_manifest(str(table)).snapshot))
    assert pages_into(folder, "duckdb", "old.duckdb") == 0
    assert pages_into(folder, "iceberg", "iceberg:web.pages") == 0
    (folder / "seen.toml").write_text(RULES)
    assert records_into(folder, f"{folder}/old.duckdb") == 0
    (site / "1.html").write_text(page(1, "something else", 6, 7))
    (site / "6.html").write_text(page(6, "six"))
    (site / "7.html").write_text("<title>P7</title>")  # it has no text
    (site / "4.html").unlink()
    assert nutbeam("crawl", table, *words, "--add_days", "40") == 0
    return folder


def pages_into(folder, kind, address, *words):
    place = address if kind == "iceberg" else folder / address
    return nutbeam("pages", folder / "table", "-o", place, "--catalog", f"{folder}/tables", *words)


def records_into(folder, address, *words):
    words = ("-o", address, "--catalog", f"{folder}/tables", *words)
    return nutbeam("extract", folder / "table", folder / "seen.toml", *words)


@pytest.fixture
def first(folder):
    return int((folder / "first").read_text())


@pytest.fixture
def pages(folder, capsys):
    """Runs ``pages`` on the table; returns its exit code, records and messages."""

    def run(*words):
        capsys.readouterr()
        code = nutbeam("pages", folder / "table", *words)
        printed = capsys.readouterr()
        return code, json_lines(printed.out), printed.err

    return run


def by_page(records):
    return {record["url"][-6]: record for record in records}


CHANGES = {"1": "changed", "4": "gone", "6": "new", "7": "new"}


def test_changes_are_those_of_content(folder, first, pages):
    """Pages 0 and 2 were fetched again, with the same content."""
    code, records, _ = pages("--since", first, "--columns", "url,status,text")
    shown = by_page(records)
    assert (code, {name: record["change"] for name, record in shown.items()}) == (0, CHANGES)
    newest = newest_manifest(str(folder / "table")).snapshot
    assert [*records[0]] == ["change", "snapshot", "url", "status", "text"]
    assert {record["snapshot"] for record in records} == {newest}
    assert "something else" in shown["1"]["text"]
    assert (shown["4"]["status"], shown["4"]["text"]) == ("db_gone", None)
    assert pages("--since", newest)[:2] == (0, [])
    # A page that is gone is new among the pages that are gone.
    _, records, _ = pages("--since", first, "--status", "gone", "--columns", "url")
    assert {name: record["change"] for name, record in by_page(records).items()} == {"4": "new"}


def test_a_time_means_the_newest_snapshot_of_then(folder, first, pages):
    moment = iso(load_manifest(open_table(str(folder / "table")), first).time)
    assert {n: r["change"] for n, r in by_page(pages("--since", moment)[1]).items()} == CHANGES
    everything = by_page(pages("--since", "2001-01-01", "--columns", "url")[1])
    assert {name: record["change"] for name, record in everything.items()} == dict.fromkeys(
        "01267", "new"
    )


def test_chunks_of_changed_pages_have_a_row_for_each_page_that_is_gone(
    folder, first, pages, tmp_path
):
    _, records, _ = pages("--since", first, "--chunks", "64")
    shown = by_page(records)
    assert {name: record["change"] for name, record in shown.items()} == CHANGES
    for without in ("4", "7"):  # gone, and without text: what a store has of them goes
        assert (shown[without]["chunk_id"], shown[without]["text"]) == (None, None)
    (tmp_path / "model.py").write_text(
        "def vectors(chunks):\n    return [[1.0, 2.0]] * len(chunks)\n"
    )
    words = ("--chunks", "64", "--embedding", f"{tmp_path}/model.py:vectors")
    path = tmp_path / "c.parquet"
    assert nutbeam("pages", folder / "table", "--since", first, *words, "-o", path) == 0
    vectors = {row["url"][-6]: row["embedding"] for row in pq.read_table(path).to_pylist()}
    assert vectors == {"1": [1.0, 2.0], "6": [1.0, 2.0], "4": None, "7": None}


def test_a_second_run_appends_only_changes(folder, first, capsys):
    def rows_of(kind):
        if kind == "duckdb":
            with duckdb.connect(folder / "old.duckdb", read_only=True) as connection:
                return connection.execute("select change, snapshot, url from pages").fetchall()
        uri = f"sqlite:///{folder}/tables/catalog.db"
        table = load_catalog("nutbeam", type="sql", uri=uri).load_table("web.pages")
        assert len(table.snapshots()) == 2
        return [(r["change"], r["snapshot"], r["url"]) for r in table.scan().to_arrow().to_pylist()]

    newest = newest_manifest(str(folder / "table")).snapshot
    for kind, address in {"duckdb": "old.duckdb", "iceberg": "iceberg:web.pages"}.items():
        capsys.readouterr()
        assert pages_into(folder, kind, address, "--format", "json") == 0
        assert '{"pages": 4, ' in capsys.readouterr().out
        assert pages_into(folder, kind, address) == 0  # as after a kill at its end
        assert capsys.readouterr().out.startswith("0 pages in ")
        changes = sorted((change, snapshot, url[-6]) for change, snapshot, url in rows_of(kind))
        old_rows = [("new", first, name) for name in "0124"]
        assert changes == sorted([*old_rows, *((c, newest, n) for n, c in CHANGES.items())])


def test_records_of_rules_have_changes_too(folder, first, capsys, tmp_path):
    newest = newest_manifest(str(folder / "table")).snapshot
    capsys.readouterr()
    assert records_into(folder, "-", "--since", first) == 0
    shown = by_page(json_lines(capsys.readouterr().out))
    # Page 1 has no record any more: what a reader has of it goes. Pages 6 and 7 never had one.
    assert {name: (r["change"], r["snapshot"], r["was"]) for name, r in shown.items()} == {
        "1": ("changed", newest, None), "4": ("gone", newest, None)
    }  # fmt: skip
    rules = folder / "seen.toml"
    repaired = tmp_path / "seen.toml"
    repaired.write_text(rules.read_text().replace("as it was", "as it was|something else"))
    assert nutbeam("extract", folder / "table", repaired, "--since", first) == 0
    shown = by_page(json_lines(capsys.readouterr().out))
    assert (shown["1"]["was"], shown["1"]["number"]) == ("something else", "1")


def test_records_of_rules_are_appended_to_tables(folder, first, capsys, tmp_path):
    newest = newest_manifest(str(folder / "table")).snapshot
    output = f"{folder}/old.duckdb"
    capsys.readouterr()
    assert records_into(folder, output) == 0
    assert f"2 rows in {output}:seen (rules " in capsys.readouterr().out
    assert records_into(folder, output, "--strict") == 0  # no page is new: no rule is at fault
    assert f"0 rows in {output}:seen (rules " in capsys.readouterr().out
    with duckdb.connect(output, read_only=True) as connection:
        rows = connection.execute("select change, snapshot, url, number from seen").fetchall()
        names = ["number", "numbers", "days", "last_fetch_time"]
        types = [str(connection.table("seen").select(name).types[0]) for name in names]
    assert sorted((*row[:2], row[2][-6], row[3]) for row in rows) == [
        ("changed", newest, "1", None), ("gone", newest, "4", None),
        *(("new", first, str(number), number) for number in (1, 2, 4)),
    ]  # fmt: skip
    assert types == ["DECIMAL(28,8)", "DOUBLE[]", "TIMESTAMP_MS[]", "TIMESTAMP_MS"]
    assert records_into(folder, "iceberg:web.seen") == 0
    uri = f"sqlite:///{folder}/tables/catalog.db"
    table = load_catalog("nutbeam", type="sql", uri=uri).load_table("web.seen")
    (row,) = table.scan().to_arrow().to_pylist()
    assert (row["url"][-6], row["change"], row["number"]) == ("2", "new", 2)
    (folder / "seen.toml").write_text(f"{RULES}# others\n")
    assert records_into(folder, output) == 2
    assert ": use the same, or another table" in capsys.readouterr().err
    (folder / "seen.toml").write_text(RULES)


def test_python_programs_write_pages_and_records_without_a_word(folder, first, capsys, tmp_path):
    table, rules = nutbeam_package.open(folder / "table"), folder / "seen.toml"
    capsys.readouterr()
    written = table.write_pages(output=tmp_path / "pages.jsonl", since=str(first))
    assert (written.rows, written.output) == (4, f"{tmp_path}/pages.jsonl")
    assert table.write_pages(output=f"{tmp_path}/new.duckdb").rows == 5
    extracted = table.extract(rules, output=f"{tmp_path}/new.duckdb")
    assert (extracted.rows, extracted.output) == (1, f"{tmp_path}/new.duckdb:seen")
    warnings = table.extract(rules, output=tmp_path / "seen.csv", since=str(first)).warnings
    assert warnings[0].startswith("rule1 makes no record of 3 pages; before, it made ")
    with pytest.raises(UsageError, match="output must name a file or a table"):
        table.write_pages()
    assert capsys.readouterr() == ("", "")


def test_impossible_comparisons_are_refused(folder, first, pages, tmp_path):
    newest = newest_manifest(str(folder / "table")).snapshot
    for words, message in {
        ("--since", str(newest + 1)): f"has no snapshot {newest + 1} yet: the newest is {newest}",
        ("--since", "yesterday"): "--since must be a date such as 2026-11-01 or a time such as",
        ("--since", "1", "--new", "note.json"): "--new does not go with --since: leave out --new",
        ("-o", "a.duckdb", "--new", "note.json"): "--new does not go with --output a.duckdb, which",
        (
            "-o",
            "a.db",
        ): "--output must end in .jsonl, .jsonl.gz, .csv, .csv.gz, .parquet or .duckdb",
        ("-o", folder / "old.duckdb", "--since", "1"): "has the rows of snapshot",
        ("-o", folder / "old.duckdb", "--status", "gone"): "and these are by --status gone",
    }.items():
        code, _, messages = pages(*words)
        assert (code, message in messages, "Traceback" in messages) == (2, True, False), messages


def test_rows_that_left_the_table_are_gone_and_folded_ones_are_the_same(folder, tmp_path, capsys):
    table = tmp_path / "copy"
    assert nutbeam("copy", folder / "table", table) == 0
    since = ("--since", newest_manifest(str(table)).snapshot, "--columns", "url,status")
    assert nutbeam("compact", table) == 0  # it makes one file of base and runs
    capsys.readouterr()
    assert nutbeam("pages", table, *since) == 0
    assert capsys.readouterr().out == ""
    assert nutbeam("filterdb", table, "--exclude", r"6\.html$", "--schemes", "file") == 0
    capsys.readouterr()
    assert nutbeam("pages", table, *since) == 0
    (record,) = json_lines(capsys.readouterr().out)
    assert (record["change"], record["url"][-6:], record["status"]) == ("gone", "6.html", None)


# Files whose making tells how far a run is.
MOMENTS = {
    "iceberg": ("table/exports/*/part-*", "new/web/pages/metadata/*.json",
                "new/web/pages/data/*.parquet", "new/web/pages/metadata/*-m0.avro",
                "new/web/pages/metadata/snap-*.avro", "new/web/pages/metadata/00001-*.json"),
    "duckdb": ("table/exports/*/part-*", "new.duckdb", "new.duckdb.wal"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", MOMENTS)
def test_a_command_that_is_killed_at_any_moment_doubles_no_row(kind, folder, tmp_path, capfd):
    shutil.copytree(folder / "table", tmp_path / "table")
    address = "iceberg:web.pages" if kind == "iceberg" else "new.duckdb"
    words = [sys.executable, "-m", "nutbeam", "pages", "table", "-o", address, "--catalog", "./new"]
    for moment in MOMENTS[kind]:
        with subprocess.Popen(words, cwd=tmp_path) as run:
            while run.poll() is None and not list(tmp_path.glob(moment)):
                time.sleep(0.002)
            run.kill()
    assert subprocess.run(words, cwd=tmp_path, check=False).returncode == 0
    assert subprocess.run(words, cwd=tmp_path, check=False).returncode == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("0 pages in ")
    if kind == "duckdb":
        with duckdb.connect(tmp_path / "new.duckdb") as connection:
            urls = [url for (url,) in connection.execute("select url from pages").fetchall()]
    else:
        uri = f"sqlite:///{tmp_path}/new/catalog.db"
        table = load_catalog("nutbeam", type="sql", uri=uri).load_table("web.pages")
        urls = table.scan().to_arrow()["url"].to_pylist()
        assert len(table.snapshots()) == 1
    assert sorted(url[-6] for url in urls) == ["0", "1", "2", "6", "7"]


def test_a_snapshot_that_is_gone_is_named(tmp_path, capsys):
    table, words = tmp_path / "table", ("--snapshot_retention", "0")
    assert nutbeam("inject", table, "http://a.com/") == 0
    assert nutbeam("pages", table, "-o", tmp_path / "a.duckdb") == 0
    assert nutbeam("inject", table, "http://b.com/") == 0
    assert nutbeam("compact", table, *words) == 0
    for words in (("--since", "1"), ("--since", "2001-01-01"), ("-o", tmp_path / "a.duckdb")):
        capsys.readouterr()
        assert nutbeam("pages", table, *words) == 3
        messages = capsys.readouterr().err
        assert "(--snapshot_retention); the oldest that is left is " in messages, messages
    assert messages.endswith("a.duckdb:pages has its rows: bring all rows into another table\n")


def test_a_table_that_was_made_again_is_noticed(tmp_path, capsys):
    table, output = tmp_path / "table", ("-o", tmp_path / "a.duckdb")
    assert nutbeam("inject", table, "http://a.com/") == 0
    assert nutbeam("pages", table, *output) == 0
    shutil.rmtree(table)
    assert nutbeam("inject", table, "http://b.com/") == 0
    capsys.readouterr()
    assert nutbeam("pages", table, *output) == 2
    assert "is another table than the one whose rows" in capsys.readouterr().err


def test_a_reader_of_a_table_that_is_written_has_one_snapshot(folder, tmp_path):
    """Rows that arrive after a reader has begun are not among those that it gets."""
    table = tmp_path / "table"
    assert nutbeam("inject", table, "http://a.com/") == 0
    batches = nutbeam_package.read(table, "state", columns=["url"], into="batches")
    assert nutbeam("inject", table, "http://b.com/") == 0
    assert batches.read_all()["url"].to_pylist() == ["http://a.com/"]


def test_python_reads_changed_pages(folder, first):
    table = nutbeam_package.open(folder / "table")
    changes = {page.url[-6:]: (page.change, page.title) for page in table.pages(since=first)}
    assert changes == {
        "1.html": ("changed", "P1"), "4.html": ("gone", None), "6.html": ("new", "P6"), "7.html": ("new", "P7"),
    }  # fmt: skip
    rows = nutbeam_package.read_extracted(table, folder / "seen.toml", since=first).read_all()
    assert {(row["url"][-6:], row["change"], row["rule"]) for row in rows.to_pylist()} == {
        ("1.html", "changed", None), ("4.html", "gone", None),
    }  # fmt: skip
    for since, words in (
        (99, "no snapshot 99 yet"),
        ("soon", "since must be a date"),
        (1.5, "since must be a whole"),
    ):
        with pytest.raises(UsageError, match=words):
            table.pages(since=since)
    with pytest.raises(UsageError, match="since is for pages, got what='hosts'"):
        table.frame("hosts", since=first)
