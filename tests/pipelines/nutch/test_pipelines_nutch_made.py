"""A crawl that Nutch's own jobs have made goes on here: the fixture tests/fixtures/nutch_crawl."""

import json
import shutil
import tarfile
import time

import polars as pl
import pytest
from clocks import clock_off
from command_output import printed
from crawling import manifest_of, nutbeam, rows_of, state_of
from here import ROOT
from nutch_java import NEEDS_NUTCH, read_with_nutch

from nutbeam import read as nutbeam_read
from nutbeam.io.batches.batches import batch_component
from nutbeam.web.urls.row_keys import from_key

CRAWL = ROOT / "tests" / "fixtures" / "nutch_crawl" / "crawl.tar.xz"


@pytest.fixture(scope="module")
def nutch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nutch")
    with tarfile.open(CRAWL) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def table(nutch, tmp_path):
    assert nutbeam("import_nutch", tmp_path / "table", nutch) == 0
    return tmp_path / "table"


def records(nutch, name):
    return [json.loads(line) for line in (nutch / name).read_text().splitlines()]


def test_each_row_equals_that_of_nutchs_reader(nutch, table):
    state = {row["url"]: row for row in state_of(table).iter_rows(named=True)}
    given = records(nutch, "crawldb.json")
    assert len(state) == len(given) == 48
    for record in given:
        row = state[record["key"]]
        for name in ("status", "fetch_time", "retries"):
            assert row[name] == record[name], (record["key"], name)
        assert row["fetch_interval"] == record["interval"]
        assert row["score"] == pytest.approx(record["score"])
        assert row["modified_time"] == (record["modified_time"] or None)
        assert (row["signature"] or b"").hex() == (record["signature"] or "")


@pytest.mark.long
def test_two_worker_processes_import_the_same_rows(nutch, table, tmp_path):
    two = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    assert nutbeam("import_nutch", tmp_path / "other", nutch, *two) == 0
    names = ["page", "document", "batch_id"]  # each import gives its files and batches new names
    assert state_of(tmp_path / "other").drop(names).equals(state_of(table).drop(names))
    assert links_of(tmp_path / "other") == links_of(table)


def links_of(table):
    rows = rows_of(table, "links").select("target", "source", "anchor")
    return {
        (from_key(target), from_key(source)): anchor for target, source, anchor in rows.iter_rows()
    }


def links_of_nutch(nutch):
    return {
        (record["key"], source): anchor
        for record in records(nutch, "linkdb.json")
        for source, anchor in record["inlinks"]
        if source != record["key"]
    }


def test_each_link_equals_that_of_nutchs_reader(nutch, table):
    assert links_of(table) == links_of_nutch(nutch)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "words"),
    [("all", ()), ("top_12", ("--top_n", "12")), ("in_40_days", ("--add_days", "40"))],
)
def test_generate_chooses_the_same_as_nutchs_generate(nutch, tmp_path, monkeypatch, name, words):
    table, chosen = tmp_path / "table", json.loads((nutch / "next.json").read_text())
    # The import, too: a generate before it would find times in the future.
    with clock_off(monkeypatch, round(chosen["now"] / 1000 - time.time())):
        assert nutbeam("import_nutch", table, nutch) == 0
        assert nutbeam("generate", table, "--max_count", str(chosen["max_per_host"]), *words) == 0
    batches = manifest_of(table).batches.items()
    (batch,) = (batch for batch, record in batches if not record.segment)
    rows = rows_of(table, batch_component(batch, "fetchlist")).select("key", "score")
    found = sorted(
        ((round(score, 5), from_key(key)) for key, score in rows.iter_rows()), reverse=True
    )
    given = sorted(((round(score, 5), url) for url, score, _ in chosen[name]), reverse=True)
    # Of URLs with equal scores chance decides in Nutch.
    least = min(score for score, _ in given)
    alone = [pair for pair in given if pair[0] > least]
    equal = {score for score, _ in alone if sum(s == score for s, _ in given) > 1}
    assert [pair for pair in found if pair[0] > least and pair[0] not in equal] == [
        pair for pair in alone if pair[0] not in equal
    ]


def test_segments_that_nutch_had_applied_are_not_applied_again(nutch, table):
    batches = manifest_of(table).batches
    assert {batch.segment: batch.phase for batch in batches.values()} == {
        "1795947540000": "updated",
        "1795951140000": "updated",
    }
    before = state_of(table)
    assert nutbeam("updatedb", table) == 1
    assert nutbeam("parse", table, "--reparse") == 0
    made_again = ["signature", "parse_status", "usage"]
    assert state_of(table).drop(made_again).equals(before.drop(made_again))


def test_a_crawldb_that_goes_back_has_the_rows_that_came(nutch, table, tmp_path):
    assert nutbeam("export_nutch", table, tmp_path / "out") == 0
    assert nutbeam("import_nutch", tmp_path / "again", tmp_path / "out") == 0
    without = ["page", "document", "batch_id", "etag", "last_modified", "parse_status"]
    assert state_of(tmp_path / "again").drop(without).equals(state_of(table).drop(without))


def test_the_name_of_a_segment_means_its_batch(nutch, table, capsys):
    segment = "1795951140000"
    (batch,) = (
        name for name, each in manifest_of(table).batches.items() if each.segment == segment
    )
    capsys.readouterr()
    assert nutbeam("readseg", "-list", f"{table}/segments/{segment}") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith(f"{batch}\t19\t")
    assert nutbeam("parse", f"{table}/segments/{segment}", "--reparse") == 0
    assert f"parse batch {batch}: " in capsys.readouterr().out
    assert nutbeam("updatedb", f"{table}/crawldb", f"{table}/segments/{segment}") == 0
    assert f"batch {batch}: done before" in capsys.readouterr().out


@NEEDS_NUTCH
def test_nutch_reads_the_crawldb_that_goes_back(nutch, tmp_path):
    assert nutbeam("import_nutch", tmp_path / "table", nutch / "crawldb") == 0
    assert nutbeam("export_nutch", tmp_path / "table", tmp_path / "out") == 0
    read = read_with_nutch([tmp_path / "out/crawldb/current/part-r-00000"])
    came = records(nutch, "crawldb.json")
    for record in came:
        record["metadata"].sort()
    assert read == came


def copy_of(nutch, folder, *parts):
    """Copies parts of the crawl: of segments only these."""
    for part in parts:
        for path in nutch.glob(part):
            shutil.copytree(path, folder / path.relative_to(nutch))
    return folder


@pytest.mark.long
def test_segments_without_contents_have_the_texts_and_links_that_nutch_parsed(
    nutch, tmp_path, capsys
):
    """As with ``fetcher.store.content=false``."""
    table = tmp_path / "table"
    parts = ("crawl_generate", "crawl_fetch", "crawl_parse", "parse_data", "parse_text")
    copy_of(nutch, tmp_path / "nutch", "crawldb", *(f"segments/*/{part}" for part in parts))
    assert nutbeam("import_nutch", table, tmp_path / "nutch") == 0
    assert {batch.phase for batch in manifest_of(table).batches.values()} == {"updated"}
    fetched = [row for row in records(nutch, "crawldb.json") if row["signature"]]
    pages = nutbeam_read(table, "pages").select("url", "title", "text")
    assert len(pages) == len([row for row in fetched if row["status"] != 7]) > 10  # no duplicates
    for url, title, text in pages.iter_rows():
        assert (title, text) in [(f"Title of {url}", f"text of {url}"), (title, "the same text")]
    given = {row["key"]: row["signature"] for row in fetched}
    state = state_of(table).filter(pl.col("document").is_not_null())
    assert {
        url: signature.hex() for url, signature in state.select("url", "signature").rows()
    } == given
    assert state.select("parse_status", "page").unique().rows() == [(1, None)]
    assert nutbeam("invertlinks", table) == 0
    assert links_of(table) == links_of_nutch(nutch)
    assert nutbeam("index", table, "--writer", "tantivy") == 0
    url = next(url for url, text in pages.select("url", "text").rows() if text != "the same text")
    assert url in printed(capsys, "search", table, url.partition("//")[2])
    before = state_of(table)
    assert nutbeam("parse", table, "--reparse") == 0  # there is nothing to parse
    assert state_of(table).equals(before)
    assert nutbeam_read(table, "pages")["text"].str.contains("text").all()


def test_segments_that_nutch_had_not_applied_are_applied_with_its_signatures(nutch, tmp_path):
    table = tmp_path / "table"
    assert nutbeam("inject", table, nutch / "seeds" / "seeds.txt") == 0
    assert nutbeam("import_nutch", table, nutch / "segments") == 0
    assert {batch.phase for batch in manifest_of(table).batches.values()} == {"parsed"}
    assert nutbeam("updatedb", table, "--scope", "any") == 0
    assert nutbeam("updatedb", table, "--scope", "any") == 0
    state = {row["url"]: row for row in state_of(table).iter_rows(named=True)}
    given = records(nutch, "crawldb.json")
    # Crawl.java writes no records of targets of redirects, as Nutch's fetcher would.
    assert {url for url in state if "?" not in url} == {record["key"] for record in given}
    for record in given:
        row = state[record["key"]]
        status = 2 if record["status"] == 7 else record["status"]  # dedup ran in Nutch
        assert row["status"] == status, record
        assert (row["signature"] or b"").hex() == (record["signature"] or ""), record
    # Crawl.java keeps a link of a page to itself, which Nutch's ParseOutputFormat drops.
    itself = "http://host1.example.org/page7"
    linked = {target for target, source in links_of_nutch(nutch) if source == itself}
    for record in given:
        is_equal = state[record["key"]]["score"] == pytest.approx(record["score"])
        assert is_equal or record["key"] in {itself, *linked}, record
    assert nutbeam("parse", table, "--reparse", "--signature", "md5") == 0
    assert nutbeam_read(table, "pages")["title"].str.starts_with("http://").all()
