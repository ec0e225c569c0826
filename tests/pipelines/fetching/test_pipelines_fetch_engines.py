"""Several fetch engines on one machine: processes with hosts of their own, in one crawl."""

import collections
import itertools
import os
import signal
import threading
from pathlib import Path

import pytest
from crawling import (
    asked,
    assert_same,
    contents,
    crawl,
    manifest_of,
    manifests_of,
    nutbeam,
    reach,
)
from ending import command, ended, flushed, session, wait_for
from simulated_web import SimWeb, served_web
from waiting import PATIENCE, wait_until_none
from web_servers import connect_to, reply, serve

from nutbeam.pipelines import crawl as crawl_job
from nutbeam.pipelines.command_line.cli import main
from nutbeam.pipelines.launch import machine_use
from nutbeam.policy import fetch_engines

TWO = ("--fetch_engines", 2, "--num_fetchers", 2)
web = served_web(hosts=6, pages=8, scope="module")
DELAY = 0.3


def engines_of(process):
    """Returns the ids of the engines of a command."""
    return [pid for pid in session(process.pid) if b"work_program" in cmdline(pid)]


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.long
def test_two_engines_give_the_same_table_and_the_sums_of_their_counts(web, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    assert crawl(one, web, *web.seeds) == 0
    assert crawl(two, web, *web.seeds, *TWO) == 0
    assert_same(contents(two), contents(one))
    assert manifest_of(two).counts == manifest_of(one).counts
    fetches = [[m.counts for m in manifests_of(table) if m.job == "fetch"] for table in (one, two)]
    assert fetches[0] == fetches[1]


def test_each_host_gets_requests_from_one_engine(tmp_path):
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    with SimWeb(hosts=12, pages=5, seed=3, crawl_delay=0) as slow:
        seeds.write_text("\n".join(sorted(slow.site.urls("page"))))
        assert nutbeam("inject", table, seeds) == 0
        assert nutbeam("generate", table, "--num_fetchers", 2) == 0
        words = [*reach(slow), *TWO[:2], "--server_delay", DELAY]
        assert nutbeam("fetch", table, *words) == 0
        requests = slow.requests()
    moments = collections.defaultdict(list)
    for request in requests:
        moments[request.host].append(request.time)
    assert len(moments) == 12
    gaps = [b - a for of_host in moments.values() for a, b in itertools.pairwise(of_host)]
    assert min(gaps) >= DELAY


def test_engines_work_at_the_same_time(tmp_path):
    """No host gets an answer before all of them are asked: those of one engine are not enough."""
    table, hosts = tmp_path / "table", [f"h{number}.example.com" for number in range(20)]
    together = threading.Barrier(len(hosts))

    def answer(path, _):
        if path != "/robots.txt":
            together.wait(PATIENCE)
        return reply(b"")

    assert nutbeam("inject", table, *(f"http://{host}/page" for host in hosts)) == 0
    assert nutbeam("generate", table, "--num_fetchers", 2) == 0
    with serve(answer) as server:
        doors = [word for door in connect_to(server.port) for word in ("--connect_to", door)]
        assert nutbeam("fetch", table, *doors, *TWO[:2], "--timeout", PATIENCE) == 0
    assert not together.broken


def open_fetch(tmp_path, slow):
    """Makes a table with a batch for two engines; returns it and the words that fetch it."""
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    seeds.write_text("\n".join(sorted(slow.site.urls("page"))))
    assert nutbeam("inject", table, seeds) == 0
    assert nutbeam("generate", table, "--num_fetchers", 2) == 0
    return table, ("fetch", table, *reach(slow), *TWO[:2])


def test_another_engine_goes_on_where_one_was_killed(tmp_path):
    # The id of the batch divides the hosts. With 20 of them each engine gets some.
    with SimWeb(hosts=20, pages=8, seed=7, crawl_delay=0, latency=0.5) as slow:
        table, words = open_fetch(tmp_path, slow)
        with command(tmp_path / "tmp", *words, "--flush_seconds", 0.2) as process:
            wait_for(process, lambda: len(engines_of(process)) == 2)
            first, _second = engines_of(process)
            # Files are counted, not read: the fetch must not end before the kill.
            wait_for(process, lambda: len(list(table.glob("batches/*/pages/[!.]*.parquet"))) >= 2)
            os.kill(first, signal.SIGKILL)
            code, error = ended(process, tmp_path / "tmp")
        assert code == 0
        assert "has ended (SIGKILL): another one goes on with its hosts" in error
        counts = manifest_of(table).counts
        assert counts["protocol/success"] + counts.get("adopted", 0) >= 160
        # What the killed one had on disk is not requested again.
        pages = [url for url in asked(slow) if not url.endswith("/robots.txt")]
        assert len(set(pages)) == 160
        assert len(pages) - 160 < 40
        assert len(flushed(table)) == len(set(flushed(table))) == 160


@pytest.mark.long
def test_after_a_kill_of_the_command_its_engines_keep_their_pages_and_end(tmp_path):
    with SimWeb(hosts=4, pages=40, seed=7, crawl_delay=0, latency=0.1) as slow:
        table, words = open_fetch(tmp_path, slow)
        with command(tmp_path / "tmp", *words, "--flush_seconds", 600) as process:
            wait_for(process, lambda: len(asked(slow)) >= 60)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            wait_until_none(lambda: engines_of(process))
        before, kept = len(asked(slow)), set(flushed(table))
        assert len(kept) >= 40
        assert nutbeam(*words) == 0
        assert kept.isdisjoint(asked(slow)[before:])
        assert len(set(flushed(table))) == 160


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)], ids=str
)
def test_interrupted_engines_keep_their_fetched_pages(tmp_path, number):
    with SimWeb(hosts=4, pages=40, seed=7, crawl_delay=0, latency=0.1) as slow:
        table, words = open_fetch(tmp_path, slow)
        with command(tmp_path / "tmp", *words, "--flush_seconds", 600) as process:
            wait_for(process, lambda: len(asked(slow)) >= 60)
            os.killpg(process.pid, number)  # as a terminal does
            code, error = ended(process, tmp_path / "tmp")
        assert code == 130
        assert error.count("\n") == 1
        before, kept = len(asked(slow)), set(flushed(table))
        assert len(kept) >= 40
        assert nutbeam(*words) == 0
        assert kept.isdisjoint(asked(slow)[before:])


def test_a_batch_is_cut_for_the_engines_if_it_is_large_enough(web, tmp_path, monkeypatch):
    table, seeds = tmp_path / "table", tmp_path / "seeds.txt"
    seeds.write_text("\n".join(sorted(web.site.urls("page"))))
    assert nutbeam("inject", table, seeds) == 0
    assert nutbeam("generate", table, "--fetch_engines", 3, "--top_n", 20) == 0
    assert [batch.partitions for batch in manifest_of(table).batches.values()] == [1]
    monkeypatch.setattr(fetch_engines, "URLS_PER_ENGINE", 5)
    assert nutbeam("generate", table, "--fetch_engines", 3, "--top_n", 15) == 0
    assert [batch.partitions for batch in manifest_of(table).batches.values()] == [1, 3]


def test_first_line_of_a_crawl_names_its_engines(web, tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.setattr(machine_use, "usable_cores", lambda: 16)
    monkeypatch.setattr(machine_use, "usable_memory", lambda: 64 << 30)
    words = [
        "crawl",
        tmp_path / "t",
        *web.seeds,
        *reach(web),
        "--rounds",
        0,
        "--parse_processes",
        3,
    ]
    main([*map(str, words), "--progress", "true"])
    assert "uses 16 cores: up to 4 fetch engines, 3 parsers (" in capsys.readouterr().err
    main([*map(str, words), "--log_format", "json"])
    (uses,) = (record.nutbeam_fields for record in caplog.records if is_of_use(record))
    assert (uses["cores"], uses["engines"], uses["parsers"]) == (16, 4, 3)
    # A batch of one partition is for one engine.
    for few in (("--queue_mode", "ip"), ("--num_fetchers", "1")):
        main([*map(str, words), *few, "--progress", "true"])
        assert "uses 16 cores: 1 fetch engine, " in capsys.readouterr().err
    # So is one for each 10,000 URLs that a batch may have.
    many = ("--fetch_engines", "99", "--top_n", "20001")
    main([*map(str, words), *many, "--progress", "true"])
    assert "uses 16 cores: up to 3 fetch engines, " in capsys.readouterr().err


def test_a_runner_is_named_as_beam_spells_it():
    options = crawl_job.Options(agent_name="mybot", agent_email="you@your-site.org")
    words = ["--runner=portable", "--job_endpoint=flink:8099"]
    assert machine_use.uses_of(options, words)["runner"] == "PortableRunner"


def is_of_use(record):
    return getattr(record, "nutbeam_fields", {}).get("event") == "uses"
