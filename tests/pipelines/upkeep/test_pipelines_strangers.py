"""Tables from strangers: each command says in one line what is wrong, and reads nothing elsewhere."""

import json
import shutil
import zlib

import polars as pl
import pyarrow.parquet as pq
import pytest
from crawling import nutbeam, tree
from hostile_tables import HOSTILE, change_manifest, list_of, with_rows

from nutbeam.io.disk.record_checks import check_number
from nutbeam.io.tablets.file_lists import DataFile
from nutbeam.io.tablets.fold import fold_tablet, group_bounds
from nutbeam.io.tablets.tablets import Tablet, read_tablets, rows_with_keys
from nutbeam.policy.components.kinds import kind_of
from nutbeam.web.base.errors import UserError

SECRET = "com.secret:http/"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, and beside it a folder with a list and a file that a stranger may want to read."""
    folder = tmp_path_factory.mktemp("strangers")
    assert nutbeam("inject", folder / "table", "http://h0.example.com/") == 0
    (folder / "outside").mkdir()
    shutil.copy(list_of(folder / "table"), folder / "outside" / "list.parquet")
    file = pq.read_table(
        folder / "table" / pq.read_table(list_of(folder / "table"))["path"][0].as_py()
    )
    rows = [row | {"key": f"{SECRET}{number}"} for number, row in enumerate(file.to_pylist())]
    path = folder / "outside" / "0123456789abcdef.parquet"
    pq.write_table(type(file).from_pylist(rows, schema=file.schema), path)
    return folder


COMMANDS = {
    "readdb": (),
    "sql": ("SELECT * FROM state",),
    "copy": ("{to}",),
    "compact": ("--snapshot_retention", "0"),
    "purge": ("--host", "h0.example.com", "--now", "--wait_seconds", "0"),
    "generate": (),
}


def through_a_link(table):
    """Makes the list of the state name a file outside, through a link in the table."""
    (table / "state" / "moved").symlink_to(table.parent / "outside")
    with_rows(path="state/moved/0123456789abcdef.parquet")(table)


@pytest.mark.parametrize("words", [(), ("--query",), ("--format", "json")])
@pytest.mark.parametrize("change", [through_a_link, with_rows(path="state")])
def test_files_names_no_file_that_nutbeam_itself_does_not_read(
    change, words, made, tmp_path, capsys
):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    change(tmp_path / "table")
    assert nutbeam("files", tmp_path / "table", "state", *words) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nutbeam files: data file cannot be read: ")


def test_rows_of_another_component_are_no_internal_error_of_readdb(made, tmp_path, capsys):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (hosts,) = pq.read_table(list_of(tmp_path / "table", "hosts"))["path"].to_pylist()
    with_rows(path=hosts)(tmp_path / "table")
    assert nutbeam("readdb", tmp_path / "table") == 0
    out, err = capsys.readouterr()
    assert "status 0" in out
    assert "internal error" not in err
    assert nutbeam("fsck", tmp_path / "table") == 3


UNPACKED = ("data unpacks to gigabytes", "keys repeat a long text", "metadata repeats a long text")


@pytest.mark.few(4)
@pytest.mark.parametrize("what", HOSTILE)
def test_each_command_ends_with_one_line_and_reads_nothing_outside(what, made, tmp_path, capsys):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    HOSTILE[what](tmp_path / "table")
    before = tree(tmp_path / "outside", ignore=())
    for command, words in COMMANDS.items():
        words = [word.format(to=tmp_path / "copy") for word in words]
        capsys.readouterr()
        code = nutbeam(command, tmp_path / "table", *words)
        out, err = capsys.readouterr()
        if (command, code) == ("compact", 0) and what in UNPACKED:
            continue  # it reads no file that need not be rewritten
        assert code == 3, command
        line = err.strip().splitlines()[-1]
        assert line.startswith(f"nutbeam {command}: "), command
        assert not any(
            bad in out + err for bad in ("internal error", "Traceback", "secret", "times")
        )
        assert len(line) < 700
    assert tree(tmp_path / "outside", ignore=()) == before


# Seconds pass until such a file is made; one in which keys repeat a text is refused by the same check.
GROWN = pytest.param("data unpacks to gigabytes", marks=pytest.mark.long)


@pytest.mark.few(8)
@pytest.mark.parametrize("what", [GROWN if what in GROWN.values else what for what in HOSTILE])
def test_fsck_reports_each_hostile_change_of_a_stranger(what, made, tmp_path, capsys):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    HOSTILE[what](tmp_path / "table")
    assert nutbeam("fsck", tmp_path / "table", "--format", "json") == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["problems"]
    assert "internal error" not in err
    assert "secret" not in out


@pytest.mark.parametrize("place", ["manifest/99999999.json", "manifest/made/99999999"])
def test_a_number_far_beyond_the_others_costs_no_memory(place, made, tmp_path, capsys):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "table" / place).write_text("{}")
    assert nutbeam("fsck", tmp_path / "table") == 3
    assert "99999998.json: are missing" in capsys.readouterr().out.replace("99999999", "99999998")
    assert nutbeam("fsck", tmp_path / "table", "--repair") == 3
    assert "are missing, which cannot be: remove the files with larger numbers" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("value", [2**53 + 1, -(2**60), 1.5, True, None, "7", [7]])
def test_a_number_in_a_record_is_whole_and_fits(value):
    with pytest.raises(ValueError, match="is no number that can be"):
        check_number(value)


@pytest.mark.parametrize("command", ["readdb", "fsck", "compact", "generate"])
def test_a_list_of_far_more_rows_than_the_file_has_takes_no_memory(command, made, tmp_path, capsys):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    with_rows(rows=2**53, bytes=2**53, crc32=None)(tmp_path / "table")
    change_manifest(
        tmp_path / "table",
        lambda record: record["components"]["state"].update(rows=2**53, bytes=2**53),
    )
    code = nutbeam(command, tmp_path / "table")
    out, err = capsys.readouterr()
    assert code in (0, 1, 3)
    assert not any(bad in out + err for bad in ("internal error", "Traceback", "allocate"))
    if command == "fsck":
        assert code == 3
        assert "should have 9,007,199,254,740,992" in out


@pytest.mark.parametrize("rows", [0, 2**53])
def test_a_tablet_whose_rows_are_not_as_its_list_says_is_one_line(rows, made):
    table = made / "table"
    (row,) = pq.read_table(list_of(table)).to_pylist()
    base = DataFile(row["path"], rows, 2**53, row["first"], row["last"])
    run = DataFile(row["path"], rows, 2**53, row["first"], row["last"], row["path"], order=1)
    tablet, schema = Tablet(base, (run,)), kind_of("state").schema
    keys = pl.Series([row["first"]])
    for read in (
        lambda: read_tablets(table, "state", [tablet], ["key"]),
        lambda: rows_with_keys(table, "state", tablet, keys),
        lambda: list(fold_tablet(table, schema, tablet)),
        lambda: group_bounds(table, tablet) if rows else list(fold_tablet(table, schema, tablet)),
    ):
        with pytest.raises(UserError, match=r"^[^\n]*state/[^\n]*$"):
            read()


def test_a_stranger_s_options_of_a_generate_cause_no_error_in_explain(made, tmp_path, capsys):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    assert nutbeam("generate", tmp_path / "table") == 0
    odd = {"top_n": "x", "min_score": [1], "expr": 7, "exclude": [1], "of_later": None}
    change_manifest(tmp_path / "table", lambda record: record.update(options=odd))
    assert nutbeam("explain", tmp_path / "table", "http://h0.example.com/") == 0
    assert "internal error" not in capsys.readouterr().err


HISTORY = {
    "snapshot": 1, "operation": "1-x.inject", "job": "inject", "batch": None, "time": 4,
    "counts": {"a": 1}, "restores": None, "undone": False,
}  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"snapshot": 2**53 + 1}, {"time": 1.5}, {"counts": {"a": 2**60}}, {"counts": [1]},
        {"operation": "\x1b[2J"}, {"job": 7}, {"batch": "../x"}, {"restores": "1"},
    ],
)  # fmt: skip
def test_history_of_a_stranger_is_checked_where_it_is_read(fields, made, tmp_path, capsys):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "table" / "history" / "00000001-00000001.jsonl"
    file.parent.mkdir()
    file.write_text(json.dumps(HISTORY | {"snapshot": 0}))
    assert nutbeam("fsck", tmp_path / "table") == 0
    file.write_text(json.dumps(HISTORY | fields))
    capsys.readouterr()
    assert nutbeam("history", tmp_path / "table", "--counts", "--last", "0") == 3
    line = capsys.readouterr().err.strip()
    assert "file is damaged: " in line
    assert "\n" not in line
    assert nutbeam("fsck", tmp_path / "table", "--repair") == 3
    assert "history/00000001-00000001.jsonl: file is damaged: remove it" in capsys.readouterr().out
    file.unlink()
    assert nutbeam("fsck", tmp_path / "table") == 0


@pytest.mark.long
def test_a_graph_of_a_stranger_with_a_block_of_two_billion_nodes_takes_no_memory(tmp_path, capsys):
    (tmp_path / "a.html").write_text('<a href="b.html">b</a>')
    (tmp_path / "b.html").write_text('<a href="a.html">a</a>')
    files = ("--schemes", "file", "--file_roots", tmp_path, "--rounds", "1")
    table = tmp_path / "table"
    assert nutbeam("crawl", table, f"file://{tmp_path}/a.html", *files) == 0
    internal = ("--ignore_internal_host", "false", "--ignore_internal_domain", "false")
    assert nutbeam("webgraph", table, *internal) == 0
    with_rows("page_nodes", partition=2**31 - 1)(table)
    capsys.readouterr()
    assert nutbeam("linkrank", table) == 3
    assert "a block of the graph of pages" in capsys.readouterr().err


def test_keys_that_are_no_urls_are_shown_as_they_are(made, tmp_path, capsys):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    table = tmp_path / "table"
    path = table / pq.read_table(list_of(table))["path"][0].as_py()
    rows = pl.read_parquet(path).with_columns(key=pl.lit("../\x1b[2J"))
    pq.write_table(rows.to_arrow().cast(pq.read_schema(path)), path)
    with_rows(bytes=path.stat().st_size, crc32=zlib.crc32(path.read_bytes()))(table)
    capsys.readouterr()
    assert nutbeam("readdb", table, "--top", "1") == 0
    out, err = capsys.readouterr()
    assert "../\\x1b[2J" in out
    assert "internal error" not in err
