"""How often the engine sends requests to a host."""

import threading
import time

import pytest
from engine_runs import A, gaps, pages, run, urls
from http_clients import Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.web.engine.engine import Engine, FetchOptions, HostRecord, Task
from nutbeam.web.network.guard import Guard

pytestmark = pytest.mark.usefixtures("each_client")


def test_the_delay_counts_from_the_end_of_the_request():
    def slow(path, connection):
        time.sleep(0.1)
        return pages(path, connection)

    _, _, server = run(slow, urls(4), server_delay=0.2, threads=10)
    assert len(server.requests) == 5
    assert all(gap > 0.19 for gap in gaps(server)), gaps(server)
    assert server.most_active == 1


def test_hosts_do_not_wait_for_each_other():
    began = time.monotonic()
    tasks = [url for number in range(10) for url in urls(3, f"http://h{number}.example.com")]
    results, _, _ = run(pages, tasks, server_delay=0.2, threads=10)
    assert len(results) == 30
    assert 0.55 < time.monotonic() - began < 6  # in turn they would take longer


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
    assert time.monotonic() - began < 10
    assert server.paths == ["/robots.txt"]
    assert next(engine.hosts()).crawl_delay == 31
    assert {(r.fetch_status, r.protocol_status, r.message) for r in results} == {
        (37, 18, "crawl delay 31 s is over 30 s")
    }


def test_the_delay_holds_across_runs():
    host = HostRecord("a.example.com", last_request_time=int(time.time() * 1000))
    began = time.monotonic()
    _, _, server = run(pages, urls(1), known={host.host: host}, server_delay=0.4)
    assert server.requests[0][2] - began > 0.3


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


def test_rejects_an_address_cap_of_0():
    with pytest.raises(ValueError, match="threads_per_address must be at least 1, or -1"):
        FetchOptions(threads_per_address=0)


@pytest.mark.slow
def test_hosts_that_others_may_have_requested_just_now_wait_for_their_delay():
    known = {"a.example.com": HostRecord("a.example.com", crawl_delay=1.0)}
    with serve(lambda path, _: reply(b"", "404 No") if "robots" in path else reply(b"x")) as server:
        client = Client(HttpOptions(connect_to=connect_to(server.port)))
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
        client = Client(HttpOptions(connect_to=connect_to(server.port), timeout=60.0))
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
    assert sorted(sum(host.counts.values()) for host in engine.hosts()) == [2, 2, 3]
    assert {host.host for host in engine.hosts()} == {f"n{n}.example.org" for n in (1, 2, 3)}


@pytest.mark.slow
def test_a_domain_waits_for_the_longest_delay_of_its_hosts():
    def answer(path, _):
        slow = path == "/robots.txt"
        return reply(b"User-agent: *\nCrawl-delay: 0.2") if slow else reply(b"x")

    known = {"b.example.com": HostRecord("b.example.com", crawl_delay=0.3)}
    tasks = [*urls(2), *urls(1, "http://b.example.com")]
    _, _, server = run(answer, tasks, known, queue_mode="domain")
    assert all(gap > 0.29 for gap in gaps(server)), gaps(server)


@pytest.mark.few(2)
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


def test_a_delay_of_a_task_counts_from_the_last_request_of_an_earlier_run():
    now = int(time.time() * 1000)
    known = {"a.example.com": HostRecord("a.example.com", last_request_time=now)}
    began = time.monotonic()
    _, _, server = run(pages, [Task(f"{A}/", delay=0.5)], known)
    assert server.requests[0][2] - began > 0.4
