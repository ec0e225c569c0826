"""A component of a newer nutbeam is left alone by one that does not declare it."""

import dataclasses
import json

import pytest
from crawling import nutbeam, place_in
from marking import MARKS_KIND, ROWS, mark, values_of

from nutbeam.io.table.opening import open_table
from nutbeam.policy.components.declaration import RowLayout
from nutbeam.policy.components.kinds import KINDS


@pytest.fixture(params=["folder", pytest.param("bigtable", marks=pytest.mark.bigtable)])
def table(request, tmp_path, monkeypatch):
    """A table with marks, which nothing declares any more."""
    table = str(tmp_path / "table")
    if request.param == "bigtable":
        table = request.getfixturevalue("bigtable").make(tmp_path / "files")
    assert nutbeam("inject", table, "http://a.com/05") == 0
    with declared(monkeypatch):
        mark(table, ROWS, "first")
    return table


in_rows = pytest.mark.parametrize("table", ["bigtable"], indirect=True)


def declared(monkeypatch):
    """Declares the marks in rows until the end of a block."""
    context = monkeypatch.context()

    class Declared:
        def __enter__(self):
            patch = context.__enter__()
            patch.setitem(KINDS, "marks", dataclasses.replace(MARKS_KIND, layout=RowLayout.ROWS))

        def __exit__(self, *error):
            context.__exit__(*error)

    return Declared()


def assert_intact(table, monkeypatch):
    with declared(monkeypatch):
        assert values_of(table) == ROWS
        assert nutbeam("fsck", table) == 0


def test_fsck_and_its_repair_leave_it_alone(table, monkeypatch, capsys):
    capsys.readouterr()
    assert nutbeam("fsck", table) == 0
    said = capsys.readouterr().out
    assert ("marks: belongs to a newer nutbeam, not checked" in said) == (":" in table)
    assert "--drop" not in said
    assert nutbeam("fsck", table, "--repair", "--drop") == 0
    assert_intact(table, monkeypatch)


@in_rows
def test_fsck_does_not_drop_it_when_its_list_is_lost(table, capsys):
    with_list = open_table(table)
    path = manifest_list(with_list)
    place_in(table, path).unlink()
    capsys.readouterr()
    assert nutbeam("fsck", table, "--repair", "--drop") == 3
    assert manifest_list(with_list) == path
    said = capsys.readouterr().out
    assert "1 problem; upgrade nutbeam" in said
    assert "--drop" not in said


def manifest_list(table):
    return json.loads(table.record(table.latest_snapshot()))["components"]["marks"]["list"]


def test_purge_refuses_in_one_line(table, monkeypatch, capsys):
    capsys.readouterr()
    assert nutbeam("purge", table, "--url", "http://a.com/05") == 3
    err = capsys.readouterr().err
    (said,) = [line for line in err.splitlines() if "upgrade nutbeam" in line]
    assert "purge: marks belongs to a newer nutbeam" in said
    assert "Traceback" not in err
    assert_intact(table, monkeypatch)


def test_copy_has_it_or_refuses(table, tmp_path, monkeypatch, capsys):
    copy = str(tmp_path / "copy")
    if ":" not in table:
        assert nutbeam("copy", table, copy) == 0
        assert_intact(copy, monkeypatch)
        return
    capsys.readouterr()
    assert nutbeam("copy", table, copy) == 3
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "copy").exists()


@in_rows
def test_rollback_refuses(table, monkeypatch):
    assert nutbeam("rollback", table, "--to", "1") == 3
    assert_intact(table, monkeypatch)
