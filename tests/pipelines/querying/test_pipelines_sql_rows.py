"""sql sees the rows of a table in Bigtable as it sees those of a folder."""

import json
import shutil

import pytest
from crawling import nutbeam, reach
from simulated_web import SimWeb

QUERIES = [
    "SELECT status, count(*) AS n FROM state GROUP BY ALL ORDER BY ALL",
    "SELECT host, requests FROM hosts ORDER BY host",
    "SELECT url, title FROM pages ORDER BY url",
    "SELECT count(*) AS n FROM state JOIN batch_outcome USING (key)",
    "SELECT count(*) AS n FROM batches",
]


@pytest.mark.bigtable
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
