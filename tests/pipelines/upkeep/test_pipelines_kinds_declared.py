"""Commands follow what only few components declare: owners, rows that end, times, references.

The components here are of indexes and of a batch; only these tests declare them.
"""

import json

import pyarrow as pa
import pytest
from command_output import printed
from crawling import files_of, nutbeam
from frames import frame_of
from marking import MARKS, put_rows

from nutbeam.io.snapshots.commit import CommitTerms, commit
from nutbeam.io.snapshots.entries import Batch
from nutbeam.io.snapshots.operations import begin
from nutbeam.io.storage.parquet_files import collect, scan
from nutbeam.io.tablets.resolve import write_bases
from nutbeam.io.tablets.written import Written
from nutbeam.pipelines.compact import REFERRING
from nutbeam.policy.components.columns import Column, Purged, join_columns, time_column
from nutbeam.policy.components.declaration import Kept, Kind, Owner, RowKey, RowLayout
from nutbeam.policy.components.kinds import KINDS
from nutbeam.policy.components.schema import TEXT

NOTES = join_columns(
    MARKS.pick("key", "mark"),
    [
        Column("file", TEXT, "File of a batch.", purged=Purged.KEPT),
        time_column("noted", "When it was noted."),
        time_column("gone", "When it ended."),
    ],
)
FAR = 1 << 45  # a time in the next millennium, ms
NOTED = Kind(
    "notes", NOTES, "a note of an index", owner=Owner.INDEX, layout=RowLayout.TABLETS, ended="gone",
)  # fmt: skip
PAIRS = join_columns(
    MARKS.pick("key"),
    [Column(name, TEXT, "A row key.") for name in ("target", "source")],
    [Column("score", pa.float32(), "A number.")],
)
PAIRED = Kind("pairs", PAIRS, "a pair of URLs", key=RowKey.LINK, layout=RowLayout.TABLETS)
HELD = Kind("held", MARKS, "a mark of a batch", owner=Owner.BATCH, kept=Kept.NAMED)
ONE, TWO, OF_BATCH = "index/one/notes", "index/two/notes", "batches/b/held"
AT_ONCE = ("--snapshot_retention", "0", "--keep_batches", "0")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The address of an empty table; the components are declared."""
    for kind in (NOTED, HELD, PAIRED):
        monkeypatch.setitem(KINDS, kind.name, kind)
    return str(tmp_path / "table")


def test_keep_inlinks_leaves_other_components_alone(table):
    sources = [f"com.b:http/{number}" for number in range(3)]
    rows = [
        {"key": f"com.a:http/ {source}", "target": "com.a:http/", "source": source, "score": 1.0}
        for source in sources
    ]
    note(table, "pairs", *rows)
    assert nutbeam("compact", table, "--full", "--keep_inlinks", "1") == 0
    assert notes_of(table, "pairs") == [row["key"] for row in rows]


def note(table, component, *rows):
    put_rows(table, component, rows, component.replace("/", "-"))


def notes_of(table, component):
    """Returns the keys in the files of a component, also those of rows that have ended."""
    rows = collect(scan(files_of(table, component), NOTES.schema))
    return sorted(rows.get_column("key"))


def hold(table, *frames, component=OF_BATCH):
    """Commits files of an old batch; returns their paths."""
    operation = begin(table, "hold", f"{len(frames)}.hold")
    files = [
        file
        for keys in frames
        for file in write_bases(
            operation.table.files, component, [frame_of(MARKS.schema, *({"key": k} for k in keys))]
        )
    ]
    batch = Batch("updated", 1, 1, 1, 0, taken_in=frozenset({"dedup"}))
    commit(operation, [Written(component, tuple(files))], CommitTerms(others={"b": batch}))
    return [file.path for file in files]


def shown(table, capsys):
    """Returns the notes that ``export`` and ``sql`` show, as (index, URL), from both the same."""
    lines = printed(capsys, "export", table, "--what", "notes", "--format", "jsonl").splitlines()
    rows = [json.loads(line) for line in lines]
    exported = sorted((row["index_name"], row["url"]) for row in rows)
    query = "SELECT index_name, url FROM notes ORDER BY ALL"
    _, *lines = printed(capsys, "sql", table, query, "--format", "csv").splitlines()
    assert [tuple(line.split(",")) for line in lines] == exported
    return exported


@pytest.mark.long
def test_rows_that_have_ended_are_not_shown_and_compact_leaves_them_out(table, capsys):
    note(table, ONE, {"key": "com.a:http/1"}, {"key": "com.a:http/2"}, {"key": "com.a:http/3"})
    note(table, TWO, {"key": "com.a:http/1"})
    put_rows(table, ONE, [{"key": "com.a:http/2", "gone": 7}], "end")
    assert shown(table, capsys) == [
        ("one", "http://a.com/1"),
        ("one", "http://a.com/3"),
        ("two", "http://a.com/1"),
    ]
    assert nutbeam("compact", table, "--full") == 0
    assert notes_of(table, ONE) == ["com.a:http/1", "com.a:http/3"]
    assert nutbeam("fsck", table) == 0


def test_history_sums_indexes_and_purge_looks_into_each(table, capsys):
    for component in (ONE, TWO):
        note(table, component, {"key": "com.a:http/1"}, {"key": "com.a:http/2"})
    assert "\nnotes: 2 files, 4 rows, " in printed(capsys, "history", table)
    assert nutbeam("purge", table, "--url", "http://a.com/1", "--now") == 0
    assert [notes_of(table, component) for component in (ONE, TWO)] == [["com.a:http/2"]] * 2
    assert nutbeam("fsck", table) == 0


def test_fsck_corrects_times_in_each_index(table, capsys):
    for component, time in ((ONE, 1), (TWO, FAR)):
        note(table, component, {"key": "com.a:http/1", "noted": time})
    assert nutbeam("fsck", table) == 3
    said = capsys.readouterr().out
    assert f"1 row of {TWO} with times that cannot be" in said
    assert f"of {ONE}" not in said
    assert nutbeam("fsck", table, "--repair") == 0
    rows = [collect(scan(files_of(table, name), NOTES.schema)) for name in (ONE, TWO)]
    one, two = (some.get_column("noted")[-1] for some in rows)
    assert one == 1 < two < FAR


@pytest.mark.parametrize("purged", [False, True], ids=["as written", "purged"])
def test_compact_keeps_files_of_batches_to_which_rows_refer(table, monkeypatch, purged):
    monkeypatch.setitem(REFERRING, ONE, ("file",))
    named, _ = hold(table, ["com.a:http/1", "com.a:http/2"], ["com.a:http/3"])
    note(table, ONE, {"key": "com.b:http/", "file": named})
    if purged:  # the row still has the former name
        assert nutbeam("purge", table, "--url", "http://a.com/1", "--now") == 0
    assert nutbeam("compact", table, *AT_ONCE) == 0
    (kept,) = files_of(table, OF_BATCH)
    rows = collect(scan([kept], MARKS.schema)).get_column("key").to_list()
    assert rows == ["com.a:http/2"] if purged else ["com.a:http/1", "com.a:http/2"]
    assert nutbeam("fsck", table) == 0
