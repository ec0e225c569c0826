"""Folders for temporary files: whose they are, and who sweeps them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nutbeam.io.storage import processes as module
from nutbeam.io.storage.processes import all_in_scratch, remove_left, remove_scratch, scratch
from nutbeam.web.base.errors import UsageError

CODE = """
import os, sys
from nutbeam.io.storage.processes import scratch
(scratch() / "file").write_text("x")
print(scratch(), flush=True)
input()
"""


@pytest.fixture
def base(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "_folders", {})  # other tests go on with theirs
    yield tmp_path
    remove_scratch()


def other(base):
    """Returns a process that has a folder of its own, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", CODE], env=os.environ | {"TMPDIR": str(base)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return process, Path(process.stdout.readline().strip())


def test_a_folder_is_private_and_is_removed_with_its_process(base):
    process, folder = other(base)
    assert folder.stat().st_mode & 0o777 == 0o700
    remove_left(base)
    assert (folder / "file").exists()
    process.communicate("\n")
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("reaped", [True, False])
def test_the_folder_of_a_killed_process_is_swept_by_the_next_one(base, reaped):
    process, folder = other(base)
    process.kill()
    if reaped:
        process.wait()
    else:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert folder.exists()
    mine = scratch()
    assert list(base.iterdir()) == [mine]
    process.communicate()


def test_nothing_else_is_touched(base):
    process, folder = other(base)
    process.kill()
    process.wait()
    words = folder.name.split("-")  # nutbeam, pid, start, boot, pids, host, a token
    here = {}
    for place in (4, 5):  # another container, another machine
        name = "-".join([*words[:place], "abcdef", *words[place + 1 :]])
        here[name] = base / name
    for name in ("beam-pipeline-tempabc", "nutbeam-parse-x", "nutbeam-1-2-a", folder.name + "x"):
        here[name] = base / name
    for path in here.values():
        path.mkdir()
        (path / "file").write_text("x")
    kept = base / "kept"
    kept.mkdir()
    link = "-".join([*words[:-1], "00000000"])
    (base / link).symlink_to(kept)
    remove_left(base)
    assert {path.name for path in base.iterdir()} == {*here, "kept", link}
    assert all((path / "file").exists() for path in here.values())


def test_folders_from_before_a_restart_of_the_machine_are_swept(base):
    process, folder = other(base)
    words = folder.name.split("-")
    earlier = base / "-".join([*words[:3], "abcdef", *words[4:]])
    earlier.mkdir()
    remove_left(base)
    assert not earlier.exists()
    assert folder.exists()
    process.communicate("\n")


def test_the_folder_of_a_process_that_lives_keeps_the_one_around_it(base):
    process, folder = other(base)
    inner, nested = other(folder)
    process.kill()
    process.wait()
    remove_left(base)
    assert nested.exists()
    inner.kill()
    inner.wait()
    remove_left(base)
    assert list(base.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_the_folder_of_another_user_is_left(base):
    process, folder = other(base)
    process.kill()
    process.wait()
    os.chown(folder, 12345, 12345)
    remove_left(base)
    assert folder.exists()


def test_all_temporary_files_are_made_in_it(base, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(base))
    with all_in_scratch(), all_in_scratch():
        made = tempfile.mkdtemp(prefix="beam-pipeline-temp")
        assert made.startswith(f"{scratch()}/")
        assert os.environ["TMPDIR"] == str(scratch())
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(base)
    assert [path.name for path in base.iterdir()] == [scratch().name]


@pytest.mark.parametrize("name", ["missing", "file"])
def test_no_folder_is_bad_usage(base, monkeypatch, name):
    (base / "file").write_text("x")
    monkeypatch.setattr(tempfile, "tempdir", str(base / name))
    with pytest.raises(UsageError, match=r"^TMPDIR must be a folder that may be written, got '"):
        scratch()
