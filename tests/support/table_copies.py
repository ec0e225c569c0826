"""Copies of tables that tests may change."""

import shutil
from pathlib import Path
from typing import Any

import pytest


def copied_table() -> Any:
    """Returns a fixture that copies the table ``original`` of a module or folder, for ``table = copied_table()``."""

    @pytest.fixture
    def table(original: Path, tmp_path: Path) -> Path:
        return shutil.copytree(original, tmp_path / "table")

    return table
