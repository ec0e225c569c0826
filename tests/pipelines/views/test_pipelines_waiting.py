"""crawl --wait waits for due pages without using up rounds; --time_limit bounds a whole crawl."""

import contextlib
import json
import signal
import subprocess
import sys

import pytest
from crawling import asked, manifest_of, nutbeam, place_in, reach
from simulated_web import SimWeb
from web_servers import connect_to, reply, serve

from nutbeam.io.storage.files import overwrite_bytes
from nutbeam.pipelines.crawl import Options
from nutbeam.pipelines.views.next_due import wait_for_due
from nutbeam.pipelines.views.summary import last_lines
from nutbeam.policy.hosting import slow_hosts
from nutbeam.web.base.clock import EARLIEST_MS, replaced_clock

DAY_MS = 86_400_000


class Clock:
    """A clock whose time passes only while somebody waits; ``then`` is called at each wait."""

    def __init__(self, then=lambda: None):
        self.now, self.waits, self._then = EARLIEST_MS + 400 * DAY_MS, 0, then

    def read(self):
        self.now += 1  # so that snapshots have an order
        return self.now

    def wait(self, seconds):
        self.waits += 1
        # In larger steps than asked for: simulated days are long.
        self.now += int(max(seconds, 3600) * 1000)
        self._then()

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(replaced_clock(self.read, self.wait))
        return self

    def __exit__(self, *_):
        self._stack.close()


@pytest.fixture(scope="module")
def web():
    with SimWeb(hosts=1, pages=3, seed=7, crawl_delay=0) as server:
        yield server


def crawl(table, web, *words):
    return nutbeam("crawl", table, *web.seeds, *reach(web), *words, "--format", "json")


@pytest.mark.long
def test_a_crawl_waits_for_pages_that_are_due_and_waiting_is_no_round(web, tmp_path, capsys):
    table = tmp_path / "table"
    with Clock() as clock:
        assert crawl(table, web, "--rounds", -1) == 0
        (first,) = capsys.readouterr().out.splitlines()
        rounds, fetched = json.loads(first)["rounds"], json.loads(first)["fetched"]
        before, begun = len(asked(web)), clock.now
        assert crawl(table, web, "--rounds", rounds + 1, "--wait") == 0
        waited, said = clock.now - begun, capsys.readouterr()
    record = json.loads(said.out.splitlines()[-1])
    assert waited >= 29 * DAY_MS, "pages are due after 30 days"
    assert record["rounds"] == rounds + 1 > 1
    assert record["fetched"] >= fetched, "each page again, and the first ones twice"
    assert len(asked(web)) > before
    assert "waiting for pages that are due: until 2026-" in said.err


@pytest.mark.long
def test_it_ends_at_once_by_a_stop_file_or_when_its_time_is_over(web, tmp_path):
    table = tmp_path / "table"
    with Clock(lambda: overwrite_bytes(place_in(table, ".STOP"), b"")) as clock:
        assert crawl(table, web, "--rounds", -1, "--wait") == 0
    assert clock.waits == 1
    place_in(table, ".STOP").unlink()
    with Clock() as clock:
        begun = clock.now
        assert not wait_for_due(str(table), Options(), begun + DAY_MS)
        assert begun + DAY_MS <= clock.now < begun + 2 * DAY_MS
        assert not wait_for_due(str(table), Options(), begun)


def test_pages_that_are_due_and_not_fetched_are_tried_again_more_and_more_rarely(tmp_path):
    table = tmp_path / "table"
    with Clock() as clock:
        assert nutbeam("inject", table, "http://www.example.com/") == 0
        assert wait_for_due(str(table), Options(), None)
        assert clock.waits == 0
        clock.wait = lambda seconds: setattr(clock, "now", clock.now + int(seconds * 1000))
        waited = []
        with replaced_clock(clock.read, clock.wait):
            for idle in (1, 2, 3, 30):
                begun = clock.now
                assert wait_for_due(str(table), Options(), None, idle)
                waited.append(round((clock.now - begun) / 1000))
    assert waited == pytest.approx([60, 120, 240, 3600], abs=3)


def test_a_table_without_urls_is_not_waited_for(tmp_path):
    table = tmp_path / "table"
    assert nutbeam("inject", table, "http://www.example.com/") == 0
    assert nutbeam("purge", table, "--url", "http://www.example.com/") == 0
    with Clock() as clock:
        assert not wait_for_due(str(table), Options(), None)
    assert clock.waits == 0


@pytest.mark.long
def test_the_time_limit_bounds_the_whole_crawl(tmp_path, capsys):
    table, clock = tmp_path / "table", Clock()

    def answer(path, connection):
        """A chain of pages, one a round; the third one takes longer than all that is allowed."""
        if path == "/robots.txt":
            return reply(b"", "404 Not Found")
        number = int(path.strip("/") or 0)
        clock.now += 100_000 if number == 2 else 0
        page = f"<title>{number}</title><a href=/{number + 1}>on</a>"
        return reply(page.encode(), "200 OK", "Content-Type: text/html")

    with serve(answer) as server, clock:
        words = (
            "http://www.example.com/",
            "--connect_to",
            connect_to(server.port)[0],
            "--rounds",
            -1,
        )
        words = ("crawl", table, *words, "--server_delay", 0, "--format", "json")
        assert nutbeam(*words, "--time_limit", 60) == 0
        assert server.paths[-1] == "/2"
        record = json.loads(capsys.readouterr().out)
        assert (record["ending"], record["rounds"], record["fetched"]) == ("time_limit", 3, 3)
        assert record["message"].startswith("--time_limit, 60 s, is over: what was fetched is kept")
        # The batches have come to their end, and all pages are in the table.
        assert {batch.phase for batch in manifest_of(table).batches.values()} == {"updated"}
        assert record["status"] == {"db_unfetched": 1, "db_fetched": 3}
        # A fetch has only the time that the crawl has left; single fetches have a limit of their own.
        assert nutbeam(*words, "--time_limit", 0) in (1, 4)
        assert nutbeam(*words, "--fetch_time_limit", 0) == 4
        message = json.loads(capsys.readouterr().out.splitlines()[-1])["message"]
        assert "--fetch_time_limit allows more than 0 s" in message
        assert server.paths[-1] == "/2"


@pytest.mark.few(1)
@pytest.mark.parametrize("why", ["stop", "rounds"])
def test_a_crawl_that_begins_nothing_reads_no_sitemaps(web, tmp_path, why):
    table = tmp_path / "table"
    assert nutbeam("inject", table, *web.seeds) == 0
    if why == "stop":
        overwrite_bytes(place_in(table, ".STOP"), b"")
    before = len(asked(web))
    words = ["--sitemaps", "once", "--rounds", 0 if why == "rounds" else -1]
    crawl(table, web, *words)
    assert len(asked(web)) == before


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_waiting_at_once(web, tmp_path, number):
    table = tmp_path / "table"
    assert crawl(table, web, "--rounds", -1) == 0
    program = "from nutbeam.pipelines.command_line.cli import script; script()"
    words = ["crawl", str(table), "--rounds", "-1", "--wait", *reach(web), "--progress", "false"]
    with subprocess.Popen([sys.executable, "-c", program, *words], stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, text=True) as process:  # fmt: skip
        for line in process.stderr:
            if line.startswith("waiting for pages"):
                break
        process.send_signal(number)
        assert process.wait(timeout=8) == 130


@pytest.mark.long
def test_the_summary_names_slow_hosts_and_due_urls(web, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(slow_hosts, "_LEAST_S", 0.2)
    table, own = tmp_path / "table", tmp_path / "hosts.txt"
    connect_to = [word for door in web.connect_to for word in ("--connect_to", door)]
    words = ("crawl", table, *web.seeds, *connect_to, "--server_delay", 0.3, "--format", "json")
    assert nutbeam(*words, "--rounds", 2) == 0
    record = json.loads(capsys.readouterr().out)
    (slow,) = record["slow_hosts"]
    assert (slow["host"], slow["pause"], slow["cause"]) == ("h0.example.com", 0.3, "server_delay")
    assert slow["pages"] >= 2
    assert slow["seconds"] >= 0.3
    assert sum(record["due"].values()) == record["urls"]
    slow_line, due_line, *_ = last_lines(record)
    assert slow_line.startswith(f"slow: h0.example.com, {slow['pages']} pages in 0.")
    assert "--server_delay changes it for all hosts" in slow_line
    assert due_line.startswith(f"due: {record['due']['now']} now, 0 within a day, ")
    # The line that it proposes is one that hostinject takes, and the cause is then the setting.
    own.write_text("h0.example.com delay=0.25\n")
    assert nutbeam("hostinject", table, own) == 0
    capsys.readouterr()
    assert nutbeam(*words, "--rounds", 2, "--add_days", 60) == 0
    (slow,) = json.loads(capsys.readouterr().out.splitlines()[-1])["slow_hosts"]
    assert (slow["pause"], slow["cause"]) == (0.25, "setting")
