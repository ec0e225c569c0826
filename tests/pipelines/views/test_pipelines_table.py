"""nutbeam table: create, describe, drop."""

import json
import re

import pytest
from committing import changes_of, record_of, write_changes
from guide_blocks import blocks, run_as_typed
from here import ROOT

from nutbeam.io.bigtable.address import EMULATOR
from nutbeam.io.bigtable.admin import open_admin
from nutbeam.io.bigtable.snapshot_log import open_log
from nutbeam.pipelines.command_line.cli import main

GUIDE = ROOT / "docs" / "guides" / "bigtable.md"


@pytest.fixture
def address(bigtable):
    return bigtable.new_address()


def run(capsys, *words):
    code = main(["table", *map(str, words)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.bigtable
def test_create_describe_and_drop(address, tmp_path, capsys):
    files = tmp_path / "deep" / "files"
    code, out, err = run(capsys, "create", address, "--files", files)
    assert (code, err) == (0, "")
    assert out == f"created {address}, its files are in {files}\n"
    assert files.is_dir()
    code, out, _ = run(capsys, "describe", address)
    assert code == 0
    assert f"files     {files}\n" in out
    assert "snapshot  0\n" in out
    assert "families  h (versions: 4), l (versions: 4), m (versions: 1), s (versions: 4)\n" in out
    code, out, err = run(capsys, "drop", address)
    assert code == 2
    assert err == (
        f"nutbeam table: drop deletes {address} with all its rows: add --yes if that is wanted\n"
    )
    code, out, _ = run(capsys, "drop", address, "--yes")
    assert (code, out) == (0, f"dropped {address}; its files are left in {files}\n")
    code, _, err = run(capsys, "describe", address)
    assert code == 2
    assert re.fullmatch(r"nutbeam table: no table at bigtable://.*: nutbeam table create .*\n", err)


@pytest.mark.bigtable
def test_as_json(address, tmp_path, capsys):
    text = f"{address}&app_profile=batch"
    code, out, _ = run(capsys, "create", text, "--files", tmp_path / "f", "--format", "json")
    assert code == 0
    assert json.loads(out)["created"] is True
    log = open_log(address)
    assert log.table.address.app_profile == "batch"  # for all who name none
    log.store(1, record_of(1), write_changes(tmp_path / "f", changes_of(1)))
    log.propose(log.head(), record_of(2), write_changes(tmp_path / "f", changes_of(2)), "x")
    code, out, _ = run(capsys, "describe", address, "--format", "json")
    found = json.loads(out)
    (last,) = found.pop("ranges")[-1:]
    assert last["bytes"] >= 0
    assert found.pop("disk")["free"] > 0
    assert found == {
        "bytes": 0, "components": [], "freed": [],
        "table": str(address), "files": str(tmp_path / "f"), "app_profile": "batch",
        "snapshot": 1, "applying": 2, "families": {"h": 4, "l": 4, "m": 1, "s": 4},
    }  # fmt: skip
    code, out, _ = run(capsys, "drop", address, "--yes", "--format", "json")
    assert json.loads(out)["dropped"] is True


@pytest.mark.bigtable
def test_a_table_is_made_once(address, tmp_path, capsys):
    assert run(capsys, "create", address, "--files", tmp_path / "a")[0] == 0
    code, _, err = run(capsys, "create", address, "--files", tmp_path / "b")
    assert (code, err) == (2, f"nutbeam table: there is a web table already at {address}\n")
    assert open_log(address).settings().files == str(tmp_path / "a")


@pytest.mark.bigtable
def test_a_creation_that_was_cut_off_is_completed(address, tmp_path, capsys):
    assert run(capsys, "create", address, "--files", tmp_path / "a")[0] == 0
    open_admin(address).drop_row_range(
        request={"name": address.name, "delete_all_data_from_table": True}
    )
    assert run(capsys, "describe", address)[0] == 3
    assert run(capsys, "create", address, "--files", tmp_path / "b")[0] == 0
    assert open_log(address).settings().files == str(tmp_path / "b")


@pytest.mark.bigtable
def test_another_table_is_left_alone(address, tmp_path, capsys):
    open_admin(address).create_table(
        request={"parent": address.instance_name, "table_id": address.table,
                 "table": {"column_families": {"x": {}}}}
    )  # fmt: skip
    code, _, err = run(capsys, "create", address, "--files", tmp_path / "a")
    assert code == 2
    assert "there is another table at bigtable://" in err
    code, _, err = run(capsys, "drop", address, "--yes")
    assert code == 3
    assert open_admin(address).get_table(name=address.name).name == address.name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["make", "bigtable://p/i/t"], "the action must be one of create, describe, drop, got 'make'"),
        (["describe"], "missing argument ADDRESS"),
        (["drop", "folder"], "a table in a folder or a store needs no drop, got 'folder': inject makes"),
        (["create", "gs://b/t"], "a table in a folder or a store needs no create, got 'gs"),
        (["describe", "folder"], "no web table at 'folder'"),
        (["describe", "FULL/file"], "the table must be a folder, got the file '"),
        (["describe", "FULL"], "and it is not empty: it has 'file'"),
        (["describe", "bigtable://p/i"], "the table must be bigtable://PROJECT/INSTANCE/TABLE"),
        (["create", "bigtable://my-project/my-instance/t"], "create needs --files"),
        (["create", "bigtable://my-project/my-instance/t", "--files", "ftp://x"],
         "an address must be a local folder, gs://BUCKET/NAME, s3://BUCKET/NAME or"),
        (["create", "bigtable://my-project/my-instance/t", "--files", "FULL"],
         "--files must be a new or empty folder, got"),
        (["create", "bigtable://my-project/my-instance/t", "--files", "FULL/file/x"],
         "cannot make the folder"),
    ],
)  # fmt: skip
def test_errors_of_table_are_one_line(words, said, tmp_path, capsys):
    (tmp_path / "file").touch()
    code, out, err = run(capsys, *(word.replace("FULL", str(tmp_path)) for word in words))
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.bigtable
def test_a_server_that_does_not_answer_is_reported_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(EMULATOR, "127.0.0.1:1")
    monkeypatch.setattr("nutbeam.io.bigtable.channel.back_off", lambda failed: None)
    address = "bigtable://my-project/my-instance/nobody"
    for words in (["create", address, "--files", tmp_path / "f"], ["describe", address]):
        code, _, err = run(capsys, *words)
        assert code == 3
        assert "the emulator at 127.0.0.1:1 failed 5 times in a row for bigtable://my-pro" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["create", "--files", "f"], ["describe"], ["drop", "--yes"]])
def test_no_credentials(words, tmp_path, capsys, monkeypatch):
    # As on a machine that nobody has logged in from, and that is not Google's.
    for name in (EMULATOR, "GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, words[0], "bigtable://my-project/my-instance/t", *words[1:])
    assert (code, out) == (3, "")
    assert err.startswith("nutbeam table: no credentials for bigtable://my-project/my-instance/t: ")
    assert err.endswith("log in with gcloud auth application-default login\n")
    assert err.count("\n") == 1


@pytest.mark.long
@pytest.mark.bigtable
@pytest.mark.skipif(not GUIDE.exists(), reason="docs/ is not part of the wheel")
def test_the_guide_runs_as_typed(bigtable, tmp_path, monkeypatch, warm_commands):
    monkeypatch.setenv(EMULATOR, bigtable.host)
    typed = [
        text for text, reason in blocks(GUIDE, "bash") if (reason or "").startswith("bigtable:")
    ]
    assert typed
    printed = run_as_typed("\n".join(typed), tmp_path, warm_commands)
    assert "created bigtable://my-project/crawls/pages" in printed
    assert (tmp_path / "pages.jsonl").read_text("utf-8").count("\n") > 3
    assert "dropped bigtable://my-project/crawls/pages" in printed
