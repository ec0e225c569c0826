"""Fixtures of the tests of reports: a table with a crawl of the reported site."""

import contextlib
import re

import pytest
from crawling import nutbeam
from reported_site import SEEDS, ReportedSite
from web_servers import Server, connect_to, serve


@contextlib.contextmanager
def served_site():
    """Yields the site, and the options that lead a crawl to it."""
    site = ReportedSite()

    def answer(path, _):
        host = re.search(r"(?im)^host: *(\S+)", server.current.head)[1]
        return site.answer(path, host)

    with serve(answer) as server:
        assert isinstance(server, Server)
        words = [word for entry in connect_to(server.port) for word in ("--connect_to", entry)]
        yield site, [*words, "--server_delay", "0", "--max_backoff", "1"]


@pytest.fixture(scope="package")
def reported_site():
    with served_site() as pair:
        yield pair


@pytest.fixture(scope="package")
def reported_table(reported_site, tmp_path_factory):
    """A crawl of two rounds; tests only read it."""
    table = tmp_path_factory.mktemp("report") / "table"
    assert nutbeam("crawl", table, *SEEDS, "--rounds", "2", *reported_site[1]) == 0
    return table
