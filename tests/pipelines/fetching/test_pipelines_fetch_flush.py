"""`--flush_seconds` is a bound: what was fetched is on disk so soon after its first page came."""

import contextlib
import subprocess
import sys
import threading
import time

import polars as pl
import pytest
from crawling import manifest_of, nutbeam
from hostile_files import SLOW_HTML
from waiting import PATIENCE, wait_until
from web_servers import connect_to, reply, serve

from nutbeam.web.urls.row_keys import from_key

HTML = "Content-Type: text/html"
HOSTS = ("a.example.com", "b.example.com")


class Web:
    """Some pages come at once; the others not before they are let go."""

    def __init__(self, quick):
        self.quick, self.go = quick, threading.Event()

    def __call__(self, path, _):
        if path == "/robots.txt":
            return reply(status="404 Not Found")
        if path not in self.quick:
            self.go.wait(60)
        return reply(self.quick.get(path, b"<title>late</title>"), "200 OK", HTML)


@contextlib.contextmanager
def fetching(tmp_path, answer, *words):
    """Runs ``fetch`` in a process of its own, on /1 and /2 of two hosts; yields table and process."""
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    seeds.write_text("\n".join(f"http://{host}/{n}" for n, host in enumerate(HOSTS, 1)))
    assert nutbeam("inject", table, seeds) == 0
    assert nutbeam("generate", table) == 0
    with serve(answer) as server:
        command = command_of(table, server, *words)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            yield table, server, process
        finally:
            answer.go.set()
            process.kill()
            process.communicate()


def command_of(table, server, *words):
    doors_ = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
    words = ["fetch", table, *doors_, "--server_delay", 0, "--progress", "false", *words]
    return [sys.executable, "-P", "-m", "nutbeam", *map(str, words)]


def flushed(table):
    """Returns the URLs in whole files of pages."""
    paths = sorted(table.glob("batches/*/pages/[!.]*.parquet"))
    keys = [key for path in paths for key in pl.read_parquet(path, columns=["key"])["key"]]
    return [from_key(key) for key in keys]


@pytest.mark.long
@pytest.mark.parametrize("client", ["threads", "asyncio"])
def test_a_page_and_then_silence(tmp_path, client):
    answer = Web({"/1": b"<title>one</title>"})
    words = ("--http_client", client, "--flush_seconds", 2)
    with fetching(tmp_path, answer, *words) as (table, server, process):
        wait_until(lambda: len(flushed(table)) == 1)  # the server still waits
        assert not answer.go.is_set()
        process.kill()
        process.wait()
        answer.go.set()
        before = len(server.paths)
        again = command_of(table, server, *words)
        assert (
            subprocess.run(again, timeout=PATIENCE, check=False, capture_output=True).returncode
            == 0
        )
        assert server.paths[before:].count("/1") == 0
        assert server.paths[before:].count("/2") == 1
    counts = manifest_of(table).counts
    assert (counts["pages"], counts["adopted"]) == (2, 1)


@pytest.mark.long
def test_a_page_that_is_slow_to_parse_holds_up_no_others(tmp_path):
    """It is on disk at once, and so is what comes while it is being parsed."""
    answer = Web({"/1": SLOW_HTML})
    words = ("--parse_while_fetching", "true", "--parse_processes", 1, "--flush_seconds", 0.2)
    words += ("--parser_timeout", 600, "--content_limit", -1)
    with fetching(tmp_path, answer, *words) as (table, _, process):
        wait_until(lambda: len(flushed(table)) == 1)
        time.sleep(0.5)  # the parser is at it
        answer.go.set()
        wait_until(lambda: len(flushed(table)) == 2)
        assert process.poll() is None
        documents = list(table.glob("batches/*/documents/[!.]*.parquet"))
        assert documents == []  # it is still at it
