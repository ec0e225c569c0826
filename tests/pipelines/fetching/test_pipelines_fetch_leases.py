"""Two fetches at once, in real processes: no host is asked too often, and no URL is there twice."""

import collections
import contextlib
import itertools
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from apache_beam.metrics import MetricsFilter
from crawling import asked, files_of, manifest_of, manifests_of, nutbeam
from leasing import TIMES
from short_form import first
from simulated_web import SimWeb
from waiting import PATIENCE, wait_until
from web_servers import connect_to, reply, serve

from nutbeam.io.snapshots.operations import new_id
from nutbeam.pipelines import fetch
from nutbeam.pipelines.launch.job import prepare
from nutbeam.pipelines.running.runner import run_pipeline
from nutbeam.transforms.tickets import Ticket
from nutbeam.web.urls.row_keys import from_key

DELAY = 0.4
# What takes a process long is to start: two are at the same only if they do that before.
READY = """
import json, sys
from nutbeam.io.batches import leases
from nutbeam.io.snapshots.operations import begin
from nutbeam.pipelines import fetch
from nutbeam.pipelines.command_line.cli import main
from nutbeam.transforms.fetching import fetch_pages
leases.LEASE_TIMES = leases.LeaseTimes(*map(float, sys.argv[1].split(",")))
print("ready", flush=True)
input()
"""
COMMAND = READY + "sys.exit(main(sys.argv[2:]))"
DIRECT = (
    READY
    + """
table, batch, connect_to = sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
options = fetch.FetchBatchOptions(connect_to=tuple(connect_to), server_delay=0.4, flush_seconds=0.2)
(part,) = fetch._partitions(begin(table, "fetch", "direct.fetch", batch))
with fetch.partition_fetching(part, options) as fetching:
    written = [w for w in fetch_pages(fetching) if w.component.endswith("/pages")]
print(json.dumps([file.path for w in written for file in w.files]))
"""
)


@pytest.fixture
def web():
    """The last host asks for a longer delay than the others get."""
    with SimWeb(hosts=3, pages=5, seed=7, crawl_delay=2 * DELAY) as server:
        yield server


def generated(tmp_path, web, *words, batches=1):
    """Returns a table with batches that hold all pages of the web."""
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    seeds.write_text("\n".join(sorted(web.site.urls("page"))))
    assert nutbeam("inject", table, seeds) == 0
    for _ in range(batches):
        assert nutbeam("generate", table, *words) == 0
    return table


@contextlib.contextmanager
def processes(*commands):
    """Starts processes and waits until each is ready to begin; see ``go``."""
    with contextlib.ExitStack() as stack:
        started = []
        for code, *words in commands:
            command = [sys.executable, "-P", "-c", code, ",".join(map(str, TIMES))]
            process = subprocess.Popen(
                [*command, *map(str, words)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.callback(process.communicate)
            stack.callback(process.kill)
            started.append(process)
        for process in started:
            assert process.stdout.readline() == "ready\n"
        yield started


def go(process):
    process.stdin.write("\n")
    process.stdin.flush()


def fetch_command(table, web, *words):
    """Returns what starts ``nutbeam fetch``."""
    options = [word for mapping in web.connect_to for word in ("--connect_to", mapping)]
    options += ["--server_delay", DELAY, "--flush_seconds", 0.2, "--progress", "false"]
    return COMMAND, "fetch", table, *options, *words


def ended(process):
    """Waits for a process; returns its exit code and what it said on standard error."""
    _, error = process.communicate(timeout=PATIENCE)
    return process.returncode, error


def shortest_gaps(web):
    """Returns the shortest time between two requests to each host, as the server saw them."""
    times = collections.defaultdict(list)
    for request in web.requests():
        times[request.host].append(request.time)
    return {
        host: min(later - earlier for earlier, later in itertools.pairwise(moments))
        for host, moments in times.items()
    }


def assert_polite(web):
    gaps = shortest_gaps(web)
    slow = max(gaps)  # the last host: its robots.txt asks for a delay
    assert len(gaps) == 3
    assert all(gap >= DELAY for gap in gaps.values()), gaps
    assert gaps[slow] >= 2 * DELAY, gaps


def assert_each_once(table, web):
    """Asserts that each batch holds each of its URLs once, and all of them together all."""
    urls = []
    for batch in manifest_of(table).batches:
        for path in files_of(table, f"batches/{batch}/pages"):
            urls += [from_key(key) for key in pl.read_parquet(path, columns=["key"])["key"]]
    assert sorted(urls) == sorted(web.site.urls("page"))


def flushed(table):
    return len(list(Path(table).glob("batches/*/pages/[!.]*.parquet")))


@pytest.mark.long
@pytest.mark.parametrize("operations", [("one", "one"), ("one", "two")])
def test_two_commands_at_once(tmp_path, web, operations):
    table = generated(tmp_path, web)
    commands = [fetch_command(table, web, "--operation", name) for name in operations]
    with processes(*commands) as both:
        for process in both:
            go(process)
        results = [ended(process) for process in both]
    assert_polite(web)
    assert_each_once(table, web)
    assert sorted(asked(web)) == sorted(web.site.urls("page"))  # nobody asked again
    assert manifest_of(table).counts["pages"] == len(web.site.urls("page"))
    codes = sorted(code for code, _ in results)
    if operations[0] == operations[1]:
        assert codes == [0, 0]
    else:
        assert codes == [0, 1]  # nothing waits for the second one any more
        ((_, error),) = [result for result in results if result[0] == 1]
        assert error.splitlines()[-1].endswith("nothing to do: no batch is generated")
    waits = [line for _, error in results for line in error.splitlines() if " waits for " in line]
    assert len(waits) == 1


@pytest.mark.long
def test_two_direct_calls_at_once(tmp_path, web):
    table = generated(tmp_path, web)
    (batch,) = manifest_of(table).batches
    words = (table, batch, json.dumps(web.connect_to))
    with processes((DIRECT, *words), (DIRECT, *words)) as both:
        for process in both:
            go(process)
        outputs = [process.communicate(timeout=PATIENCE) for process in both]
    assert_polite(web)
    assert sorted(asked(web)) == sorted(web.site.urls("page"))
    for output, error in outputs:
        paths = [table / path for path in json.loads(output)]
        keys = pl.concat([pl.read_parquet(path, columns=["key"]) for path in paths])["key"]
        # Each of the two could commit: what it fetched, or adopted from the other.
        assert sorted(map(from_key, keys)) == sorted(web.site.urls("page")), error


@pytest.mark.long
def test_an_attempt_that_was_paused_sends_nothing_when_another_has_taken_over(tmp_path, web):
    table = generated(tmp_path, web)
    command = fetch_command(table, web, "--operation", "one")
    with processes(command, command) as (first, second):
        go(first)
        wait_until(lambda: flushed(table))
        pause_at_rest(first, web)
        before = len(web.requests())
        go(second)
        wait_until(lambda: len(web.requests()) > before)
        claims = {path.name for path in table.glob("batches/*/leases/*.claim")}
        assert claims == {"p00000-000001.claim", "p00000-000002.claim"}
        first.send_signal(signal.SIGCONT)
        code, error = ended(first)
        assert ended(second)[0] == 0
    assert code == 3
    assert error.splitlines()[-1].startswith("nutbeam fetch: partition 0 of batch ")
    assert " was taken over by another fetch" in error
    assert_polite(web)
    assert_each_once(table, web)
    # What it had flushed was adopted; only what it had not was asked for again.
    again = [url for url, times in collections.Counter(asked(web)).items() if times > 1]
    assert len(again) <= 6
    assert manifest_of(table).counts["adopted"] > 0


def pause_at_rest(process, web):
    """Stops a process while it waits for the hosts' delays."""
    count = -1
    while count != len(web.requests()):
        count = len(web.requests())
        time.sleep(DELAY / 5)
    process.send_signal(signal.SIGSTOP)


@pytest.mark.long
def test_a_killed_fetch_is_taken_over_at_once(tmp_path, web):
    table = generated(tmp_path, web)
    command = fetch_command(table, web, "--operation", "one")
    with processes(command, command) as (first, second):
        go(first)
        wait_until(lambda: flushed(table) >= 2)
        first.kill()
        go(second)
        code, error = ended(second)
        assert code == 0
        assert " waits for " not in error  # nor did it look at beats to tell dead from slow
    assert_polite(web)
    assert_each_once(table, web)
    again = [url for url, times in collections.Counter(asked(web)).items() if times > 1]
    assert len(again) <= 6
    assert manifest_of(table).counts["adopted"] > 0


@pytest.mark.long
def test_two_batches_of_one_table_are_fetched_one_after_the_other(tmp_path, web):
    half = (len(web.site.urls("page")) + 1) // 2
    table = generated(tmp_path, web, "--top_n", half, batches=2)
    batches = list(manifest_of(table).batches)
    assert len(batches) == 2
    with processes(*(fetch_command(table, web, "--batch", batch) for batch in batches)) as both:
        for process in both:
            go(process)
        results = [ended(process) for process in both]
    assert [code for code, _ in results] == [0, 0], results
    assert_polite(web)
    assert_each_once(table, web)
    assert sorted(asked(web)) == sorted(web.site.urls("page"))
    lines = [line for _, error in results for line in error.splitlines() if " waits for " in line]
    # Two, where each gave way to the other at first.
    assert len(lines) in (1, 2)
    assert all(batch in line for batch in batches for line in lines)
    assert [m.job for m in manifests_of(table)][-2:] == ["fetch", "fetch"]


def throttled(table, *urls, **options):
    """Fetches pages and returns the seconds that Beam was told, the server, and the counts."""

    def answer(path, _):
        return reply(b"", "404 Not Found") if path == "/robots.txt" else reply(path.encode())

    seeds = table.with_suffix(".txt")
    seeds.write_text("\n".join(urls))
    assert nutbeam("inject", table, seeds) == 0
    assert nutbeam("generate", table) == 0
    with serve(answer) as server:
        chosen = fetch.Options(connect_to=connect_to(server.port), **options)
        result = run_pipeline(prepare(Ticket(str(table), new_id()), fetch.build, chosen, []))
    found = result.metrics().query(MetricsFilter().with_name("cumulativeThrottlingSeconds"))
    return sum(counter.committed for counter in found["counters"]), server


@pytest.mark.long
def test_waits_for_politeness_are_reported_to_the_runner(tmp_path):
    urls = [f"http://a.example.com/{number}" for number in range(7)]
    seconds, server = throttled(tmp_path / "table", *urls, server_delay=1.0)
    assert len(server.requests) == 8  # robots.txt is the first
    waited = server.requests[-1][2] - server.requests[0][2]
    # No request takes long here: what is not waiting is robots.txt, and the machine's load.
    assert 7 - 1 <= seconds <= waited


def test_no_wait_is_reported_without_a_delay(tmp_path):
    urls = [f"http://h{n % 40}.example.com/{n}" for n in range(400)]
    seconds, server = throttled(tmp_path / "table", *urls, server_delay=0.0)
    assert len(server.requests) == 440
    assert seconds == 0


@pytest.mark.long
@pytest.mark.parametrize("fault", first(1, [None, "kill", "stop"]))
def test_three_commands_at_once_all_end(tmp_path, web, fault):
    """Beside busy processes, and with one of the three killed or paused in the middle."""
    table = generated(tmp_path, web)
    commands = [fetch_command(table, web, "--operation", name) for name in ("one", "two", "three")]
    busy = [
        sys.executable,
        "-c",
        "import time\nend = time.time() + 120\nwhile time.time() < end: pass",
    ]
    with contextlib.ExitStack() as stack:
        three = stack.enter_context(processes(*commands))
        for _ in range(0 if fault is None else 4):
            load = subprocess.Popen(busy)
            stack.callback(load.wait)
            stack.callback(load.kill)
        for process in three:
            go(process)
        wait_until(lambda: flushed(table))
        if fault == "kill":
            three[0].kill()
        if fault == "stop":
            three[0].send_signal(signal.SIGSTOP)
            time.sleep(2 * TIMES.stale)
            three[0].send_signal(signal.SIGCONT)
        results = [ended(process) for process in three]
    codes = [code for code, _ in results]
    assert codes.count(0) == 1, results
    # Nothing waits for the others any more; one that was stopped for long has lost its batch.
    assert set(codes) <= {0, 1, -signal.SIGKILL, *([3] if fault == "stop" else [])}
    assert_polite(web)
    assert_each_once(table, web)


@pytest.mark.long
def test_the_wait_for_another_fetch_has_a_bound(tmp_path, web):
    table = generated(tmp_path, web)
    command = fetch_command(table, web, "--max_lease_wait", 1)
    with processes(command, command) as (first_, second):
        go(first_)
        wait_until(lambda: list(table.glob("batches/*/leases/*.claim")))
        first_.send_signal(signal.SIGSTOP)  # its beats are not stale yet, for some seconds
        go(second)
        code, error = ended(second)
        first_.send_signal(signal.SIGCONT)
        assert ended(first_)[0] == 0
    assert code == 3
    (waits,) = [line for line in error.splitlines() if " waits for " in line]
    failed = error.splitlines()[-1]
    whom = rf"process {first_.pid} on '[^']+', at partition 0 of batch '[^']+' since \d{{4}}-[-\d: ]+ UTC"
    assert re.search(rf" waits for {whom}, 1 s at most$", waits)
    assert re.search(rf"has waited 1 s \(max_lease_wait\) for {whom}: run it again later", failed)
    assert_each_once(table, web)
