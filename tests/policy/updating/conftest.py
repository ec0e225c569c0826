"""Fixtures of the tests of update."""

import pytest
from here import TESTS
from plugins import install

from nutbeam.web.plugins.plugins import forget_plugins


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for files of schedules; the package with the plug-in is installed in it."""
    source = TESTS / "support" / "lively_schedule.py"
    install(tmp_path, "lively-schedule", {source.name: source.read_text()},
            {"lively": "lively_schedule:lively"}, group="nutbeam.schedules")  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    forget_plugins()
    yield tmp_path
    forget_plugins()
