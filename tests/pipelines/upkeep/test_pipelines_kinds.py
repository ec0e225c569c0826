"""A component that only these tests declare goes through all commands, in a folder and in Bigtable."""

import dataclasses
import json
from operator import itemgetter

import polars as pl
import pyarrow as pa
import pytest
from crawling import files_of, manifest_of, nutbeam
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

MARKS = Columns(
    [
        Column("key", TEXT, "A URL."),
        Column("mark", pa.int64(), "Its mark."),
        Column("target", TEXT, "Another key."),
    ]
)
LATER = joined(MARKS, [Column("later", TEXT, "A column of a later version.")])
ROWS = {f"com.a:http/{n:02d}": n for n in range(40)}


MARKS_KIND = Kind("marks", MARKS, in_tablets=True, in_order=True)


@pytest.fixture(params=["folder", "bigtable"])
def table(request, tmp_path, monkeypatch):
    """A table with seeds and marks, a run on these."""
    monkeypatch.setitem(KINDS, "marks", MARKS_KIND)
    table = str(tmp_path / "table")
    if request.param == "bigtable":
        table = request.getfixturevalue("bigtable").make(tmp_path / "files")
    assert nutbeam("inject", table, "http://a.com/05") == 0
    mark(table, ROWS, "first")
    mark(table, {"com.a:http/01": 100}, "second")
    return table


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
    known = tablets(load_files(root, manifest_of(table).components["marks"]))
    return dict(row for t in known for rows in root.scan("marks", t)
                for row in rows.select("key", column).iter_rows())  # fmt: skip


NEWEST = {**ROWS, "com.a:http/01": 100}


def test_compact_folds_it_and_deletes_old_files(table):
    old = files_of(table, "marks")
    assert len(old) == 2
    assert nutbeam("compact", table, "--snapshot_retention", "0", "--full") == 0
    assert nutbeam("compact", table, "--snapshot_retention", "0") == 0
    assert values_of(table) == NEWEST
    assert len(files_of(table, "marks")) == 1
    assert not any(path.exists() for path in old)


def test_copy_has_it(table, tmp_path):
    assert nutbeam("copy", table, tmp_path / "copy") == 0
    assert values_of(str(tmp_path / "copy")) == NEWEST
    assert nutbeam("fsck", tmp_path / "copy") == 0


def rows_as_later(table, monkeypatch):
    """Returns the marks as a version reads them that knows a further column."""
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "marks", dataclasses.replace(MARKS_KIND, columns=LATER))
        found = values_of(str(table), "later")
        return {key: text for key, text in found.items() if text is not None}


@pytest.mark.parametrize("marks", [{"com.a:http/02": 2}, ROWS], ids=["run", "base"])
def test_columns_of_a_later_version_are_kept(table, tmp_path, monkeypatch, marks):
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "marks", dataclasses.replace(MARKS_KIND, columns=LATER))
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


def test_history_and_rollback(table, capsys):
    capsys.readouterr()
    assert nutbeam("history", table) == 0
    assert "marks" in capsys.readouterr().out
    assert nutbeam("rollback", table, "--to", "2") == 0
    assert values_of(table) == ROWS


@pytest.mark.parametrize("words", [("--url", "http://a.com/05"), ("--host", "a.com")])
def test_purge_takes_names_out(table, words):
    assert nutbeam("purge", table, *words, "--now") == 0
    left = {key: n for key, n in NEWEST.items() if words[0] == "--url" and key != "com.a:http/05"}
    assert values_of(table) == left
    assert nutbeam("fsck", table) == 0


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


def test_a_lost_list_is_made_again(table):
    (open_table(table) / manifest_of(table).components["marks"].list).unlink()
    assert nutbeam("fsck", table) == 3
    assert nutbeam("fsck", table, "--repair") == 0
    assert values_of(table) == NEWEST


def test_tablets_that_do_not_fit_are_found(table, capsys):
    operation = begin(table, "mark", "wrong.mark")
    (again,) = operation.root.load(
        "marks", [frame_of(MARKS.schema, {"key": "com.a:http/07", "mark": 7})]
    )
    commit(operation, [Written(again.component, again.files)])
    capsys.readouterr()
    assert nutbeam("fsck", table) == 3
    assert "its keys meet those of" in capsys.readouterr().out


def assert_seen(table, kind, marks, capsys):
    """Asserts that export and sql have the marks."""
    capsys.readouterr()
    assert nutbeam("export", table, "--what", kind, "--format", "jsonl") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["url"]: row["mark"] for row in rows} == {from_key(k): n for k, n in marks.items()}
    query = f"SELECT url, mark FROM {kind} ORDER BY url"
    if "://" in table:
        assert nutbeam("sql", table, query) == 2  # sql asks files alone
        return
    assert nutbeam("sql", table, query, "--format", "csv") == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines == [f"{row['url']},{row['mark']}" for row in sorted(rows, key=itemgetter("url"))]


def test_export_and_sql_show_tablets(table, capsys):
    assert_seen(table, "marks", NEWEST, capsys)


@pytest.mark.parametrize(
    ("kind", "component"),
    [
        (Kind("plain", MARKS), "plain"),
        (Kind("batched", MARKS, of_batch=True), "batches/b/batched"),
    ],
    ids=["plain", "batch"],
)
def test_export_and_sql_show_files(table, monkeypatch, capsys, kind, component):
    monkeypatch.setitem(KINDS, kind.name, kind)
    operation = begin(table, "mark", "files.mark")
    marks = {"com.a:http/01": 1, "com.a:http/02": 2}
    frames = [frame_of(MARKS.schema, {"key": key, "mark": n}) for key, n in marks.items()]
    files = [
        write_bases(operation.root.files, component, [frame], MARKS.schema)[0] for frame in frames
    ]
    commit(operation, [Written(component, tuple(files))])
    assert_seen(table, kind.name, marks, capsys)
    assert nutbeam("purge", table, "--url", "http://a.com/01") == 0
    assert_seen(table, kind.name, {"com.a:http/02": 2}, capsys)


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
