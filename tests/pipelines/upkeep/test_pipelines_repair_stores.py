"""history, rollback, fsck, purge, export and sql on tables in Cloud Storage, S3 and HDFS."""

import json

import polars as pl
import pytest
from crawling import json_lines, latest_snapshot, manifest_at, nutbeam
from simulated_web import SimWeb
from stores_here import STORES

from nutbeam.io.storage.files import (
    crc32_of,
    list_files,
    new_name,
    read_bytes,
    remove_file,
    write_bytes,
)
from nutbeam.io.storage.place_addresses import place_of
from nutbeam.io.tablets.file_lists import load_files

HOST = "h1.example.com"
# What differs from store to store is below; there each store is tried in the short form, too.
IN_STORES = pytest.mark.parametrize(
    "address",
    [kind if kind == "gs" else pytest.param(kind, marks=pytest.mark.long) for kind in STORES],
    indirect=True,
)


pytestmark = pytest.mark.usefixtures("all_stores")


@pytest.fixture(scope="module")
def original(kept_crawls, tmp_path_factory):
    table = tmp_path_factory.mktemp("original") / "table"
    with SimWeb(hosts=3, pages=5, seed=7, crawl_delay=0) as web:
        kept_crawls.make(web, table, "--rounds", "2")
    return table


@pytest.fixture
def table(original, address):
    """The table in a store, file by file."""
    for path in original.rglob("*"):
        if path.is_file():
            write_bytes(place_of(address) / str(path.relative_to(original)), path.read_bytes())
    return address


def live(table):
    """Returns the manifest and all live data files of the newest snapshot."""
    root = place_of(table)
    manifest = manifest_at(root, latest_snapshot(root))
    return manifest, [f for c in manifest.components.values() for f in load_files(root, c)]


def fsck(table, capsys, *options):
    capsys.readouterr()
    code = nutbeam("fsck", table, "--format", "json", *options)
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.long
@IN_STORES
def test_checksums_and_sizes_are_those_of_the_objects(table):
    root, (_, files) = place_of(table), live(table)
    for file in files:
        assert file.crc32 == crc32_of(root / file.path)
        assert file.bytes == len(read_bytes(root / file.path))
    listed = {str(found.path): found.bytes for found in list_files(root)}
    assert {str(root / file.path): file.bytes for file in files}.items() <= listed.items()


@pytest.mark.long
@IN_STORES
def test_history_and_the_way_back_and_forth(table, capsys):
    before, _ = live(table)
    assert nutbeam("rollback", table, "--to", str(before.snapshot - 3)) == 0
    assert nutbeam("rollback", table, "--to", str(before.snapshot)) == 0
    assert live(table)[0].components == before.components
    capsys.readouterr()
    assert nutbeam("history", table, "--last", "2", "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)["snapshots"]
    assert [snapshot["job"] for snapshot in shown] == ["rollback", "rollback"]
    assert fsck(table, capsys)[0] == 0


@pytest.mark.long
@IN_STORES
def test_a_lost_list_is_rebuilt_and_a_lost_file_left_out(table, capsys):
    root, (manifest, files) = place_of(table), live(table)
    remove_file(root / manifest.components["state"].list)
    assert fsck(table, capsys)[0] == 3
    code, record = fsck(table, capsys, "--repair")
    assert (code, record["repaired"]["rebuilt"]) == (0, ["state"])
    gone = next(file.path for file in files if "/documents/" in file.path)
    remove_file(root / gone)
    code, record = fsck(table, capsys)
    assert (code, [p["kind"] for p in record["problems"]]) == (3, ["missing"])
    code, record = fsck(table, capsys, "--repair", "--drop")
    assert (code, record["repaired"]["dropped"]) == (0, [gone])


@IN_STORES
@pytest.mark.long
def test_a_purge_leaves_no_object_that_names_the_host(table, capsys):
    root = place_of(table)
    write_bytes(root / "seeds" / new_name(".txt"), f"http://{HOST}/\n".encode())
    assert nutbeam("purge", table, "--host", HOST, "--now") == 0
    key = ".".join(reversed(HOST.split(".")))
    state = [file for file in live(table)[1] if file.path.startswith("state/")]
    keys = [k for f in state for k in pl.read_parquet(read_bytes(root / f.path))["key"]]
    assert keys
    assert not [k for k in keys if k.startswith(f"{key}:")]
    inside = [found.path for found in list_files(root) if found.path.suffix != ".parquet"]
    assert not [path for path in inside if HOST.encode() in read_bytes(path)]
    named = {str(root / file.path) for file in live(table)[1]}
    data = [found.path for found in list_files(root) if "/manifest/" not in str(found.path)]
    assert {str(path) for path in data if path.suffix == ".parquet"} == named
    assert fsck(table, capsys)[0] == 0


@pytest.mark.long
@IN_STORES
def test_export_and_sql_read_a_store(table, tmp_path, capsys):
    for name in ("state.parquet", "state.csv", "state.jsonl"):
        assert nutbeam("export", table, "--output", tmp_path / name) == 0
    rows = len(pl.read_parquet(tmp_path / "state.parquet"))
    assert rows == len(pl.read_csv(tmp_path / "state.csv", infer_schema=False)) > 0
    assert rows == len(json_lines((tmp_path / "state.jsonl").read_text()))
    capsys.readouterr()
    assert nutbeam("sql", table, "select count(*) as n from state", "--format", "csv") == 0
    assert capsys.readouterr().out.splitlines() == ["n", str(rows)]
