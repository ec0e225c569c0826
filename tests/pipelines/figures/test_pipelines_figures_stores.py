"""Each command that shows figures says of a table in a store what it says of one in a folder."""

import json

import pytest
from crawling import nutbeam
from simulated_web import SimWeb
from stores_here import in_stores

pytestmark = pytest.mark.usefixtures("all_stores")
# Commands, and those that write a file: its name, at the end.
SHOWN = [
    ("readdb", "--stats", "--sort"),
    ("readdb", "--top", "7"),
    ("readdb", "--top", "3", "--min_score", "0.2", "--expr", "status == 'db_fetched'"),
    ("readdb", "--dump", "-", "--status", "db_fetched"),
    ("readdb", "--dump", "-", "--regex", ".*h0.*"),
    ("readdb", "--dump", "-", "--retry", "0"),
    ("readdb", "--stats", "--expr", "score > 0"),
    ("domainstats", "--mode", "host"),
    ("domainstats", "--mode", "domain"),
    ("domainstats", "--mode", "tld"),
    ("domainstats", "--mode", "suffix"),
    ("protocolstats",),
    ("crawlcomplete",),
    ("readhostdb",),
    ("readhostdb", "--expr", "fetched > 0"),
]
WRITTEN = [
    ("readdb", ("--dump",), "rows.jsonl"),
    ("readdb", ("--dump",), "rows.csv"),
    ("readdb", ("--dump",), "rows.parquet"),
    ("readdb", ("--dump",), "rows.txt"),
    ("export", ("-o",), "state.jsonl"),
    ("export", ("--what", "hosts", "-o"), "hosts.csv"),
    ("export", ("--what", "batch_documents", "-o"), "documents.parquet"),
]


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=3, pages=4, seed=7, crawl_delay=0) as server:
        yield server


def shown(table, words, capsys):
    capsys.readouterr()
    assert nutbeam(words[0], table, *words[1:], "--format", "json") == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def comparable(value):
    """Returns a record to compare: sums of floats depend on the order; a copy has its own snapshots."""
    if isinstance(value, dict):
        names = ("snapshot", "batches")
        return {name: comparable(v) for name, v in value.items() if name not in names}
    return float(f"{value:.12g}") if isinstance(value, float) else value


def written(table, command, words, path):
    path.parent.mkdir(exist_ok=True)
    assert nutbeam(command, table, *words, path) == 0
    return path.read_bytes()


@pytest.mark.long
@in_stores
def test_figures_and_rows_are_those_of_a_folder(address, web, here, tmp_path, capsys):
    assert nutbeam("copy", here[0], address) == 0
    for words in SHOWN:
        there = [comparable(record) for record in shown(address, words, capsys)]
        assert there == [comparable(record) for record in shown(here[0], words, capsys)], words
        assert there, words
    for command, words, name in WRITTEN:
        there = written(address, command, words, tmp_path / "there" / name)
        assert there == written(here[0], command, words, tmp_path / "here" / name), name
        assert len(there) > 100, name
    url = web.seeds[0]
    assert shown(address, ("readdb", url), capsys) == shown(here[0], ("readdb", url), capsys)
    host = url.split("/")[2]
    there = shown(address, ("readhostdb", host), capsys)
    assert there == shown(here[0], ("readhostdb", host), capsys) != []
