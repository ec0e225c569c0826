import itertools
import threading
import time
from collections import Counter

import pytest
from http_clients import Client, HttpOptions
from web_servers import doors, reply, serve

from nutbeam.web.base.progress import PROGRESS
from nutbeam.web.engine.engine import Engine, FetchOptions, HostRecord, Task
from nutbeam.web.network.guard import Guard

pytestmark = pytest.mark.usefixtures("each_client")
A = "http://a.example.com"


def run(answer, tasks, known=None, http=None, **options):
    """Returns the results by path, the engine and the server of one run."""

    def robots_first(path, connection):
        given = answer(path, connection)
        if given is None and path == "/robots.txt":
            return reply(b"", "404 Not Found")
        return given

    with serve(robots_first) as server:
        options = {"server_delay": 0.0, "exceptions_delay": 0.0} | options
        client = Client(HttpOptions(**{"connect_to": doors(server.port)} | (http or {})))
        engine = Engine(FetchOptions(**options), client, known)
        results = list(engine.run(Task(task) if isinstance(task, str) else task for task in tasks))
        client.close()
    return results, engine, server


def pages(path, _):
    return None if path == "/robots.txt" else reply(path.encode())


def urls(count, host=A):
    return [f"{host}/{number}" for number in range(count)]


def gaps(server):
    """Seconds from the end of each request to the next one, seen from the server."""
    starts = [moment for _, _, moment in server.requests]
    return [start - end for end, start in zip(server.ends, starts[1:], strict=False)]


def test_fetches_each_task_once():
    results, engine, server = run(pages, urls(300), threads=20, threads_per_host=20)
    assert Counter(server.paths) == Counter(["/robots.txt", *(f"/{n}" for n in range(300))])
    assert server.paths[0] == "/robots.txt"
    assert sorted(result.task.url for result in results) == sorted(urls(300))
    assert all(result.response.body == result.task.url[len(A) :].encode() for result in results)
    assert {(r.fetch_status, r.protocol_status, r.message) for r in results} == {(33, 1, "")}
    assert not engine.dropped
    (host,) = engine.hosts()
    assert (host.host, host.robots_status, host.counts) == ("a.example.com", 404, {"success": 300})
    assert abs(host.last_request_end / 1000 - time.time()) < 5


def test_nothing_to_do():
    assert run(pages, [])[0] == []


def test_many_hosts():
    tasks = [f"http://h{number % 150}.example.com/{number}" for number in range(300)]
    results, engine, server = run(pages, tasks, threads=20)
    assert len(results) == 300
    assert Counter(server.paths)["/robots.txt"] == 150
    assert len(list(engine.hosts())) == 150


def test_the_delay_counts_from_the_end_of_the_request():
    def slow(path, connection):
        time.sleep(0.1)
        return pages(path, connection)

    _, _, server = run(slow, urls(4), server_delay=0.2, threads=10)
    assert len(server.requests) == 5
    assert all(0.19 < gap < 0.35 for gap in gaps(server)), gaps(server)
    assert server.most_active == 1


def test_hosts_do_not_wait_for_each_other():
    began = time.monotonic()
    tasks = [url for number in range(10) for url in urls(3, f"http://h{number}.example.com")]
    results, _, _ = run(pages, tasks, server_delay=0.2, threads=10)
    assert len(results) == 30
    assert 0.55 < time.monotonic() - began < 1.2


def test_threads_per_host():
    def slow(path, connection):
        time.sleep(0.05)
        return pages(path, connection)

    _, _, server = run(slow, urls(20), threads=10, threads_per_host=3, server_delay=9.0)
    assert server.most_active == 3


def test_a_crawl_delay_is_kept_even_with_many_threads():
    def answer(path, connection):
        robots = reply(b"User-agent: *\nCrawl-delay: 0.2")
        return robots if path == "/robots.txt" else pages(path, connection)

    options = {"threads": 10, "threads_per_host": 10, "min_crawl_delay": 0.0}
    results, engine, server = run(answer, urls(4), **options)
    assert len(results) == 4
    assert all(gap > 0.19 for gap in gaps(server)), gaps(server)
    assert next(engine.hosts()).crawl_delay == 0.2


def test_a_crawl_delay_is_not_shorter_than_the_usual_delay():
    def answer(path, connection):
        robots = reply(b"User-agent: *\nCrawl-delay: 0.01")
        return robots if path == "/robots.txt" else pages(path, connection)

    _, _, server = run(answer, urls(2), server_delay=0.2)
    assert all(gap > 0.19 for gap in gaps(server))


def test_a_crawl_delay_that_is_too_long_denies():
    def answer(path, connection):
        return reply(b"User-agent: *\nCrawl-delay: 31")

    began = time.monotonic()
    results, engine, server = run(answer, urls(3))
    assert time.monotonic() - began < 1
    assert server.paths == ["/robots.txt"]
    assert next(engine.hosts()).crawl_delay == 31
    assert {(r.fetch_status, r.protocol_status, r.message) for r in results} == {
        (37, 18, "crawl delay 31 s is over 30 s")
    }


def test_robots_txt_denies():
    def answer(path, connection):
        robots = reply(b"User-agent: *\nDisallow: /1")
        return robots if path == "/robots.txt" else pages(path, connection)

    results, engine, server = run(answer, urls(3))
    by_url = {r.task.url: (r.fetch_status, r.protocol_status, r.response is None) for r in results}
    assert by_url == {f"{A}/0": (33, 1, False), f"{A}/1": (37, 18, True), f"{A}/2": (33, 1, False)}
    assert "/1" not in server.paths
    assert next(engine.hosts()).counts == {"success": 2, "robots_denied": 1}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_robots_txt_that_fails_defers_its_pages(status):
    results, engine, server = run(lambda *_: reply(b"", f"{status} No"), urls(50))
    assert results == []
    assert engine.dropped == {"robots_deferred": 50}
    assert server.paths == ["/robots.txt"]
    # The next run knows, and does not even ask.
    (host,) = engine.hosts()
    assert (host.robots_status, host.robots_origin) == (status, A)
    _, engine, server = run(pages, urls(5), known={host.host: host})
    assert engine.dropped == {"robots_deferred": 5}
    assert server.paths == []
    host.robots_fetched_at -= 301_000
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
            assert (kept.robots_text, kept.robots_fetched_at) == (text, host.robots_fetched_at)


def test_a_run_that_asked_nothing_has_learnt_nothing():
    host = HostRecord("a.example.com", A, 200, "User-agent: *", 7, crawl_delay=3.0)
    _, engine, _ = run(pages, urls(2), known={host.host: host}, time_limit=0)
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


def pages_or_404(path, connection):
    return pages(path, connection) or reply(b"", "404 Not Found")


def test_the_delay_holds_across_runs():
    host = HostRecord("a.example.com", last_request_end=int(time.time() * 1000))
    began = time.monotonic()
    _, _, server = run(pages, urls(1), known={host.host: host}, server_delay=0.4)
    assert server.requests[0][2] - began > 0.3


def closing(times):
    """Answers so many requests of each connection; reads the next one, and closes."""
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
        client = Client(HttpOptions(connect_to=doors(server.port)))
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


def test_what_a_new_connection_does_not_bring_is_not_sent_again():
    with serve(closing(0)) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
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
    assert {(r.fetch_status, r.protocol_status, r.redirect, r.permanent) for r in results} == {
        (36, 12, f"{A}/10?a", True),
        (35, 13, f"{A}/20?a", False),
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
def test_nobody_asks_what_has_changed_since_a_time_to_come(later):
    task = Task(f"{A}/1", modified_time=int(time.time() * 1000) + later)
    results, _, server = run(lambda path, _: None if "robots" in path else reply(b"x"), [task])
    assert [r.fetch_status for r in results] == [33]
    assert not [head for _, head, _ in server.requests if "If-Modified-Since" in head]


def test_no_host_rests_for_longer_than_the_options_allow():
    rests = HostRecord(
        "a.example.com", backoff_until=int(time.time() * 1000) + 54 * 365 * 86_400_000
    )
    known = {rests.host: rests}
    results, engine, _ = run(lambda *_: reply(b"x"), urls(1), known=known, max_retry_after=0.1,
                             max_backoff=1e12)  # fmt: skip
    assert (len(results), engine.dropped) == (1, {})


@pytest.mark.parametrize("since", [-1000, 1, 4_000_000_000_000])
def test_since_when_a_robots_txt_fails_is_no_time_that_cannot_be(since):
    def answer(path, _):
        return reply(b"", "503 No") if "robots" in path else reply(b"x")

    now = int(time.time() * 1000)
    host = HostRecord("a.example.com", A, 503, "", now - 90_000_000, robots_failing_since=since)
    results, engine, _ = run(answer, urls(1), known={host.host: host})
    assert results == []
    assert now <= next(engine.hosts()).robots_failing_since <= time.time() * 1000


def test_a_host_that_fails_is_left_alone():
    def answer(path, _):
        return None if "robots" in path else reply(b"", "500 No")

    results, engine, server = run(answer, urls(20))
    assert len(server.paths) == 6
    assert {(r.fetch_status, r.protocol_status, r.message) for r in results} == {(34, 16, "500 No")}
    assert engine.dropped == {"too_many_exceptions": 15}
    assert next(engine.hosts()).exceptions == 5


def test_a_success_forgives_failures():
    def answer(path, _):
        bad = "robots" not in path and int(path[1:]) % 4
        return reply(b"", "500 No") if bad else pages(path, _)

    results, engine, _ = run(answer, urls(20))
    assert len(results) == 20
    assert not engine.dropped


def test_the_back_off_doubles():
    def answer(path, _):
        return None if "robots" in path else reply(b"", "500 No")

    _, _, server = run(answer, urls(4), exceptions_delay=0.1)
    expected = [0.0, 0.1, 0.2, 0.4]  # and up to a fifth more
    waited = gaps(server)
    assert all(e <= gap < 1.2 * e + 0.3 for e, gap in zip(expected, waited, strict=True)), waited


@pytest.mark.slow
@pytest.mark.parametrize("status", [429, 503])
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
    assert engine.dropped == {"backoff": 9}
    (host,) = engine.hosts()
    assert host.backoff_until / 1000 - time.time() == pytest.approx(3600, abs=10)
    results, engine, server = run(pages, urls(10), known={host.host: host})
    assert (results, engine.dropped, server.paths) == ([], {"backoff": 10}, [])


def test_a_dead_host_fails_its_pages_and_then_waits():
    options = {"agent_name": "bot", "agent_email": "a@b", "connect_to": ()}
    results, engine, _ = run(pages, urls(8, "http://no-such-host.invalid"), http=options)
    assert {(r.fetch_status, r.protocol_status, r.message) for r in results} == {(34, 16, "dns")}
    assert (len(results), engine.dropped) == (5, {"too_many_exceptions": 3})
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


def test_denied_addresses_cost_no_time():
    options = {"agent_name": "bot", "agent_email": "a@b", "connect_to": ()}
    began = time.monotonic()
    results, engine, server = run(
        pages, [*urls(20, "http://127.0.0.1"), "http://[::1]:22/"], http=options, server_delay=5.0
    )
    assert Counter(r.message for r in results) == {"address_denied": 20, "port_denied": 1}
    assert time.monotonic() - began < 2
    assert server.connections == 0
    assert not engine.dropped


def test_without_an_agent_strangers_are_not_asked():
    results, engine, _ = run(pages, [*urls(3), *urls(4, "http://1.1.1.1")])
    assert len(results) == 3
    assert engine.dropped == {"agent_missing": 4}


def test_urls_that_cannot_be_asked_for_are_counted():
    results, engine, _ = run(pages, [*urls(2), "ftp://a.example.com/", "http://a b/", ""])
    assert len(results) == 2
    assert engine.dropped == {"bad_url": 2, "scheme_not_allowed": 1}


def test_the_time_limit():
    began = time.monotonic()
    results, engine, _ = run(pages, urls(100), server_delay=0.2, time_limit=0.7)
    assert 0.6 < time.monotonic() - began < 1.2
    assert 2 <= len(results) <= 4
    assert engine.dropped == {"time_limit": 100 - len(results)}


def test_one_address_is_one_neighbour():
    def slow(path, connection):
        time.sleep(0.02)
        return pages(path, connection)

    def lookup(host, port, **_):
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    with serve(lambda path, connection: slow(path, connection) or reply()) as server:
        guard = Guard(["127.0.0.0/8"], (), [str(server.port)], lookup)
        client = Client(HttpOptions(), guard)
        tasks = [
            Task(f"http://n{n}.example.org:{server.port}/{m}") for n in range(40) for m in "ab"
        ]
        engine = Engine(FetchOptions(server_delay=0.0, threads=40), client)
        assert len(list(engine.run(tasks))) == 80
        assert server.most_active == 8


def test_results_come_while_others_wait_and_bodies_do_not_pile_up(monkeypatch):
    monkeypatch.setattr("nutbeam.web.engine.queues._MAX_RESULTS", 10)
    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        engine = Engine(FetchOptions(server_delay=0.0, threads=5, threads_per_host=5), client)
        results = engine.run(Task(url) for url in urls(500))
        next(results)
        time.sleep(0.3)
        assert len(server.requests) < 60
        assert len(list(results)) == 499


def test_tasks_are_read_lazily(monkeypatch):
    monkeypatch.setattr("nutbeam.web.engine.engine._MAX_WAITING", 2000)
    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
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
    assert (results, engine.dropped) == ([], {"robots_deferred": 5000})


def test_closing_stops_everything():
    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        options = FetchOptions(server_delay=0.0, threads=5, threads_per_host=5)
        results = Engine(options, client).run(Task(url) for url in urls(5000))
        next(results)
        results.close()
        time.sleep(0.2)
        asked = len(server.requests)
        time.sleep(0.2)
        assert len(server.requests) == asked < 5000
        alive = [t for t in threading.enumerate() if t.name == "nutbeam-fetch"]
        assert not alive


def test_stop_leaves_the_rest_due():
    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        engine = Engine(FetchOptions(server_delay=0.1), client)
        results = []
        for result in engine.run(Task(url) for url in urls(50)):
            results.append(result)
            engine.stop("lease_lost")
    assert len(results) + engine.dropped["lease_lost"] == 50
    assert len(results) <= 2


def test_an_error_of_the_tasks_is_raised():
    def broken():
        yield Task(f"{A}/1")
        raise RuntimeError("no more")

    with serve(pages_or_404) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        with pytest.raises(RuntimeError, match="no more"):
            list(Engine(FetchOptions(), client).run(broken()))


def test_progress_counts_results():
    PROGRESS.reset()
    PROGRESS.start("fetch", 3)
    run(lambda path, _: None if "1" not in path else reply(b"abc"), [f"{A}/1", f"{A}/11"])
    phase = PROGRESS.snapshot().current
    PROGRESS.reset()
    assert (phase.done, dict(phase.counts)) == (2, {"success": 2, "bytes": 6})


def test_rejects_an_address_cap_of_0():
    with pytest.raises(ValueError, match="threads_per_address must be at least 1, or -1"):
        FetchOptions(threads_per_address=0)


@pytest.mark.slow
def test_what_others_may_have_asked_just_now_waits_for_its_delay():
    known = {"a.example.com": HostRecord("a.example.com", crawl_delay=1.0)}
    with serve(lambda path, _: reply(b"", "404 No") if "robots" in path else reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        began = time.monotonic()
        options = FetchOptions(server_delay=0.5)
        engine = Engine(options, client, known, requested_until=began)
        hosts = [A, "http://b.example.com"]
        assert len(list(engine.run(Task(f"{host}/1") for host in hosts))) == 2
        client.close()
    first = {}
    for _, head, moment in server.requests:
        first.setdefault(head.split("Host: ")[1].split()[0], moment - began)
    assert first["b.example.com"] >= 0.5
    assert first["a.example.com"] >= 1.0


def gated(gate, tasks, **options):
    with serve(lambda path, _: reply(b"", "404 No") if "robots" in path else reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)), gate=gate)
        engine = Engine(FetchOptions(**{"server_delay": 0.0} | options), client)
        results = list(engine.run(map(Task, tasks)))
        client.close()
    return results, engine, server


def test_a_gate_that_shuts_stops_all():
    asked = itertools.count(1)
    tasks = [url for number in range(5) for url in urls(9, f"http://h{number}.example.com")]
    results, engine, server = gated(lambda: next(asked) <= 17, tasks, threads=4)
    assert len(server.requests) <= 17
    assert len(results) == sum(path != "/robots.txt" for path in server.paths)
    assert engine.dropped == {"stopped": len(tasks) - len(results)}
    # It is not the hosts' fault.
    assert all(host.exceptions == 0 for host in engine.hosts())


def test_nothing_is_sent_while_the_gate_takes_its_time():
    opened = threading.Event()
    moments = []

    def gate():
        assert opened.wait(20)
        return True

    def open_later():
        time.sleep(0.5)
        moments.append(time.monotonic())
        opened.set()

    threading.Thread(target=open_later).start()
    results, _, server = gated(gate, urls(3), threads=4)
    assert len(results) == 3
    assert min(moment for _, _, moment in server.requests) >= moments[0]


def test_what_hosts_demand_can_be_asked_for_meanwhile():
    def answer(path, _):
        if path == "/robots.txt":
            return reply(b"User-agent: *\nCrawl-delay: 0.1")
        return reply(b"", "503 Busy", "Retry-After: 900")

    _, engine, _ = run(answer, urls(2), server_delay=0.0)
    ((host, (delay, until)),) = engine.demands().items()
    assert (host, delay) == ("a.example.com", 0.1)
    assert 800_000 < until - time.time() * 1000 <= 900_000
    assert run(pages, urls(2))[1].demands() == {}


def test_what_a_pulse_raises_ends_the_run():
    def pulse(_):
        raise RuntimeError("over")

    engine = Engine(FetchOptions(server_delay=9.0), Client(HttpOptions()), on_pulse=pulse)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="over"):
        list(engine.run([Task("http://a.invalid/")] * 3))
    assert time.monotonic() - began < 8


@pytest.mark.slow
def test_the_share_of_threads_that_wait_for_politeness():
    """One thread is at a slow server all the time; the other waits for a host's delay."""
    done = threading.Event()

    def answer(path, _):
        if path == "/robots.txt":
            return reply(b"", "404 No")
        if path == "/slow":
            assert done.wait(30)
        elif path == "/2":
            done.set()
        return reply(b"x")

    told = []
    with serve(answer) as server:
        client = Client(HttpOptions(connect_to=doors(server.port), timeout=60.0))
        options = FetchOptions(server_delay=1.0, threads=2)
        engine = Engine(options, client, on_pulse=lambda s: told.append((time.monotonic(), s)))
        tasks = ["http://slow.example.com/slow", *urls(3)]
        assert len(list(engine.run(map(Task, tasks)))) == 4
        client.close()
    delayed = [moment for path, head, moment in server.requests if "Host: a." in head]
    waited = delayed[-1] - delayed[0]
    assert waited >= 3
    # robots.txt of the slow host has a delay of one second, too: both wait then.
    assert 0.4 * waited <= told[-1][1] <= 0.5 * waited + 1.5
    assert told == sorted(told)


@pytest.mark.slow
def test_a_pulse_comes_though_nothing_else_does():
    told = []
    with serve(lambda path, _: reply(b"", "404 No") if "robots" in path else reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        engine = Engine(FetchOptions(server_delay=5.0), client, on_pulse=told.append)
        assert len(list(engine.run([Task(f"{A}/1")]))) == 1
        client.close()
    waiting = [seconds for seconds in told if 0.5 < seconds < 4.5]
    assert len(waiting) >= 2
    assert 4.5 < told[-1] < 8


def test_an_allowlist_is_neither_asked_nor_obeyed(caplog):
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
    assert (results, engine.dropped) == ([], {"robots_deferred": 3})
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
    assert kept.robots_failing_since == kept.robots_fetched_at > now - 1


def test_sitemaps_of_robots_txt_are_learnt():
    def answer(path, _):
        return reply(b"Sitemap: http://a.example.com/s.xml") if "robots" in path else reply(b"x")

    (host,) = run(answer, urls(1))[1].hosts()
    assert host.sitemaps == ("http://a.example.com/s.xml",)
    (again,) = run(answer, urls(1), known={host.host: host})[1].hosts()
    assert again.sitemaps == host.sitemaps


@pytest.mark.parametrize("status", [429, 503])
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
    assert (len(results), engine.dropped) == (1, {"backoff": 8})


def test_the_hosts_of_a_domain_are_one_neighbour():
    hosts = [f"http://{name}.example.com" for name in ("a", "b")]
    tasks = [url for host in hosts for url in urls(2, host)]
    results, engine, server = run(pages, tasks, queue_mode="domain", server_delay=0.15)
    assert len(results) == 4
    assert len(server.requests) == 6  # robots.txt of both
    assert all(gap > 0.14 for gap in gaps(server)), gaps(server)
    assert server.most_active == 1
    assert [host.host for host in engine.hosts()] == ["a.example.com", "b.example.com"]
    assert all(host.counts == {"success": 2} for host in engine.hosts())


@pytest.mark.slow
def test_the_hosts_of_an_address_are_one_neighbour():
    def lookup(host, port, **_):
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    def answer(path, _):
        return reply(b"", "404 No") if "robots" in path else reply(b"x")

    with serve(answer) as server:
        allowed = ["127.0.0.1/32"]
        guard = Guard(allowed, (), [str(server.port)], lookup)
        client = Client(HttpOptions(), guard)
        tasks = [
            Task(f"http://n{n}.example.org:{server.port}/{n}{m}") for m in "ab" for n in (1, 2, 3)
        ]
        options = FetchOptions(server_delay=0.15, threads=20, threads_per_host=1, queue_mode="ip")
        engine = Engine(options, client)
        results = list(engine.run([*tasks, Task(f"http://n1.example.org:{server.port}/late")]))
        client.close()
    assert len(results) == 7
    assert all(r.fetch_status == 33 for r in results)
    assert len(server.requests) == 10
    assert all(gap > 0.14 for gap in gaps(server)), gaps(server)
    assert server.most_active == 1
    assert [sum(host.counts.values()) for host in engine.hosts()] == [3, 2, 2]
    assert {host.host for host in engine.hosts()} == {f"n{n}.example.org" for n in (1, 2, 3)}


@pytest.mark.slow
def test_a_domain_waits_as_long_as_its_slowest_host_asks():
    def answer(path, _):
        slow = path == "/robots.txt"
        return reply(b"User-agent: *\nCrawl-delay: 0.2") if slow else reply(b"x")

    known = {"b.example.com": HostRecord("b.example.com", crawl_delay=0.3)}
    tasks = [*urls(2), *urls(1, "http://b.example.com")]
    _, _, server = run(answer, tasks, known, queue_mode="domain")
    assert all(gap > 0.29 for gap in gaps(server)), gaps(server)


@pytest.mark.slow
def test_too_low_a_throughput_leaves_the_rest_due():
    options = {"throughput_threshold_check_after": 0.0, "throughput_threshold_retries": 1}
    options |= {"server_delay": 0.4, "throughput_threshold_pages": 50.0}
    results, engine, _ = run(pages, urls(100), **options)
    assert 1 <= len(results) <= 8
    assert engine.dropped == {"throughput": 100 - len(results)}


@pytest.mark.parametrize(
    ("usual", "own", "asked", "least", "most"),
    [
        (0.0, 0.2, None, 0.19, 2.0),
        (9.0, 0.1, None, 0.09, 2.0),  # it may be shorter,
        (0.0, 0.05, 0.2, 0.19, 2.0),  # but not than robots.txt asks for
    ],
)
def test_a_delay_of_its_own(usual, own, asked, least, most):
    def answer(path, _):
        if path == "/robots.txt" and asked:
            return reply(f"User-agent: *\nCrawl-delay: {asked}".encode())
        return pages(path, _)

    tasks = [Task(urls(1)[0]), *(Task(url, delay=own) for url in urls(4)[1:])]
    _, _, server = run(answer, tasks, server_delay=usual, threads=10)
    assert len(server.requests) == 5
    assert all(least < gap < most for gap in gaps(server)), gaps(server)


def test_a_delay_of_its_own_counts_from_what_an_earlier_run_asked():
    now = int(time.time() * 1000)
    known = {"a.example.com": HostRecord("a.example.com", last_request_end=now)}
    began = time.monotonic()
    _, _, server = run(pages, [Task(f"{A}/", delay=0.5)], known)
    assert server.requests[0][2] - began > 0.4


def test_tasks_may_come_while_others_are_fetched():
    seen, engines = [], []

    def tasks():
        yield Task(f"{A}/0")
        for number in (1, 2, 3):
            yield None
            while not engines[0].idle():
                yield None
            assert seen == [f"{A}/{n}" for n in range(number)]
            yield Task(f"{A}/{number}")

    with serve(lambda path, _: pages(path, _) or reply(b"", "404 No")) as server:
        client = Client(HttpOptions(connect_to=doors(server.port)))
        engines.append(Engine(FetchOptions(server_delay=0.0), client))
        for result in engines[0].run(tasks()):
            seen.append(result.task.url)
        client.close()
    assert seen == urls(4)
    assert engines[0].idle()
