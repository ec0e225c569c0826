"""A table of the previous version is read as it is, and goes on as one of this version."""

import json
import tarfile

import pytest
from crawling import json_lines, manifest_of, nutbeam, reach, state_of
from here import TESTS
from simulated_web import SimWeb

from nutbeam.io.snapshots.manifest import FORMAT

TABLES = TESTS / "tables"


@pytest.fixture
def table(tmp_path):
    """Two rounds of the web below, and a batch that is to be fetched; made by format 1."""
    with tarfile.open(TABLES / "format1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "table"


def format_of(table):
    return json.loads(max((table / "manifest").glob("*.json")).read_text())["format"]


def test_it_says_what_it_said(table, capsys):
    assert format_of(table) == 1
    assert nutbeam("readdb", table, "--dump", "-") == 0
    expected = (TABLES / "format1.jsonl").read_text()
    assert json_lines(capsys.readouterr().out) == json_lines(expected)


def test_its_batch_is_finished_and_it_has_the_new_format(table, tmp_path):
    before = state_of(table)
    (batch,) = (n for n, b in manifest_of(table).batches.items() if b.phase == "generated")
    with SimWeb(hosts=2, pages=4, seed=3, crawl_delay=0) as web:
        assert nutbeam("fetch", table, "--batch", batch, *reach(web)) == 0
    for job in ("parse", "updatedb", "dedup"):
        assert nutbeam(job, table, "--batch", batch) == 0
    assert nutbeam("inject", table, "http://new.example.com/") == 0
    assert format_of(table) == FORMAT
    after = state_of(table)
    assert set(before["key"]) < set(after["key"])
    assert sum(batch == name for name in after["batch_id"]) > 0
    assert nutbeam("compact", table) == 0
    assert state_of(table).equals(after)
