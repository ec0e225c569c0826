"""Tables from strangers: each command says in one line what is wrong, and reads nothing elsewhere."""

import json
import shutil

import pyarrow.parquet as pq
import pytest
from crawling import nutbeam, tree
from hostile_tables import HOSTILE, list_of

from nutbeam.io.snapshots.record_checks import check_number

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
        if (what, command, code) == ("data unpacks to gigabytes", "compact", 0):
            continue  # it reads no file that need not be rewritten
        assert code == 3, command
        line = err.strip().splitlines()[-1]
        assert line.startswith(f"nutbeam {command}: "), command
        assert not any(
            bad in out + err for bad in ("internal error", "Traceback", "secret", "times")
        )
        assert len(line) < 700
    assert tree(tmp_path / "outside", ignore=()) == before


@pytest.mark.parametrize("what", HOSTILE)
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
