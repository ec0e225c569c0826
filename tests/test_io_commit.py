import errno
import itertools
import os
import threading

import pytest
from dropping import as_nobody

from nutbeam.io.commit import create_exclusive
from nutbeam.web.errors import UserError


def names(folder):
    return [path.name for path in folder.iterdir()]


def test_creates_a_file_once(tmp_path):
    path = tmp_path / "deep" / "er" / "name"
    assert create_exclusive(path, b"one") is True
    assert create_exclusive(path, b"two") is False
    assert path.read_bytes() == b"one"
    assert names(path.parent) == ["name"]  # nothing temporary is left


@pytest.mark.parametrize("threads", [2, 8])
def test_each_name_is_won_once(tmp_path, threads):
    won = [[] for _ in range(threads)]
    gate = threading.Barrier(threads)

    def race(me):
        for round_ in range(20):
            gate.wait()
            if create_exclusive(tmp_path / f"{round_:03d}", f"{me}".encode()):
                won[me].append(round_)

    racers = [threading.Thread(target=race, args=(me,)) for me in range(threads)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(itertools.chain(*won)) == list(range(20))
    for me, rounds in enumerate(won):
        for round_ in rounds:
            assert (tmp_path / f"{round_:03d}").read_bytes() == f"{me}".encode()
    assert len(names(tmp_path)) == 20


def test_a_folder_that_may_not_be_written(locked):
    error = as_nobody(create_exclusive, locked / "table" / "manifest" / "1", b"")
    assert isinstance(error, UserError)
    assert str(error) == f"cannot write {locked}/table/manifest/1: Permission denied"
    error = as_nobody(create_exclusive, locked / "name", b"")
    assert str(error) == f"cannot write {locked}/name: Permission denied"
    assert names(locked) == []


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    # Not False: a caller would take that for a race that it lost, and try again for ever.
    with pytest.raises(UserError, match=r"cannot write .*file/1: File exists"):
        create_exclusive(tmp_path / "file" / "1", b"")
    with pytest.raises(UserError, match=r"cannot write .*: Not a directory"):
        create_exclusive(tmp_path / "file" / "deeper" / "1", b"")


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_hard_links(tmp_path, monkeypatch, code):
    def fail(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(UserError, match=r"1: the file system has no hard links$"):
        create_exclusive(tmp_path / "1", b"")
    assert names(tmp_path) == []


def test_a_full_disk(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(
        UserError, match=r"1: No space left on device: make room, then run the same again$"
    ):
        create_exclusive(tmp_path / "1", b"")
    assert names(tmp_path) == []
