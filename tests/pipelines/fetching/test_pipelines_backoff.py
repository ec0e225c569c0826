"""What a fetch learns about hosts, and what the next generate and fetch make of it."""

import itertools
import time

import polars as pl
import pytest
from crawling import files_of, manifest_of, nutbeam, rows_of
from web_servers import connect_to, reply, serve

BUSY, FINE = "http://busy.example.com", "http://fine.example.com"
SEEDS = [*(f"{BUSY}/{n}" for n in range(4)), f"{FINE}/"]


def answer(path, head):
    if path == "/robots.txt":
        return reply(b"User-agent: *\nSitemap: http://fine.example.com/map.xml\n")
    return reply(b"", "503 Busy") if "Host: busy" in head else reply(b"x")


def run_round(table, server, *words):
    reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
    assert nutbeam("fetch", table, *reach, "--server_delay", "0", *words) == 0
    counts = manifest_of(table).counts
    assert nutbeam("parse", table) == 0
    assert nutbeam("updatedb", table) == 0
    return counts


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", ["host", "domain"])
def test_a_batch_dealt_by_host_is_not_fetched_by_domain(tmp_path, capsys, mode):
    table = str(tmp_path / "table")
    with serve(lambda *_: reply(b"x")) as server:
        assert nutbeam("inject", table, *SEEDS) == 0
        assert nutbeam("generate", table, "--num_fetchers", "3", "--queue_mode", mode) == 0
        reach = [word for mapping in connect_to(server.port) for word in ("--connect_to", mapping)]
        words = (*reach, "--server_delay", "0", "--queue_mode", "domain")
        code = nutbeam("fetch", table, *words)
        if mode == "domain":
            assert code == 0
            return
        assert code != 0
        assert server.paths == []
    assert "was not generated for queues by domain" in capsys.readouterr().err


@pytest.mark.long
def test_a_seed_sets_the_delay_between_requests_to_its_host(tmp_path):
    table, seeds = str(tmp_path / "table"), tmp_path / "seeds.txt"
    lines = [f"http://slow.example.com/{n}" for n in range(4)] + ["http://quick.example.com/"]
    seeds.write_text("\n".join([*lines, "http://slow.example.com/4\tnutch.fetchDelay=0.3"]))
    with serve(lambda path, _: reply(b"", "404 No") if "robots" in path else reply(b"x")) as server:
        assert nutbeam("inject", table, seeds) == 0
        assert nutbeam("generate", table) == 0
        (batch,) = manifest_of(table).batches
        (file,) = files_of(table, f"batches/{batch}/fetchlist")
        delays = dict(pl.read_parquet(file).select("key", "delay").iter_rows())
        assert delays.pop("com.example.slow:http/4") == 0.3
        assert set(delays.values()) == {None}
        assert run_round(table, server)["pages"] == 6
    slow = [moment for _, head, moment in server.requests if "Host: slow" in head]
    assert len(slow) == 6
    assert all(after - at >= 0.3 for at, after in itertools.pairwise(slow))
