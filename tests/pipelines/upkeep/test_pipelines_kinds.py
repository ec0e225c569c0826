"""A component that only these tests declare goes through all commands, in a folder and in Bigtable.

It is in files, and then in rows of Bigtable.
"""

import dataclasses
import json
from operator import itemgetter

import polars as pl
import pyarrow as pa
import pytest
from crawling import cells_of, files_of, manifest_of, nutbeam, place_in, rows_of
from frames import frame_of
from marking import MARKS, MARKS_KIND, ROWS, mark, values_of

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.tablets.written import Written
from nutbeam.io.upkeep import rollback
from nutbeam.policy.components.columns import Column, Columns, Form, Purged, join_columns
from nutbeam.policy.components.declaration import Kind, Owner, RowLayout
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import TEXT
from nutbeam.web.urls.row_keys import from_key

LATER = join_columns(MARKS, [Column("later", TEXT, "A column of a later version.")])
IN_FILES = ("folder", "folder, declared in rows", "bigtable")
IN_ROWS = "bigtable, declared in rows"


@pytest.fixture(params=[*IN_FILES, IN_ROWS])
def table(request, tmp_path, monkeypatch):
    """A table with seeds and marks, a run on these."""
    layout = RowLayout.ROWS if request.param.endswith("in rows") else RowLayout.TABLETS
    kind = dataclasses.replace(MARKS_KIND, layout=layout)
    monkeypatch.setitem(KINDS, "marks", kind)
    table = str(tmp_path / "table")
    if request.param.startswith("bigtable"):
        table = request.getfixturevalue("bigtable").make(tmp_path / "files")
    assert nutbeam("inject", table, "http://a.com/05") == 0
    mark(table, ROWS, "first", seen=[{"day": 1, "by": None}])
    mark(table, {"com.a:http/01": 100}, "second")
    return table


in_files = pytest.mark.parametrize("table", IN_FILES, indirect=True)
in_rows = pytest.mark.parametrize("table", [IN_ROWS], indirect=True)


NEWEST = {**ROWS, "com.a:http/01": 100}


@pytest.mark.long
@pytest.mark.few(2)
@in_files
def test_compact_folds_it_and_deletes_old_files(table):
    old = files_of(table, "marks")
    assert len(old) == 2
    assert nutbeam("compact", table, "--snapshot_retention", "0", "--full") == 0
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert values_of(table) == NEWEST
    assert len(files_of(table, "marks")) == 1
    assert not any(path.exists() for path in old)


@pytest.mark.few(1)
@pytest.mark.parametrize("to", ["folder", "bigtable"])
def test_copy_has_it(table, tmp_path, request, to):
    copy = str(tmp_path / "copy")
    if to == "bigtable":
        copy = request.getfixturevalue("bigtable").make(tmp_path / "copied files")
    assert nutbeam("copy", table, copy) == 0
    assert values_of(copy) == NEWEST
    seen = values_of(copy, "seen")
    assert seen.pop("com.a:http/01") is None
    assert set(map(str, seen.values())) == {str([{"day": 1, "by": None}])}
    assert nutbeam("fsck", copy) == 0


@pytest.mark.long
@pytest.mark.few(2)
def test_export_has_it(table, tmp_path):
    assert nutbeam("export", table, "--what", "marks", "-o", tmp_path / "marks.jsonl") == 0
    exported = [json.loads(line) for line in (tmp_path / "marks.jsonl").read_text().splitlines()]
    assert {record["key"]: record["mark"] for record in exported} == NEWEST


def later_kind():
    """Returns the marks as a later version declares them."""
    return dataclasses.replace(KINDS["marks"], columns=LATER, later_versions=("later",))


def rows_as_later(table, monkeypatch):
    """Returns the marks as a version reads them that knows a further column."""
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "marks", later_kind())
        found = values_of(str(table), "later")
        return {key: text for key, text in found.items() if text is not None}


@pytest.mark.long
@pytest.mark.few(1)
@in_files
@pytest.mark.parametrize("marks", [{"com.a:http/02": 2}, ROWS], ids=["run", "base"])
def test_columns_of_a_later_version_are_kept(table, tmp_path, monkeypatch, marks):
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "marks", later_kind())
        mark(table, marks, "third", later="more")
    kept = dict.fromkeys(marks, "more")
    assert rows_as_later(table, monkeypatch) == kept
    known = values_of(table)
    assert nutbeam("copy", table, tmp_path / "copy") == 0
    assert nutbeam("compact", table, "--full") == 0
    assert nutbeam("purge", table, "--url", "http://a.com/39") == 0
    for one, gone in ((tmp_path / "copy", {}), (table, {"com.a:http/39"})):
        assert nutbeam("fsck", one) == 0
        assert len(files_of(one, "marks")) == 1
        assert values_of(str(one)) == {key: n for key, n in known.items() if key not in gone}
        wanted = {key: text for key, text in kept.items() if key not in gone}
        assert rows_as_later(one, monkeypatch) == wanted


@pytest.mark.few(1)
def test_history_and_rollback(table, capsys):
    capsys.readouterr()
    assert nutbeam("history", table) == 0
    assert "marks" in capsys.readouterr().out
    # To a snapshot in its life, to one before it, and back.
    for snapshot, marks in ((2, ROWS), (1, {}), (3, NEWEST)):
        assert nutbeam("rollback", table, "--to", snapshot) == 0
        assert values_of(table) == marks
        assert nutbeam("fsck", table) == 0


@pytest.mark.long
@pytest.mark.few(1)
def test_rollback_leaves_it_as_it_is_if_it_stays(table, monkeypatch):
    monkeypatch.setattr(rollback, "STAYING", ("marks",))
    assert nutbeam("rollback", table, "--to", "2") == 0
    assert values_of(table) == NEWEST


@pytest.mark.long
@pytest.mark.parametrize("table", [IN_ROWS], indirect=True)
def test_a_component_repeats_its_chosen_rows_in_files_and_a_copy_makes_it_again(
    table, bigtable, tmp_path, monkeypatch
):
    chosen = Kind("even", MARKS, made_from="marks", made_where="chosen")
    monkeypatch.setitem(KINDS, "even", chosen)
    mark(table, {"com.a:http/01": 1, "com.a:http/02": 2, "com.a:http/50": 50}, "third")
    assert rows_of(table, "even")["key"].to_list() == ["com.a:http/50"]  # 02 was so before
    in_folder, in_rows = str(tmp_path / "copy"), bigtable.make(tmp_path / "copied")
    for copy in (in_folder, in_rows):
        assert nutbeam("copy", table, copy) == 0
        assert values_of(copy) == values_of(table)
        assert nutbeam("fsck", copy) == 0
    assert "even" not in manifest_of(in_folder).components
    even = sorted(key for key, n in values_of(table).items() if n % 2 == 0)
    assert sorted(rows_of(in_rows, "even")["key"]) == even


@pytest.mark.long
@pytest.mark.few(2)
@pytest.mark.parametrize("words", [("--url", "http://a.com/05"), ("--host", "a.com")])
def test_purge_takes_names_out(table, words):
    assert nutbeam("purge", table, *words, "--now") == 0
    left = {key: n for key, n in NEWEST.items() if words[0] == "--url" and key != "com.a:http/05"}
    assert values_of(table) == left
    assert nutbeam("fsck", table) == 0


@pytest.mark.long
@pytest.mark.few(1)
@in_files
def test_damage_is_found_and_left_out(table, capsys):
    (tablet,) = tablets(load_files(open_table(table), manifest_of(table).components["marks"]))
    (run,) = (open_table(table) / run.path for run in tablet.runs)
    data = bytearray(run.read_bytes())
    data[len(data) // 2] ^= 1
    run.write_bytes(data)
    capsys.readouterr()
    assert nutbeam("fsck", table) == 3
    assert run.name in capsys.readouterr().out
    assert nutbeam("fsck", table, "--repair", "--drop") == 0
    assert values_of(table) == ROWS  # the mark of 01 is that of the base again


@pytest.mark.long
@pytest.mark.few(2)
def test_a_lost_list_is_made_again(table):
    known = load_files(open_table(table), manifest_of(table).components["marks"])
    (open_table(table) / manifest_of(table).components["marks"].list).unlink()
    assert nutbeam("fsck", table) == 3
    assert nutbeam("fsck", table, "--repair") == 0
    assert values_of(table) == NEWEST
    if open_table(table).in_files("marks"):
        again = load_files(open_table(table), manifest_of(table).components["marks"])
        assert zones(again) == zones(known) == {(0, 39_000), (100_000, 100_000)}


def zones(files):
    return {(file.min_time, file.max_time) for file in files}


@pytest.mark.few(1)
@in_files
def test_tablets_that_do_not_fit_are_found(table, capsys):
    operation = begin(table, "mark", "wrong.mark")
    (again,) = operation.table.load(
        "marks", [frame_of(MARKS.schema, {"key": "com.a:http/07", "mark": 7})]
    )
    commit(operation, [Written(again.component, again.files)])
    capsys.readouterr()
    assert nutbeam("fsck", table) == 3
    assert "its keys meet those of" in capsys.readouterr().out


def assert_seen(table, view, marks, capsys):
    """Asserts that export and sql have the marks under the name of a view."""
    capsys.readouterr()
    assert nutbeam("export", table, "--what", view, "--format", "jsonl") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["url"]: row["mark"] for row in rows} == {from_key(k): n for k, n in marks.items()}
    query = f"SELECT url, mark FROM {view} ORDER BY url"
    assert nutbeam("sql", table, query, "--format", "csv") == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines == [f"{row['url']},{row['mark']}" for row in sorted(rows, key=itemgetter("url"))]


@pytest.mark.long
@pytest.mark.few(2)
def test_export_and_sql_show_tablets(table, capsys):
    assert_seen(table, "marks", NEWEST, capsys)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "component", "view"),
    [
        (Kind("plain", MARKS, view="remarks"), "plain", "remarks"),
        (Kind("batched", MARKS, owner=Owner.BATCH), "batches/b/batched", "batch_batched"),
    ],
    ids=["plain", "batch"],
)
def test_export_and_sql_show_files(table, monkeypatch, capsys, kind, component, view):
    monkeypatch.setitem(KINDS, kind.name, kind)
    operation = begin(table, "mark", "files.mark")
    marks = {"com.a:http/01": 1, "com.a:http/02": 2}
    frames = [frame_of(MARKS.schema, {"key": key, "mark": n}) for key, n in marks.items()]
    files = [
        write_bases(operation.table.files, component, [frame], MARKS.schema)[0] for frame in frames
    ]
    commit(operation, [Written(component, tuple(files))])
    assert_seen(table, view, marks, capsys)
    assert nutbeam("purge", table, "--url", "http://a.com/01") == 0
    assert_seen(table, view, {"com.a:http/02": 2}, capsys)


LINK = Columns(
    [
        Column("to", TEXT, "Row key of the target.", form=Form.URL),
        Column("title", TEXT, "Its title.", purged=Purged.KEPT),
    ]
)
MENTIONS = Columns(
    [
        Column("key", TEXT, "A URL."),
        Column("target", TEXT, "A URL, not a row key."),
        Column("title", TEXT, "A text in which we name URLs."),
        Column("note", TEXT, "Content of the page.", purged=Purged.KEPT),
        Column("log", TEXT, "One line per event.", purged=Purged.LINES),
        Column("origin", TEXT, "A row key.", form=Form.URL),
        Column("links", pa.large_list(pa.struct(list(LINK.schema))), "Links.", items=LINK),
    ]
)


def mention(host):
    """Returns a row that names a host in each column."""
    key, url = f"org.{host}:http/secret", f"http://{host}.org/secret"
    return {
        "target": url, "title": f"see {url}", "note": f"about {host}.org", "origin": key,
        "log": f"came from {url}\nagain",
        "links": [{"to": key, "title": f"{host}.org"}, {"to": "com.a:http/", "title": "evil.org"}],
    }  # fmt: skip


@pytest.mark.few(1)
def test_purge_follows_the_declared_columns(table, monkeypatch):
    monkeypatch.setitem(KINDS, "mentions", Kind("mentions", MENTIONS, layout=RowLayout.TABLETS))
    rows = {"com.a:http/1": mention("evil"), "com.a:http/2": mention("good"),
            "org.evil:http/": mention("good")}  # fmt: skip
    operation = begin(table, "mention", "first.mention")
    frame = frame_of(MENTIONS.schema, *({"key": key, **row} for key, row in rows.items()))
    commit(operation, operation.table.load("mentions", [frame]))
    assert nutbeam("purge", table, "--host", "evil.org", "--now") == 0
    (path,) = files_of(table, "mentions")
    evil, good = pl.read_parquet(path).to_dicts()
    assert good == {"key": "com.a:http/2", **mention("good")}
    kept = mention("evil")
    assert evil == {
        "key": "com.a:http/1", "target": None, "title": None, "note": kept["note"],
        "log": "\nagain", "origin": None, "links": kept["links"][1:],
    }  # fmt: skip


def put_mark(table, key, cell):
    """Writes a cell of the marks, as a commit of the newest snapshot."""
    from bigtable_damage import put  # late: Google's libraries take a second

    from nutbeam.io.bigtable.cell_layout import cell_kind

    put(table, key, cell, open_table(table).latest_snapshot(), cell_kind("marks"))


@pytest.mark.long
@in_rows
def test_damaged_rows_are_found_and_repaired(table, capsys):
    put_mark(table, "com.a:http/02", b"\1bad")
    put_mark(table, "com.a:http/99", b"\1bad")
    put_mark(table, "com.a:http/03", b"")  # as if it was deleted, and another one not
    put_mark(table, "com.a:http/04", b"")
    capsys.readouterr()
    assert nutbeam("fsck", table) == 3
    out = capsys.readouterr().out
    for row in ("02", "99"):
        assert f"marks/com.a:http/{row}: its cell is damaged" in out
    assert "names 40 rows, in Bigtable are 39" in out
    assert nutbeam("fsck", table, "--repair", "--drop") == 0
    assert nutbeam("fsck", table) == 0
    gone = ("com.a:http/03", "com.a:http/04")  # the others have an older version, or had none
    assert values_of(table) == {key: n for key, n in NEWEST.items() if key not in gone}


@pytest.mark.long
@pytest.mark.few(1)
@in_rows
@pytest.mark.parametrize("words", [["--now"], []], ids=["now", "when they expire"])
def test_no_version_of_a_purged_row_is_left(table, words):
    def versions():
        return {cell[0] for cell in cells_of(open_table(table)) if cell[1] == "marks"}

    assert b"com.a:http/01" in versions()
    assert nutbeam("purge", table, "--url", "http://a.com/01", *words) == 0
    if not words:
        assert b"com.a:http/01" in versions()
        assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    left = {key.encode() for key in ROWS} - {b"com.a:http/01"}
    assert versions() == left
    assert not files_below(table, "changes")


def files_below(table, folder):
    return [path for path in place_in(table, folder).rglob("*") if path.is_file()]


@in_rows
def test_compact_deletes_its_files_of_changes(table):
    assert len(files_below(table, "changes/marks")) == 2
    assert nutbeam("compact", table, "--snapshot_retention", "0", "--full") == 0
    assert not files_below(table, "changes")
    assert values_of(table) == NEWEST


@pytest.mark.long
@in_rows
def test_rows_of_a_later_version_are_refused_and_stay(table, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "marks", later_kind())
        mark(table, {"com.a:http/02": 2}, "third", later="more")
        known = values_of(table)
    assert rows_as_later(table, monkeypatch) == {"com.a:http/02": "more"}
    assert known == NEWEST
    capsys.readouterr()
    assert nutbeam("copy", table, tmp_path / "copy") == 3
    assert "has version 2, this nutbeam reads up to 1: upgrade nutbeam" in capsys.readouterr().err
    assert nutbeam("fsck", table, "--repair", "--drop") == 3
    assert rows_as_later(table, monkeypatch) == {"com.a:http/02": "more"}
