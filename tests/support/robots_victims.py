"""Hosts whose robots.txt redirects to one host, which measures what comes of it."""

import contextlib
import threading
import time

from web_servers import connect_to, reply, serve

VICTIM = "victim.example.org"


class Victim:
    """What one host was asked, on behalf of many; see ``victim``.

    Attributes:
        hosts: The others, their pages' URLs.
        reach: Options of commands that lead to all of them.
        moments: When it was asked.
        most_active: By how many at a time.
    """

    def __init__(self, many):
        self.hosts = [f"http://h{number}.example.com/" for number in range(many)]
        self.moments, self.active, self.most_active = [], 0, 0
        self.lock = threading.Lock()

    def __call__(self, path, _):
        host = self.server.current.head.split("Host: ")[1].split()[0]
        if host != VICTIM:
            target = f"Location: http://{VICTIM}/robots.txt?{host}"
            return reply(b"", "302 Found", target) if path == "/robots.txt" else reply(b"page")
        with self.lock:
            self.moments.append(time.monotonic())
            self.active += 1
            self.most_active = max(self.most_active, self.active)
        time.sleep(0.02)
        with self.lock:
            self.active -= 1
        return reply(b"", "404 No")

    @property
    def reach(self):
        """Options of commands."""
        names = connect_to(self.server.port, "*.example.com", "*.example.org")
        return [word for mapping in names for word in ("--connect_to", mapping)]

    def check(self, partitions, delay):
        """Checks that each partition asked once per delay."""
        later = self.moments[partitions:]
        gaps = [b - a for a, b in zip(self.moments, later, strict=False)]
        assert len(self.moments) == len(self.hosts)
        assert min(gaps) >= delay
        assert self.most_active <= partitions


@contextlib.contextmanager
def victim(many):
    """Serves many hosts and the one that their robots.txt redirects to, each to another URL."""
    made = Victim(many)
    with serve(made) as made.server:
        yield made
