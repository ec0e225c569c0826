"""Writers of files: nothing is visible before the end, or twice."""

import csv
import io
import json

import polars as pl
import pytest

from nutbeam.io.indexing.index_writer import IndexTarget, IndexWriter, WriteResult
from nutbeam.io.indexing.writer_kinds import open_writer
from nutbeam.policy.components.index_routes import WriterRule
from nutbeam.web.base.errors import UsageError, UserError

DOCUMENTS = pl.DataFrame(
    {"id": ["http://a.com/", "http://b.com/"], "title": ["A, \"B\"", None],
     "anchor": [["x", "y"], ["é\n"]], "tstamp": [1, 2]}
)  # fmt: skip
NONE = pl.Series([], dtype=pl.String)
NOTHING = pl.DataFrame(schema={"id": pl.String})
PART, OTHER = "a" * 16, "b" * 16


def writer(folder, kind="jsonl", version=1, part=PART, full=False, **parameters):
    rule = WriterRule("w", kind, {"path": str(folder), **parameters})
    target = IndexTarget(
        "main", "w", rule.parameters, folder, version, f"op{version}", full, part
    )  # fmt: skip
    return open_writer(rule, target)


def write(documents, deletes=NONE, **how):
    one = writer(**how)
    one.prepare()
    one.write(documents, deletes)
    return one.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_files_appear_at_the_end(tmp_path):
    result = write(DOCUMENTS, pl.Series(["http://c.com/"]), folder=tmp_path)
    assert dict(result.counts) == {"added": 2, "deleted": 1}
    assert names(tmp_path) == []
    writer(tmp_path, part="").finish()
    start = f"main-0000000000001-{PART}"
    assert names(tmp_path) == [f"{start}-0.jsonl", f"{start}-1-deletes.jsonl"]
    assert not (tmp_path / ".nutbeam").exists()
    lines = (tmp_path / f"{start}-0.jsonl").read_text("utf-8").splitlines()
    assert json.loads(lines[1]) == {"id": "http://b.com/", "anchor": ["é\n"], "tstamp": 2}
    assert (tmp_path / f"{start}-1-deletes.jsonl").read_text() == '{"id": "http://c.com/"}\n'


def test_a_part_that_is_repeated_is_there_once(tmp_path):
    for _ in range(2):
        write(DOCUMENTS, folder=tmp_path)
    write(DOCUMENTS, folder=tmp_path, part=OTHER)
    for _ in range(2):
        writer(tmp_path, part="").finish()
    assert len(names(tmp_path)) == 2


def test_a_run_that_was_overtaken_leaves_nothing(tmp_path):
    write(DOCUMENTS, folder=tmp_path, version=1)
    write(DOCUMENTS, folder=tmp_path, version=2, part=OTHER)
    writer(tmp_path, version=2, part="").finish()
    assert names(tmp_path) == [f"main-0000000000002-{OTHER}-0.jsonl"]
    assert not (tmp_path / ".nutbeam").exists()


def test_an_index_leaves_the_files_of_others_alone(tmp_path):
    """``main-2`` begins as the files of ``main`` do."""

    def other(version, **how):
        given = {"path": str(tmp_path)}
        target = IndexTarget("main-2", "w", given, tmp_path, version, "op", part=PART, **how)
        return open_writer(WriterRule("w", "jsonl", given), target)

    under_way = other(1)
    under_way.write(DOCUMENTS, NONE)
    under_way.close()
    write(DOCUMENTS, folder=tmp_path, version=5, full=True)
    writer(tmp_path, version=5, full=True, part="").finish()
    other(1).finish()
    assert names(tmp_path) == [
        f"main-0000000000005-{PART}-0.jsonl", f"main-2-0000000000001-{PART}-0.jsonl"
    ]  # fmt: skip


def test_a_full_run_replaces_earlier_ones(tmp_path):
    (tmp_path / "main-notes.jsonl").write_text("of the user")
    for version, full in ((1, False), (2, False), (3, True)):
        write(DOCUMENTS, folder=tmp_path, version=version, full=full)
        writer(tmp_path, version=version, full=full, part="").finish()
    assert names(tmp_path) == [f"main-0000000000003-{PART}-0.jsonl", "main-notes.jsonl"]


def test_csv(tmp_path):
    write(DOCUMENTS, folder=tmp_path, kind="csv", fields="id,title,anchor,none", valuesep=";")
    writer(tmp_path, kind="csv", part="").finish()
    (name,) = names(tmp_path)
    rows = list(csv.reader(io.StringIO((tmp_path / name).read_text("utf-8"))))
    assert rows == [
        ["id", "title", "anchor", "none"],
        ["http://a.com/", 'A, "B"', "x;y", ""],
        ["http://b.com/", "", "é\n", ""],
    ]


def test_csv_has_the_form_that_parameters_say(tmp_path):
    how = {"kind": "csv", "fields": "title,anchor", "separator": "\t", "charset": "latin-1",
           "quotechar": "'", "escapechar": "\\", "maxfieldlength": "3", "maxfieldvalues": "1",
           "header": "false"}  # fmt: skip
    rows = pl.DataFrame(
        {"id": ["a", "b"], "title": ["it's", "x\ty"], "anchor": [["é€z", "2"], None]}
    )
    write(rows, folder=tmp_path, **how)
    writer(tmp_path, part="", **how).finish()
    (name,) = names(tmp_path)
    assert (tmp_path / name).read_bytes() == b"it\\'\t\xe9?z\n'x\ty'\t\n"


def test_parquet_has_a_file_per_schema(tmp_path):
    one = writer(tmp_path, kind="parquet")
    one.write(DOCUMENTS, NONE)
    one.write(DOCUMENTS.head(1).drop("title"), NONE)
    assert dict(one.close().counts) == {"added": 3}
    writer(tmp_path, kind="parquet", part="").finish()
    first, second = (pl.read_parquet(tmp_path / name) for name in names(tmp_path))
    assert first.equals(DOCUMENTS)
    assert second.columns == ["id", "anchor", "tstamp"]


def test_dummy(tmp_path):
    write(DOCUMENTS, pl.Series(["http://c.com/"]), folder=tmp_path, kind="dummy")
    writer(tmp_path, kind="dummy", part="").finish()
    texts = [(tmp_path / name).read_text() for name in names(tmp_path)]
    assert texts == ["add\thttp://a.com/\nadd\thttp://b.com/\n", "delete\thttp://c.com/\n"]


def test_a_store(stores, monkeypatch):
    for name, value in stores.environ("gs").items():
        monkeypatch.setenv(name, value)
    from nutbeam.io.storage.files import list_files
    from nutbeam.io.storage.place_addresses import place_of

    folder = place_of(f"{stores.address('gs')}/out")
    write(DOCUMENTS, folder=folder)
    for _ in range(2):
        writer(folder, part="").finish()
    assert [found.path.name for found in list_files(folder)] == [
        f"main-0000000000001-{PART}-0.jsonl"
    ]


def test_errors_are_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"writer 'w' \(jsonl\) has no parameter 'pat': there are"):
        writer(tmp_path, pat="x")
    with pytest.raises(UsageError, match=r"needs the parameter 'path'"):
        open_writer(WriterRule("w", "csv", {}), IndexTarget("main", "w", {}, tmp_path, 1, "op"))
    with pytest.raises(UsageError, match="separator must be one character, got ';;'"):
        writer(tmp_path, kind="csv", separator=";;")
    for name, value in (("charset", "latin-99"), ("quotechar", "ab"), ("maxfieldlength", "-1"),
                        ("header", "yes")):  # fmt: skip
        with pytest.raises(UsageError, match=f"{name} must be .*, got '{value}'"):
            writer(tmp_path, kind="csv", **{name: value})
    with pytest.raises(UsageError, match="delete must be one of true, false, got 'no'"):
        writer(tmp_path, kind="dummy", delete="no")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        writer(tmp_path / "file").prepare()


class OwnWriter(IndexWriter):
    """A user's writer."""

    kind = "own"

    def write(self, documents, deletes):
        return WriteResult()


def test_a_plug_in(monkeypatch, tmp_path):
    from nutbeam.io.indexing import writer_kinds

    def found(_, names):
        return tuple((name, OwnWriter if name == "own" else dict) for name in names)

    monkeypatch.setattr(writer_kinds, "load_plugins", found)
    target = IndexTarget("main", "w", {}, tmp_path, 1, "op")
    assert isinstance(open_writer(WriterRule("w", "own", {}), target), OwnWriter)
    with pytest.raises(UsageError, match="is not a subclass of IndexWriter"):
        open_writer(WriterRule("w", "other", {}), target)
