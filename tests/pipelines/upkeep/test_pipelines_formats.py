"""A table that an older or this version has written is read as it is, and goes on as one of this version."""

import csv
import json
import tarfile

import pytest
from crawling import json_lines, manifest_of, nutbeam, reach, state_of
from here import TESTS
from simulated_web import SimWeb

from nutbeam.io.snapshots.manifest import MANIFEST_FORMAT

TABLES = TESTS / "tables"
# Of each format the web that its table was made from.
FORMATS = {
    1: {"hosts": 2, "pages": 4, "seed": 3},
    2: {"hosts": 1, "pages": 2, "seed": 3},
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


def format_of(table):
    return json.loads(max((table / "manifest").glob("*.json")).read_text())["format"]


def test_there_is_a_table_of_each_format():
    assert set(FORMATS) == set(range(1, MANIFEST_FORMAT + 1))


def test_it_says_what_it_said(table, written, capsys):
    assert format_of(table) == written
    assert nutbeam("readdb", table, "--dump", "-") == 0
    expected = json_lines((TABLES / f"format{written}.jsonl").read_text())
    assert json_lines(capsys.readouterr().out) == expected
    query = "SELECT url, status_name(status) AS status FROM state"
    assert nutbeam("sql", table, query, "--format", "csv") == 0
    found = {(row["url"], row["status"]) for row in csv.DictReader(capsys.readouterr().out.split())}
    assert found == {(row["url"], row["status"]) for row in expected}
    assert nutbeam("sql", table, "SELECT target_url FROM links", "--format", "csv") == 0
    assert {url for url, _ in found} & set(capsys.readouterr().out.split())


def test_its_batch_is_finished_and_it_has_the_new_format(table, written):
    before = state_of(table)
    (batch,) = (n for n, b in manifest_of(table).batches.items() if b.phase == "generated")
    with SimWeb(**FORMATS[written], crawl_delay=0) as web:
        assert nutbeam("fetch", table, "--batch", batch, *reach(web)) == 0
        for job in ("parse", "updatedb", "dedup"):
            assert nutbeam(job, table, "--batch", batch) == 0
        assert nutbeam("crawl", table, "--rounds", "1", *reach(web)) == 0
    assert nutbeam("inject", table, "http://new.example.com/") == 0
    assert format_of(table) == MANIFEST_FORMAT
    after = state_of(table)
    assert set(before["key"]) < set(after["key"])
    assert sum(batch == name for name in after["batch_id"]) > 0
    assert nutbeam("compact", table) == 0
    assert state_of(table).equals(after)
    assert nutbeam("fsck", table) == 0
