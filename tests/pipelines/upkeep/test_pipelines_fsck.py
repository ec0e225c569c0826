"""fsck finds what is wrong with a table's files, and repairs it without deleting anything."""

import json
import random
import re
import shutil

import polars as pl
import pyarrow.parquet as pq
import pytest
from crawling import (
    assert_whole,
    crawl,
    files_of,
    latest_snapshot,
    manifest_at,
    manifest_of,
    nutbeam,
    open_batches,
    reach,
    state_of,
    tree,
)
from short_form import first

from nutbeam.io.table.folder_table import manifest_path
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets import tablet_writer
from nutbeam.io.tablets.file_lists import load_files, store_files
from nutbeam.policy.schema import STATE, conform
from nutbeam.web.base.errors import UserError
from nutbeam.web.simweb.server import SimWeb


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=2, pages=8, seed=7, crawl_delay=0) as server:
        yield server


@pytest.fixture(scope="module")
def original(web, tmp_path_factory):
    """A table with several tablets and a batch in each phase; tests only read it."""
    folder = tmp_path_factory.mktemp("fsck") / "table"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tablet_writer, "TABLET_ROWS", 8)
        assert nutbeam("crawl", folder, *web.seeds, "--rounds", "2", *reach(web)) == 0
        open_batches(folder, web, 2)
    return folder


@pytest.fixture
def table(original, tmp_path):
    return shutil.copytree(original, tmp_path / "table")


@pytest.fixture
def fsck(capsys):
    """Runs fsck and returns its record; checks that it changes and deletes nothing."""

    def run(folder, *words, code=0):
        before = tree(folder, ignore=())
        capsys.readouterr()
        assert nutbeam("fsck", folder, *words, "--format", "json") == code
        after = tree(folder, ignore=())
        assert {name: after.get(name) for name in before} == before
        if "--repair" not in words:
            assert after == before
        return json.loads(capsys.readouterr().out)

    return run


def kinds(record):
    return sorted((p["kind"], p["path"]) for p in record["problems"])


def newest_manifest(table):
    return manifest_path(table, latest_snapshot(table))


def flip(path, at=None):
    """Turns a bit of a file around."""
    data = bytearray(path.read_bytes())
    data[len(data) // 3 if at is None else at] ^= 0x10
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def remove(path):
    path.unlink()


def test_a_whole_table(original, fsck, capsys):
    record = fsck(original)
    assert record["clean"] is True
    assert record["problems"] == []
    assert record["files"] == sum(c.files for c in manifest_of(original).components.values())
    assert record["left"]["leases"] > 0
    assert nutbeam("fsck", original) == 0
    assert "is whole" in capsys.readouterr().out
    assert fsck(original, "--quick")["clean"] is True


def test_no_table(tmp_path, capsys):
    assert nutbeam("fsck", tmp_path / "none") == 2
    assert "no web table at" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


COMPONENTS = ("state", "hosts", "fetchlist", "pages", "learnt", "documents", "outcome")


def file_of(table, kind):
    manifest = manifest_of(table)
    names = [n for n in manifest.components if n.rpartition("/")[2] == kind]
    return next(path for name in sorted(names) for path in files_of(table, name))


@pytest.mark.parametrize(
    ("damage", "word"),
    [(remove, "missing"), (cut, "size"), (flip, "damaged")],
    ids=["missing", "cut", "flipped"],
)
@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_data_file_that_is_not_whole(table, fsck, kind, damage, word):
    path = file_of(table, kind)
    damage(path)
    inside = str(path.relative_to(table))
    assert kinds(fsck(table, code=3)) == [(word, inside)]
    # What cannot be repaired is not dropped, unless that is asked for.
    assert kinds(fsck(table, "--repair", code=3)) == [(word, inside)]
    snapshot = latest_snapshot(table)
    record = fsck(table, "--repair", "--drop")
    assert record["repaired"]["dropped"] == [inside]
    assert latest_snapshot(table) == snapshot + 1
    assert fsck(table)["clean"]
    # That was a snapshot, too: when the file is there again, it can be gone back behind.
    assert nutbeam("readdb", table) == 0
    assert nutbeam("rollback", table, "--to", snapshot) == (0 if damage is flip else 3)


def test_after_a_drop_every_command_works(table, web, fsck, tmp_path):
    for kind in COMPONENTS:
        flip(file_of(table, kind))
    assert len(fsck(table, code=3)["problems"]) == len(COMPONENTS)
    assert fsck(table, "--repair", "--drop")["clean"]
    assert nutbeam("pages", table, "-o", tmp_path / "pages.jsonl") == 0
    assert nutbeam("inject", table, *web.seeds) == 0
    crawl(table, web)
    assert fsck(table)["clean"]
    assert_whole(table, web.site)


def write(table, path, rows):
    """Writes other rows under the name of a live file, with its size in the list made right."""
    pq.write_table(rows, path)
    manifest = manifest_of(table)
    name = str(path.relative_to(table).parent)
    files = load_files(table, manifest.components[name])
    import dataclasses

    files = [
        dataclasses.replace(f, bytes=path.stat().st_size, crc32=None)
        if table / f.path == path
        else f
        for f in files
    ]
    component = store_files(table, name, files)
    record = json.loads(newest_manifest(table).read_text())
    record["components"][name] = vars(component)
    record.pop("digest")
    newest_manifest(table).write_text(json.dumps(record))


def other_first(rows):
    keys = ["a:http/", *rows["key"].to_pylist()[1:]]
    return rows.set_column(0, "key", [keys])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda rows: rows.take([*range(len(rows))][::-1]), "order"),
        (lambda rows: rows.slice(1), "rows"),
        (other_first, "range"),
        (lambda rows: rows.take([0, *range(len(rows) - 2), len(rows) - 1]), "order"),
    ],
    ids=["unsorted", "too few", "range", "twice"],
)
def test_rows_that_are_not_what_the_list_says(table, fsck, change, word):
    path = files_of(table, "state")[1]
    rows = change(pq.read_table(path))
    write(table, path, conform(rows, STATE))
    assert kinds(fsck(table, code=3)) == [(word, str(path.relative_to(table)))]


def test_tablets_whose_keys_meet(table, fsck):
    import dataclasses

    manifest = manifest_of(table)
    first, second, *rest = load_files(table, manifest.components["state"])
    copy = dataclasses.replace(first, path="state/copy.parquet")
    shutil.copy(table / first.path, table / copy.path)
    component = store_files(table, "state", [first, copy, second, *rest])
    record = json.loads(newest_manifest(table).read_text())
    record["components"]["state"] = vars(component)
    record.pop("digest")
    newest_manifest(table).write_text(json.dumps(record))
    assert [kind for kind, _ in kinds(fsck(table, code=3))] == ["overlap"]


# Lists.


@pytest.mark.parametrize("damage", [remove, cut, flip])
@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_list_is_made_anew_from_its_files(table, original, fsck, kind, damage):
    manifest = manifest_of(table)
    name = max(n for n in manifest.components if n.rpartition("/")[2] == kind)
    damage(table / manifest.components[name].list)
    record = fsck(table, code=3)
    assert [(p["kind"], p["component"]) for p in record["problems"]] == [("list", name)]
    repaired = fsck(table, "--repair")["repaired"]
    assert repaired["rebuilt"] == [name]
    assert repaired["from"] == manifest.snapshot
    right = load_files(original, manifest_of(original).components[name])
    found = load_files(table, manifest_of(table).components[name])
    assert found == right  # zone maps, partitions and places in the batch, too


def test_a_list_that_cannot_be_made_anew_sends_the_table_back(table, fsck):
    manifest = manifest_of(table)
    lost = next(
        n for n in range(manifest.snapshot, 0, -1)
        if manifest_at(table, n).components["state"] != manifest.components["state"]
    )  # fmt: skip
    list_of = manifest.components["state"].list
    files_of(table, "state")[0].unlink()
    (table / list_of).unlink()
    record = fsck(table, "--repair")
    assert record["repaired"]["from"] == lost
    assert manifest_of(table).restores == lost
    assert fsck(table)["clean"]


# Manifests.


def half(path):
    path.write_bytes(path.read_bytes()[:100])


def digit(path):
    """Changes a number, so that it is good JSON still."""
    text = path.read_text()
    path.write_text(text.replace('"rows": ', '"rows": 1', 1))


@pytest.mark.parametrize("damage", [half, digit, remove])
def test_without_its_newest_manifest_a_table_goes_back_to_the_one_before(
    table, web, original, fsck, damage
):
    newest = latest_snapshot(table)
    nutbeam("dedup", table, "--operation", "later")  # an operation that has read it
    assert latest_snapshot(table) == newest + 1
    assert nutbeam("generate", table, "--top_n", 1) == 0
    for number in (newest + 1, newest + 2):
        damage(manifest_path(table, number))
    assert [kind for kind, _ in kinds(fsck(table, code=3))] == ["manifest"] * 2
    record = fsck(table, "--repair")
    assert record["repaired"]["from"] == newest
    assert state_of(table).equals(state_of(original))
    assert fsck(table)["clean"]
    assert crawl(table, web) == 0
    assert fsck(table)["clean"]
    assert_whole(table, web.site)


def test_nobody_works_on_without_the_newest_manifest(table, web, fsck, capsys):
    path = newest_manifest(table)
    before = latest_snapshot(table)
    path.unlink()
    capsys.readouterr()
    assert nutbeam("inject", table, "http://new.example.com/") == 3
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert f"manifest is missing: {path}: run nutbeam fsck {table}" in line
    assert kinds(fsck(table, code=3)) == [("manifest", f"manifest/{path.name}")]
    assert fsck(table, "--repair")["repaired"]["lost"] == [before]
    assert nutbeam("inject", table, "http://new.example.com/") == 0
    assert fsck(table)["clean"]


@pytest.mark.parametrize("damage", [half, digit, remove])
def test_an_old_manifest(table, web, fsck, damage):
    damage(manifest_path(table, 3))
    assert [kind for kind, _ in kinds(fsck(table, code=3))] == ["manifest"]
    record = fsck(table, "--repair")
    assert record["repaired"]["lost"] == [3]
    assert fsck(table)["clean"]
    assert nutbeam("generate", table, "--top_n", 1) == 0
    assert fsck(table)["clean"]  # the snapshots that follow know of it
    assert nutbeam("history", table, "--last", "0") == 0


def test_a_manifest_under_another_name_is_no_snapshot(table, fsck):
    newest, good = latest_snapshot(table), newest_manifest(table)
    shutil.copy(good, table / "manifest" / f"{newest}.json")
    shutil.copy(good, table / "manifest" / f"0{newest + 1:08d}.json")
    (table / "manifest" / f"{newest + 1}.json").write_text("{")
    assert latest_snapshot(table) == newest
    assert fsck(table)["clean"]
    assert nutbeam("generate", table, "--top_n", 1) == 0
    assert latest_snapshot(table) == newest + 1


def test_a_newer_format_is_not_repaired(table, fsck, capsys):
    path = newest_manifest(table)
    path.write_text(re.sub('"format": [0-9]+', '"format": 99', path.read_text()))
    (problem,) = fsck(table, code=3)["problems"]
    assert "upgrade nutbeam" in problem["message"]
    capsys.readouterr()
    assert nutbeam("fsck", table, "--repair") == 3
    assert "upgrade nutbeam" in capsys.readouterr().err


def test_nothing_is_left_to_go_back_to(table, capsys):
    for number in open_table(str(table)).snapshots():
        half(manifest_path(table, number))
    assert nutbeam("fsck", table) == 3
    assert nutbeam("fsck", table, "--repair") == 3
    assert "no snapshot of" in capsys.readouterr().err


# What lies about.


def test_what_lies_about_is_counted_and_no_error(table, fsck, capsys):
    before = fsck(table)["left"]
    shutil.copy(files_of(table, "state")[0], table / "state" / "orphan.parquet")
    (table / "state" / ".x.parquet.writing").write_bytes(b"half")
    after = fsck(table)["left"]
    assert after["orphans"] == before["orphans"] + 1
    assert after["temporary"] == before["temporary"] + 1
    assert nutbeam("fsck", table) == 0
    assert "left over, harmless: " in capsys.readouterr().out


def test_drop_needs_repair(original, capsys):
    assert nutbeam("fsck", original, "--drop") == 2
    assert "--drop needs --repair" in capsys.readouterr().err


# Faults that come by chance: whatever is hit, the table says so or reads the same.


@pytest.mark.parametrize("seed", first(6, range(20)))
def test_a_bit_that_flips_anywhere_is_found_or_harmless(table, fsck, seed, capsys):
    dice = random.Random(seed)
    manifest = manifest_of(table)
    live = [table / c.list for c in manifest.components.values()]
    live += [p for name in manifest.components for p in files_of(table, name)]
    path = dice.choice([newest_manifest(table), *live])
    state = state_of(table)
    at = dice.randrange(path.stat().st_size)
    flip(path, at)
    code = nutbeam("fsck", table)
    out = capsys.readouterr().out
    if code == 0:  # such as a number that only statistics have
        assert state_of(table).equals(state)
        return
    assert code == 3
    assert path.name in out, (path, at, out)
    assert nutbeam("fsck", table, "--repair", "--drop") == 0
    assert nutbeam("readdb", table) == 0


@pytest.mark.parametrize("seed", first(6, range(24)))
def test_a_bit_that_flips_stops_a_job_with_one_line_or_not_at_all(table, web, seed, capsys):
    """What a job reads may be damaged in a way that only checksums tell: fsck is for that."""
    dice = random.Random(seed)
    kind = COMPONENTS[seed % len(COMPONENTS)]
    path = file_of(table, kind)
    flip(path, dice.randrange(path.stat().st_size))
    files = tree(table)
    for words in (
        ["readdb", table],
        ["pages", table, "-o", table.parent / "pages.jsonl"],
        ["generate", table, "--top_n", 2],
        ["fetch", table, *reach(web)],
        ["parse", table],
        ["updatedb", table],
        ["dedup", table],
        ["compact", table, "--full", "true"],
    ):
        snapshot = latest_snapshot(table)
        capsys.readouterr()
        code = nutbeam(*words)
        error = capsys.readouterr().err
        if code == 3:
            assert error.count("\n") == 1, error
            assert "internal error" not in error, (path, error)
            assert path.name in error, (path, error)
            assert error.endswith(f": run nutbeam fsck {table}\n"), error
            assert latest_snapshot(table) == snapshot
        else:
            assert (code in (0, 1), error) == (True, "")
        after = tree(table)
        assert {name: after.get(name) for name in files} == files
    assert nutbeam("fsck", table) == 3  # nobody has passed the damage on under a new checksum


@pytest.mark.parametrize(
    ("kind", "words"),
    [("documents", ["pages"]), ("state", ["pages"]), ("state", ["export"]),
     ("pages", ["export", "--what", "pages"])],
)  # fmt: skip
def test_what_is_damaged_is_not_passed_on(table, tmp_path, capsys, kind, words):
    names = [name for name in manifest_of(table).components if name.endswith(kind)]
    path = next(path for name in names for path in files_of(table, name))
    data = path.read_bytes()
    for at in range(4, len(data)):  # a bit of which no reader knows
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            pl.read_parquet(path)
        except (pl.exceptions.PolarsError, OSError):
            continue
        break
    capsys.readouterr()
    output = tmp_path / "out.jsonl"
    assert nutbeam(words[0], table, "-o", output, *words[1:]) == 3
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert f"{path}: its checksum is another: run nutbeam fsck {table}" in line
    assert not output.exists()


def test_errors_of_commands_name_the_cure(table, capsys):
    path = files_of(table, "state")[0]
    cut(path)
    for words in (
        ["generate"],
        ["pages", "-o", table.parent / "x.jsonl"],
        ["inject", "http://h0.example.com/n"],
    ):
        capsys.readouterr()
        assert nutbeam(words[0], table, *words[1:]) == 3
        error = capsys.readouterr().err
        assert str(path) in error
        assert error.endswith(f": run nutbeam fsck {table}\n"), error
    newest_manifest(table).write_bytes(b"{}")
    with pytest.raises(UserError, match=f"run nutbeam fsck {table}"):
        manifest_at(table, latest_snapshot(table))
