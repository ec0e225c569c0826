"""A table in Bigtable that an older version, or this one, has written is read, and goes on."""

import json

import pytest
from crawling import json_lines, manifest_of, nutbeam, reach, state_of
from here import TESTS
from simulated_web import SimWeb
from web_tables import pack_table, unpack_table

# Cells and files of a table, and what its views say, as the last test makes them.
ARCHIVE = TESTS / "tables" / "bigtable.tar.xz"
SAID = TESTS / "tables" / "bigtable.json"
WEB = {"hosts": 2, "pages": 2, "seed": 3}
BLOCKED = "http://blocked.example.com/"
VIEWS = ("state", "hosts", "inlinks", "host_settings")


def views_of(table, capsys):
    """Returns the rows of views, as they are exported."""
    found = {}
    for view in VIEWS:
        capsys.readouterr()
        assert nutbeam("export", table, "--what", view, "--format", "jsonl") == 0
        found[view] = json_lines(capsys.readouterr().out)
    return found


@pytest.fixture
def kept(bigtable, tmp_path):
    """The kept table, and its settings."""
    return unpack_table(ARCHIVE, tmp_path, bigtable)


def test_older_tables_show_the_same_rows(kept, capsys):
    table, settings = kept
    assert set(settings) == {"format", "files", "app_profile"}
    found = views_of(table, capsys)
    for view, rows in json.loads(SAID.read_text()).items():
        names = rows[0]  # later versions have more columns
        assert [{name: row[name] for name in names} for row in found[view]] == rows
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
def test_its_batch_is_finished(kept):
    table, _ = kept
    before = state_of(table)
    (batch,) = (n for n, b in manifest_of(table).batches.items() if b.phase == "generated")
    with SimWeb(**WEB, crawl_delay=0) as web:
        assert nutbeam("fetch", table, "--batch", batch, *reach(web)) == 0
        for job in ("parse", "updatedb", "dedup"):
            assert nutbeam(job, table, "--batch", batch) == 0
    assert nutbeam("inject", table, BLOCKED, "http://new.example.com/") == 0
    after = set(state_of(table)["key"])
    assert set(before["key"]) | {"com.example.new:http/"} <= after
    assert "com.example.blocked:http/" not in after
    assert nutbeam("compact", table) == 0
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
def test_a_table_of_today_can_be_kept(bigtable, tmp_path, capsys):
    table = bigtable.make(tmp_path / "files")
    (tmp_path / "hosts.txt").write_text("h1.example.com\tserver_delay=2\n")
    with SimWeb(**WEB, crawl_delay=0) as web:
        words = (*web.seeds, BLOCKED, "--links", "--rounds", "2", *reach(web))
        assert nutbeam("crawl", table, *words) == 0
    assert nutbeam("hostinject", table, tmp_path / "hosts.txt") == 0
    assert nutbeam("purge", table, "--host", "blocked.example.com") == 0
    assert nutbeam("updatehostdb", table) == 0
    assert nutbeam("generate", table, "--top_n", "2") == 0
    pack_table(table, tmp_path / "bigtable.tar.xz")
    again, _ = unpack_table(tmp_path / "bigtable.tar.xz", tmp_path / "again", bigtable)
    said = views_of(table, capsys)
    assert views_of(again, capsys) == said
    assert {view: len(rows) for view, rows in said.items()} == {
        view: len(rows) for view, rows in json.loads(SAID.read_text()).items()
    }
