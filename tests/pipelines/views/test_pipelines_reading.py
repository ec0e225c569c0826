"""pages, files and nutbeam.read: what readers of a table get, after a recrawl too."""

import csv
import gzip
import json
import shutil
import subprocess
import sys

import polars as pl
import pyarrow as pa
import pytest
from crawling import json_lines, latest_snapshot, manifest_of, reach, state_of
from crawling import nutbeam as command
from simulated_web import served_web

import nutbeam
from nutbeam.io.table.opening import open_table
from nutbeam.policy.components.item_views import ITEM_VIEWS
from nutbeam.policy.components.schema import STATUS_NAMES
from nutbeam.policy.components.views import views
from nutbeam.policy.components.vocabulary import LIVING, PAGE_COLUMNS, shown_schema, statuses_of
from nutbeam.web.base.errors import UsageError
from nutbeam.web.base.options import options_of

duckdb = pytest.importorskip("duckdb")
LIVING_NAMES = [STATUS_NAMES[code] for code in LIVING]


web = served_web(hosts=2, pages=8, scope="module")


@pytest.fixture(scope="module")
def crawled(web, kept_crawls, tmp_path_factory):
    """A table after one crawl; tests only read it."""
    folder = tmp_path_factory.mktemp("reading") / "table"
    kept_crawls.make(web, folder)
    return folder


@pytest.fixture(scope="module")
def note(crawled, tmp_path_factory):
    """The note of a first run of ``pages --new``."""
    folder = tmp_path_factory.mktemp("note")
    assert command("pages", crawled, "--new", folder / "note", "-o", folder / "first.jsonl") == 0
    return folder


@pytest.fixture(scope="module")
def table(web, crawled, note, tmp_path_factory):
    """The same table after a recrawl, with runs; most pages were not modified."""
    folder = tmp_path_factory.mktemp("recrawled") / "table"
    shutil.copytree(crawled, folder)
    words = ["--rounds", "1", "--add_days", "40", *reach(web)]
    assert command("crawl", folder, *words) == 0
    assert command("inject", folder, "http://h0.example.com/one-row-more") == 0  # a run
    return folder


@pytest.fixture
def pages(capsys):
    """Runs ``pages`` to standard output; returns its records."""

    def run(table, *words):
        capsys.readouterr()
        assert command("pages", table, *words) == 0
        return json_lines(capsys.readouterr().out)

    return run


def living(table):
    """Returns the URLs that have a document and are alive, by plain polars."""
    state = state_of(table).filter(pl.col("document").is_not_null())
    return sorted(state.filter(pl.col("status").is_in([int(code) for code in LIVING]))["key"])


def test_the_default_statuses_are_those_of_living_pages():
    from nutbeam.pipelines.views.pages import Options

    (declared,) = [option for option in options_of(Options) if option.name == "status"]
    assert {code for word in declared.default for code in statuses_of(word)} == set(LIVING)


@pytest.mark.long
def test_pages_are_the_living_urls_after_a_recrawl_too(table, pages):
    records = pages(table)
    statuses = {record["status"] for record in records}
    assert "db_notmodified" in statuses
    assert statuses <= set(LIVING_NAMES)
    assert len(records) == len(living(table))
    assert list(records[0]) == PAGE_COLUMNS.schema.names
    assert all(record["last_fetch_time"].endswith("Z") for record in records)
    assert records == pages(table, "--status", "fetched,unfetched")


def test_all_readers_of_pages_agree(table, pages, tmp_path, capsys):
    by_url = {record["url"]: record for record in pages(table)}
    frame = nutbeam.read(table, "pages")
    assert {row["url"]: row["text"] for row in frame.to_dicts()} == {
        url: record["text"] for url, record in by_url.items()
    }
    assert sorted(frame["status"]) == sorted(record["status"] for record in by_url.values())
    assert command("pages", table, "-o", tmp_path / "pages.parquet") == 0
    assert pl.read_parquet(tmp_path / "pages.parquet").sort("url").equals(frame.sort("url"))
    capsys.readouterr()
    query = "select url, title, text, status, links from pages order by url"
    assert command("sql", table, query, "--format", "json") == 0
    in_sql = json_lines(capsys.readouterr().out)
    names = ("url", "title", "text", "status", "links")
    assert in_sql == [{n: by_url[url][n] for n in names} for url in sorted(by_url)]


@pytest.mark.long
def test_pages_as_csv_and_compressed(table, pages, tmp_path):
    columns = ("--columns", "url,status,fetch_time,links")
    for name in ("a.csv", "a.csv.gz", "b.csv.gz", "a.jsonl.gz"):
        assert command("pages", table, *columns, "-o", tmp_path / name) == 0
    with gzip.open(tmp_path / "a.csv.gz", "rt", newline="") as file:
        text = file.read()
    assert text.encode() == (tmp_path / "a.csv").read_bytes()
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    rows = list(csv.DictReader(text.splitlines()))
    records = pages(table, *columns)
    with gzip.open(tmp_path / "a.jsonl.gz", "rt") as file:
        assert json_lines(file.read()) == records
    assert [row["fetch_time"] for row in rows] == [record["fetch_time"] for record in records]
    assert [json.loads(row["links"]) for row in rows] == [record["links"] for record in records]


def test_pages_by_status(table, pages):
    assert {r["status"] for r in pages(table, "--status", "duplicate")} == {"db_duplicate"}
    assert {r["status"] for r in pages(table, "--status", "db_notmodified")} == {"db_notmodified"}


def test_changes_since_a_snapshot_are_those_between_two_reads(table, pages):
    def contents(snapshot):
        rows = nutbeam.read(
            table, columns=["url", "status", "document", "signature"], snapshot=snapshot
        )
        alive = pl.col("status").is_in(["db_fetched", "db_notmodified", "db_unfetched"])
        rows = rows.filter(alive & pl.col("document").is_not_null())
        return dict(rows.select("url", "signature").iter_rows())

    kinds, now = set(), contents(None)
    snapshots = open_table(str(table)).snapshots()
    for snapshot in snapshots[:: max(1, len(snapshots) // 5)]:
        then = contents(snapshot)
        wanted = dict.fromkeys(then.keys() - now.keys(), "gone")
        wanted |= dict.fromkeys(now.keys() - then.keys(), "new")
        wanted |= {u: "changed" for u in now.keys() & then.keys() if now[u] != then[u]}
        records = pages(table, "--since", snapshot, "--columns", "url")
        assert {record["url"]: record["change"] for record in records} == wanted
        assert len(records) == len(wanted)
        kinds |= {*wanted.values()}
    assert "new" in kinds
    assert pages(table, "--since", "2999-01-01") == []


def test_a_second_run_writes_only_new_pages(crawled, table, note, pages, tmp_path):
    first = json_lines((note / "first.jsonl").read_text())
    assert len(first) == len(living(crawled))
    shutil.copy(note / "note", tmp_path / "note")
    assert pages(crawled, "--new", tmp_path / "note") == []
    # The recrawl has new texts of pages that were modified, and of those alone.
    before = manifest_of(crawled).batches
    batches = nutbeam.read(table, "pages", columns=["url", "batch_id"])
    new = batches.filter(~pl.col("batch_id").is_in(list(before)))["url"]
    assert sorted(r["url"] for r in pages(table, "--new", tmp_path / "note")) == sorted(new)
    assert pages(table, "--new", tmp_path / "note") == []
    assert set(json.loads((tmp_path / "note").read_text())["batches"]) == set(
        manifest_of(table).batches
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["-o", "x.txt"],
            "--output must end in .jsonl, .jsonl.gz, .csv, .csv.gz, .parquet or .duckdb",
        ),
        (["-o", "x.parquet.gz"], "got 'x.parquet.gz'"),
        (["--columns", "url,nix"], "--columns must be of url, title"),
        (["--status", "nix"], "--status must be one of db_unfetched, "),
        (["--since", "yesterday"], "--since must be a date such as 2026-11-01 or a time such as"),
        (["--new", "bad"], "--new 'bad' was not written by nutbeam pages --new"),
        (["--new", "no/where"], "for --new 'no/where'"),
    ],
)
def test_pages_refuses_in_one_line(crawled, words, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad").write_text("{}")
    assert command("pages", crawled, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("what", list(views()))
def test_read_gives_the_same_rows_and_columns_as_sql(table, what, capsys):
    frame = nutbeam.read(table, what)
    columns = views()[what].usual_columns
    assert frame.columns == shown_schema(columns).names
    capsys.readouterr()
    assert command("sql", table, f"select count(*) as n from {what}", "--format", "json") == 0
    assert json_lines(capsys.readouterr().out) == [{"n": len(frame)}]
    # No seeds' hosts are apart from hosts in a folder; nothing was purged, and nothing filtered
    # while a batch was open.
    # Nothing has inverted links, or made an index. Pages of the simulated web have no items.
    empty = ("seed_hosts", "blocklist", "batch_removed", "inlinks", "host_settings",
             "indexed", "dead_letters", "shards", "index_runs", *ITEM_VIEWS)  # fmt: skip
    graph = what.endswith(("_nodes", "_edges", "_ranks"))  # no graph was made
    assert (len(frame) == 0) == (what in empty or graph)
    first = frame.columns[0]
    assert nutbeam.read(table, what, columns=[first]).equals(frame.select(first))


@pytest.mark.long
def test_read_folds_runs(table):
    assert [file for file in listed(table) if file["run_on"]]
    state = nutbeam.read(table)
    assert state["key"].is_unique().all()
    plain = state_of(table).sort("key")
    assert state.sort("key")["url"].len() == len(plain)
    names = plain["status"].replace_strict(STATUS_NAMES, return_dtype=pl.String)
    assert state.sort("key")["status"].equals(names)
    assert state.schema["fetch_time"] == pl.Datetime("ms", "UTC")


@pytest.mark.long
def test_read_into_arrow_batches_and_duckdb(table):
    frame = nutbeam.read(table, "outlinks")
    arrow = nutbeam.read(table, "outlinks", into="arrow")
    assert isinstance(arrow, pa.Table)
    assert pl.from_arrow(arrow).equals(frame)
    reader = nutbeam.read(table, "outlinks", into="batches")
    assert isinstance(reader, pa.RecordBatchReader)
    assert pl.from_arrow(reader.read_all()).equals(frame)
    relation = nutbeam.read(table, "outlinks", into="duckdb")
    count = frame["target_url"].n_unique()
    assert relation.aggregate("count(distinct target_url)").fetchall() == [(count,)]


def test_read_gives_requested_bodies(table):
    pages = nutbeam.read(table, "pages", columns=["url", "title", "body", "headers"])
    titled = pages.filter(pl.col("title") != "")
    assert len(titled)
    assert all(b"<title>" in body for body in titled["body"])
    assert pages["headers"].list.len().min() > 0


def test_read_of_an_older_snapshot(crawled, table):
    before = nutbeam.read(table, snapshot=latest_snapshot(crawled))
    assert before.equals(nutbeam.read(crawled))
    assert not before.equals(nutbeam.read(table))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"what": "stat"}, "what must be one of state, hosts, inlinks, pages, .* got 'stat'"),
        ({"columns": ["nix"]}, "columns must be of url, .* got 'nix'"),
        ({"columns": "url"}, "columns must be a list of names, got 'url'"),
        ({"snapshot": 9999}, "no snapshot 9999 in '.*': its history lists"),
        ({"into": "pandas"}, "into must be one of polars, .* got 'pandas': .*to_pandas"),
        ({"table": "nowhere"}, "no web table at 'nowhere': it does not exist"),
    ],
)
def test_read_refuses_in_one_line(crawled, arguments, message):
    with pytest.raises(UsageError, match=message):
        nutbeam.read(**{"table": crawled, **arguments})


@pytest.mark.long
def test_read_needs_no_beam(crawled):
    code = (
        f"import nutbeam, sys; nutbeam.read({str(crawled)!r}); print('apache_beam' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout == "False\n"


@pytest.mark.long
def test_read_shows_nothing_that_was_purged(crawled, tmp_path):
    folder = tmp_path / "table"
    shutil.copytree(crawled, folder)
    assert command("purge", folder, "--host", "h1.example.com") == 0
    for what in ("state", "hosts", "pages", "outlinks", "batch_pages"):
        shown = nutbeam.read(folder, what)
        assert len(shown)
        names = {"host", "url", "target_url"} & set(shown.columns)
        assert not any(shown[name].str.contains("h1.example.com").any() for name in names)


def listed(table, what="state"):
    """Returns what ``files`` lists, as JSON."""
    root = [sys.executable, "-P", "-m", "nutbeam", "files", str(table), what, "--format", "json"]
    done = subprocess.run(root, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["files"]


def test_files_lists_the_newest_last(table, capsys):
    assert command("files", table, "state") == 0
    out, err = capsys.readouterr()
    assert out.split() == [file["path"] for file in listed(table)]
    assert "files are runs: of several rows of a key the one in the last file counts" in err
    parts = [pl.read_parquet(path) for path in out.split()]
    rows = pl.concat(parts, how="diagonal").unique("key", keep="last").sort("key")
    plain = state_of(table).sort("key")
    names = ["key", "status", "score", "document"]
    assert rows.select(names).equals(plain.select(names))


def test_the_query_of_files_reads_right(table, crawled, capsys):
    for folder in (table, crawled):
        for what in ("state", "batch_pages"):
            capsys.readouterr()
            assert command("files", folder, what, "--query") == 0
            text = capsys.readouterr().out
            assert len(text.strip().splitlines()) <= 2
            found = duckdb.sql(text).project("key, http_code").fetchall()
            names = ["key", "http_code"]
            rows = nutbeam.read(folder, what, columns=names).rows()
            assert sorted(found, key=str) == sorted(rows, key=str)


def test_files_of_a_misspelt_component_names_the_nearest_one(crawled, capsys):
    assert command("files", crawled, "statte") == 2
    assert "got 'statte'; did you mean 'state'?" in capsys.readouterr().err


def test_files_refuses_views_without_files(crawled, capsys):
    assert command("files", crawled, "pages") == 2
    assert (
        "files can be listed of state, hosts, inlinks, batch_fetchlist" in capsys.readouterr().err
    )
