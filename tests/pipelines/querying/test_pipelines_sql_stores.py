"""sql on a table in a store sees what it sees on a copy in a folder, and reads no other object."""

import io
import json
import subprocess
import sys

import pytest
from crawling import files_of, nutbeam
from stores_here import in_stores

from nutbeam.io.storage import stores as clients
from nutbeam.io.storage.files import remove_file, write_bytes
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.policy.components.views import views

pytestmark = pytest.mark.usefixtures("all_stores")
QUERIES = [
    "SELECT * EXCLUDE (text, body) FROM pages ORDER BY url",
    "SELECT url, md5(text) AS text, md5(body) AS body FROM pages ORDER BY url",
    "SELECT count(*) AS n, count(DISTINCT target_url) AS targets FROM outlinks",
    *(f"SELECT count(*) AS n FROM {view}" for view in views()),
    "SELECT state.status, count(*) AS n FROM state JOIN batch_outcome USING (key) GROUP BY ALL ORDER BY 1",
]


def asked(table, capsys, monkeypatch, queries=QUERIES):
    """Returns the rows that queries find in a table; all are asked in one shell."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{query};\n" for query in queries)))
    capsys.readouterr()
    assert nutbeam("sql", table, "--format", "json") == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.long
@in_stores
def test_queries_give_the_same_rows_in_a_store_as_in_a_folder(address, table, capsys, monkeypatch):
    assert nutbeam("copy", table, address) == 0
    here = asked(table, capsys, monkeypatch)
    assert asked(address, capsys, monkeypatch) == here
    assert len(here) > len(QUERIES)
    # Large files are read in parts.
    monkeypatch.setattr(clients, "WHOLE_BYTES", 64)
    there = asked(address, capsys, monkeypatch, QUERIES[:3])
    assert there == here[: len(there)]
    assert len(there) > 3


@pytest.mark.parametrize("address", ["gs"], indirect=True)
def test_an_object_that_is_no_file_of_the_table_is_not_read(address, table, capsys):
    assert nutbeam("copy", table, address) == 0
    (file,) = files_of(table, "hosts")[:1]
    other = place_of(address).parent / "other.parquet"
    write_bytes(other, file.read_bytes())
    capsys.readouterr()
    assert nutbeam("sql", address, f"SELECT * FROM '{other}'") == 2
    assert "sql reads only the files of the table" in capsys.readouterr().err


@pytest.mark.parametrize("whole", [64, clients.WHOLE_BYTES])
@pytest.mark.parametrize("address", ["gs"], indirect=True)
def test_a_missing_object_is_one_line(address, table, capsys, monkeypatch, whole):
    monkeypatch.setattr(clients, "WHOLE_BYTES", whole)
    assert nutbeam("copy", table, address) == 0
    (file,) = files_of(address, "state")[:1]
    remove_file(file)
    capsys.readouterr()
    assert nutbeam("sql", address, "SELECT * FROM state") == 3
    error = capsys.readouterr().err
    assert str(file) in error
    assert error.endswith(f": run nutbeam fsck {address}\n")
    assert error.count("\n") == 1


@pytest.mark.long
@pytest.mark.parametrize("address", ["gs"], indirect=True)
def test_a_process_of_its_own_prints_the_result_and_nothing_else(address, table):
    assert nutbeam("copy", table, address) == 0
    program = "from nutbeam.pipelines.command_line.cli import script; script()"
    words = ["sql", address, "SELECT count(*) > 9 AS many FROM pages", "--format", "json"]
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"many": true}\n', "")
