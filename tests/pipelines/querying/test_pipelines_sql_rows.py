"""sql sees the rows of a table in Bigtable as it sees those of a folder."""

import json
import shutil

import duckdb
import pytest
from crawling import nutbeam, reach
from simulated_web import SimWeb

from nutbeam.io.snapshots.manifest import newest_manifest
from nutbeam.io.table.folder_table import FolderTable
from nutbeam.io.table.opening import open_table
from nutbeam.pipelines.querying.sql import connect_duckdb
from nutbeam.pipelines.querying.stored_rows import StoredRows
from nutbeam.web.base.errors import UserError

QUERIES = [
    "SELECT status, count(*) AS n FROM state GROUP BY ALL ORDER BY ALL",
    "SELECT host, requests FROM hosts ORDER BY host",
    "SELECT url, title FROM pages ORDER BY url",
    "SELECT count(*) AS n FROM state JOIN batch_outcome USING (key)",
    "SELECT count(*) AS n FROM batches",
]


@pytest.mark.bigtable
@pytest.mark.long
def test_queries_agree_with_those_of_a_copy_in_a_folder(bigtable, tmp_path, capsys):
    table, copy = bigtable.make(tmp_path / "files"), tmp_path / "copy"
    with SimWeb(hosts=2, pages=5) as web:
        assert nutbeam("crawl", table, *web.seeds, *reach(web), "--rounds", 2) == 0
    shutil.rmtree(copy, ignore_errors=True)
    assert nutbeam("copy", table, copy) == 0
    for query in QUERIES:
        found = []
        for where in (table, copy):
            capsys.readouterr()
            assert nutbeam("sql", where, query, "--format", "json") == 0
            found.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
        assert found[0] == found[1] != []


def counted(table, stored, connection):
    """Returns the number of rows of the state that a connection of sql sees."""
    query = "SELECT count(*) FROM state"
    stored.bring(connection, query)
    return connection.execute(query).fetchone()[0]


def connected(table):
    """Returns the newest snapshot's rows, and a connection, as ``sql`` makes them."""
    manifest = newest_manifest(str(table))
    stored = StoredRows(str(table), manifest.snapshot)
    files = open_table(str(table)).files
    return stored, connect_duckdb(duckdb, files, manifest, in_rows=stored.kinds)


@pytest.mark.parametrize("failure", [UserError("the snapshot is too old"), KeyboardInterrupt()])
def test_after_a_query_that_failed_the_next_one_sees_all_rows(tmp_path, monkeypatch, failure):
    table = tmp_path / "table"
    seeds = [f"http://{name}.example.com/" for name in "abc"]
    assert nutbeam("inject", table, *seeds) == 0
    # A table in a folder whose rows come as those of Bigtable do.
    monkeypatch.setattr(FolderTable, "in_files", lambda self, name: name != "state")
    scan, failing = FolderTable.scan, [failure]

    def broken(self, *words):
        yield from scan(self, *words)
        if failing:
            raise failing.pop()

    monkeypatch.setattr(FolderTable, "scan", broken)
    stored, connection = connected(table)
    with pytest.raises((type(failure), duckdb.Error)):
        counted(table, stored, connection)
    assert not failing
    assert counted(table, stored, connection) == 3
    assert counted(table, stored, connection) == 3  # they are not brought again


@pytest.mark.bigtable
def test_rows_are_those_of_the_pinned_snapshot(bigtable, tmp_path):
    table = bigtable.make(tmp_path / "files")
    assert nutbeam("inject", table, "http://a.example.com/") == 0
    stored, connection = connected(table)
    assert nutbeam("inject", table, "http://b.example.com/", "http://c.example.com/") == 0
    assert counted(table, stored, connection) == 1
    assert counted(table, *connected(table)) == 3
