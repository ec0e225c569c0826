"""A table whose snapshots share files."""

import pytest
from growing_old import make, written


@pytest.fixture
def table(tmp_path):
    """Three snapshots; each has one file of its own and one of all."""
    make(tmp_path, "one", written(tmp_path, "state", "state/all", "state/a"))
    make(tmp_path, "two", written(tmp_path, "state", "state/b", replaced=["state/a"]))
    make(tmp_path, "three", written(tmp_path, "state", "state/c", replaced=["state/b"]))
    return tmp_path
