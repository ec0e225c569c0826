"""fsck finds manifests that are damaged or missing, and the table goes on after a repair."""

import re
import shutil

import pytest
from crawling import (
    assert_whole,
    crawl,
    latest_snapshot,
    nutbeam,
    state_of,
)
from damaging import kinds, newest_manifest, remove

from nutbeam.io.table.folder_table import manifest_path
from nutbeam.io.table.opening import open_table


def half(path):
    path.write_bytes(path.read_bytes()[:100])


def digit(path):
    """Changes a number, so that it is good JSON still."""
    text = path.read_text()
    path.write_text(text.replace('"rows": ', '"rows": 1', 1))


@pytest.mark.long
@pytest.mark.few(1)
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


def test_jobs_stop_without_the_newest_manifest(table, web, fsck, capsys):
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


@pytest.mark.few(1)
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


@pytest.mark.long
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
