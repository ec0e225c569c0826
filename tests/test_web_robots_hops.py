"""Redirects of robots.txt to other hosts: what the server that they lead to measures."""

import itertools
import threading
import time
from collections import Counter

import pytest
from http_clients import Client, HttpOptions
from web_servers import doors, reply, serve

from nutbeam.web.engine import Engine, FetchOptions, HostRecord, Task

pytestmark = pytest.mark.usefixtures("each_client")
DELAY = 0.1
VICTIM = "victim.example.org"
MANY = [6, pytest.param(60, marks=pytest.mark.long)]


def host_of(head):
    return head.split("Host: ")[1].split()[0]


def moved(target):
    return reply(b"", "302 Found", f"Location: {target}")


def crawl(answer, tasks, known=None, ended=None, **options):
    """Returns results, engine and server of a run; ``answer(host, path)`` says what is sent."""

    def given(path, _):
        return answer(host_of(server.current.head), path)

    with serve(given) as server:
        options = {"server_delay": DELAY, "exceptions_delay": 0.0} | options
        names = ("*.example.com", "*.example.org", "*.example.net")
        client = Client(HttpOptions(connect_to=doors(server.port, *names)))
        engine = Engine(FetchOptions(**options), client, known)
        made = (Task(task) if isinstance(task, str) else task for task in tasks)
        results = list(engine.run(made))
        client.close()
    return results, engine, server


def attackers(target, robots=b"", status="404 No"):
    """Answers for hosts of example.com whose robots.txt redirects to ``target(host)``."""

    def answer(host, path):
        if host.endswith(".example.com"):
            return moved(target(host)) if path == "/robots.txt" else reply(b"page")
        return reply(robots, status)

    return answer


def hosts(many):
    return [f"http://h{number}.example.com" for number in range(many)]


def asked(server, host=VICTIM):
    """(path, moment) of each request that a host received."""
    return [(path, moment) for path, head, moment in server.requests if host_of(head) == host]


def gaps(requests):
    return [b - a for (_, a), (_, b) in itertools.pairwise(requests)]


@pytest.mark.parametrize("many", MANY)
def test_distinct_targets_at_one_host_are_asked_for_in_its_turn(many):
    answer = attackers(lambda host: f"http://{VICTIM}/robots.txt?{host}")
    tasks = [f"{host}/" for host in hosts(many)]
    results, engine, server = crawl(answer, tasks, robots_redirect_targets=many)
    at_victim = asked(server)
    assert len({path for path, _ in at_victim}) == len(at_victim) == many
    assert min(gaps(at_victim)) >= DELAY
    assert (len(results), engine.dropped) == (many, {})
    assert {r.fetch_status for r in results} == {33}


@pytest.mark.parametrize("many", MANY)
def test_one_target_of_many_hosts_costs_one_request(many):
    answer = attackers(
        lambda _: f"http://{VICTIM}/robots.txt", b"User-agent: *\nDisallow: /no", "200 OK"
    )
    tasks = [f"{host}/{path}" for host in hosts(many) for path in ("yes", "no")]
    results, _, server = crawl(answer, tasks, threads=10)
    assert [path for path, _ in asked(server)] == ["/robots.txt"]
    assert Counter(r.protocol_status for r in results) == {1: many, 18: many}
