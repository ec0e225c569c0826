"""In Bigtable, a component that a table does not have yet gets a place, or one line says why not."""

import dataclasses

import pytest
from crawling import nutbeam, tree
from marking import MARKS_KIND, ROWS, mark, values_of

from nutbeam.io.table.opening import open_table
from nutbeam.policy.components.declaration import RowLayout
from nutbeam.policy.components.kinds import KINDS


@pytest.fixture
def declare(monkeypatch):
    """Declares the marks in rows, when a test calls it."""
    kind = dataclasses.replace(MARKS_KIND, layout=RowLayout.ROWS)
    return lambda: monkeypatch.setitem(KINDS, "marks", kind)


@pytest.mark.bigtable
def test_a_table_that_is_older_than_the_component_gets_a_place_for_it(bigtable, tmp_path, declare):
    table = bigtable.make(tmp_path / "files")
    assert nutbeam("inject", table, "http://a.com/05") == 0
    declare()
    assert nutbeam("fsck", table) == 0  # which changes nothing
    assert "marks" not in families_of(table)
    mark(table, ROWS, "first")
    assert families_of(table)["marks"] == families_of(table)["s"]
    assert values_of(table) == ROWS
    assert nutbeam("fsck", table) == 0


def families_of(table):
    from nutbeam.io.bigtable.admin import describe_table  # late: Google's libraries take a second

    return describe_table(open_table(table).address).families


@pytest.mark.bigtable
def test_a_missing_permission_to_add_a_column_family_is_reported(
    bigtable, tmp_path, declare, capsys
):
    from bigtable_emulator import Counter  # late: Google's libraries take a second

    with Counter(bigtable.host) as server:
        table = bigtable.make(tmp_path / "files", server.host)
        assert nutbeam("inject", table, "http://a.com/05") == 0
        before = tree(table)
        declare()
        server.forbidden = "/ModifyColumnFamilies"
        capsys.readouterr()
        assert nutbeam("inject", table, "http://a.com/06") == 3
        err = capsys.readouterr().err
        (said,) = [line for line in err.splitlines() if "column family 'marks'" in line]
        assert "you may not add it: run one job as an account with roles/bigtable.admin" in said
        assert "Traceback" not in err
        assert tree(table) == before


@pytest.mark.bigtable
def test_a_place_that_keeps_too_few_versions_is_refused(bigtable, tmp_path, declare, capsys):
    from nutbeam.io.bigtable import admin  # late: Google's libraries take a second

    table = bigtable.make(tmp_path / "files")
    address = open_table(table).address
    change = admin.types.ModifyColumnFamiliesRequest.Modification(id="marks", create={})
    admin.open_admin(address).modify_column_families(name=address.name, modifications=[change])
    declare()
    assert nutbeam("inject", table, "http://a.com/06") == 3
    assert "column family 'marks' of" in (err := capsys.readouterr().err)
    assert "must keep 4 versions of a cell, got another rule" in err
