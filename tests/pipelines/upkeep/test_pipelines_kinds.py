"""A component that only these tests declare goes through all commands, in a folder and in Bigtable.

It is in files, and then in rows of Bigtable.
"""

import dataclasses
import json
from operator import itemgetter

import polars as pl
import pyarrow as pa
import pytest
from crawling import cells_of, files_of, manifest_of, nutbeam, place_in, tree
from frames import frame_of

from nutbeam.io.snapshots.commit import commit
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.table.opening import open_table
from nutbeam.io.tablets.file_lists import load_files
from nutbeam.io.tablets.ranges import Range
from nutbeam.io.tablets.resolve import Resolution, Resolved, write_bases
from nutbeam.io.tablets.tablets import tablets
from nutbeam.io.tablets.written import Written
from nutbeam.policy.columns import Column, Columns, Form, Purged, joined
from nutbeam.policy.kinds import KINDS, Kind
from nutbeam.policy.schema import TEXT
from nutbeam.web.urls.row_keys import from_key

SEEN_ITEM = Columns([Column("day", pa.int32(), "A day."), Column("by", TEXT, "Who.")])
SEEN = pa.large_list(pa.struct(list(SEEN_ITEM.schema)))
MARKS = Columns(
    [
        Column("key", TEXT, "A URL."),
        Column("mark", pa.int64(), "Its mark."),
        Column("target", TEXT, "Another key."),
        Column("seen", SEEN, "When it was seen, and by whom.", items=SEEN_ITEM),
    ]
)
LATER = joined(MARKS, [Column("later", TEXT, "A column of a later version.")])
ROWS = {f"com.a:http/{n:02d}": n for n in range(40)}


MARKS_KIND = Kind("marks", MARKS, in_tablets=True, in_order=True)


IN_FILES = ("folder", "folder, declared in rows", "bigtable")
IN_ROWS = "bigtable, declared in rows"


@pytest.fixture(params=[*IN_FILES, IN_ROWS])
def table(request, tmp_path, monkeypatch):
    """A table with seeds and marks, a run on these."""
    kind = dataclasses.replace(MARKS_KIND, in_rows=request.param.endswith("in rows"))
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


def newer(rows, changes):
    kept = rows.join(changes, on="key", how="anti")
    return Resolved(pl.concat([kept, changes.select(rows.columns)]).sort("key"))


def mark(table, marks, name, **more):
    """Commits marks, as a job of this component would."""
    operation = begin(table, "mark", f"{name}.mark")
    known = tablets(operation.files("marks"))
    part = Range(None, None, known[0] if known else None)
    rows = frame_of(
        KINDS["marks"].schema, *({"key": k, "mark": n, **more} for k, n in sorted(marks.items()))
    )
    done = operation.root.resolve(
        Resolution("marks", part, newer, order=operation.snapshot + 1), rows
    )
    commit(operation, done)


def values_of(table, column="mark"):
    """Returns a column of the marks of a table by key."""
    root = open_table(table)
    root = root.at(root.latest_snapshot())
    known = tablets(load_files(root, manifest_of(table).components.get("marks")))
    return dict(row for t in known for rows in root.scan("marks", t)
                for row in rows.select("key", column).iter_rows())  # fmt: skip


NEWEST = {**ROWS, "com.a:http/01": 100}


@in_files
def test_compact_folds_it_and_deletes_old_files(table):
    old = files_of(table, "marks")
    assert len(old) == 2
    assert nutbeam("compact", table, "--snapshot_retention", "0", "--full") == 0
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert values_of(table) == NEWEST
    assert len(files_of(table, "marks")) == 1
    assert not any(path.exists() for path in old)


@pytest.mark.few(2)
def test_copy_has_it(table, tmp_path):
    assert nutbeam("copy", table, tmp_path / "copy") == 0
    copy = str(tmp_path / "copy")
    assert values_of(copy) == NEWEST
    seen = values_of(copy, "seen")
    assert seen.pop("com.a:http/01") is None
    assert set(map(str, seen.values())) == {str([{"day": 1, "by": None}])}
    assert nutbeam("fsck", copy) == 0


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


@pytest.mark.few(2)
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


@pytest.mark.few(2)
def test_history_and_rollback(table, capsys):
    capsys.readouterr()
    assert nutbeam("history", table) == 0
    assert "marks" in capsys.readouterr().out
    assert nutbeam("rollback", table, "--to", "2") == 0
    assert values_of(table) == ROWS


@pytest.mark.few(2)
def test_rollback_to_a_snapshot_before_it_and_back(table):
    assert nutbeam("rollback", table, "--to", "1") == 0
    assert values_of(table) == {}
    assert nutbeam("fsck", table) == 0
    assert nutbeam("rollback", table, "--to", "3") == 0
    assert values_of(table) == NEWEST
    assert nutbeam("fsck", table) == 0


@pytest.mark.few(4)
@pytest.mark.parametrize("words", [("--url", "http://a.com/05"), ("--host", "a.com")])
def test_purge_takes_names_out(table, words):
    assert nutbeam("purge", table, *words, "--now") == 0
    left = {key: n for key, n in NEWEST.items() if words[0] == "--url" and key != "com.a:http/05"}
    assert values_of(table) == left
    assert nutbeam("fsck", table) == 0


@in_files
def test_damage_is_found_and_left_out(table, capsys):
    run = files_of(table, "marks")[-1]
    data = bytearray(run.read_bytes())
    data[len(data) // 2] ^= 1
    run.write_bytes(data)
    capsys.readouterr()
    assert nutbeam("fsck", table) == 3
    assert run.name in capsys.readouterr().out
    assert nutbeam("fsck", table, "--repair", "--drop") == 0
    assert values_of(table) in (ROWS, {})


@pytest.mark.few(2)
def test_a_lost_list_is_made_again(table):
    (open_table(table) / manifest_of(table).components["marks"].list).unlink()
    assert nutbeam("fsck", table) == 3
    assert nutbeam("fsck", table, "--repair") == 0
    assert values_of(table) == NEWEST


@in_files
def test_tablets_that_do_not_fit_are_found(table, capsys):
    operation = begin(table, "mark", "wrong.mark")
    (again,) = operation.root.load(
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
    if "://" in table:
        assert nutbeam("sql", table, query) == 2  # sql asks files alone
        return
    assert nutbeam("sql", table, query, "--format", "csv") == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines == [f"{row['url']},{row['mark']}" for row in sorted(rows, key=itemgetter("url"))]


@pytest.mark.few(2)
def test_export_and_sql_show_tablets(table, capsys):
    assert_seen(table, "marks", NEWEST, capsys)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kind", "component", "view"),
    [
        (Kind("plain", MARKS), "plain", "plain"),
        (Kind("batched", MARKS, of_batch=True), "batches/b/batched", "batch_batched"),
    ],
    ids=["plain", "batch"],
)
def test_export_and_sql_show_files(table, monkeypatch, capsys, kind, component, view):
    monkeypatch.setitem(KINDS, kind.name, kind)
    operation = begin(table, "mark", "files.mark")
    marks = {"com.a:http/01": 1, "com.a:http/02": 2}
    frames = [frame_of(MARKS.schema, {"key": key, "mark": n}) for key, n in marks.items()]
    files = [
        write_bases(operation.root.files, component, [frame], MARKS.schema)[0] for frame in frames
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


def test_purge_follows_the_declared_columns(table, monkeypatch):
    monkeypatch.setitem(
        KINDS, "mentions", Kind("mentions", MENTIONS, in_tablets=True, in_order=True)
    )
    rows = {"com.a:http/1": mention("evil"), "com.a:http/2": mention("good"),
            "org.evil:http/": mention("good")}  # fmt: skip
    operation = begin(table, "mention", "first.mention")
    frame = frame_of(MENTIONS.schema, *({"key": key, **row} for key, row in rows.items()))
    commit(operation, operation.root.load("mentions", [frame]))
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


@in_rows
def test_damaged_rows_are_found_and_mended(table, capsys):
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


@pytest.fixture
def declare(monkeypatch):
    """Declares the marks in rows, when a test calls it."""
    kind = dataclasses.replace(MARKS_KIND, in_rows=True)
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
def test_who_may_not_add_the_place_is_told_so(bigtable, tmp_path, declare, capsys):
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
