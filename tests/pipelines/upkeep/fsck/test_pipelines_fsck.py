"""fsck finds damaged data files and lists, and repairs a table without deleting anything."""

import json
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
    state_of,
)
from damaging import COMPONENTS, cut, file_of, flip, kinds, newest_manifest, remove

from nutbeam.io.tablets.file_lists import load_files, store_files
from nutbeam.policy.components.schema import STATE, conform
from nutbeam.web.base.clock import now_ms
from nutbeam.web.urls.row_keys import from_key


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


@pytest.mark.few(1)
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
    # Rows of the state name files of pages and documents: a second snapshot has them without these names.
    named = kind in ("pages", "documents")
    assert latest_snapshot(table) == snapshot + 1 + named
    assert fsck(table)["clean"]
    # That was a snapshot, too: when the file is there again, one can return to before it.
    assert nutbeam("readdb", table) == 0
    assert nutbeam("rollback", table, "--to", snapshot) == (0 if damage is flip else 3)


@pytest.mark.long
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


@pytest.mark.long
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
def test_rows_that_differ_from_the_list_are_a_problem(table, fsck, change, word):
    path = files_of(table, "state")[1]
    rows = change(pq.read_table(path))
    write(table, path, conform(rows, STATE))
    assert kinds(fsck(table, code=3)) == [(word, str(path.relative_to(table)))]


def test_tablets_with_overlapping_keys_are_a_problem(table, fsck):
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


@pytest.mark.long
@pytest.mark.few(5)
@pytest.mark.parametrize("damage", [remove, cut, flip])
@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_list_is_rebuilt_from_its_files(table, original, fsck, kind, damage):
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


def test_a_list_that_cannot_be_rebuilt_rolls_the_table_back(table, fsck):
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


# Rows that name files.


def take_out_of_list(table, kind):
    """Takes a file that rows of the state name out of its list; returns its component and those rows."""
    manifest, column = manifest_of(table), kind.removesuffix("s")
    state = state_of(table).drop_nulls(column)
    path = state.get_column(column).min()
    name = path.rpartition("/")[0]
    files = [f for f in load_files(table, manifest.components[name]) if f.path != path]
    record = json.loads(newest_manifest(table).read_text())
    record["components"][name] = vars(store_files(table, name, files))
    record.pop("digest")
    newest_manifest(table).write_text(json.dumps(record))
    return name, state.filter(state.get_column(column) == path)


@pytest.mark.parametrize("kind", ["pages", "documents"])
def test_rows_that_name_a_file_in_no_list(table, web, fsck, kind):
    name, rows = take_out_of_list(table, kind)
    assert fsck(table, "--quick")["clean"]
    (problem,) = fsck(table, code=3)["problems"]
    assert (problem["kind"], problem["path"]) == ("lost", name)
    number = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    url = from_key(rows.get_column("key").min())
    assert f"that {number} of the state name, such as {url}" in problem["message"]
    assert fsck(table, "--repair", code=3)["problems"] == [problem]
    record = fsck(table, "--repair", "--drop")
    assert record["repaired"]["rows"] == {"lost_files": len(rows)}
    changed = state_of(table).filter(pl.col("key").is_in(rows.get_column("key").implode()))
    assert changed.get_column(kind.removesuffix("s")).null_count() == len(rows)
    assert changed.get_column("signature").null_count() == len(rows)
    assert (changed.get_column("fetch_time") <= now_ms()).all()  # they come again


# Leftover files.


def test_leftover_files_are_counted_and_are_no_error(table, fsck, capsys):
    before = fsck(table)["left"]
    shutil.copy(files_of(table, "state")[0], table / "state" / "0123456789abcdef.parquet")
    (table / "state" / ".x.parquet.0123456789abcdef").write_bytes(b"half")
    after = fsck(table)["left"]
    assert after["orphans"] == before["orphans"] + 1
    assert after["temporary"] == before["temporary"] + 1
    assert nutbeam("fsck", table) == 0
    assert "left over, harmless: " in capsys.readouterr().out


def test_drop_needs_repair(original, capsys):
    assert nutbeam("fsck", original, "--drop") == 2
    assert "--drop needs --repair" in capsys.readouterr().err
