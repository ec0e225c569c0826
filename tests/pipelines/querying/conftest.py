"""Fixtures of the tests of sql: a table with a crawl, and queries that leave it as it is."""

import pytest
from crawling import crawl, nutbeam, tree
from simulated_web import served_web

web = served_web(hosts=2, pages=8, scope="module")


@pytest.fixture(scope="module")
def table(web, tmp_path_factory):
    """A table with a whole crawl; tests only read it."""
    folder = tmp_path_factory.mktemp("sql") / "table"
    assert crawl(folder, web, *web.seeds, "http://[::1]:1/x%5C1") == 0
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
