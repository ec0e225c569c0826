"""Fixtures that several test files use."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder that all may read and ``as_nobody`` may not write; tmp_path is root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="nutbeam-test-"))
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)
