"""Tables of Iceberg and of DuckDB: no row twice and none missing, wherever a run is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from nutbeam.pipelines.outputs.output_tables import Load
from nutbeam.pipelines.outputs.table_addresses import table_output_of
from nutbeam.web.base.errors import UsageError, UserError

TIME = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        ("change", pa.large_string()),
        ("url", pa.large_string()),
        ("http_code", pa.uint16()),
        ("last_fetch_time", TIME),
        ("links", pa.large_list(pa.struct([("url", pa.large_string())]))),
        ("metadata", pa.map_(pa.large_string(), pa.large_string())),
    ]
)
KINDS = ("iceberg", "duckdb")
ADDRESSES = {"iceberg": "iceberg:web.pages", "duckdb": "{folder}/site.duckdb"}


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(params=KINDS)
def output(request, tmp_path):
    return output_in(request.param, tmp_path)


def output_in(kind, folder):
    address = ADDRESSES[kind].format(folder=folder)
    return table_output_of(address, f"{folder}/ware house", "pages")


def rows(*names, schema=SCHEMA, fail_after=None, failure=Killed):
    """Returns a reader of one row per name, each in a batch of its own; or one that fails."""

    def batches():
        for number, name in enumerate(names):
            if number == fail_after:
                raise failure
            row = {"change": "new", "url": name, "http_code": 200, "last_fetch_time": 0,
                   "links": [{"url": "x"}], "metadata": [("a", "b")]}  # fmt: skip
            record = {field.name: [row.get(field.name)] for field in schema}
            yield pa.RecordBatch.from_pydict(record, schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def load(snapshot, since=0, source="/a/table", **choice):
    return Load(source, snapshot, since, choice)


def iceberg_table(folder):
    uri = f"sqlite:///{folder}/ware house/catalog.db"
    return load_catalog("nutbeam", type="sql", uri=uri).load_table("web.pages")


def urls(output, folder):
    """Returns the URLs of all rows in a table, as another program reads it."""
    if output.address.startswith("iceberg:"):
        return sorted(iceberg_table(folder).scan().to_arrow()["url"].to_pylist())
    with duckdb.connect(f"{folder}/site.duckdb", read_only=True) as connection:
        return sorted(url for (url,) in connection.execute("select url from pages").fetchall())


def test_each_load_is_appended_with_its_note(output, tmp_path):
    assert output.last_load("/a/table") is None
    assert list(tmp_path.iterdir()) == []  # a question makes nothing
    assert output.append(rows("u1", "u2"), load(3)) == 2
    assert output.append(rows("u3"), load(5, since=3)) == 1
    assert output.append(rows("u1"), load(8, source="/another")) == 1
    assert output.append(rows(), load(9, since=5)) == 0
    assert urls(output, tmp_path) == ["u1", "u1", "u2", "u3"]
    assert len(list(tmp_path.iterdir())) == 1
    assert output.last_load("/a/table") == load(9, since=5)
    assert output.last_load("/another") == load(8, source="/another")
    with pytest.raises(
        UserError, match=r"another run has brought snapshot 9 of '/a/table' to .*again"
    ):
        output.append(rows("u1"), load(9, since=5))


def test_each_commit_is_one_snapshot_of_iceberg(tmp_path):
    output = output_in("iceberg", tmp_path)
    output.append(rows("u1", "u2"), load(3))
    output.append(rows("u3"), load(5, since=3))
    table = iceberg_table(tmp_path)
    summaries = [snapshot.summary for snapshot in table.snapshots()]
    assert [summary["nutbeam.snapshot"] for summary in summaries] == ["3", "5"]
    assert [summary["added-records"] for summary in summaries] == ["2", "1"]
    (row,) = table.scan(row_filter="url = 'u3'").to_arrow().to_pylist()
    assert (row["http_code"], row["links"], row["metadata"]) == (200, [{"url": "x"}], [("a", "b")])


def test_columns_are_added_and_missing_ones_are_null(output, tmp_path):
    output.append(rows("u1"), load(3))
    wider = SCHEMA.append(pa.field("language", pa.large_string())).remove(2)
    output.append(rows("u2", schema=wider), load(4, since=3))
    assert urls(output, tmp_path) == ["u1", "u2"]


def test_a_table_of_something_else_stays_as_it_is(output, tmp_path):
    own = pa.schema([("url", pa.large_string())])
    if output.address.startswith("iceberg:"):
        (tmp_path / "ware house").mkdir()
        catalog = load_catalog("nutbeam", type="sql", warehouse=f"file://{tmp_path}/ware house",
                               uri=f"sqlite:///{tmp_path}/ware house/catalog.db")  # fmt: skip
        catalog.create_namespace("web")
        catalog.create_table("web.pages", own)
    else:
        with duckdb.connect(f"{tmp_path}/site.duckdb") as connection:
            connection.execute("create table pages (url varchar)")
    with pytest.raises(
        UsageError, match="is a table of something else: it lacks the columns change, "
    ):
        output.append(rows("u1"), load(3))
    assert output.append(rows("u1", schema=own), load(3)) == 1


def test_other_options_than_before_are_refused(tmp_path):
    output = output_in("duckdb", tmp_path)
    last = load(3, **{"--status": ["fetched"], "--chunks": 0})
    output.check_choice(last, last.choice)
    with pytest.raises(
        UsageError, match="has rows by --status fetched, and these are by --status gone"
    ):
        output.check_choice(last, {"--status": ["gone"], "--chunks": 0})


def test_a_kill_before_the_commit_leaves_no_rows(output, tmp_path, monkeypatch):
    output.append(rows("u1"), load(3))
    with pytest.raises((Killed, UserError)):
        output.append(rows("u2", "u3", fail_after=1), load(5, since=3))
    monkeypatch.setattr("pyiceberg.table.Table._do_commit", killed)
    if output.address.startswith("iceberg:"):  # all files are written
        with pytest.raises(Killed):
            output.append(rows("u2", "u3"), load(5, since=3))
    monkeypatch.undo()
    assert urls(output, tmp_path) == ["u1"]
    assert output.last_load("/a/table") == load(3)
    assert output.append(rows("u2", "u3"), load(5, since=3)) == 2
    assert urls(output, tmp_path) == ["u1", "u2", "u3"]


def killed(*_, **__):
    raise Killed


def test_a_kill_after_the_commit_loses_no_rows(tmp_path, monkeypatch):
    from pyiceberg.table import Table

    output, commit = output_in("iceberg", tmp_path), Table._do_commit
    monkeypatch.setattr(Table, "_do_commit", lambda *a, **k: killed(commit(*a, **k)))
    with pytest.raises(Killed):
        output.append(rows("u1"), load(3))
    monkeypatch.undo()
    assert output.last_load("/a/table") == load(3)
    assert output.append_parts([], SCHEMA, load(3, since=3)) == 0
    assert urls(output, tmp_path) == ["u1"]


def test_a_commit_of_another_writer_in_between_is_not_built_upon(tmp_path, monkeypatch):
    from pyiceberg.table import Table

    output, commit = output_in("iceberg", tmp_path), Table._do_commit
    output.append(rows("u1"), load(3))

    def late(*args, **named):
        monkeypatch.undo()
        output_in("iceberg", tmp_path).append(rows("u2"), load(5, since=3))
        return commit(*args, **named)

    monkeypatch.setattr(Table, "_do_commit", late)
    with pytest.raises(UserError, match=r"another program has changed iceberg:web.pages meanwhile"):
        output.append(rows("u2"), load(5, since=3))
    assert urls(output, tmp_path) == ["u1", "u2"]


def test_a_damaged_note_is_an_error(tmp_path):
    output = output_in("duckdb", tmp_path)
    output.append(rows("u1"), load(3))
    for note in ("{}", "[]", "x", '{"source": "", "snapshot": "1", "choice": {}}'):
        with duckdb.connect(f"{tmp_path}/site.duckdb") as connection:
            connection.execute("alter table nutbeam_loads alter load type varchar")
            connection.execute("update nutbeam_loads set load = ?", [note])
        with pytest.raises(UserError, match="has a damaged note of what nutbeam brought"):
            output.last_load("/a/table")


def test_wrong_addresses_and_files_give_one_clear_line(tmp_path):
    for address, words in {
        "iceberg:pages": "must be iceberg:NAMESPACE.TABLE, got 'iceberg:pages'",
        "iceberg:a.b/../../c": "must be iceberg:NAMESPACE.TABLE, got 'iceberg:a.b/../../c'",
        f"{tmp_path}/no/site.duckdb": "no folder ",
    }.items():
        with pytest.raises(UsageError, match=words):
            table_output_of(address, "./iceberg", "pages")
    (tmp_path / "site.duckdb").write_bytes(b"no database at all" * 1000)
    with pytest.raises(
        UserError, match=r"cannot write to .*site.duckdb:pages: .*not a valid DuckDB"
    ):
        output_in("duckdb", tmp_path).last_load("/a/table")
    with pytest.raises(
        UsageError, match=r"--catalog must be a folder without %, \? and # in its path"
    ):
        table_output_of("iceberg:web.pages", f"{tmp_path}/50%/", "")
    with pytest.raises(UserError, match=r"cannot append to iceberg:web.pages, catalog 'nowhere': "):
        table_output_of("iceberg:web.pages", "nowhere", "").last_load("/a/table")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_leaves_no_rows(kind, tmp_path):
    output = output_in(kind, tmp_path)
    output.append(rows("u1"), load(3))
    program = (
        "import os, signal, sys; import test_pipelines_output_tables as t\n"
        "def end(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        "class End(BaseException): __init__ = end\n"
        f"reader = t.rows('u2', 'u3', fail_after=1, failure=End)\n"
        f"t.output_in({kind!r}, {str(tmp_path)!r}).append(reader, t.load(5, since=3))\n"
    )
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, env=os.environ | {"PYTHONPATH": folders}
    )
    assert ended.returncode == -signal.SIGKILL
    assert urls(output, tmp_path) == ["u1"]
    assert output.append(rows("u2", "u3"), load(5, since=3)) == 2
    assert urls(output, tmp_path) == ["u1", "u2", "u3"]


@pytest.mark.long
def test_a_file_that_another_process_has_open_is_named(tmp_path):
    output = output_in("duckdb", tmp_path)
    output.append(rows("u1"), load(3))
    program = f"import duckdb; c = duckdb.connect('{tmp_path}/site.duckdb'); print('open'); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as other:  # fmt: skip
        assert other.stdout.readline() == "open\n"
        with pytest.raises(UserError, match=r"another process has '.*site.duckdb' open: close it"):
            output.append(rows("u2"), load(5, since=3))
        other.communicate("\n")
    assert output.append(rows("u2"), load(5, since=3)) == 1
