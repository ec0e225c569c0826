"""What the engine fetches, and how tasks and results flow."""

import itertools
import time
from collections import Counter

import pytest
from engine_runs import A, pages, pages_or_404, run, urls
from http_clients import Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.web.base.progress import PROGRESS
from nutbeam.web.engine.engine import Engine, FetchOptions, Task

pytestmark = pytest.mark.usefixtures("each_client")


def test_fetches_each_task_once():
    results, engine, server = run(pages, urls(300), threads=20, threads_per_host=20)
    assert Counter(server.paths) == Counter(["/robots.txt", *(f"/{n}" for n in range(300))])
    assert server.paths[0] == "/robots.txt"
    assert sorted(result.task.url for result in results) == sorted(urls(300))
    assert all(result.response.body == result.task.url[len(A) :].encode() for result in results)
    assert {(r.fetch_status, r.protocol_status, r.message) for r in results} == {(33, 1, "")}
    assert not engine.drop_counts
    (host,) = engine.hosts()
    assert (host.host, host.robots_status, host.counts) == ("a.example.com", 404, {"success": 300})
    assert abs(host.last_request_time / 1000 - time.time()) < 5


def test_nothing_to_do():
    assert run(pages, [])[0] == []


def test_many_hosts():
    tasks = [f"http://h{number % 150}.example.com/{number}" for number in range(300)]
    results, engine, server = run(pages, tasks, threads=20)
    assert len(results) == 300
    assert Counter(server.paths)["/robots.txt"] == 150
    assert len(list(engine.hosts())) == 150


def closing(times):
    """Answers a number of requests of each connection; reads the next one, and closes."""
    answered = Counter()

    def answer(path, connection):
        answered[connection] += 1
        if answered[connection] > times:
            return None
        return reply(b"", "404 No") if path == "/robots.txt" else reply(path.encode())

    return answer


@pytest.mark.parametrize("threads_per_host", [1, 3])
def test_a_request_that_was_closed_unanswered_waits_for_another_turn(threads_per_host):
    options = {"threads_per_host": threads_per_host, "server_delay": 0.1, "server_min_delay": 0.1}
    with serve(closing(1)) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        engine = Engine(FetchOptions(**options), client)
        results = list(engine.run(map(Task, urls(4))))
        client.close()
    assert [r.fetch_status for r in results] == [33] * 4
    sent = {path: [at for p, _, at in server.requests if p == path] for path in server.paths}
    assert len(server.requests) > 5  # some were sent again,
    assert all(len(moments) <= 2 for moments in sent.values())  # once,
    again = [b - a for a, b in (moments for moments in sent.values() if len(moments) == 2)]
    assert min(again) >= 0.1  # and not at once
    assert next(engine.hosts()).exceptions == 0


def test_a_request_that_fails_on_a_new_connection_is_not_sent_again():
    with serve(closing(0)) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        options = FetchOptions(server_delay=0.05, exceptions_delay=0.0, robots_allowlist=("com",))
        results = list(Engine(options, client).run(map(Task, urls(3))))
        client.close()
    assert [r.message for r in results] == ["reset"] * 3
    assert server.paths == ["/0", "/1", "/2"]


def test_redirects_are_recorded_and_not_followed():
    def answer(path, _):
        target = f"Location: {path}0?a"
        return None if "robots" in path else reply(b"", f"30{path[1]} Moved", target)

    results, _, server = run(answer, [f"{A}/1", f"{A}/2"])
    assert {(r.fetch_status, r.protocol_status, r.redirect) for r in results} == {
        (36, 12, f"{A}/10?a"),  # permanent
        (35, 13, f"{A}/20?a"),
    }
    assert sorted(server.paths) == ["/1", "/2", "/robots.txt"]


def test_pages_that_did_not_change():
    def answer(path, connection):
        return None if "robots" in path else b"HTTP/1.1 304 Not Modified\r\n\r\n"

    tasks = [
        Task(f"{A}/1", etag='"x"', last_modified="Sat, 01 Jan 2000 00:00:00 GMT"),
        Task(f"{A}/2", modified_time=1_000_000_000_000),
        Task(f"{A}/3"),
    ]
    results, _, server = run(answer, tasks)
    heads = {path: head for path, head, _ in server.requests}
    assert '\r\nIf-None-Match: "x"\r\n' in heads["/1"]
    assert "\r\nIf-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n" in heads["/1"]
    assert "\r\nIf-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT\r\n" in heads["/2"]
    by_url = {r.task.url: (r.fetch_status, r.protocol_status) for r in results}
    assert by_url == {f"{A}/1": (38, 21), f"{A}/2": (38, 21), f"{A}/3": (34, 16)}


@pytest.mark.parametrize("later", [86_400_000, 54 * 365 * 86_400_000, 1 << 60])
def test_no_conditional_request_has_a_time_in_the_future(later):
    task = Task(f"{A}/1", modified_time=int(time.time() * 1000) + later)
    results, _, server = run(lambda path, _: None if "robots" in path else reply(b"x"), [task])
    assert [r.fetch_status for r in results] == [33]
    assert not [head for _, head, _ in server.requests if "If-Modified-Since" in head]


def test_denied_addresses_cost_no_time():
    options = {"agent_name": "bot", "agent_email": "a@b", "connect_to": ()}
    began = time.monotonic()
    results, engine, server = run(
        pages, [*urls(20, "http://127.0.0.1"), "http://[::1]:22/"], http=options, server_delay=5.0
    )
    assert Counter(r.message for r in results) == {"address_denied": 20, "port_denied": 1}
    assert time.monotonic() - began < 10  # of 95
    assert server.connections == 0
    assert not engine.drop_counts


def test_strangers_are_not_requested_without_an_agent():
    results, engine, _ = run(pages, [*urls(3), *urls(4, "http://1.1.1.1")])
    assert len(results) == 3
    assert engine.drop_counts == {"agent_missing": 4}


def test_urls_that_cannot_be_requested_are_counted():
    results, engine, _ = run(pages, [*urls(2), "ftp://a.example.com/", "http://a b/", ""])
    assert len(results) == 2
    assert engine.drop_counts == {"bad_url": 2, "scheme_not_allowed": 1}


def test_results_come_while_others_wait_and_bodies_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("nutbeam.web.engine.queues._MAX_RESULTS", 10)
    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        engine = Engine(FetchOptions(server_delay=0.0, threads=5, threads_per_host=5), client)
        results = engine.run(Task(url) for url in urls(500))
        next(results)
        time.sleep(0.3)
        assert len(server.requests) < 60
        assert len(list(results)) == 499


def test_tasks_are_read_lazily(monkeypatch):
    monkeypatch.setattr("nutbeam.web.engine.engine._MAX_WAITING", 2000)
    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        options = FetchOptions(server_delay=0.0, threads=5, threads_per_host=5)
        taken = itertools.count()
        tasks = (Task(f"{A}/{next(taken)}") for _ in itertools.count())
        results = Engine(options, client).run(tasks)
        for _ in range(100):
            next(results)
        results.close()
        assert next(taken) < 5000


def test_drops_alone_do_not_stall_the_feeding(monkeypatch):
    monkeypatch.setattr("nutbeam.web.engine.engine._MAX_WAITING", 1000)
    monkeypatch.setattr("nutbeam.web.engine.engine._FEED", 100)
    tasks = [url for n in range(5) for url in urls(1000, f"http://h{n}.example.com")]
    results, engine, _ = run(lambda *_: reply(b"", "503 No"), tasks)
    assert (results, engine.drop_counts) == ([], {"robots_deferred": 5000})


def test_progress_counts_results():
    PROGRESS.reset()
    PROGRESS.start("fetch", 3)
    run(lambda path, _: None if "1" not in path else reply(b"abc"), [f"{A}/1", f"{A}/11"])
    phase = PROGRESS.snapshot().current
    PROGRESS.reset()
    assert (phase.done, dict(phase.counts)) == (2, {"success": 2, "bytes": 6})


def test_demands_of_hosts_are_available_during_the_run():
    def answer(path, _):
        if path == "/robots.txt":
            return reply(b"User-agent: *\nCrawl-delay: 0.1")
        return reply(b"", "503 Busy", "Retry-After: 900")

    _, engine, _ = run(answer, urls(2), server_delay=0.0)
    ((host, (delay, until)),) = engine.demands().items()
    assert (host, delay) == ("a.example.com", 0.1)
    assert 800_000 < until - time.time() * 1000 <= 900_000
    assert run(pages, urls(2))[1].demands() == {}


def test_tasks_may_come_while_others_are_fetched():
    seen, engines = [], []

    def tasks():
        yield Task(f"{A}/0")
        for number in (1, 2, 3):
            yield None
            while not engines[0].is_idle():
                yield None
            assert seen == [f"{A}/{n}" for n in range(number)]
            yield Task(f"{A}/{number}")

    with serve(lambda path, _: pages(path, _) or reply(b"", "404 No")) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
        engines.append(Engine(FetchOptions(server_delay=0.0), client))
        for result in engines[0].run(tasks()):
            seen.append(result.task.url)
        client.close()
    assert seen == urls(4)
    assert engines[0].is_idle()
