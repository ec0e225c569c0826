"""Ctrl-C, SIGTERM, a closed terminal: one line, exit code 130, and what was fetched is kept."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import polars as pl
import pytest
from crawling import asked, manifests_of, nutbeam, reach
from ending import command, ended, wait_for
from hostile_files import SLOW_HTML
from short_form import first
from simulated_web import SimWeb
from terminals import Screen, terminal
from waiting import PATIENCE, wait_until
from web_servers import connect_to, reply, serve

from nutbeam.web.urls.row_keys import from_key

GO_ON = (
    "interrupted; the table is whole, and what was fetched is kept: "
    "run the same command again to go on\n"
)
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENT = ["--timeout", "600"]
WORKERS = ("--direct_num_workers", 2, "--direct_running_mode", "multi_processing")
TRIALS = [(number, client) for client in ("asyncio", "threads") for number in SIGNALS]


@pytest.mark.parametrize("trial", first(1, TRIALS), ids=str)
def test_an_interrupted_crawl_keeps_its_fetched_pages(tmp_path, trial):
    (number, client), table = trial, tmp_path / "table"
    with SimWeb(hosts=2, pages=40, seed=7, crawl_delay=0, latency=0.2) as web:
        words = ("crawl", table, *web.seeds, *reach(web), "--http_client", client)
        # Nothing is to be flushed for ten minutes, so only the signal can have done it.
        with command(tmp_path / "tmp", *words, "--flush_seconds", 600) as process:
            wait_for(process, lambda: len(web.requests()) >= 40)  # amid the third round
            process.send_signal(number)
            code, error = ended(process, tmp_path / "tmp")
        assert (code, error) == (130, f"nutbeam crawl: {GO_ON}")
        safe, before = flushed(table), len(asked(web))
        assert safe
        assert nutbeam("crawl", table, "--rounds", "1", *reach(web)) == 0
        assert safe.isdisjoint(asked(web)[before:])
        assert sum(m.counts.get("adopted", 0) for m in manifests_of(table)) == len(safe)


def flushed(table):
    """Returns the URLs in whole files of pages of the newest batch, which is open."""
    paths = max((table / "batches").iterdir()).glob("pages/p*.parquet")
    keys = [key for path in paths for key in pl.read_parquet(path, columns=["key"])["key"]]
    return {from_key(key) for key in keys}


class Held:
    """A server that does not answer: a fetch waits for it, and does nothing else."""

    def __init__(self):
        self.go = threading.Event()

    def __call__(self, path, _):
        if path == "/robots.txt":
            return reply(status="404 Not Found")
        self.go.wait(600)
        return None


def held_table(tmp_path, *hosts):
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    seeds.write_text("\n".join(f"http://{host}.example.com/1" for host in hosts or ("a",)))
    assert nutbeam("inject", table, seeds) == 0
    return table


def doors_of(server):
    return [
        *(word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)),
        *PATIENT,
    ]


@pytest.mark.long
@pytest.mark.parametrize("more", first(1, [(), WORKERS]), ids=len)
@pytest.mark.parametrize("job", first(1, ["next", "round", "fetch"]))
def test_jobs_and_worker_processes(tmp_path, job, more):
    table, answer = held_table(tmp_path, "a", "b"), Held()
    assert nutbeam("generate", table, "--num_fetchers", 2) == 0
    made = len(manifests_of(table))
    with (
        serve(answer) as server,
        command(tmp_path / "tmp", job, table, *doors_of(server), *more) as process,
    ):
        wait_for(process, lambda: [path for path in server.paths if path == "/1"])
        process.send_signal(signal.SIGTERM)
        code, error = ended(process, tmp_path / "tmp")
        answer.go.set()
    assert (code, error) == (130, f"nutbeam {job}: {GO_ON}")
    assert len(manifests_of(table)) == made


@pytest.mark.long
def test_the_last_lines_on_a_terminal_say_how_far_it_came_and_how_to_go_on(tmp_path):
    table, answer, chunks = held_table(tmp_path, "a", "b"), Held(), []
    with serve(answer) as server, terminal(chunks, 120, rows=20) as slave:
        words = [sys.executable, "-P", "-m", "nutbeam", "crawl", table, *doors_of(server)]
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        process = subprocess.Popen(
            list(map(str, words)), env=environment | {"TERM": "xterm"}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
        )  # fmt: skip
        wait_until(lambda: server.paths.count("/1") == 2, process)
        wait_until(lambda: b"of 2 pages" in b"".join(chunks), process)
        process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE)
        answer.go.set()
    lines, cursor = Screen(120, 20).after(b"".join(chunks))
    assert (code, cursor) == (130, True)
    assert lines[-2:] == [
        "✗ round 1 of 3, fetch: 0 of 2 pages, not finished", f"nutbeam crawl: {GO_ON}".strip(),
    ]  # fmt: skip


@pytest.mark.long
def test_while_a_page_is_parsed(tmp_path):
    """The child at work on it ends, too."""

    def answer(path, _):
        if path == "/robots.txt":
            return reply(status="404 Not Found")
        return reply(SLOW_HTML, "200 OK", "Content-Type: text/html")

    table = held_table(tmp_path)
    words = ("--parser_timeout", 600, "--content_limit", -1)
    with serve(answer) as server:
        words = ("crawl", table, *doors_of(server), "--flush_seconds", 0.1, *words)
        with command(tmp_path / "tmp", *words) as process:
            wait_for(process, lambda: list(table.glob("batches/*/pages/p*.parquet")))
            time.sleep(1.0)
            process.send_signal(signal.SIGTERM)
            assert ended(process, tmp_path / "tmp") == (130, f"nutbeam crawl: {GO_ON}")


@pytest.mark.long
def test_while_it_waits_for_a_lease(tmp_path):
    table, answer = held_table(tmp_path), Held()
    assert nutbeam("generate", table) == 0
    with serve(answer) as server:
        words = ("fetch", table, *doors_of(server))
        with command(tmp_path / "t1", *words) as holder:
            wait_for(holder, lambda: "/1" in server.paths)
            with command(tmp_path / "t2", *words) as process:
                wait_for(process, lambda: " waits for " in process.stderr.readline())
                process.send_signal(signal.SIGTERM)
                assert ended(process, tmp_path / "t2") == (130, f"nutbeam fetch: {GO_ON}")
            answer.go.set()


# A command that does not heed an interrupt.
DEAF = """
import sys, time
from nutbeam.pipelines.base import ending
from nutbeam.pipelines.command_line import cli
from nutbeam.pipelines.views import history
def deaf(invocation):
    while True:
        try:
            print("deaf", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
history.run = deaf
ending.GRACE_S = float(sys.argv.pop(1))
cli.script()
"""
ENDED = (
    "nutbeam history: interrupted, and ended in the middle of its work: "
    "the table is whole; run it again\n"
)


@pytest.mark.parametrize(("grace", "signals"), [(0.2, 1), (3600, 2)])
def test_a_command_that_does_not_heed_it_is_ended_later_or_by_a_second_signal(
    tmp_path, grace, signals
):
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", DEAF, str(grace), "history", "T"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    assert process.stdout.readline() == "deaf\n"
    process.send_signal(signal.SIGTERM)
    if signals == 2:
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)  # as ``timeout`` does: not a second one
        time.sleep(1.0)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=PATIENCE)[1]
    assert (process.returncode, error) == (130, ENDED)


@pytest.mark.long
@pytest.mark.parametrize("before", first(1, [["timeout", "600"], ["nohup"]]))
def test_timeout_and_nohup(tmp_path, before):
    """``timeout`` sends a signal twice; what ``nohup`` has ignored is ignored."""
    table, answer = held_table(tmp_path), Held()
    assert nutbeam("generate", table) == 0
    (tmp_path / "tmp").mkdir()
    with serve(answer) as server:
        words = [sys.executable, "-P", "-m", "nutbeam", "fetch", str(table)]
        process = subprocess.Popen(
            [*before, *words, *doors_of(server), "--progress", "false"],
            env=os.environ | {"TMPDIR": str(tmp_path / "tmp")}, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        wait_for(process, lambda: "/1" in server.paths)
        if before == ["nohup"]:
            os.killpg(process.pid, signal.SIGHUP)
            time.sleep(0.5)
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        code, error = ended(process, tmp_path / "tmp")
        answer.go.set()
    assert code == 130
    assert error.splitlines()[-1] == f"nutbeam fetch: {GO_ON}".strip()


@pytest.mark.long
def test_while_it_compacts(tmp_path):
    """Nothing is half done: the table is as it was, or compacted."""
    table, answer = held_table(tmp_path, *map(str, range(2000))), Held()
    made = len(manifests_of(table))
    for wait in (0.3, 0.6, 0.9):
        with command(tmp_path / "tmp", "compact", table, "--full", "true") as process:
            wait_for(process, lambda: list((tmp_path / "tmp").iterdir()))
            time.sleep(wait)
            process.send_signal(signal.SIGTERM)
            code, _ = ended(process, tmp_path / "tmp")
        assert code in (130, 0)
        before, made = made, len(manifests_of(table))
        # A signal may come between the commit and the end of the process.
        assert made - before in ((1,) if code == 0 else (0, 1))
        assert nutbeam("fsck", table) == 0
    answer.go.set()


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("job", "form"), [("crawl", "json"), ("fetch", "text"), ("sitemap", "json")]
)
def test_sigterm_of_a_job_is_no_error_in_the_log(tmp_path, job, form):
    table, answer = held_table(tmp_path), Held()
    if job == "fetch":
        assert nutbeam("generate", table) == 0
    site = ["http://a.example.com/sitemap.xml"] if job == "sitemap" else []
    with serve(answer) as server:
        words = (job, table, *site, *doors_of(server), "--log_format", form, "--log_level", "info")
        with command(tmp_path / "tmp", *words) as process:
            wait_for(process, lambda: set(server.paths) - {"/robots.txt"})
            process.send_signal(signal.SIGTERM)
            code, said = ended(process, tmp_path / "tmp")
        answer.go.set()
    assert code == 130
    if form == "text":
        assert "ERROR" not in said
        assert said.endswith(f"nutbeam {job}: {GO_ON}")
    else:
        records = [json.loads(line) for line in said.splitlines()]
        assert {record["severity"] for record in records} <= {"INFO", "WARNING"}
        last = records[-1]
        assert (last["event"], last["exit_code"], last["severity"]) == ("end", 130, "WARNING")
