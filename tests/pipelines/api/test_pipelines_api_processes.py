"""nutbeam in programs of users: a script, an event loop, threads, Ctrl-C; and in a type checker."""

import json
import os
import signal
import subprocess
import sys

import pytest
from crawling import asked
from here import ROOT, TESTS
from simulated_web import served_web
from waiting import wait_until

import nutbeam

pytestmark = pytest.mark.long

web = served_web(hosts=2, pages=8, scope="module")

SCRIPT = """
print("started", flush=True)
import asyncio, json, sys, threading
import nutbeam
folder, seed, *connect_to = sys.argv[1:]
options = {"connect_to": connect_to, "server_delay": 0, "rounds": 1}
async def in_a_loop():
    return nutbeam.crawl(f"{folder}/one", seed, **options)
one = asyncio.run(in_a_loop())
two = nutbeam.Table(f"{folder}/two")
results = {}
def work(table, *seeds):
    results[table.address[-3:]] = table.crawl(*seeds, **options).fetched
threads = [threading.Thread(target=work, args=args) for args in ((one,), (two, seed))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(results))
"""

INTERRUPTED = """
import sys
import traceback
import nutbeam
folder, seed, *connect_to = sys.argv[1:]
def crawl(delay):
    return nutbeam.crawl(
        f"{folder}/t", seed, connect_to=connect_to, server_delay=delay, rounds=-1, flush_seconds=60)
try:
    crawl(0.4)
except KeyboardInterrupt:
    print("interrupted", "apache_beam" in traceback.format_exc(), flush=True)
table = crawl(0)
print(table.fsck().clean, table.last_crawl.ending)
"""


def python(code, *words):
    """Returns a process that runs a file of code; it stands in the folder of its first word."""
    file = os.path.join(words[0], "script.py")  # noqa: PTH118
    with open(file, "w") as script:  # noqa: PTH123
        script.write(code)
    return subprocess.Popen(
        [sys.executable, file, *words], cwd=words[0],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_script_without_a_guard_crawls_in_an_event_loop_and_in_threads(web, tmp_path):
    process = python(SCRIPT, str(tmp_path), web.seeds[0], *web.connect_to)
    printed, errors = process.communicate(timeout=120)
    assert (errors, process.returncode) == ("", 0)
    first, second = printed.splitlines()  # a process that parses does not run the script
    assert first == "started"
    results = json.loads(second)
    assert results["one"] > results["two"] == 1
    assert nutbeam.open(tmp_path / "one").fsck().clean


def test_after_ctrl_c_the_same_call_goes_on_and_fetches_no_page_twice(web, tmp_path):
    before = len(asked(web))
    process = python(INTERRUPTED, str(tmp_path), web.seeds[0], *web.connect_to)
    wait_until(lambda: len(asked(web)) - before >= 6, process)
    beside = nutbeam.open(tmp_path / "t")  # while it is written
    assert 1 <= beside.frame().height <= beside.stats().urls
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=120)
    assert (errors, process.returncode) == ("", 0)
    assert printed.splitlines() == ["interrupted False", "True done"]
    pages = [url for url in asked(web)[before:] if not url.endswith("/robots.txt")]
    assert len(pages) - len(set(pages)) <= 1  # the request that was under way


def test_a_users_script_with_every_method_is_strictly_typed(tmp_path):
    if not (ROOT / "Makefile").exists():
        pytest.skip("the tree is not there")
    package = tmp_path / "types" / "nutbeam"
    package.mkdir(parents=True)
    for source in (*(ROOT / "package").glob("*.*"), *(ROOT / room for room in
                   ("io", "pipelines", "policy", "transforms", "web"))):  # fmt: skip
        (package / source.name).symlink_to(source)
    script = (TESTS / "pipelines" / "api" / "users_script.py").read_text("utf-8")
    wrong = """
nutbeam.crawl("t", "http://a.example/", ruonds=3)
nutbeam.crawl("t", "http://a.example/", rounds="3")
nutbeam.open("t").fetch(scope="web")
nutbeam.open("t").generate().count
"""
    (tmp_path / "right.py").write_text(script)
    (tmp_path / "wrong.py").write_text(f"import nutbeam\n{wrong}")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=",
         f"--cache-dir={tmp_path / 'cache'}", "right.py", "wrong.py"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(package.parent)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [line.partition(":")[0] for line in errors] == ["wrong.py"] * 4, done.stdout
    for line, words in zip(errors, ("rounds", '"rounds"', "Literal", '"counts"'), strict=True):
        assert words in line
