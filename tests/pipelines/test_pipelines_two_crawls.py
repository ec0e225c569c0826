"""A crawl goes on when another crawl of the same table does a part of its work first."""

import contextlib
import subprocess
import sys
import threading

import pytest
from crawling import manifests_of, nutbeam, statuses_of
from interleaving import launch
from web_servers import connect_to, reply, serve

from nutbeam.io.storage.file_errors import ConflictError
from nutbeam.transforms import operations

SEED = "http://a.example.com/"


@pytest.fixture
def web():
    def answer(path, _):
        if "robots" in path:
            return reply(b"", "404 Not Found")
        body = f"<a href=/b>{path}</a>".encode()
        return reply(body, "200 OK", "Content-Type: text/html")

    with serve(answer) as server:
        server.connect_to = ["--connect_to", *connect_to(server.port), "--server_delay", "0"]
        yield server


@pytest.mark.long
@pytest.mark.parametrize("command", [("crawl", "--rounds", "5"), ("round",)])
def test_work_of_another_crawl_is_not_repeated(web, tmp_path, monkeypatch, caplog, command):
    table, others = tmp_path / "table", []
    commit_job = operations.commit_job

    def commit(operation, written, how):
        if operation.job == "update" and not others:
            others.append(operation)
            assert launch("updatedb", table) == 0  # of the other crawl
        return commit_job(operation, written, how)

    assert nutbeam("inject", table, SEED) == 0
    monkeypatch.setattr(operations, "commit_job", commit)
    name, *words = command
    assert nutbeam(name, table, *words, *web.connect_to) == 0
    assert len(others) == 1
    assert "another crawl or job has committed first, the phase is run again" in caplog.text
    updates = [m for m in manifests_of(table) if m.job == "update"]
    assert len({m.batch for m in updates}) == len(updates)
    beyond = "db_fetched" if name == "crawl" else "db_unfetched"
    assert statuses_of(table) == {SEED: "db_fetched", f"{SEED}b": beyond}


def test_a_conflict_without_another_commit_ends_the_crawl(web, tmp_path, monkeypatch, capsys):
    def commit(operation, written, how):
        raise ConflictError("for no reason")

    table = tmp_path / "table"
    assert nutbeam("inject", table, SEED) == 0
    monkeypatch.setattr(operations, "commit_job", commit)
    assert nutbeam("crawl", table, *web.connect_to) == 3
    assert "for no reason" in capsys.readouterr().err


@pytest.fixture
def slow_web():
    """Serves pages, of which /p1 waits until ``go_on`` is set; ``paths`` are those requested."""
    go_on, reached, paths = threading.Event(), threading.Event(), []

    def answer(path, _):
        if "robots" in path:
            return reply(b"", "404 Not Found")
        paths.append(path)
        if path == "/p1":
            reached.set()
            assert go_on.wait(60)
        links = "<a href=/p1>1</a><a href=/p2>2</a>" if path == "/" else ""
        return reply(f"{path}{links}".encode(), "200 OK", "Content-Type: text/html")

    with serve(answer) as server:
        server.go_on, server.reached, server.requested = go_on, reached, paths
        server.options = [
            *("--connect_to", connect_to(server.port)[0], "--server_delay", "0"),
            *("--timeout", "60", "--progress", "false"),
        ]
        yield server
        go_on.set()


@contextlib.contextmanager
def started(command, table, *words):
    """Starts a command in a process of its own."""
    program = [sys.executable, "-m", "nutbeam", command, str(table), *words]
    with subprocess.Popen(program, stdout=-1, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("first", "second", "codes", "last"),
    [
        (["fetch"], ["crawl", "--rounds", "1"], (0,), "dedup"),
        (["fetch"], ["next"], (0,), "parse"),
        pytest.param(["fetch"], ["fetch"], (1,), "fetch", marks=pytest.mark.long),
        pytest.param(["fetch"], ["round"], (0,), "dedup", marks=pytest.mark.long),
        pytest.param(
            ["crawl", "--rounds", "1"], ["crawl", "--rounds", "1"], (0,), "dedup",
            marks=pytest.mark.long,
        ),
        pytest.param(["crawl", "--rounds", "1"], ["next"], (0, 1), None, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_command_that_waited_for_a_fetch_reads_the_table_again(
    slow_web, tmp_path, first, second, codes, last
):
    table = tmp_path / "table"
    assert nutbeam("crawl", table, SEED, "--rounds", "1", *slow_web.options[:-2]) == 0
    assert nutbeam("generate", table) == 0
    (name, *words), (other, *more) = first, second
    with started(name, table, *words, *slow_web.options) as fetching:
        assert slow_web.reached.wait(60)
        with started(other, table, *more, *slow_web.options) as waiting:
            line = waiting.stderr.readline()
            while " waits for " not in line:
                assert line, waiting.wait()
                line = waiting.stderr.readline()
            slow_web.go_on.set()
            printed, errors = waiting.communicate(timeout=200)
            assert waiting.returncode in codes, errors + printed
        assert fetching.wait(200) == 0
    if other in ("crawl", "round"):  # it says why it has fetched nothing
        assert "another run has fetched 2 pages meanwhile" in printed
    # By the rule of exit codes: 1 only if the other run has left nothing.
    assert (waiting.returncode == 1) == ("nothing to do" in printed + errors), printed + errors
    assert slow_web.requested.count("/p1") == slow_web.requested.count("/p2") == 1
    if last is not None:
        assert manifests_of(table)[-1].job == last
    assert nutbeam("fsck", table) == 0
