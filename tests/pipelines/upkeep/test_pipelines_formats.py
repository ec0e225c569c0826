"""A table that an older or this version has written is read as it is, and goes on as one of this version."""

import csv
import json
import math
import tarfile
from pathlib import PurePosixPath

import polars as pl
import pytest
from crawling import json_lines, manifest_of, nutbeam, reach, state_of
from here import TESTS
from simulated_web import SimWeb
from web_tables import Snapshot

from nutbeam.io.batches.batches import adopted_findings
from nutbeam.io.snapshots.manifest import FORMAT_WITHOUT_LISTS, MANIFEST_FORMAT, load_manifest
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import below, load_files
from nutbeam.io.upkeep.purge import unnamed_files
from nutbeam.io.upkeep.repair import rebuilt_lists
from nutbeam.pipelines.views.reader import read

TABLES = TESTS / "tables"
# Of each format the web that its table was made from.
FORMATS = {
    1: {"hosts": 2, "pages": 4, "seed": 3},
    2: {"hosts": 1, "pages": 2, "seed": 3},
    3: {"hosts": 1, "pages": 2, "seed": 3},
    4: {"hosts": 1, "pages": 2, "seed": 3},
}


@pytest.fixture(params=FORMATS)
def written(request):
    """The format of a table."""
    return request.param


@pytest.fixture
def table(tmp_path, written):
    """A table of a web, with a batch that is to be fetched."""
    (archive,) = TABLES.glob(f"format{written}.tar.*")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    return tmp_path / "table"


# The names of two components, and those in tables of format 2 and older.
FORMER = {"blocklist": "bars", "host_findings": "learnt"}
# A host that was purged from the tables of formats 2 to 4.
BLOCKED = "http://blocked.example.com/"


@pytest.fixture
def old(tmp_path):
    """A table whose components have their former names, on disk and in the manifests."""
    with tarfile.open(TABLES / "format2.tar.xz") as opened:
        opened.extractall(tmp_path, filter="data")
    return tmp_path / "table"


def format_of(table):
    return json.loads(max((table / "manifest").glob("*.json")).read_text())["format"]


def test_there_is_a_table_of_each_format():
    assert set(FORMATS) == set(range(1, MANIFEST_FORMAT + 1))


@pytest.mark.long
def test_older_tables_show_the_same_rows(table, written, capsys):
    assert format_of(table) == written
    assert nutbeam("readdb", table, "--dump", "-") == 0
    expected = json_lines((TABLES / f"format{written}.jsonl").read_text())
    found = json_lines(capsys.readouterr().out)
    assert [{name: row[name] for name in expected[0]} for row in found] == expected
    query = "SELECT url, status FROM state"
    assert nutbeam("sql", table, query, "--format", "csv") == 0
    found = {(row["url"], row["status"]) for row in csv.DictReader(capsys.readouterr().out.split())}
    assert found == {(row["url"], row["status"]) for row in expected}
    assert nutbeam("sql", table, "SELECT target_url FROM outlinks", "--format", "csv") == 0
    assert {url for url, _ in found} & set(capsys.readouterr().out.split())


@pytest.mark.few(1)
def test_texts_of_one_line_become_texts_of_blocks_without_a_request(table, capsys):
    columns = ["url", "text", "markdown", "blocks"]
    pages = read(table, "pages", columns=columns).sort("url")
    assert pages.get_column("blocks").is_null().all()
    assert not pages.get_column("text").str.contains("\n").any()
    assert pages.select(pl.col("markdown").str.len_chars() >= pl.col("text").str.len_chars())[
        "markdown"
    ].all()
    assert nutbeam("parse", table, "--reparse") == 0
    again = read(table, "pages", columns=columns).sort("url")
    assert again.get_column("url").equals(pages.get_column("url"))
    home = again.filter(url="http://h0.example.com/").row(0, named=True)
    assert "heading" in {block["kind"] for block in home["blocks"]}
    assert "\n# " in home["markdown"]


def taken_in(table):
    """Returns by batch what has taken it in: as the file says, and as it is read."""
    record = json.loads(max((table / "manifest").glob("*.json")).read_text())
    lists = [json.loads((table / one["list"]).read_text()) for one in record.get("closed", [])]
    stored = {name: batch for one in (record, *lists) for name, batch in one["batches"].items()}
    names = {"dedup": "deduped", "links": "inverted"}
    said = {n: {name for name in names if b.get(names[name])} for n, b in stored.items()}
    return said, {n: b.taken_in for n, b in manifest_of(table).batches.items()}


def test_its_batches_are_taken_in_as_before(table):
    said, found = taken_in(table)
    assert said == found
    assert {"dedup"} in said.values()


@pytest.mark.few(1)
def test_its_batch_is_finished_and_it_has_the_new_format(table, written):
    before = state_of(table)
    (batch,) = (n for n, b in manifest_of(table).batches.items() if b.phase == "generated")
    with SimWeb(**FORMATS[written], crawl_delay=0) as web:
        assert nutbeam("fetch", table, "--batch", batch, *reach(web)) == 0
        for job in ("parse", "updatedb", "dedup"):
            assert nutbeam(job, table, "--batch", batch) == 0
        assert nutbeam("inject", table, "http://new.example.com/") == 0
        # Later, so that pages are due again, whenever the table was written.
        later = ("--rounds", "1", "--add_days", "40")
        assert nutbeam("crawl", table, *later, *reach(web)) == 0
    assert format_of(table) == max(written, FORMAT_WITHOUT_LISTS)
    after = state_of(table)
    assert set(before["key"]) < set(after["key"])
    assert sum(batch == name for name in after["batch_id"]) > 0
    assert nutbeam("compact", table) == 0
    assert state_of(table).equals(after)
    assert nutbeam("fsck", table) == 0


def test_components_with_former_names_have_the_present_ones(old):
    stored = json.loads(max((old / "manifest").glob("*.json")).read_text())["components"]
    assert {name.rpartition("/")[2] for name in stored} >= set(FORMER.values())
    found = Snapshot(str(old))
    kinds = {name.rpartition("/")[2]: name for name in found.manifest().components}
    assert set(FORMER) <= set(kinds)
    assert not set(FORMER.values()) & set(kinds)
    for name, former in FORMER.items():
        (file,) = found.files(kinds[name])
        assert PurePosixPath(file.path).parent.name == former
        assert (old / file.path).is_file()


def test_a_former_blocklist_still_blocks_and_new_files_have_the_new_name(old):
    assert nutbeam("inject", old, BLOCKED, "http://fine.example.com/") == 0
    urls = set(state_of(old)["key"])
    assert "com.example.fine:http/" in urls
    assert "com.example.blocked:http/" not in urls
    stored = json.loads(max((old / "manifest").glob("*.json")).read_text())["components"]
    assert not {name.rpartition("/")[2] for name in stored} & set(FORMER.values())
    assert nutbeam("purge", old, "--host", "too.example.com") == 0
    (written,) = Snapshot(str(old)).files("blocklist")
    assert written.path.startswith("blocklist/")
    assert nutbeam("fsck", old) == 0


def test_a_lost_list_of_former_files_is_rebuilt(old):
    table = open_table(str(old))
    for component in FORMER:
        manifest = Snapshot(str(old)).manifest()
        (name,) = (n for n in manifest.components if n.rpartition("/")[2] == component)
        before = Snapshot(str(old)).files(name)
        (old / manifest.components[name].list).unlink()
        assert [file.path for file in rebuilt_lists(table, manifest)[name]] == [
            file.path for file in before
        ]


def test_a_fetch_adopts_former_files_of_findings(old):
    (file,) = (old / "batches").glob("*/learnt/*.parquet")
    batch = file.parent.parent.name
    (adopted,) = adopted_findings(open_table(str(old)), batch, 0, lambda keys: keys.is_null())
    assert old / adopted.path == file


def test_former_folders_are_known_to_the_table(old, tmp_path):
    assert unnamed_names(old) == []
    for folder in ("bars", "batches/1740000014-3e2c034d/learnt"):
        (old / folder).mkdir(exist_ok=True)
        (old / folder / "0123456789abcdef.parquet").write_bytes(b"")
    assert unnamed_names(old) == [
        "bars/0123456789abcdef.parquet",
        "batches/1740000014-3e2c034d/learnt/0123456789abcdef.parquet",
    ]


def unnamed_names(address):
    table = open_table(str(address))
    named = set()
    for number in table.snapshots():
        for component in load_manifest(table, number).components.values():
            named |= {component.list, *(file.path for file in load_files(table, component))}
    return sorted(below(table.files, found.path) for found in unnamed_files(table, named, math.inf))


# The web that the complete table was made from, and its components besides those of format 3.
COMPLETE = {"hosts": 2, "pages": 2, "seed": 3}
LATER_KINDS = {
    "links", "host_counts", "host_settings", "page_nodes", "page_edges", "page_ranks",
    "indexed", "index_runs", "shards",
}  # fmt: skip


@pytest.fixture
def complete(tmp_path):
    """A table of today's format with links, a graph, ranks, an index and settings of hosts."""
    with tarfile.open(TABLES / "complete.tar.xz") as opened:
        opened.extractall(tmp_path, filter="data")
    return tmp_path / "table"


@pytest.mark.long
def test_later_components_show_the_same_rows(complete, tmp_path, capsys):
    kinds = {name.rpartition("/")[2] for name in manifest_of(complete).components}
    assert kinds >= LATER_KINDS
    said, found = taken_in(complete)
    assert said == found
    assert {"dedup", "links"} in said.values()
    assert nutbeam("fsck", complete) == 0
    capsys.readouterr()
    said = json.loads((TABLES / "complete.json").read_text())
    for view in ("inlinks", "host_counts", "host_settings", "page_ranks"):
        assert nutbeam("export", complete, "--what", view, "--format", "jsonl") == 0
        assert json_lines(capsys.readouterr().out) == said[view]
    found = ("--format", "json", "--cache_folder", tmp_path / "cache")
    assert nutbeam("search", complete, "river OR water", *found) == 0
    assert sorted(row["url"] for row in json_lines(capsys.readouterr().out)) == said["search"]


@pytest.mark.long
def test_later_components_go_on(complete, capsys):
    with SimWeb(**COMPLETE, crawl_delay=0) as web:
        more = ("--links", "--index", "main", "--add_days", "40", "--rounds", "2")
        assert nutbeam("crawl", complete, *more, *reach(web)) == 0
    assert nutbeam("compact", complete, "--full") == 0
    assert nutbeam("fsck", complete) == 0
    capsys.readouterr()
    assert nutbeam("readlinkdb", complete, "--top", "1", "--format", "json") == 0
    assert json_lines(capsys.readouterr().out)
