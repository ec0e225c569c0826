"""Components in plain files that only these tests declare go through all commands, on both tables.

One belongs to the table, one to a batch; each is a list of files without keys in order.
"""

from pathlib import Path

import pytest
from crawling import files_of, manifest_of, nutbeam
from frames import frame_of
from marking import MARKS

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.written import Written
from nutbeam.policy.components.declaration import Kind, Owner
from nutbeam.policy.components.kinds import KINDS

pytestmark = pytest.mark.folder_first

FIRST, SECOND = {"com.a:http/01": 1, "com.a:http/02": 2}, {"com.a:http/03": 3}


@pytest.fixture(params=["plain", "batches/b/batched"])
def component(request, monkeypatch):
    """The name of a component whose kind is declared here."""
    above, _, name = request.param.rpartition("/")
    monkeypatch.setitem(KINDS, name, Kind(name, MARKS, owner=Owner.BATCH if above else Owner.TABLE))
    return request.param


@pytest.fixture(params=["folder", "bigtable"])
def table(request, tmp_path, component):
    """A table with a seed, and two snapshots that each add a file to the component."""
    table = str(tmp_path / "table")
    if request.param == "bigtable":
        table = request.getfixturevalue("bigtable").make(tmp_path / "files")
    assert nutbeam("inject", table, "http://a.com/05") == 0
    add_file(table, component, FIRST)
    add_file(table, component, SECOND)
    return table


def add_file(table, component, marks, *, replaces=False):
    """Commits a file of marks, as a job of this component would; ``replaces`` drops the others."""
    operation = begin(table, "mark", f"after{manifest_of(table).snapshot}.mark")
    before = tuple(file.path for file in operation.files(component)) if replaces else ()
    frame = frame_of(MARKS.schema, *({"key": key, "mark": n} for key, n in marks.items()))
    files = write_bases(operation.table.files, component, [frame], MARKS.schema)
    commit(operation, [Written(component, files, before)])


def marks_of(table, component):
    files = files_of(table, component)
    return dict(collect(scan(files, MARKS.schema)).select("key", "mark").iter_rows())


def break_byte(path):
    """Changes a byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.few(2)
def test_compact_keeps_its_files_and_deletes_replaced_ones(table, component):
    old = files_of(table, component)
    assert len(old) == 2
    assert nutbeam("compact", table, "--snapshot_retention", "0", "--full") == 0
    assert marks_of(table, component) == FIRST | SECOND
    assert files_of(table, component) == old
    add_file(table, component, {"com.a:http/02": 20}, replaces=True)
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert marks_of(table, component) == {"com.a:http/02": 20}
    assert not any(path.exists() for path in old)
    assert nutbeam("fsck", table) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("to", ["folder", "bigtable"])
def test_copy_has_it(table, component, tmp_path, request, to):
    copy = str(tmp_path / "copy")
    if to == "bigtable":
        copy = request.getfixturevalue("bigtable").make(tmp_path / "copied files")
    assert nutbeam("copy", table, copy) == 0
    assert marks_of(copy, component) == FIRST | SECOND
    assert nutbeam("fsck", copy) == 0


@pytest.mark.few(2)
def test_history_and_rollback(table, component, capsys):
    capsys.readouterr()
    assert nutbeam("history", table) == 0
    assert capsys.readouterr().out.count("mark") >= 2
    for snapshot, marks in ((2, FIRST), (1, {}), (3, FIRST | SECOND)):
        assert nutbeam("rollback", table, "--to", snapshot) == 0
        assert marks_of(table, component) == marks
        assert nutbeam("fsck", table) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("spoil", [break_byte, Path.unlink], ids=["damaged", "lost"])
def test_a_spoiled_file_is_found_and_left_out(table, component, tmp_path, capsys, spoil):
    _, spoiled = files_of(table, component)
    spoil(spoiled)
    capsys.readouterr()
    assert nutbeam("fsck", table) == 3
    assert spoiled.name in capsys.readouterr().out
    assert nutbeam("copy", table, tmp_path / "copy") == 3  # damage is not copied
    assert nutbeam("fsck", table, "--repair", "--drop") == 0
    assert marks_of(table, component) == FIRST
    assert nutbeam("fsck", table) == 0


@pytest.mark.few(2)
def test_a_lost_list_is_made_again(table, component):
    (open_table(table) / manifest_of(table).components[component].list).unlink()
    assert nutbeam("fsck", table) == 3
    assert nutbeam("fsck", table, "--repair") == 0
    assert marks_of(table, component) == FIRST | SECOND
