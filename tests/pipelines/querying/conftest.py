"""Fixtures of the tests of sql: a table with a crawl, and queries that leave it as it is."""

import pytest
from crawling import nutbeam, tree
from simulated_web import served_web

web = served_web(hosts=2, pages=8, scope="session")


@pytest.fixture(scope="session")
def table(web, kept_crawls, tmp_path_factory):
    """A table with a whole crawl, and a row with an odd key; tests only read it."""
    folder = tmp_path_factory.mktemp("sql") / "table"
    kept_crawls.make(web, folder)
    assert nutbeam("inject", folder, "http://[::1]:1/x%5C1") == 0
    return folder


@pytest.fixture
def ask(table, capsys):
    def run(query, *words, code=0):
        before = tree(table, ignore=())
        capsys.readouterr()
        assert nutbeam("sql", table, query, *words) == code
        assert tree(table, ignore=()) == before
        captured = capsys.readouterr()
        if code:
            assert captured.out == ""
            assert captured.err.count("\n") == 1
            assert "internal error" not in captured.err
            return captured.err.strip()
        return captured.out

    return run
