"""Fixtures of tests of jobs: tables in Bigtable's emulator, and commands that must fail.

Other tests have tables of their own.
"""

import pytest
from bigtable_emulator import Counter
from crawling import nutbeam
from simulated_web import served_web

web = served_web(hosts=3, pages=6, scope="module")


@pytest.fixture
def table(bigtable, tmp_path):
    return bigtable.make(tmp_path / "files")


@pytest.fixture
def counted(bigtable, tmp_path):
    """A table behind what counts the rows that are read and written."""
    with Counter(bigtable.host) as counter:
        yield bigtable.make(tmp_path / "files", counter.host), counter


@pytest.fixture
def refuse(capsys):
    """Runs a command that must fail with one line, and returns that line."""

    def run(*words, code=2):
        capsys.readouterr()
        assert nutbeam(*words) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"nutbeam {words[0]}: ")
        assert captured.err.count("\n") == 1
        assert "Traceback" not in captured.err
        assert "internal error" not in captured.err
        return captured.err.removeprefix(f"nutbeam {words[0]}: ").rstrip("\n")

    return run
