"""export writes each component of a table as users see it, in three formats."""

import base64
import csv
import json

import polars as pl
import pyarrow.parquet as pq
import pytest
from crawling import files_of, json_lines, manifest_of, nutbeam, state_of
from simulated_web import served_web

from nutbeam.policy.components.views import views
from nutbeam.policy.components.vocabulary import record_of, shown_schema
from nutbeam.web.base.wording import format_count

WHAT = tuple(name for name, view in views().items() if view.kind or name == "batches")


web = served_web(hosts=2, pages=8, scope="module")


@pytest.fixture(scope="module")
def table(web, kept_crawls, tmp_path_factory):
    """A table with a whole crawl; tests only read it."""
    folder = tmp_path_factory.mktemp("export") / "table"
    kept_crawls.make(web, folder)
    return folder


def stored(table, what):
    """Returns how many rows the newest snapshot has."""
    manifest = manifest_of(table)
    if what == "batches":
        return len(manifest.batches)
    components = manifest.components.items()
    kind = what.removeprefix("batch_")
    return sum(c.rows for name, c in components if name.rpartition("/")[2] == kind)


@pytest.mark.long
@pytest.mark.few(3)
@pytest.mark.parametrize("what", WHAT)
def test_three_formats_hold_the_same_rows(table, tmp_path, capsys, what):
    for suffix in ("parquet", "csv", "jsonl"):
        capsys.readouterr()
        path = tmp_path / f"out.{suffix}"
        assert nutbeam("export", table, "-o", path, "--what", what) == 0
        rows = format_count(stored(table, what), "rows")
        assert capsys.readouterr().out == f"{rows} of {what} in {path}\n"
    rows = pq.read_table(tmp_path / "out.parquet")
    assert rows.schema.equals(shown_schema(views()[what].usual_columns))
    assert len(rows) == stored(table, what)
    records = json_lines((tmp_path / "out.jsonl").read_text("utf-8"))
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        csv.field_size_limit(1 << 24)
        reader = csv.DictReader(file)
        lines = list(reader)
    assert len(records) == len(lines) == len(rows)
    assert reader.fieldnames == rows.column_names
    assert all(list(record) == rows.column_names for record in records)
    first = rows.column_names[0]
    assert [r[first] for r in records] == [r[first] for r in lines] == rows[first].to_pylist()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("what", "expr", "wanted"),
    [
        ("state", "score > 0.1 && status == 'fetched'",
         lambda r: r["score"] > 0.1 and r["status"] == "db_fetched"),
        ("state", "host =~ 'h1.*' or retries > 0",
         lambda r: r["url"].startswith("http://h1") or r["retries"] > 0),
        ("hosts", "host != 'h1.example.com'", lambda r: r["host"] != "h1.example.com"),
    ],
)  # fmt: skip
def test_an_expression_chooses_the_rows(table, tmp_path, what, expr, wanted):
    found = {}
    for name, words in {"all": (), "some": ("--expr", expr)}.items():
        path = tmp_path / f"{name}.jsonl"
        assert nutbeam("export", table, "-o", path, "--what", what, *words) == 0
        found[name] = json_lines(path.read_text("utf-8"))
    assert found["some"] == [record for record in found["all"] if wanted(record)]
    assert 0 < len(found["some"]) < len(found["all"])


def test_the_state_is_that_of_the_table(table, tmp_path):
    for suffix in ("parquet", "jsonl"):
        assert nutbeam("export", table, "-o", tmp_path / f"state.{suffix}") == 0
    expected = [
        record_of(row, views()["state"].columns) for row in state_of(table).iter_rows(named=True)
    ]
    assert json_lines((tmp_path / "state.jsonl").read_text("utf-8")) == expected
    frame = pl.read_parquet(tmp_path / "state.parquet")
    assert frame["status"].to_list() == [row["status"] for row in expected]
    times = frame["fetch_time"].dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    assert times.to_list() == [row["fetch_time"] for row in expected]


def test_bodies_are_whole(table, tmp_path):
    assert nutbeam("export", table, "--what", "batch_pages", "-o", tmp_path / "p.jsonl") == 0
    found = {
        (r["batch_id"], r["key"]): base64.b64decode(r["body"]) if r["body"] else None
        for r in json_lines((tmp_path / "p.jsonl").read_text("utf-8"))
    }
    for name in manifest_of(table).components:
        if name.endswith("/pages"):
            for path in files_of(table, name):
                for key, body in pl.read_parquet(path, columns=["key", "body"]).iter_rows():
                    assert found[name.split("/")[1], key] == (body or None)


@pytest.mark.long
def test_standard_output_and_json(table, tmp_path, capfdbinary):
    assert nutbeam("export", table, "--what", "batches") == 0
    lines = json_lines(capfdbinary.readouterr().out.decode())
    assert [row["batch_id"] for row in lines] == sorted(manifest_of(table).batches)
    path = tmp_path / "x.csv"
    assert nutbeam("export", table, "-o", path, "--format", "json") == 0
    record = json.loads(capfdbinary.readouterr().out.decode().splitlines()[-1])
    assert record == {"what": "state", "rows": stored(table, "state"), "output": str(path)}


@pytest.mark.long
def test_the_format_that_is_given_counts_not_the_ending(table, tmp_path, capfdbinary):
    for kind in ("parquet", "csv", "jsonl"):
        named, plain = tmp_path / f"named.{kind}", tmp_path / f"plain-{kind}.txt"
        assert nutbeam("export", table, "-o", named) == 0
        assert nutbeam("export", table, "-o", plain, "--format", kind) == 0
        assert plain.read_bytes() == named.read_bytes()
        capfdbinary.readouterr()
        if kind != "parquet":
            assert nutbeam("export", table, "--format", kind) == 0
            assert capfdbinary.readouterr().out == named.read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["-o", "x.xlsx"],
            "--output must end in .parquet, .csv, .jsonl, or --format say how, got 'x.xlsx'",
        ),
        (["--format", "parquet"], "--format parquet needs a file: give --output"),
        (["-o", "none/x.csv"], "no folder"),
        (["--what", "bars"], "--what"),
        (["--what", "outlinks"], "got 'outlinks'; nutbeam pages writes them"),
        (["--what", "batch_page"], "got 'batch_page'; did you mean 'batch_pages'?"),
        (
            ["--what", "documents"],
            "--what must be one of state, hosts, inlinks, batches, batch_fetchlist",
        ),
    ],
)
def test_invalid_options_of_export_are_refused(
    table, capsys, monkeypatch, tmp_path, words, message
):
    monkeypatch.chdir(tmp_path)
    assert nutbeam("export", table, *words) == 2
    assert message in capsys.readouterr().err


def test_the_help_lists_all_that_can_be_exported(capsys):
    assert nutbeam("export", "--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Component or list to write: {', '.join(WHAT[:-1])} or {WHAT[-1]}." in text
