"""export_nutch writes what Nutch and the scripts around it read; an import of it is the same table."""

import csv
import json

import polars as pl
import pytest
from command_output import printed
from crawling import nutbeam, rows_of, state_of
from hadoop_files import datums
from nutch_crawls import DAY_MS, NOW, NutchCrawl, datum

from nutbeam.policy.components.schema import STATUS_NAMES

METADATA = {
    "userType": 'a "quoted" value', "_pst_": "moved(12), lastModified=0: http://b.com/",
    "_repr_": "http://r.com/", "_rs_": 7, "nutch.protocol.code": "301", "Content-Type": "text/html",
    "fixedInterval": "600.0", "_depth_": 3, "_maxdepth_": 9, "_orphan_": 86_400 * 20_000,
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nutch")
    crawl = NutchCrawl(folder / "crawl")
    crawl.crawldb(
        datum("http://z.com/", 5, NOW, metadata=METADATA, signature=b"s" * 16, modified_time=5000),
        *(
            datum(f"http://s{code}.com/", code, NOW + DAY_MS * code, score=code / 8, retries=code)
            for code in STATUS_NAMES
        ),
    )
    crawl.linkdb({"http://z.com/": [("http://s1.com/", "Z"), ("http://s2.com/", "")]})
    assert nutbeam("import_nutch", folder / "table", crawl.folder) == 0
    return folder / "table"


@pytest.mark.parametrize("part", ["crawldb", "csv", "json", "normal"])
def test_an_import_of_an_export_is_the_same_table(table, tmp_path, part, capsys):
    folder = tmp_path / "out"
    line = printed(capsys, "export_nutch", table, folder, "--parts", part)
    assert line == f"export_nutch: records 10 in {folder}\n"
    assert nutbeam("import_nutch", tmp_path / "back", folder) == 0
    assert state_of(tmp_path / "back").equals(state_of(table))


def test_links_come_back(table, tmp_path):
    assert nutbeam("export_nutch", table, tmp_path / "out", "--parts", "linkdb") == 0
    assert nutbeam("import_nutch", tmp_path / "back", tmp_path / "out") == 0
    columns = ["key", "target", "source", "anchor"]
    links = [rows_of(at, "links").select(columns) for at in (table, tmp_path / "back")]
    assert links[0].height == 2
    assert links[0].equals(links[1])


def test_the_crawldb_is_a_map_file_in_the_order_of_urls(table, tmp_path):
    assert nutbeam("export_nutch", table, tmp_path / "out") == 0
    part = tmp_path / "out/crawldb/current/part-r-00000"
    assert sorted(file.name for file in part.iterdir()) == ["data", "index"]
    rows, faults = datums((part / "data").read_bytes())
    assert faults == []
    assert rows["url"].is_sorted()
    row = rows.filter(url="http://z.com/").row(0, named=True)
    kinds = {entry["key"]: (entry["kind"], entry["value"]) for entry in row["metadata"]}
    assert kinds["_pst_"] == ("ProtocolStatus", METADATA["_pst_"])
    assert kinds["fixedInterval"] == ("FloatWritable", "600.0")
    assert kinds["_depth_"] == ("IntWritable", "3")
    assert kinds["userType"] == ("Text", METADATA["userType"])


def test_the_dumps_have_nutchs_columns_and_any_reader_of_csv_reads_them(table, tmp_path):
    words = ("--parts", "csv,json,normal")
    assert nutbeam("export_nutch", table, tmp_path / "out", *words) == 0
    lines = (tmp_path / "out/crawldb-csv/part-r-00000").read_text().splitlines()
    (record,) = [row for row in csv.DictReader(lines) if row["Url"] == "http://z.com/"]
    assert record["Status code"] == "5"
    assert record["Status name"] == "db_redir_perm"
    assert record["Fetch Time"] == "Sun Nov 01 00:00:00 UTC 2026"
    assert record["Retry interval seconds"] == "2592000.0"
    assert record["Retry interval days"] == "30.0"
    assert record["Metadata"].startswith('userType:a "quoted" value|||_pst_:moved(12)')
    lines = (tmp_path / "out/crawldb-json/part-r-00000").read_text().splitlines()
    (record,) = [row for row in map(json.loads, lines) if row["url"] == "http://z.com/"]
    assert list(record) == [
        "url", "statusCode", "statusName", "fetchTime", "modifiedTime", "retriesSinceFetch",
        "retryIntervalSeconds", "retryIntervalDays", "score", "signature", "metadata",
    ]  # fmt: skip
    text = (tmp_path / "out/crawldb-normal/part-r-00000").read_text()
    assert "http://s1.com/\tVersion: 7\nStatus: 1 (db_unfetched)\n" in text


def test_more_rows_than_are_sorted_at_a_time_come_in_the_order_of_their_urls(
    table, tmp_path, monkeypatch
):
    from nutbeam.io.nutch import url_order

    monkeypatch.setattr(url_order, "_BUCKET_ROWS", 3)
    monkeypatch.setattr(url_order, "_SAMPLED", 1)
    assert nutbeam("export_nutch", table, tmp_path / "out") == 0
    rows, _ = datums((tmp_path / "out/crawldb/current/part-r-00000/data").read_bytes())
    assert rows["url"].to_list() == sorted(state_of(table)["url"].to_list())
    assert isinstance(rows, pl.DataFrame)


def test_nothing_that_is_there_is_overwritten(table, tmp_path, refuse):
    (tmp_path / "out").mkdir()
    error = refuse("export_nutch", table, tmp_path / "out")
    assert "the folder must not be there" in error
    assert list((tmp_path / "out").iterdir()) == []
    error = refuse("export_nutch", table, tmp_path / "new", "--parts", "csv,xml")
    assert "xml" in error
    assert not (tmp_path / "new").exists()
