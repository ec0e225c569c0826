"""What cannot be written in a folder; which name is won by whom: tests/io/storage/test_io_stores.py."""

import errno
import os

import pytest
from dropping import as_nobody

from nutbeam.io.storage.files import create_exclusive
from nutbeam.io.storage.local_place import LocalPlace
from nutbeam.web.base.errors import UserError


def names(folder):
    return [path.name for path in folder.iterdir()]


def test_a_folder_that_may_not_be_written(locked):
    error = as_nobody(create_exclusive, LocalPlace(locked) / "table" / "manifest" / "1", b"")
    assert isinstance(error, UserError)
    assert str(error) == f"cannot write {locked}/table/manifest/1: Permission denied"
    error = as_nobody(create_exclusive, LocalPlace(locked) / "name", b"")
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
