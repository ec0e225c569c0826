"""Hosts whose robots.txt redirect to other hosts, and engines that crawl them."""

import contextlib
import itertools
import threading
from collections import Counter

from http_clients import Client, HttpOptions
from web_servers import connect_to, reply, serve

from nutbeam.web.engine.engine import Engine, FetchOptions, Task

DELAY = 0.1


VICTIM = "victim.example.org"


def host_of(head):
    return head.split("Host: ")[1].split()[0]


def moved(target):
    return reply(b"", "302 Found", f"Location: {target}")


class Site:
    """Answers by host; see ``crawl``."""

    def __init__(self, answer):
        self.answer, self.active, self.most_active = answer, Counter(), Counter()
        self.lock = threading.Lock()

    def __call__(self, path, _):
        host = host_of(self.server.current.head)
        with self.lock:
            self.active[host] += 1
            self.most_active[host] = max(self.most_active[host], self.active[host])
        try:
            return self.answer(host, path)
        finally:
            with self.lock:
                self.active[host] -= 1

    def asked(self, host=None):
        """(path, moment) of each request that a host received."""
        requests = self.server.requests
        return [(path, at) for path, head, at in requests if host in (None, host_of(head))]

    def paths(self, host=None):
        return [path for path, _ in self.asked(host)]


@contextlib.contextmanager
def engine_of(answer, known=None, http=None, **options):
    """Makes an engine for hosts of which ``answer(host, path)`` says what they send."""
    site = Site(answer)
    with serve(site) as site.server:
        options = {"server_delay": DELAY, "exceptions_delay": 0.0} | options
        names = ("*.example.com", "*.example.org", "*.example.net")
        reach = {"connect_to": connect_to(site.server.port, *names)}
        client = Client(HttpOptions(**reach | (http or {})))
        try:
            yield Engine(FetchOptions(**options), client, known), site
        finally:
            client.close()


def crawl(answer, urls, **options):
    """Returns the results, the engine and the site of a run."""
    with engine_of(answer, **options) as (engine, site):
        return list(engine.run(map(Task, urls))), engine, site


def attackers(target, robots=b"", status="404 No"):
    """Answers for hosts of example.com whose robots.txt redirects to ``target(host)``."""

    def answer(host, path):
        if host.endswith(".example.com"):
            return moved(target(host)) if path == "/robots.txt" else reply(b"page")
        return reply(robots, status)

    return answer


def hosts(many):
    return [f"http://h{number}.example.com" for number in range(many)]


def gaps(requests):
    return [b - a for (_, a), (_, b) in itertools.pairwise(requests)]
