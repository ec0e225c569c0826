"""Redirects of robots.txt to other hosts: what the server that they lead to measures."""

import contextlib
import threading
import time
from collections import Counter

import pytest
from http_clients import Client, HttpOptions
from robots_sites import (
    DELAY,
    VICTIM,
    attackers,
    crawl,
    engine_of,
    gaps,
    host_of,
    hosts,
    moved,
)
from web_servers import connect_to, reply, serve

from nutbeam.web.engine.engine import Engine, FetchOptions, HostRecord, Task
from nutbeam.web.engine.robots_search import RobotsAnswers
from nutbeam.web.exchange.status import Response
from nutbeam.web.network.guard import Guard

pytestmark = pytest.mark.usefixtures("each_client")


MANY = [6, pytest.param(60, marks=pytest.mark.long)]


@pytest.mark.parametrize("many", MANY)
def test_distinct_targets_at_one_host_are_requested_in_its_turn(many):
    answer = attackers(lambda host: f"http://{VICTIM}/robots.txt?{host}")
    urls = [f"{host}/" for host in hosts(many)]
    results, engine, site = crawl(answer, urls, robots_redirect_targets=many)
    asked = site.asked(VICTIM)
    assert len({path for path, _ in asked}) == len(asked) == many
    assert min(gaps(asked)) >= DELAY
    assert site.most_active[VICTIM] == 1
    assert (len(results), engine.drop_counts) == (many, {})
    assert {r.fetch_status for r in results} == {33}


@pytest.mark.parametrize("many", MANY)
def test_one_target_of_many_hosts_costs_one_request(many):
    rules = b"User-agent: *\nDisallow: /no"
    answer = attackers(lambda _: f"http://{VICTIM}/robots.txt", rules, "200 OK")
    urls = [f"{host}/{path}" for host in hosts(many) for path in ("yes", "no")]
    results, _, site = crawl(answer, urls, threads=10)
    assert site.paths(VICTIM) == ["/robots.txt"]
    assert Counter(r.protocol_status for r in results) == {1: many, 18: many}


def test_a_target_is_one_however_it_is_spelled():
    spellings = [
        "{v}/robots.txt",
        "u:p@{v}/robots.txt",
        "{v}/robots.txt#x",
        "{v}.:80/a/../robots.txt",
    ]

    def target(host):
        number = int(host[1 : host.index(".")])
        return "http://" + spellings[number % len(spellings)].format(v=VICTIM.title())

    results, _, site = crawl(attackers(target), [f"{host}/" for host in hosts(8)])
    assert len(results) == 8
    assert len(site.asked(VICTIM)) == 1
    assert "Authorization" not in str(site.server.requests)


def test_robots_txt_of_a_host_that_is_crawled_itself_is_not_requested_twice():
    answer = attackers(lambda _: f"http://{VICTIM}/robots.txt", b"", "200 OK")
    urls = [f"{host}/" for host in hosts(2)]
    for some in ([*urls, f"http://{VICTIM}/"], [f"http://{VICTIM}/", *urls]):
        results, _, site = crawl(answer, some)
        assert len(results) == 3
        assert Counter(site.paths(VICTIM)) == {"/robots.txt": 1, "/": 1}
        assert min(gaps(site.asked(VICTIM))) >= DELAY


@pytest.mark.parametrize("failure", ["closed", 404, 429, 500])
def test_failures_are_remembered_as_answers_are(failure):
    def answer(host, path):
        if host == VICTIM and failure == "closed":
            return None
        return attackers(lambda _: f"http://{VICTIM}/robots.txt", b"", f"{failure} No")(host, path)

    results, engine, site = crawl(answer, [f"{host}/" for host in hosts(3)])
    assert len(site.asked(VICTIM)) == 1
    if failure == "closed":
        assert [r.message for r in results] == ["reset"] * 3
    elif failure == 404:
        assert [r.fetch_status for r in results] == [33] * 3
    else:
        assert (results, engine.drop_counts) == ([], {"robots_deferred": 3})
    assert {record.host for record in engine.hosts()} > {VICTIM}


@pytest.mark.parametrize("target", ["http://{v}/?{h}", "http://{h}.{v}/robots.txt"])
def test_redirects_of_others_cause_a_limited_number_of_requests_to_a_domain(target):
    answer = attackers(lambda host: target.format(v=VICTIM, h=host.partition(".")[0]))
    urls = [f"{host}/{page}" for host in hosts(5) for page in "ab"]
    results, engine, site = crawl(answer, urls, robots_redirect_targets=3, server_delay=0.02)
    strangers = [head for _, head, _ in site.server.requests if VICTIM in host_of(head)]
    assert len(strangers) == 3
    assert (len(results), engine.drop_counts) == (6, {"robots_redirects": 4})
    assert "/" not in site.paths("h9.example.com")


def test_redirects_within_a_domain_are_its_own_business():
    def answer(host, path):
        if host == "www.example.com":
            return reply(b"", "404 No")
        return moved(f"http://www.example.com/?{host}") if path == "/robots.txt" else reply(b"page")

    urls = [f"{host}/" for host in hosts(4)]
    results, _, site = crawl(answer, urls, robots_redirect_targets=1, server_delay=0.02)
    assert len(results) == len(site.asked("www.example.com")) == 4


@pytest.mark.parametrize("target", ["/other", "//H0.example.com/other"])
def test_a_hop_to_the_same_host_is_another_turn_of_it(target):
    def answer(_, path):
        return moved(target) if path == "/robots.txt" else reply(b"User-agent: *\nDisallow: /no")

    results, _, site = crawl(answer, [f"http://h0.example.com/{page}" for page in ("yes", "no")])
    assert site.paths() == ["/robots.txt", "/other", "/yes"]
    assert min(gaps(site.asked())) >= DELAY
    assert sorted(r.protocol_status for r in results) == [1, 18]


def test_a_wait_for_a_slow_host_does_not_hold_up_other_hosts():
    others_done, in_time = threading.Event(), []

    def answer(host, path):
        if host == VICTIM:
            in_time.append(others_done.wait(10))
            return reply(b"", "404 No")
        if path == "/last":
            others_done.set()
        return attackers(lambda host: f"http://{VICTIM}/{host}")(host, path)

    urls = [f"{host}/" for host in hosts(4)]
    urls += [f"http://other.example.net/{page}" for page in ("0", "1", "last")]
    results, _, _ = crawl(answer, urls, threads=2, server_delay=0.02)
    assert len(results) == 7
    assert in_time == [True] * 4


def test_pages_stay_due_where_robots_txt_is_at_a_host_that_rests():
    until = int(time.time() * 1000) + 3_600_000
    known = {VICTIM: HostRecord(VICTIM, backoff_until=until)}
    urls = [f"{host}/{page}" for host in hosts(3) for page in "ab"]
    answer = attackers(lambda host: f"http://{VICTIM}/?{host}")
    results, engine, site = crawl(answer, urls, known=known)
    assert (results, engine.drop_counts) == ([], {"robots_deferred": 6})
    assert Counter(site.paths()) == {"/robots.txt": 3}


def test_a_host_with_retry_after_is_left_alone():
    def answer(host, path):
        if host == VICTIM:
            return reply(b"", "429 No", "Retry-After: 3600")
        return attackers(lambda host: f"http://{VICTIM}/?{host}")(host, path)

    results, engine, site = crawl(answer, [f"{host}/" for host in hosts(4)])
    assert (results, engine.drop_counts) == ([], {"robots_deferred": 4})
    assert len(site.asked(VICTIM)) == 1
    (record,) = [record for record in engine.hosts() if record.host == VICTIM]
    assert record.backoff_until / 1000 - time.time() == pytest.approx(3600, abs=20)
    assert record.robots_status is None  # what it sent is not its own robots.txt


@pytest.mark.parametrize("ends", ["time_limit", "stop", "closed"])
def test_the_end_does_not_wait_for_a_robots_txt(ends):
    def answer(host, path):
        if host == VICTIM:
            asked.set()
        return attackers(lambda host: f"http://{VICTIM}/?{host}")(host, path)

    asked = threading.Event()
    known = {VICTIM: HostRecord(VICTIM, crawl_delay=20.0)}
    urls = [f"{host}/{page}" for host in hosts(3) for page in "ab"]
    limit = 1.0 if ends == "time_limit" else -1
    with engine_of(answer, known=known, server_delay=0.0, fetch_time_limit=limit) as (engine, site):
        began, run = time.monotonic(), engine.run(map(Task, urls))
        if ends == "stop":
            threading.Thread(target=lambda: asked.wait(10) and engine.stop("lease_lost")).start()
        results = [next(run)] if ends == "closed" else list(run)
        run.close()
        assert time.monotonic() - began < 10
    assert len(site.asked(VICTIM)) == 1
    if ends != "closed":
        reason = {"stop": "lease_lost"}.get(ends, ends)
        assert len(results) + engine.drop_counts[reason] == 6


def test_five_hops_over_hosts_are_followed_and_no_sixth():
    def answer(host, path):
        if path != "/robots.txt":
            return reply(b"page")
        number = int(host[1 : host.index(".")])
        return moved(f"http://h{number + 1}.example.com/robots.txt")

    results, _, site = crawl(answer, ["http://h0.example.com/"])
    assert [r.fetch_status for r in results] == [33]  # as if there were none: RFC 9309 2.3.1.2
    assert len(site.paths()) == 7
    assert [len(site.paths(f"h{n}.example.com")) for n in range(7)] == [2, 1, 1, 1, 1, 1, 0]


def test_a_loop_defers_its_pages():
    def answer(host, path):
        back = {"h0.example.com": VICTIM, VICTIM: "h0.example.com"}[host]
        return moved(f"http://{back}/robots.txt") if path == "/robots.txt" else reply(b"page")

    results, engine, site = crawl(answer, ["http://h0.example.com/", f"http://{VICTIM}/"])
    assert (results, engine.drop_counts) == ([], {"robots_deferred": 2})
    assert Counter(site.paths()) == {"/robots.txt": 2}
    # The next fetch requests nothing before the pause is over.
    known = {record.host: record for record in engine.hosts()}
    host, *_ = [host for host, record in known.items() if record.robots_status == 302]
    assert crawl(answer, [f"http://{host}/"], known=known)[2].paths() == []


@pytest.mark.parametrize("mode", ["host", "domain"])
def test_a_hop_within_a_queue_of_many_hosts(mode):
    def answer(host, path):
        if path == "/robots.txt" and host != "www.example.com":
            return moved("http://www.example.com/robots.txt")
        return reply(b"User-agent: *\nDisallow: /no")

    urls = [f"{host}/{page}" for host in hosts(3) for page in ("yes", "no")]
    results, _, site = crawl(answer, urls, queue_mode=mode, threads=20)
    assert Counter(r.protocol_status for r in results) == {1: 3, 18: 3}
    assert len(site.asked("www.example.com")) == 1
    if mode == "domain":
        assert min(gaps(site.asked())) >= DELAY


@pytest.mark.parametrize("mode", ["host", "ip"])
def test_the_limit_of_an_address_holds(mode):
    def answer(host, path):
        if host.startswith("v"):
            time.sleep(0.05)
            return reply(b"", "404 No")
        name = f"v{host[1 : host.index('.')]}.example.org:{port}"
        return moved(f"http://{name}/") if path == "/robots.txt" else reply(b"page")

    def lookup(host, port, **_):
        here = "127.0.0.1" if host.startswith("v") else f"127.0.1.{host[1 : host.index('.')]}"
        return [(2, 1, 6, "", (here, port))]

    def at(path, connection):
        with lock:
            local = connection.getsockname()[0]
            active[local] += 1
            most[local] = max(most[local], active[local])
        try:
            return answer(host_of(server.current.head), path)
        finally:
            with lock:
                active[local] -= 1

    active, most, lock = Counter(), Counter(), threading.Lock()
    with serve(at, address="0.0.0.0") as server:
        port = server.port
        guard = Guard(["127.0.0.0/8"], (), [str(port)], lookup)
        client = Client(HttpOptions(), guard)
        options = {"threads_per_address": 2, "server_delay": 0.0, "queue_mode": mode}
        engine = Engine(FetchOptions(robots_redirect_targets=99, **options), client)
        results = list(engine.run(Task(f"{host}:{port}/") for host in hosts(8)))
        client.close()
    assert [r.fetch_status for r in results] == [33] * 8
    assert most["127.0.0.1"] == {"host": 2, "ip": 1}[mode]


def test_hops_pass_the_guard():
    answer = attackers(lambda host: "http://127.0.0.1/robots.txt")
    agent = {"agent_name": "bot", "agent_email": "a@b"}
    results, engine, site = crawl(answer, [f"{host}/" for host in hosts(3)], http=agent)
    assert [r.message for r in results] == ["address_denied"] * 3
    assert len(site.asked()) == 3
    assert "127.0.0.1" not in {record.host for record in engine.hosts()}


def test_targets_that_cannot_be_requested_count_as_no_robots_txt():
    for target in ("http://a^b/", "http://victim.example.org:99999/", "ftp://a/", "http://..../"):
        results, _, site = crawl(attackers(lambda _, t=target: t), ["http://h0.example.com/"])
        assert len(results) == 1, target
        assert site.asked(VICTIM) == []


def test_several_partitions_ask_a_host_once_each_per_delay():
    """Each partition of a batch is an engine; they know nothing of each other."""
    answer = attackers(lambda host: f"http://{VICTIM}/robots.txt?{host}")
    with engine_of(answer) as (first, site), contextlib.ExitStack() as stack:
        client = Client(
            HttpOptions(connect_to=connect_to(site.server.port, "*.example.com", "*.example.org"))
        )
        stack.callback(client.close)
        second = Engine(FetchOptions(server_delay=DELAY), client)
        parts = [hosts(8)[:4], hosts(8)[4:]]
        threads = [
            threading.Thread(target=lambda e=engine, p=part: list(e.run(Task(f"{h}/") for h in p)))
            for engine, part in zip((first, second), parts, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    moments = [at for _, at in site.asked(VICTIM)]
    assert len(moments) == 8
    assert all(third - one >= DELAY for one, third in zip(moments, moments[2:], strict=False))
    assert site.most_active[VICTIM] <= 2


def test_the_answers_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr("nutbeam.web.engine.robots_search._MAX_BYTES", 50_000)
    answers = RobotsAnswers()
    urls = [f"http://h{number}.example.com/robots.txt" for number in range(30)]
    for url in urls:
        headers = [("Location", "/x"), ("X-Large", "x" * 40_000)]
        answers.put(Response(url, status=200, headers=headers, body=b"x" * 5_000))
        assert answers.get(urls[0]) is not None  # what is used stays
    kept = [url for url in urls if answers.get(url) is not None]
    assert kept == [urls[0], *urls[-len(kept) + 1 :]]
    assert 5 <= len(kept) <= 10


def test_a_forgotten_target_is_requested_again_up_to_the_limit(monkeypatch):
    monkeypatch.setattr("nutbeam.web.engine.robots_search._MAX_BYTES", 0)
    answer = attackers(lambda _: f"http://{VICTIM}/robots.txt")
    urls = [f"{host}/" for host in hosts(6)]
    _, engine, site = crawl(answer, urls, threads=1, robots_redirect_targets=2, server_delay=0.02)
    assert 1 <= len(site.asked(VICTIM)) <= 2
    assert set(engine.drop_counts) <= {"robots_redirects"}
