"""fsck finds damaged rows, ranges and lists of a table in Bigtable, and repairs them."""

import dataclasses
import random

import polars as pl
import pyarrow as pa
import pytest
from bigtable_damage import put
from bigtable_fsck import BAD, commit_rows, newest, rows_of_with
from cell_kinds import HOST_CELL, STATE_CELL
from crawling import (
    assert_whole,
    crawl,
    manifest_at,
    manifest_of,
    nutbeam,
    place_in,
    rows_of,
)
from damaging import kinds

from nutbeam.io.bigtable.cells import encode
from nutbeam.io.bigtable.snapshot_log import open_log
from nutbeam.io.bigtable.stored_rows import write_changes
from nutbeam.io.snapshots.manifest import store_manifest
from nutbeam.io.storage.files import list_files
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files, store_files
from nutbeam.io.upkeep.bigtable_fsck import damaged_cells, is_newer
from nutbeam.policy.components.kinds import kinds_in_rows
from nutbeam.policy.components.schema import STATE, conform

pytestmark = pytest.mark.bigtable


@pytest.mark.long
def test_a_whole_table(original, fsck, capsys):
    record = fsck(original)
    assert record["problems"] == []
    assert record["clean"] is True
    components = manifest_of(original).components
    assert "links" not in components  # no job has made it yet
    known = {name: components[name].rows for name in ("state", "hosts")}
    assert record["rows"] == known | {"links": 0}
    assert components["state"].files > 2
    assert record["files"] == sum(
        c.files for n, c in components.items() if n not in kinds_in_rows()
    )
    assert record["left"]["orphans"] == len(list(list_files(place_in(original, "changes"))))
    assert nutbeam("fsck", original) == 0
    assert f"{components['state'].rows} rows of state" in capsys.readouterr().out
    quick = fsck(original, "--quick")
    assert quick["clean"]
    assert "rows" not in quick
    assert fsck(original, "--repair")["clean"]
    assert newest(original) == record["snapshot"]


# Rows.


@pytest.mark.long
def test_each_damaged_cell_is_named_and_comes_back_or_goes(table, web, fsck, capsys):
    snapshot = newest(table)
    state, hosts = rows_of(table, "state"), rows_of(table, "hosts")
    keys = state["key"].to_list()
    touched = state.filter(pl.col("key").is_in([keys[0], keys[5], keys[6]]))
    commit_rows(table, touched.with_columns(score=pl.lit(9.0)))
    for key in (keys[0], keys[5], keys[6]):
        put(table, key, BAD, snapshot + 1)
    put(table, keys[5], BAD, snapshot)  # of this one, two versions
    put(table, hosts["key"][0], b"\x01", snapshot + 1, HOST_CELL)
    for version in range(snapshot + 1):  # of this one there is nothing else
        put(table, keys[6], BAD, version)
    record = fsck(table, code=3)
    wanted = [f"hosts/{hosts['key'][0]}", *(f"state/{keys[at]}" for at in (0, 5, 6))]
    assert kinds(record) == [("cell", path) for path in wanted]
    capsys.readouterr()
    assert nutbeam("readdb", table, "--stats") == 3  # and nobody can read them
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert f"is damaged: it is cut short: run nutbeam fsck {table}" in line
    assert nutbeam("fsck", table, "--readers", "1") == 3
    out = capsys.readouterr().out
    assert f"state/{keys[5]}: its cell is damaged: it is cut short" in out
    assert "4 problems; nutbeam fsck" in out
    # Without --drop nothing is done about them.
    assert kinds(fsck(table, "--repair", code=3)) == kinds(record)
    assert newest(table) == snapshot + 1
    record = fsck(table, "--repair", "--drop")
    assert record["clean"]
    assert record["repaired"]["rows"] == {
        "hosts/given_back": 1, "state/deleted": 1, "state/given_back": 2,
    }  # fmt: skip
    assert newest(table) == snapshot + 2
    manifest = manifest_of(table)
    assert (manifest.job, manifest.counts["state/deleted"]) == ("fsck", 1)
    assert rows_of(table, "state").equals(state.filter(pl.col("key") != keys[6]))
    assert rows_of(table, "hosts").equals(hosts)
    assert fsck(table)["clean"]
    # Who reads the snapshot before still finds what was there.
    assert crawl(table, web) == 0
    assert_whole(table, web.site)
    assert fsck(table)["clean"]


@pytest.mark.long
def test_purged_rows_and_undone_changes_do_not_come_back(table, fsck):
    state = rows_of(table, "state")
    keys = state["key"].to_list()
    files, log = open_table(table).files, open_log(table)
    base = manifest_at(table, newest(table))
    # As a purge writes rows of others that named what is purged.
    rows = state.filter(pl.col("key") == keys[0])
    written = write_changes(files, "state", rows, rows["key"], purges=True)
    made = dataclasses.replace(
        base, snapshot=base.snapshot + 1, operation="x.purge", job="purge", counts={}
    )
    assert store_manifest(open_table(table), made, {"state": [written.file]})
    put(table, keys[0], BAD, made.snapshot)
    # As a rollback leaves it: a version of a snapshot that is undone.
    undone = rows_of_with(state, keys[1], 5.0)
    commit_rows(table, undone)
    back = dataclasses.replace(
        base, snapshot=made.snapshot + 2, job="rollback", operation="x.rollback",
        restores=made.snapshot,
    )  # fmt: skip
    rows = state.filter(pl.col("key") == keys[1])
    written = write_changes(files, "state", rows, rows["key"])
    assert store_manifest(open_table(table), back, {"state": [written.file]})
    put(table, keys[1], BAD, back.snapshot)
    # A row that was deleted and added again.
    put(table, keys[2], b"", base.snapshot)
    put(table, keys[2], BAD, back.snapshot)
    assert len(fsck(table, code=3)["problems"]) == 3
    record = fsck(table, "--repair", "--drop")
    assert record["repaired"]["rows"] == {"state/deleted": 2, "state/given_back": 1}
    assert rows_of(table, "state").equals(state.filter(~pl.col("key").is_in([keys[0], keys[2]])))
    assert log.head().snapshot == back.snapshot + 1


@pytest.mark.long
def test_a_cell_of_a_newer_nutbeam_is_left_alone(table, fsck, capsys):
    key = rows_of(table, "state")["key"][0]
    version = STATE_CELL.newest.version + 1
    put(table, key, b"\x80" + b"\0" * 7 + bytes([version]) + b"new" * 30, newest(table))
    record = fsck(table, "--repair", "--drop", code=3)
    assert kinds(record) == [("cell", f"state/{key}")]
    assert f"version {version}" in record["problems"][0]["message"]
    assert "upgrade nutbeam" in record["problems"][0]["message"]
    assert "repaired" not in record
    assert record["problems"][0]["newer"]
    capsys.readouterr()
    for words in ([], ["--repair"]):
        assert nutbeam("fsck", table, *words) == 3
        said = capsys.readouterr().out
        assert "1 problem; upgrade nutbeam" in said
        assert "--drop" not in said


def test_many_damaged_cells_in_one_piece_are_all_found():
    keys = [f"org.example:http/{n:05}" for n in range(5_000)]
    rows = conform(pl.DataFrame({"key": keys, "etag": keys}), STATE)
    cells = encode(rows, STATE_CELL).to_pydict()
    dice = random.Random(3)
    bad = sorted(dice.sample(range(5_000), 40))
    for at in bad:
        whole = cells["cell"][at]
        cells["cell"][at] = whole[: dice.randrange(len(whole))]
    found = damaged_cells(pa.table(cells), STATE_CELL)
    assert sorted(found) == [keys[at].encode() for at in bad]
    assert not is_newer(BAD, STATE_CELL)


@pytest.mark.long
def test_no_bytes_make_more_than_a_damaged_cell():
    dice = random.Random(4)
    metadata = pa.array([[("a", "b")]], STATE.field("metadata").type)
    rows = pa.table({"key": ["k"], "etag": ["é"], "metadata": metadata})
    whole = encode(rows, STATE_CELL).column("cell")[0].as_py()
    for _ in range(500):
        cell = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            cell[dice.randrange(len(cell))] ^= 1 << dice.randrange(8)
        for bad in (bytes(cell), dice.randbytes(dice.randrange(1, 200))):
            table = pa.table({"key": [b"k", b"l"], "cell": [bad, whole]})
            assert set(damaged_cells(table, STATE_CELL)) <= {b"k"}


@pytest.mark.long
def test_a_wrong_number_of_rows_is_counted_again(table, fsck):
    state = rows_of(table, "state")
    put(table, "org.example.zz:http/", encode(state.head(1), STATE_CELL)["cell"][0].as_py(), 1)
    record = fsck(table, code=3)
    assert kinds(record) == [("rows", manifest_of(table).components["state"].list)]
    assert "in Bigtable are" in record["problems"][0]["message"]
    record = fsck(table, "--repair")
    assert record["clean"]
    assert record["repaired"]["rebuilt"] == ["state"]
    assert manifest_of(table).components["state"].rows == len(state) + 1


# Lists and files.


def relist(address, name, change):
    """Commits another list of a component."""
    table = open_table(address)
    base = manifest_at(table, newest(address))
    component = store_files(table, name, change(load_files(table, base.components[name])))
    components = {**base.components, name: component}
    made = dataclasses.replace(
        base, snapshot=base.snapshot + 1, operation="relist", components=components
    )
    assert store_manifest(table, made)


def with_rows_of(files, left):
    gone = sum(f.rows for f in files) - sum(f.rows for f in left)
    return [dataclasses.replace(left[0], rows=left[0].rows + gone), *left[1:]]


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("word", ["gap", "overlap", "open"])
def test_ranges_that_do_not_fit(table, fsck, word):
    change = {
        "gap": lambda files: with_rows_of(files, [files[0], *files[2:]]),
        "overlap": lambda files: [
            dataclasses.replace(files[0], last=files[1].last), *files[1:]
        ],
        "open": lambda files: with_rows_of(files, files[:-1]),
    }[word]  # fmt: skip
    state = rows_of(table, "state")
    relist(table, "state", change)
    assert {p["kind"] for p in fsck(table, "--quick", code=3)["problems"]} == {"range"}
    assert fsck(table, "--quick", "--repair")["repaired"]["rebuilt"] == ["state"]
    assert fsck(table)["clean"]
    assert manifest_of(table).components["state"].rows == len(state)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["seed_hosts", "state", "hosts", "fetchlist", "documents"])
def test_a_lost_list_is_rebuilt(table, fsck, name):
    components = manifest_of(table).components
    component = next(c for n, c in components.items() if n.rpartition("/")[2] == name)
    place_in(table, component.list).unlink()
    assert kinds(fsck(table, code=3)) == [("list", component.list)]
    if name == "seed_hosts":
        assert fsck(table, "--repair")["clean"]
        return
    before = contents_without(table, name)
    record = fsck(table, "--repair")
    assert record["clean"]
    assert len(record["repaired"]["rebuilt"]) == 1
    assert contents_without(table, name) == before


def contents_without(table, name):
    kept = ("state", "hosts") if name not in ("state", "hosts") else ("state",)
    return {n: len(rows_of(table, n)) for n in kept if n != name}


def test_a_list_that_cannot_be_rebuilt_is_dropped_only_with_drop(table, fsck):
    manifest = manifest_of(table)
    name = next(n for n in manifest.components if n.endswith("/pages"))
    component = manifest.components[name]
    file = load_files(open_table(table), component)[0]
    place_in(table, component.list).unlink()
    place_in(table, file.path).unlink()
    assert kinds(fsck(table, "--repair", code=3)) == [("list", component.list)]
    assert newest(table) == manifest.snapshot
    record = fsck(table, "--repair", "--drop")
    assert record["clean"]
    assert record["repaired"]["dropped"] == [component.list]


@pytest.mark.long
def test_data_files_that_are_broken(table, web, fsck):
    components = manifest_of(table).components
    pages = next(n for n in components if n.endswith("/pages"))
    findings = next(n for n in components if n.endswith("/host_findings"))
    gone, cut = (load_files(open_table(table), components[n])[0].path for n in (pages, findings))
    place_in(table, gone).unlink()
    place_in(table, cut).write_bytes(b"PAR1")
    wanted = [("missing", gone), ("size", cut)]
    assert kinds(fsck(table, code=3)) == wanted
    assert kinds(fsck(table, "--repair", code=3)) == wanted
    record = fsck(table, "--repair", "--drop")
    assert record["clean"]
    assert sorted(record["repaired"]["dropped"]) == sorted([gone, cut])
    crawl(table, web)
    assert_whole(table, web.site)
