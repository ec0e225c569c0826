"""How long the engine leaves a host alone that fails or is busy."""

import logging
import time

import pytest
from engine_runs import gaps, pages, run, urls
from web_servers import reply

from nutbeam.web.engine.engine import HostRecord

pytestmark = pytest.mark.usefixtures("each_client")


def test_no_host_rests_for_longer_than_the_options_allow():
    rests = HostRecord(
        "a.example.com", backoff_until=int(time.time() * 1000) + 54 * 365 * 86_400_000
    )
    known = {rests.host: rests}
    results, engine, _ = run(lambda *_: reply(b"x"), urls(1), known=known, max_retry_after=0.1,
                             max_backoff=1e12)  # fmt: skip
    assert (len(results), engine.drop_counts) == (1, {})


def test_a_host_that_fails_is_left_alone():
    def answer(path, _):
        return None if "robots" in path else reply(b"", "500 No")

    results, engine, server = run(answer, urls(20))
    assert len(server.paths) == 6
    assert {(r.fetch_status, r.protocol_status, r.message) for r in results} == {(34, 16, "500 No")}
    assert engine.drop_counts == {"too_many_exceptions": 15}
    assert next(engine.hosts()).exceptions == 5


def test_a_host_that_fails_for_good_is_logged(caplog):
    def answer(path, _):
        return None if "robots" in path else reply(b"", "500 No")

    caplog.set_level(logging.INFO, "nutbeam.hosts")
    run(answer, urls(20))
    run(pages, urls(1))  # this one answers
    events = [record.nutbeam_fields for record in caplog.records]
    assert [(one["event"], one["reason"], one["pages"]) for one in events] == [
        ("host_given_up", "too_many_exceptions", 15),
        ("host_failed", "500 No", 5),
    ]
    assert {one["host"] for one in events} == {caplog.messages[0].partition(" ")[0]}


def test_a_crawl_delay_that_is_no_time_is_logged(caplog):
    def answer(path, _):
        return reply(b"User-agent: *\nCrawl-delay: soon" if "robots" in path else b"x")

    caplog.set_level(logging.INFO, "nutbeam.hosts")
    _, engine, _ = run(answer, urls(2))
    assert engine.odd_crawl_delays == 1
    (event,) = [record.nutbeam_fields for record in caplog.records]
    assert (event["event"], event["host"], event["reason"]) == (
        "odd_crawl_delay", "a.example.com", "soon"
    )  # fmt: skip


def test_a_success_forgives_failures():
    def answer(path, _):
        bad = "robots" not in path and int(path[1:]) % 4
        return reply(b"", "500 No") if bad else pages(path, _)

    results, engine, _ = run(answer, urls(20))
    assert len(results) == 20
    assert not engine.drop_counts


def test_the_back_off_doubles():
    def answer(path, _):
        return None if "robots" in path else reply(b"", "500 No")

    _, _, server = run(answer, urls(4), exceptions_delay=0.1)
    expected = [0.0, 0.1, 0.2, 0.4]  # and up to a fifth more
    waited = gaps(server)
    assert all(e <= gap < 1.2 * e + 0.3 for e, gap in zip(expected, waited, strict=True)), waited


@pytest.mark.slow
@pytest.mark.parametrize("status", [425, 429, 503])
def test_retry_after_is_obeyed(status):
    def answer(path, _):
        busy = path == "/0"
        return reply(b"", f"{status} Busy", "Retry-After: 1") if busy else pages(path, _)

    results, _, server = run(answer, urls(2))
    assert sorted(r.fetch_status for r in results) == [33, 34]
    assert server.paths == ["/robots.txt", "/0", "/1"]
    assert gaps(server)[1] > 0.9


def test_a_long_retry_after_leaves_the_rest_due():
    def answer(path, _):
        return None if "robots" in path else reply(b"", "429 Busy", "Retry-After: 3600")

    results, engine, _ = run(answer, urls(10))
    assert [r.fetch_status for r in results] == [34]
    assert engine.drop_counts == {"backoff": 9}
    (host,) = engine.hosts()
    assert host.backoff_until / 1000 - time.time() == pytest.approx(3600, abs=10)
    results, engine, server = run(pages, urls(10), known={host.host: host})
    assert (results, engine.drop_counts, server.paths) == ([], {"backoff": 10}, [])


def test_a_dead_host_fails_its_pages_and_then_waits():
    options = {"agent_name": "bot", "agent_email": "a@b", "connect_to": ()}
    results, engine, _ = run(pages, urls(8, "http://no-such-host.invalid"), http=options)
    assert {(r.fetch_status, r.protocol_status, r.message) for r in results} == {(34, 16, "dns")}
    assert (len(results), engine.drop_counts) == (5, {"too_many_exceptions": 3})
    (host,) = engine.hosts()
    assert (host.robots_status, host.robots_text, host.backoff_level) == (0, "", 5)
    assert abs(host.robots_failing_since / 1000 - time.time()) < 20


def test_a_host_that_refuses():
    options = {"connect_to": ("a.example.com:80:127.0.0.1:1",)}
    results, _, _ = run(pages, urls(2), http=options)
    assert [r.message for r in results] == ["refused"] * 2


def test_a_host_that_hangs_or_talks_nonsense():
    def answer(path, connection):
        if path in ("/0", "/1"):
            return time.sleep(1) if path == "/0" else b"\0nonsense\r\n\r\n"
        return pages(path, connection)

    results, _, _ = run(answer, urls(3), http={"timeout": 0.2})
    assert [r.message for r in results] == ["timeout", "protocol_error", ""]


@pytest.mark.parametrize("status", [425, 429, 503])
def test_a_busy_server_is_left_alone_for_longer_each_time(status):
    def busy(path, _):
        return None if "robots" in path else reply(b"", f"{status} Busy")

    host = None
    for level in (1, 2, 3):
        known = {host.host: host} if host else None
        _, engine, _ = run(busy, urls(3), known=known, exceptions_delay=100, max_backoff=50)
        (host,) = engine.hosts()
        rest = host.backoff_until / 1000 - time.time()
        assert host.backoff_level == level
        assert 100 * 2 ** (level - 1) - 10 < rest <= 120 * 2 ** (level - 1)
        host.backoff_until = 0
    _, engine, _ = run(pages, urls(1), known={host.host: host})
    assert next(engine.hosts()).backoff_level == 1  # a success halves it


@pytest.mark.parametrize("value", ["999999999999", "Fri, 01 Jan 9999 00:00:00 GMT"])
def test_an_absurd_retry_after_is_cut(value):
    def answer(path, _):
        return None if "robots" in path else reply(b"", "503 No", f"Retry-After: {value}")

    _, engine, _ = run(answer, urls(2))
    rest = next(engine.hosts()).backoff_until / 1000 - time.time()
    assert rest == pytest.approx(86_400, abs=10)


@pytest.mark.parametrize("value", ["-7", "soon", "1e9", ""])
def test_a_senseless_retry_after_backs_off_as_without_one(value):
    def answer(path, _):
        return None if "robots" in path else reply(b"", "503 No", f"Retry-After: {value}")

    _, engine, _ = run(answer, urls(2), exceptions_delay=100, max_backoff=50)
    assert 90 < next(engine.hosts()).backoff_until / 1000 - time.time() <= 120


def test_a_dead_host_costs_one_request_a_round():
    options = {"connect_to": ("a.example.com:80:127.0.0.1:1",)}
    host = HostRecord("a.example.com", backoff_level=9)
    results, engine, _ = run(pages, urls(9), {host.host: host}, options, exceptions_delay=5.0)
    assert (len(results), engine.drop_counts) == (1, {"backoff": 8})
