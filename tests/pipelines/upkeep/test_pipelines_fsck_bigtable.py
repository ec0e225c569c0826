"""fsck of tables in Bigtable: damage in rows, in the history, in commits; and what a repair makes of it."""

import contextlib
import dataclasses
import json
import random

import polars as pl
import pyarrow as pa
import pytest
from bigtable_damage import put
from bigtable_samples import every_third_key
from crawling import (
    assert_whole,
    crawl,
    manifest_at,
    manifest_of,
    nutbeam,
    open_batches,
    place_in,
    reach,
    rows_of,
    statuses_of,
)
from short_form import first
from simulated_web import SimWeb
from web_tables import InBigtable

from nutbeam.io.bigtable.cells import CELLS, HOST_CELL, STATE_CELL, encode
from nutbeam.io.bigtable.changes import write_changes
from nutbeam.io.bigtable.client import BigtableTable
from nutbeam.io.bigtable.snapshot_log import HEAD_ROW, SnapshotLog, open_log
from nutbeam.io.snapshots.manifest import store_manifest
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.files import list_files
from nutbeam.io.table.bigtable_web_table import BigtableWebTable
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets import tablet_writer
from nutbeam.io.tablets.file_lists import load_files, store_files
from nutbeam.io.upkeep.bigtable_fsck import damaged_cells, is_newer
from nutbeam.policy.schema import STATE, conform

pytestmark = pytest.mark.bigtable
BAD = b"\x80\0\0\0\0\0\0\0\x01bad"


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=2, pages=8, seed=7, crawl_delay=0) as server:
        yield server


@pytest.fixture(scope="module")
def tables(bigtable, tmp_path_factory):
    return InBigtable(tmp_path_factory, bigtable)


@pytest.fixture(scope="module")
def original(web, tables):
    """A table with several ranges and a batch in each phase; tests only read it."""
    table = tables.fresh()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tablet_writer, "TABLET_ROWS", 8)
        patch.setattr(BigtableWebTable, "samples", every_third_key)
        assert nutbeam("crawl", table, *web.seeds, "--rounds", "2", *reach(web)) == 0
        open_batches(table, web, 2)
    return table


@pytest.fixture
def table(original, tables):
    return tables.copy(original)


@pytest.fixture
def fsck(capsys):
    """Runs fsck and returns its record; without --repair it changes nothing."""

    def run(table, *words, code=0):
        head = open_log(table).head()
        capsys.readouterr()
        assert nutbeam("fsck", table, *words, "--format", "json") == code
        if "--repair" not in words:
            assert open_log(table).head() == head
        return json.loads(capsys.readouterr().out)

    return run


def kinds(record):
    return sorted((p["kind"], p["path"]) for p in record["problems"])


def newest(table):
    return open_log(table).head().snapshot


def own(table, key):
    return open_log(table).rows.get(key)


def set_own(table, key, **cells):
    log = open_log(table)
    found = {name.encode(): value for name, value in cells.items()}
    log.rows.put(key, found, log.head().snapshot)


def history_row(snapshot):
    return b"\0snapshot/%08d" % snapshot


def commit_rows(table, rows, operation="test.update"):
    """Makes a snapshot with some rows of the state, all of them known."""
    root, log = open_table(table), open_log(table)
    written = write_changes(root.files, "state", rows, rows["key"])
    base = manifest_at(root, log.head().snapshot)
    made = dataclasses.replace(base, snapshot=base.snapshot + 1, operation=operation, job="update")
    assert store_manifest(root, made, {"state": [written.file]})
    return written.file


def test_a_whole_table(original, fsck, capsys):
    record = fsck(original)
    assert record["problems"] == []
    assert record["clean"] is True
    components = manifest_of(original).components
    assert record["rows"] == {name: components[name].rows for name in ("state", "hosts")}
    assert components["state"].files > 2
    assert record["files"] == sum(c.files for n, c in components.items() if n not in CELLS)
    assert record["left"]["orphans"] == len(list(list_files(place_in(original, "changes"))))
    assert nutbeam("fsck", original) == 0
    assert f"{components['state'].rows} rows of state" in capsys.readouterr().out
    quick = fsck(original, "--quick")
    assert quick["clean"]
    assert "rows" not in quick
    assert fsck(original, "--repair")["clean"]
    assert newest(original) == record["snapshot"]


# Rows.


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
    assert nutbeam("fsck", table, "--threads", "1") == 3
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


def test_what_is_below_a_purge_or_undone_does_not_come_back(table, fsck):
    state = rows_of(table, "state")
    keys = state["key"].to_list()
    root, log = open_table(table), open_log(table)
    base = manifest_at(root, newest(table))
    # As a purge writes rows of others that named what is purged.
    rows = state.filter(pl.col("key") == keys[0])
    written = write_changes(root.files, "state", rows, rows["key"], purges=True)
    made = dataclasses.replace(
        base, snapshot=base.snapshot + 1, operation="x.purge", job="purge", counts={}
    )
    assert store_manifest(root, made, {"state": [written.file]})
    put(table, keys[0], BAD, made.snapshot)
    # As a rollback leaves it: a version of a snapshot that is undone.
    undone = rows_of_with(state, keys[1], 5.0)
    commit_rows(table, undone)
    back = dataclasses.replace(
        base, snapshot=made.snapshot + 2, job="rollback", operation="x.rollback",
        restores=made.snapshot,
    )  # fmt: skip
    rows = state.filter(pl.col("key") == keys[1])
    written = write_changes(root.files, "state", rows, rows["key"])
    assert store_manifest(root, back, {"state": [written.file]})
    put(table, keys[1], BAD, back.snapshot)
    # A row that was deleted and came anew.
    put(table, keys[2], b"", base.snapshot)
    put(table, keys[2], BAD, back.snapshot)
    assert len(fsck(table, code=3)["problems"]) == 3
    record = fsck(table, "--repair", "--drop")
    assert record["repaired"]["rows"] == {"state/deleted": 2, "state/given_back": 1}
    assert rows_of(table, "state").equals(state.filter(~pl.col("key").is_in([keys[0], keys[2]])))
    assert log.head().snapshot == back.snapshot + 1


def rows_of_with(state, key, score):
    return state.filter(pl.col("key") == key).with_columns(score=pl.lit(score))


def test_a_cell_of_a_newer_nutbeam_is_left_alone(table, fsck):
    key = rows_of(table, "state")["key"][0]
    put(table, key, b"\x80" + b"\0" * 7 + b"\x02" + b"new" * 30, newest(table))
    record = fsck(table, "--repair", "--drop", code=3)
    assert kinds(record) == [("cell", f"state/{key}")]
    assert "version 2" in record["problems"][0]["message"]
    assert "upgrade nutbeam" in record["problems"][0]["message"]
    assert "repaired" not in record


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


def test_no_bytes_make_more_than_a_damaged_cell():
    dice = random.Random(4)
    metadata = pa.array([[("a", "b")]], STATE.field("metadata").type)
    rows = pa.table({"key": ["k"], "etag": ["é"], "metadata": metadata})
    whole = encode(rows, STATE_CELL).column("cell")[0].as_py()
    for _ in range(2_000):
        cell = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            cell[dice.randrange(len(cell))] ^= 1 << dice.randrange(8)
        for bad in (bytes(cell), dice.randbytes(dice.randrange(1, 200))):
            table = pa.table({"key": [b"k", b"l"], "cell": [bad, whole]})
            assert set(damaged_cells(table, STATE_CELL)) <= {b"k"}


def test_a_number_of_rows_that_is_wrong_is_counted_anew(table, fsck):
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


def relist(table, name, change):
    """Commits another list of a component."""
    root = open_table(table)
    base = manifest_at(root, newest(table))
    component = store_files(root, name, change(load_files(root, base.components[name])))
    components = {**base.components, name: component}
    made = dataclasses.replace(
        base, snapshot=base.snapshot + 1, operation="relist", components=components
    )
    assert store_manifest(root, made)


def with_rows_of(files, left):
    gone = sum(f.rows for f in files) - sum(f.rows for f in left)
    return [dataclasses.replace(left[0], rows=left[0].rows + gone), *left[1:]]


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


@pytest.mark.parametrize("name", ["state", "hosts", "fetchlist", "documents", "seed_hosts"])
def test_a_list_that_is_lost_is_made_anew(table, fsck, name):
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


def test_a_list_that_cannot_be_made_anew(table, fsck):
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


def test_data_files_that_are_broken(table, web, fsck):
    components = manifest_of(table).components
    pages = next(n for n in components if n.endswith("/pages"))
    learnt = next(n for n in components if n.endswith("/learnt"))
    gone, cut = (load_files(open_table(table), components[n])[0].path for n in (pages, learnt))
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


# The history.


@pytest.mark.parametrize("which", ["newest", "middle"])
@pytest.mark.parametrize("damage", ["gone", "record", "commit"])
def test_a_row_of_the_history(table, web, fsck, which, damage, capsys):
    snapshot = newest(table)
    number = snapshot if which == "newest" else snapshot - 3
    before = own(table, history_row(number))
    if damage == "gone":
        open_log(table).rows.delete(history_row(number))
    else:
        log = open_log(table)
        log.rows.put(history_row(number), {damage.encode(): b'{"snapshot"'}, number)
    state = rows_of(table, "state")
    record = fsck(table, code=3)
    assert kinds(record) == [("manifest", f"snapshot/{number:08}")]
    if which == "newest" and damage != "commit":
        assert nutbeam("readdb", table, "--stats") == 3
        assert f"run nutbeam fsck {table}" in capsys.readouterr().err
    record = fsck(table, "--repair")
    assert record["clean"]
    if which == "newest":  # the manifest row has it, too
        assert own(table, history_row(number)) == before
        assert newest(table) == snapshot
    elif damage == "commit":  # the record says when it was made
        assert open_log(table).times()[number] == json.loads(before[b"record"])["time"]
        assert newest(table) == snapshot
    else:
        assert record["repaired"]["lost"] == [number]
        assert newest(table) == snapshot + 1
    assert rows_of(table, "state").equals(state)
    crawl(table, web)
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert fsck(table)["clean"]


def test_what_compact_has_deleted_is_no_gap(table, fsck):
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert len(open_log(table).snapshots()) < newest(table)
    assert fsck(table)["clean"]


def test_an_operation_has_read_what_is_not_there(table, fsck):
    # As after Bigtable's rows were restored from a backup, and the files were not.
    number = newest(table)
    pinned = begin(table, "inject", "ahead.inject")
    path = place_in(table, "operations") / "ahead.inject.json"
    record = json.loads(path.read_bytes()) | {"snapshot": number + 2}
    path.write_text(json.dumps(record))
    assert pinned.snapshot == number
    found = fsck(table, code=3)
    assert kinds(found) == [("manifest", f"snapshot/{number + n:08}") for n in (1, 2)]
    assert "an operation has read" in found["problems"][0]["message"]
    assert fsck(table, "--repair")["clean"]
    assert newest(table) == number + 3
    assert begin(table, "inject", "ahead.inject").snapshot == number + 3


@pytest.mark.parametrize("value", [b"{", b"[]", b'{"format": 1}', b""])
def test_the_manifest_row_is_damaged(table, value, capsys):
    set_own(table, HEAD_ROW, commit=value)
    for command in ("fsck", "generate", "readdb"):
        capsys.readouterr()
        assert nutbeam(command, table) == 3
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert "the manifest row is damaged" in line
        assert "backup" in line


# Commits that were cut off.


def cut_off(table, monkeypatch, *words):
    """Runs a job that dies behind its commit, before the first row is written."""
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotLog, "apply", die)
        assert nutbeam(*words) == 130
    head = open_log(table).head()
    assert head.applying
    return head, open_log(table).changes(head)


def die(*_):
    raise KeyboardInterrupt


MORE = "http://h0.example.com/more"
OTHERS = (MORE, "http://www.example.org/")


def test_a_commit_that_was_cut_off_is_no_damage_and_can_be_finished(
    table, fsck, monkeypatch, capsys
):
    head, _ = cut_off(table, monkeypatch, "inject", table, MORE)
    record = fsck(table)
    assert (record["clean"], record["unfinished"]) == (True, head.snapshot)
    assert record["left"]["orphans"] == fsck(table, "--quick")["left"]["orphans"]
    assert nutbeam("fsck", table) == 0
    assert f"snapshot {head.snapshot} is not wholly applied" in capsys.readouterr().out
    record = fsck(table, "--repair")
    assert (record["clean"], record["finished"]) == (True, head.snapshot)
    assert "unfinished" not in record
    assert MORE in statuses_of(table)
    assert newest(table) == head.snapshot


def test_the_first_commit_of_all_was_cut_off(tables, fsck, monkeypatch):
    table = tables.fresh()
    cut_off(table, monkeypatch, "inject", table, MORE)
    assert fsck(table)["unfinished"] == 1
    assert fsck(table, "--repair")["clean"]
    assert MORE in statuses_of(table)


@pytest.mark.parametrize("damage", first(2, ["gone", "a bit", "cut", "garbage"]))
def test_a_file_of_changes_is_lost(table, web, fsck, monkeypatch, capsys, damage):
    head, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    state = set(rows_of(table, "state")["key"])
    keys = {c.path: set(pl.read_parquet(place_in(table, c.path))["key"]) for c in changes}
    path, *others = (c.path for c in changes if c.component == "state")
    spoil(place_in(table, path), damage)
    # Nothing can be committed, and that is said.
    for command in ("generate", "compact"):
        capsys.readouterr()
        assert nutbeam(command, table) == 3
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert path in line
        assert f"run nutbeam fsck {table}" in line
    assert nutbeam("readdb", table, "--stats") == 0  # readers see the one before
    record = fsck(table, code=3)
    assert kinds(record) == [("changes", path)]
    assert f"without it snapshot {head.snapshot} cannot be finished" in str(record)
    assert kinds(fsck(table, "--repair", code=3)) == [("changes", path)]
    assert nutbeam("fsck", table, "--repair") == 3
    advice = capsys.readouterr().out.splitlines()[-1]
    assert advice == (
        "1 problems are left; restore the files from a copy, or leave them out with --drop"
    )
    assert open_log(table).head() == head
    record = fsck(table, "--repair", "--drop")
    assert record["clean"]
    assert record["finished"] == head.snapshot
    assert record["repaired"]["dropped"] == [path]
    assert newest(table) == head.snapshot + 1
    manifest = manifest_of(table)
    assert (manifest.job, manifest.counts["dropped"]) == ("fsck", 1)
    # What could be read is there.
    assert set(rows_of(table, "state")["key"]) == state.union(*(keys[path] for path in others))
    assert "org.example.www" in rows_of(table, "hosts")["key"].to_list()
    crawl(table, web)
    assert fsck(table)["clean"]


def spoil(path, damage):
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-10])
    elif damage == "garbage":  # its end is whole
        data = bytearray(path.read_bytes())
        data[4:40] = bytes(36)
        path.write_bytes(data)
    else:
        path.write_bytes(next(unnoticed(path.read_bytes())))


def unnoticed(data):
    """Yields a file with one bit flipped such that a reader gets other rows, and no error."""
    right = pl.read_parquet(data)
    for at in range(4, len(data)):
        flipped = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with contextlib.suppress(pl.exceptions.PolarsError, OSError):
            if not pl.read_parquet(flipped).equals(right):
                yield flipped


def test_the_rows_that_are_lost_are_counted(table, fsck, monkeypatch):
    _, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    paths = [c.path for c in changes if c.component == "state"]
    for path in paths:
        spoil(place_in(table, path), "gone")
    record = fsck(table, "--repair", "--drop")
    assert record["repaired"]["rows"] == {"state/lost": 2}
    assert record["repaired"]["dropped"] == paths


@pytest.mark.parametrize("step", ["leave_out", "apply", "finish", "store"])
def test_a_repair_that_was_cut_off_is_repeated(table, fsck, monkeypatch, step):
    head, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    path = next(c.path for c in changes if c.component == "state")
    place_in(table, path).unlink()
    whole = getattr(SnapshotLog, step)

    def done_and_dead(*args):
        whole(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotLog, step, done_and_dead)
        assert nutbeam("fsck", table, "--repair", "--drop") == 130
    record = fsck(table, "--repair", "--drop")
    assert record["clean"]
    assert newest(table) == head.snapshot + 1
    assert manifest_of(table).counts["dropped"] == 1
    assert fsck(table)["clean"]


def test_who_rolls_forward_at_the_same_time_does_no_harm(table, fsck, monkeypatch):
    head, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    path = next(c.path for c in changes if c.component == "state")
    file = place_in(table, path)
    data = file.read_bytes()
    file.unlink()
    leave_out = SnapshotLog.leave_out

    def another_first(log, *args):
        file.write_bytes(data)  # it was only out of reach
        open_log(table).roll_forward()
        return leave_out(log, *args)

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotLog, "leave_out", another_first)
        assert fsck(table, "--repair", "--drop")["clean"]
    assert newest(table) == head.snapshot
    assert MORE in statuses_of(table)


def test_left_over_files_of_changes(table, fsck):
    before = fsck(table)["left"]["orphans"]
    state = rows_of(table, "state")
    write_changes(open_table(table).files, "state", state.head(2))
    assert fsck(table)["left"]["orphans"] == before + 1
    # What a purge has written says until when old versions are kept.
    write_changes(open_table(table).files, "state", state.head(2), purges=True)
    assert fsck(table)["left"]["orphans"] == before + 1


def test_all_damages_at_once(table, web, fsck, monkeypatch):
    head, changes = cut_off(table, monkeypatch, "inject", table, *OTHERS)
    for change in changes:
        place_in(table, change.path).unlink()
    components = manifest_of(table).components
    place_in(table, components["state"].list).unlink()
    put(table, rows_of(table, "hosts")["key"][0], BAD, head.snapshot - 1, HOST_CELL)
    open_log(table).rows.delete(history_row(head.snapshot - 3))
    fetchlist = next(n for n in components if n.endswith("/outcome"))
    place_in(table, load_files(open_table(table), components[fetchlist])[0].path).unlink()
    found = fsck(table, code=3)
    assert {p["kind"] for p in found["problems"]} >= {
        "changes",
        "list",
        "cell",
        "manifest",
        "missing",
    }
    assert fsck(table, "--repair", "--drop")["clean"]
    crawl(table, web)
    assert nutbeam("readdb", table, "--stats") == 0
    assert fsck(table)["clean"]


@pytest.mark.parametrize(("commits", "code"), [(1, 0), (4, 3)])
def test_commits_while_rows_are_read(table, monkeypatch, capsys, commits, code):
    state, snapshot = rows_of(table, "state"), newest(table)
    ranges = BigtableTable.ranges

    def late(self, number):
        while newest(table) < snapshot + commits:
            commit_rows(table, state.head(1).with_columns(score=pl.lit(float(newest(table)))))
        return ranges(self, number)

    monkeypatch.setattr(BigtableTable, "ranges", late)
    capsys.readouterr()
    assert nutbeam("fsck", table) == code
    captured = capsys.readouterr()
    if code:
        assert f"snapshot {snapshot} of {table} is too old" in captured.err
    else:
        assert f"snapshot {snapshot} is whole" in captured.out


def test_after_a_rollback_and_a_purge(table, fsck):
    snapshot, state = newest(table), rows_of(table, "state")
    key = state["key"][0]
    commit_rows(table, rows_of_with(state, key, 7.0))
    assert nutbeam("inject", table, MORE) == 0
    assert nutbeam("rollback", table, "--to", snapshot) == 0
    assert fsck(table)["clean"]
    put(table, key, BAD, newest(table))  # what is below was undone
    assert fsck(table, "--repair", "--drop")["repaired"]["rows"] == {"state/given_back": 1}
    assert rows_of(table, "state").equals(state)
    assert nutbeam("purge", table, "--host", "h1.example.com", "--now") == 0
    record = fsck(table)
    assert record["clean"]
    assert record["rows"]["state"] < len(state)
