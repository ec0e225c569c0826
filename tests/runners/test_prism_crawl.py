"""Prism, Beam's portable runner in Go: the same table, and as quiet as in this process."""

import os
import subprocess
import sys
from pathlib import Path

import job_server
import pytest
from crawling import assert_same, assert_whole, contents, crawl, manifests_of, nutbeam, reach
from free_ports import free_port
from running import NO_PRISM, PRISM, RUNNERS
from simulated_web import served_web
from waiting import wait_until, wait_until_none

pytestmark = [
    pytest.mark.prism,
    pytest.mark.skipif(not PRISM.exists(), reason=NO_PRISM),
]


web = served_web(hosts=3, pages=12, scope="module")


@pytest.fixture(scope="module")
def table(web, tmp_path_factory):
    """A table that was crawled in this process."""
    folder = tmp_path_factory.mktemp("prism") / "table"
    assert crawl(folder, web, *web.seeds, "--runner=FnApiRunner") == 0
    return folder


def counts_of(table):
    return [(manifest.job, dict(manifest.counts)) for manifest in manifests_of(table)]


@pytest.fixture(scope="module")
def endpoint():
    """A Prism that was started by hand, as on a machine that many use."""
    port = free_port()
    command = [PRISM, f"--job_port={port}", "--serve_http=false"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: job_server.answers(port), process)
    yield f"localhost:{port}"
    process.terminate()
    process.wait(30)


def test_a_crawl_on_prism_gives_the_same_table(web, table, tmp_path):
    folder = tmp_path / "table"
    assert crawl(folder, web, *web.seeds, *RUNNERS["prism"]) == 0
    assert_whole(folder, web.site)
    assert_same(contents(folder), contents(table))
    assert counts_of(folder) == counts_of(table)


def test_a_crawl_on_a_prism_that_is_there_gives_the_same_table(web, table, tmp_path, endpoint):
    folder = tmp_path / "table"
    words = ["--runner=PortableRunner", f"--job_endpoint={endpoint}",
             "--environment_type=LOOPBACK", "--job_server_timeout=36000"]  # fmt: skip
    assert crawl(folder, web, *web.seeds, *words, "--num_fetchers", 3) == 0
    assert_whole(folder, web.site)
    assert_same(contents(folder), contents(table))


def command(*words, prism=f"--prism_location={PRISM}"):
    """Runs the command as users do; returns (exit code, standard output, standard error)."""
    words = [*map(str, words), "--runner=PrismRunner", prism, "--progress", "false"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "nutbeam", *words],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def processes_of(name):
    """Returns the ids of the processes that run a program with an argument like that."""
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and name in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
        except OSError:  # it has just ended
            continue
    return found - {os.getpid()}


def test_the_command_says_its_result_and_nothing_else(web, tmp_path):
    folder, before = tmp_path / "table", processes_of(b"--job_port")
    assert command("inject", folder, *web.seeds) == (
        0, "inject: added 1, injected 1, lines 1\n", ""
    )  # fmt: skip
    # Prism ended with it.
    wait_until_none(lambda: processes_of(b"--job_port") - before)


def test_an_error_of_a_worker_is_one_line(web, tmp_path):
    folder = tmp_path / "table"
    assert nutbeam("inject", folder, *web.seeds, "--runner=FnApiRunner") == 0
    words = ("fetch", folder, "--batch", "none", "--agent_name", "a", "--agent_email", "a@b.com")
    code, out, err = command(*words)
    assert (code, out) == (3, "")
    assert err.startswith("nutbeam fetch: no batch 'none' in this table")
    assert err.count("\n") == 1
    code, out, err = command("fetch", folder, *reach(web))
    assert (code, out, err) == (1, "", "nutbeam fetch: nothing to do: no batch is generated\n")


def test_without_prism_it_says_so(tmp_path):
    missing = f"--prism_location={tmp_path}/prism"
    code, out, err = command("inject", tmp_path / "table", "http://www.example.com/", prism=missing)
    assert code in (2, 3)
    assert out == ""
    assert f"{tmp_path}/prism" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "table").exists()
