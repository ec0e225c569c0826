"""What a fetch learns about hosts, and what the next generate and fetch make of it."""

import time

import pytest
from crawling import manifest_of, nutbeam, rows_of
from web_servers import doors, reply, serve

BUSY, FINE = "http://busy.example.com", "http://fine.example.com"
SEEDS = [*(f"{BUSY}/{n}" for n in range(4)), f"{FINE}/"]


def answer(path, head):
    if path == "/robots.txt":
        return reply(b"User-agent: *\nSitemap: http://fine.example.com/map.xml\n")
    return reply(b"", "503 Busy") if "Host: busy" in head else reply(b"x")


def run_round(table, server, *words):
    reach = [word for door in doors(server.port) for word in ("--connect_to", door)]
    assert nutbeam("fetch", table, *reach, "--server_delay", "0", *words) == 0
    counts = manifest_of(table).counts
    assert nutbeam("parse", table) == 0
    assert nutbeam("updatedb", table) == 0
    return counts


def test_a_busy_host_is_left_out_of_the_next_batch(tmp_path):
    table = str(tmp_path / "table")
    with serve(lambda path, _: answer(path, server.requests[-1][1])) as server:
        assert nutbeam("inject", table, *SEEDS) == 0
        assert nutbeam("generate", table) == 0
        options = ("--threads", "1", "--exceptions_delay", "300", "--max_backoff", "100")
        counts = run_round(table, server, *options)
    assert counts["dropped/backoff"] == 3
    assert nutbeam("generate", table) == 1  # three pages are due, but their host rests
    hosts = {row["key"]: row for row in rows_of(table, "hosts").to_dicts()}
    busy, fine = hosts["com.example.busy"], hosts["com.example.fine"]
    assert 250 < busy["backoff_until"] / 1000 - time.time() <= 360
    assert (busy["backoff_level"], busy["exceptions"]) == (1, 1)
    assert (fine["backoff_level"], fine["backoff_until"]) == (0, 0)
    assert fine["sitemaps"] == "http://fine.example.com/map.xml"
    assert fine["robots_failing_since"] is None


def test_since_when_robots_txt_fails_is_kept_over_rounds(tmp_path):
    table = str(tmp_path / "table")
    since = set()
    with serve(lambda *_: reply(b"", "500 No")) as server:
        assert nutbeam("inject", table, *SEEDS) == 0
        for _ in range(2):
            assert nutbeam("generate", table) == 0
            run_round(table, server, "--robots_defer_delay", "0")
            since.add(rows_of(table, "hosts")["robots_failing_since"].min())
        assert server.paths == ["/robots.txt"] * 4
    assert len(since) == 1
    assert None not in since


@pytest.mark.parametrize("mode", ["host", "domain"])
def test_a_batch_dealt_by_host_is_not_fetched_by_domain(tmp_path, capsys, mode):
    table = str(tmp_path / "table")
    with serve(lambda *_: reply(b"x")) as server:
        assert nutbeam("inject", table, *SEEDS) == 0
        assert nutbeam("generate", table, "--num_fetchers", "3", "--queue_mode", mode) == 0
        reach = [word for door in doors(server.port) for word in ("--connect_to", door)]
        words = (*reach, "--server_delay", "0", "--queue_mode", "domain")
        code = nutbeam("fetch", table, *words)
        if mode == "domain":
            assert code == 0
            return
        assert code != 0
        assert server.paths == []
    assert "was generated for queues by host" in capsys.readouterr().err


def test_queues_by_address_need_one_partition(tmp_path, capsys):
    table = str(tmp_path / "table")
    assert nutbeam("inject", table, *SEEDS) == 0
    assert nutbeam("generate", table, "--num_fetchers", "3", "--queue_mode", "ip") != 0
    assert "--queue_mode ip needs --num_fetchers 1" in capsys.readouterr().err
    assert nutbeam("generate", table, "--num_fetchers", "3") == 0
    words = ("--queue_mode", "ip", "--connect_to", "*.example.com:80:127.0.0.1:1")
    assert nutbeam("fetch", table, *words) != 0
    assert "generate with --num_fetchers 1" in capsys.readouterr().err
