"""What robots.txt makes of the pages of a run."""

import socket
import time

import pytest
from engine_runs import A, pages, pages_or_404, run, urls
from http_clients import Client, HttpOptions
from web_servers import reply, serve

from nutbeam.web.engine.engine import Engine, FetchOptions, HostRecord, Task

pytestmark = pytest.mark.usefixtures("each_client")


def test_robots_txt_denies():
    def answer(path, connection):
        robots = reply(b"User-agent: *\nDisallow: /1")
        return robots if path == "/robots.txt" else pages(path, connection)

    results, engine, server = run(answer, urls(3))
    by_url = {r.task.url: (r.fetch_status, r.protocol_status, r.response is None) for r in results}
    assert by_url == {f"{A}/0": (33, 1, False), f"{A}/1": (37, 18, True), f"{A}/2": (33, 1, False)}
    assert "/1" not in server.paths
    assert next(engine.hosts()).counts == {"success": 2, "robots_denied": 1}


def test_a_robots_txt_whose_length_is_always_too_large_is_requested_twice_and_obeyed():
    text = b"User-agent: *\nDisallow: /1\n"

    def answer(path, connection):
        if path != "/robots.txt":
            return pages(path, connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 528\r\n\r\n" + text)
        connection.shutdown(socket.SHUT_WR)
        return b""

    results, engine, server = run(answer, urls(3))
    assert sorted(result.fetch_status for result in results) == [33, 33, 37]
    assert server.paths.count("/robots.txt") == 2
    assert next(engine.hosts()).robots_text == text.decode()


@pytest.mark.long
@pytest.mark.parametrize("status", [425, 429, 500, 503])
def test_robots_txt_that_fails_defers_its_pages(status):
    results, engine, server = run(lambda *_: reply(b"", f"{status} No"), urls(50))
    assert results == []
    assert engine.drop_counts == {"robots_deferred": 50}
    assert server.paths == ["/robots.txt"]
    # The next run knows, and does not even ask.
    (host,) = engine.hosts()
    assert (host.robots_status, host.robots_origin) == (status, A)
    _, engine, server = run(pages, urls(5), known={host.host: host})
    assert engine.drop_counts == {"robots_deferred": 5}
    assert server.paths == []
    host.robots_time -= 301_000
    assert len(run(pages, urls(5), known={host.host: host})[0]) == 5


def test_robots_txt_is_remembered_for_a_day():
    text = "User-agent: *\nDisallow: /1"
    now = int(time.time() * 1000)
    for age_h, asked in ((23, False), (25, True)):
        host = HostRecord("a.example.com", A, 200, text, now - age_h * 3_600_000)
        results, engine, server = run(pages, urls(2), known={host.host: host})
        assert ("/robots.txt" in server.paths) == asked
        assert sorted(r.fetch_status for r in results) == ([33, 33] if asked else [33, 37])
        if not asked:
            kept = next(engine.hosts())
            assert (kept.robots_text, kept.robots_time) == (text, host.robots_time)


def test_a_run_without_requests_has_no_host_findings():
    host = HostRecord("a.example.com", A, 200, "User-agent: *", 7, crawl_delay=3.0)
    _, engine, _ = run(pages, urls(2), known={host.host: host}, fetch_time_limit=0)
    assert list(engine.hosts()) == []  # what the table knows stays


def test_each_origin_of_a_host_has_its_own_robots_txt():
    with serve(pages_or_404) as server:
        entries = (f"a.example.com::127.0.0.1:{server.port}",)
        client = Client(HttpOptions(connect_to=entries))
        tasks = [Task(f"{A}/1"), Task(f"{A}:81/2"), Task(f"{A}/3")]
        results = list(Engine(FetchOptions(server_delay=0.0), client).run(tasks))
    assert len(results) == 3
    assert server.paths.count("/robots.txt") == 2
    assert server.most_active == 1


@pytest.mark.parametrize("since", [-1000, 1, 4_000_000_000_000])
def test_since_when_a_robots_txt_fails_is_no_time_that_cannot_be(since):
    def answer(path, _):
        return reply(b"", "503 No") if "robots" in path else reply(b"x")

    now = int(time.time() * 1000)
    host = HostRecord("a.example.com", A, 503, "", now - 90_000_000, robots_failing_since=since)
    results, engine, _ = run(answer, urls(1), known={host.host: host})
    assert results == []
    assert now <= next(engine.hosts()).robots_failing_since <= time.time() * 1000


def test_robots_txt_is_neither_requested_nor_obeyed_on_an_allowlist(caplog):
    def answer(path, _):
        return reply(b"User-agent: *\nDisallow: /") if "robots" in path else reply(b"x")

    results, engine, server = run(answer, urls(2), robots_allowlist=("Example.com",))
    assert [r.fetch_status for r in results] == [33, 33]
    assert server.paths == ["/0", "/1"]
    assert next(engine.hosts()).robots_status is None
    assert "neither fetched nor obeyed on: Example.com" in caplog.text
    assert run(answer, urls(2), robots_allowlist=("ample.com",))[2].paths == ["/robots.txt"]


def test_robots_txt_may_ask_to_be_left_alone():
    results, engine, _ = run(lambda *_: reply(b"", "429 No", "Retry-After: 3600"), urls(3))
    assert (results, engine.drop_counts) == ([], {"robots_deferred": 3})
    (host,) = engine.hosts()
    assert host.backoff_until / 1000 - time.time() == pytest.approx(3600, abs=10)


def test_a_robots_txt_that_failed_for_30_days_is_as_if_there_were_none():
    def answer(path, _):
        return reply(b"", "503 No") if "robots" in path else reply(b"x")

    now = int(time.time() * 1000)
    for days, fetched in ((29, 0), (31, 2)):
        host = HostRecord("a.example.com", A, 503, "", now - 86_400_000)
        host.robots_failing_since = now - days * 86_400_000
        results, engine, _ = run(answer, urls(2), known={host.host: host})
        assert len(results) == fetched
        assert next(engine.hosts()).robots_failing_since == host.robots_failing_since


def test_the_last_robots_txt_is_kept_while_the_server_fails():
    now = int(time.time() * 1000)
    host = HostRecord("a.example.com", A, 200, "User-agent: *\nDisallow: /x", now - 90_000_000)
    _, engine, _ = run(lambda *_: reply(b"", "500 No"), urls(1), known={host.host: host})
    (kept,) = engine.hosts()
    assert (kept.robots_status, kept.robots_text) == (500, host.robots_text)
    assert kept.robots_failing_since == kept.robots_time > now - 1


def test_sitemaps_of_robots_txt_are_stored_with_the_host():
    def answer(path, _):
        return reply(b"Sitemap: http://a.example.com/s.xml") if "robots" in path else reply(b"x")

    (host,) = run(answer, urls(1))[1].hosts()
    assert host.sitemaps == ("http://a.example.com/s.xml",)
    (again,) = run(answer, urls(1), known={host.host: host})[1].hosts()
    assert again.sitemaps == host.sitemaps


def test_content_usage_of_robots_txt_is_stored_with_pages():
    def answer(path, connection):
        robots = reply(b"User-agent: *\nContent-Usage: /1 train-ai=n")
        return robots if path == "/robots.txt" else pages(path, connection)

    results, _, _ = run(answer, urls(2))
    assert {r.task.url: r.usage for r in results} == {f"{A}/0": None, f"{A}/1": "train-ai=n"}


@pytest.mark.parametrize(
    ("robots", "denied"),
    [
        (reply(b"<p>User-agent: *<br>Disallow: /1", "200 OK", "Content-Type: text/html"), True),
        (reply(b"User-agent: *", "206 Part", "Content-Range: bytes 0-12/99"), None),
    ],
)
def test_headers_of_a_robots_txt_count(robots, denied):
    def answer(path, connection):
        return robots if path == "/robots.txt" else pages(path, connection)

    results, _, _ = run(answer, urls(2))
    if denied:
        assert sorted(result.fetch_status for result in results) == [33, 37]
    else:
        assert [result.message for result in results] == ["incomplete"] * len(results) != []
