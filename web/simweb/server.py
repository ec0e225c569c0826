"""Serves the simulated web on a loopback port, all hosts by their Host header.

The serving is done by processes of their own (``worker.py``), so that it takes no time from who
crawls; they die with the process that started them.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from types import TracebackType
from typing import NamedTuple

from .model import DOMAIN
from .site import Site

ADDRESS = "127.0.0.1"


class LoggedRequest(NamedTuple):
    """A line of the log: when a request had come, and what it asked for.

    Attributes:
        time: Seconds, as ``time.monotonic()`` counts them on this machine, in any process.
        host: The Host header, lower case, without port.
        path: Path and query.
    """

    time: float
    host: str
    path: str


class Server:
    """A simulated web that is being served. Made by ``serve``; ``close`` it.

    Attributes:
        site: What is served.
        port: The port on ``ADDRESS``.
    """

    def __init__(self, site: Site, port: int, processes: int, latency: float) -> None:
        if processes < 1:
            raise ValueError(f"processes must be at least 1, got {processes!r}")
        if not 0 <= latency < 3600:
            raise ValueError(f"latency must be 0 to 3600 seconds, got {latency!r}")
        self.site = site
        self._children: list[subprocess.Popen[bytes]] = []
        self._private_ports: list[int] = []
        with contextlib.ExitStack() as sockets:
            public = [sockets.enter_context(s) for s in _listen(port, processes)]
            self.port: int = public[0].getsockname()[1]
            for listening in public:
                private = sockets.enter_context(_listen(0, 1)[0])
                self._private_ports.append(private.getsockname()[1])
                self._children.append(_start(site, (listening, private), latency))
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        for child in self._children:
            assert child.stdout is not None
            if child.stdout.readline() != b"ready\n":
                self.close()
                raise RuntimeError(f"the simulated web did not start (exit {child.returncode})")

    @property
    def connect_to(self) -> tuple[str, ...]:
        """What ``--connect_to`` needs so that the simulated hosts are found here."""
        return (f"*.{DOMAIN}:80:{ADDRESS}:{self.port}",)

    @property
    def seeds(self) -> list[str]:
        """The URL from which all others can be found."""
        return list(self.site.seeds)

    def requests(self) -> list[LoggedRequest]:
        """All requests so far but those to the control host, by time.

        Raises:
            RuntimeError: There were more than the log keeps (500,000 a process).
        """
        requests = []
        for port in self._private_ports:
            log = _fetch_log(port)
            if log["asked"] > len(log["requests"]):
                raise RuntimeError(f"the log has forgotten some of {log['asked']} requests")
            requests += [LoggedRequest(*line) for line in log["requests"]]
        return sorted(requests)

    def is_running(self) -> bool:
        """Whether all its processes live."""
        return all(child.poll() is None for child in self._children)

    def close(self) -> None:
        """Ends the serving processes; may be called twice."""
        for child in self._children:
            assert child.stdin is not None
            child.stdin.close()
        for child in self._children:
            try:
                child.wait(timeout=3)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            assert child.stdout is not None
            child.stdout.close()


def serve(site: Site, port: int = 0, processes: int = 1, latency: float = 0.0) -> Server:
    """Starts serving ``site`` on ``ADDRESS`` and returns once it answers.

    Args:
        port: A free port, or 0 to let the system choose one.
        processes: How many processes share the work, at least 1.
        latency: Seconds to wait before each answer.

    Raises:
        ValueError: The port is taken, or a number is out of bounds.
    """
    return Server(site, port, processes, latency)


def _listen(port: int, count: int) -> list[socket.socket]:
    """Opens ``count`` listening sockets on one port, among which the kernel deals connections."""
    try:
        if count > 1 and port:
            # SO_REUSEPORT would share the port with any other server of this user.
            socket.create_server((ADDRESS, port)).close()
        sockets: list[socket.socket] = []
        for _ in range(count):
            new = socket.create_server((ADDRESS, port), backlog=1024, reuse_port=count > 1)
            sockets.append(new)
            port = new.getsockname()[1]
    except (OSError, OverflowError) as error:
        raise ValueError(f"port must be a free port or 0, got {port!r} ({error})") from error
    return sockets


def _start(
    site: Site, sockets: tuple[socket.socket, ...], latency: float
) -> subprocess.Popen[bytes]:
    numbers = [listening.fileno() for listening in sockets]
    config = {
        "site": asdict(site),
        "sockets": numbers,
        "parent": os.getpid(),
        "latency": latency,
    }
    # -P: the current folder may be this repository, whose folders must not be imported.
    command = [sys.executable, "-P", "-m", "nutbeam.web.simweb.worker", json.dumps(config)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=numbers
    )


def _fetch_log(port: int) -> dict:
    with socket.create_connection((ADDRESS, port), timeout=30) as connection:
        connection.sendall(b"GET /__log HTTP/1.0\r\nHost: control.invalid\r\n\r\n")
        with connection.makefile("rb") as answer:
            return json.loads(answer.read().partition(b"\r\n\r\n")[2])


class SimWeb:
    """A simulated web for the length of a ``with`` block.

    >>> with SimWeb(hosts=2, pages=3, seed=7, crawl_delay=0) as web:
    ...     web.seeds, web.requests()
    (['http://h0.example.com/'], [])

    Attributes:
        site: The pages, and the truth about them.
    """

    def __init__(
        self,
        hosts: int = 20,
        pages: int = 50,
        seed: int = 7,
        crawl_delay: float = 1.0,
        *,
        port: int = 0,
        processes: int = 1,
        latency: float = 0.0,
    ) -> None:
        self.site = Site(hosts, pages, seed, crawl_delay)
        self._serve = (port, processes, latency)

    def __enter__(self) -> Server:
        self._server = serve(self.site, *self._serve)
        return self._server

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()


def run(
    hosts: int = 20,
    pages: int = 50,
    seed: int = 7,
    port: int = 0,
    processes: int = 1,
    crawl_delay: float = 1.0,
    latency: float = 0.0,
) -> int:
    """Serves until interrupted, and says on standard output how to crawl it.

    Returns:
        0 when interrupted, 3 when a serving process has died.

    Raises:
        ValueError: As ``serve`` and ``Site`` do.
    """
    web = SimWeb(hosts, pages, seed, crawl_delay, port=port, processes=processes, latency=latency)
    with contextlib.suppress(KeyboardInterrupt), web as server:
        print(f"simulated web on {ADDRESS}:{server.port}: {hosts} hosts, {hosts * pages} pages")
        print(f"seed: {server.seeds[0]}")
        print(f"crawl it with --connect_to '{server.connect_to[0]}'", flush=True)
        while server.is_running():
            time.sleep(0.5)
        return 3
    return 0
