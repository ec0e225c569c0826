"""Serves the simulated web on a loopback port, all hosts by their Host header.

Processes of their own do the serving (``worker.py``), so that it takes no time from the crawler.
They end with the process that started them.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from typing import Self

from ..base.imports import safe_environment
from .model import DOMAIN
from .site import Site

ADDRESS = "127.0.0.1"


class SimWeb:
    """A simulated web, which is served for the length of a ``with`` block.

    >>> with SimWeb(hosts=2, pages=3, seed=7, crawl_delay=0) as web:
    ...     web.seeds
    ['http://h0.example.com/']

    Args:
        hosts: See ``Site``, as for ``pages``, ``seed`` and ``crawl_delay``.
        port: A free port, or 0 to let the system choose one.
        processes: How many processes share the work, at least 1.
        latency: Seconds to wait before each answer.
        log: Descriptor of a file, opened for appending, to which each request is written as a
            JSON list: monotonic time in seconds, host, path with query.
        sitemaps: See ``Site``.

    Raises:
        ValueError: The port is taken, or a number is out of bounds.

    Attributes:
        site: The pages.
        port: The port on ``ADDRESS``.
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
        log: int | None = None,
        sitemaps: bool = False,
    ) -> None:
        if processes < 1:
            raise ValueError(f"processes must be at least 1, got {processes!r}")
        if not 0 <= latency < 3600:
            raise ValueError(f"latency must be 0 to 3600 seconds, got {latency!r}")
        self.site = Site(hosts, pages, seed, crawl_delay, sitemaps)
        self.port = port
        self._processes, self._latency, self._log = processes, latency, log
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(s) for s in _listen(self.port, self._processes)]
            self.port = sockets[0].getsockname()[1]
            self._children = [self._start(listening.fileno()) for listening in sockets]
        for child in self._children:
            assert child.stdout is not None
            if child.stdout.readline() != b"ready\n":
                self.__exit__()
                raise RuntimeError(f"the simulated web did not start (exit {child.returncode})")
        return self

    def __exit__(self, *exception: object) -> None:
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

    def _start(self, listening: int) -> subprocess.Popen[bytes]:
        config = {
            "site": asdict(self.site),
            "socket": listening,
            "parent": os.getpid(),
            "latency": self._latency,
            "log": self._log,
        }
        command = [sys.executable, "-m", "nutbeam.web.simweb.worker", json.dumps(config)]
        inherited = [listening] if self._log is None else [listening, self._log]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=inherited,
            env=safe_environment(os.environ),
        )

    @property
    def connect_to(self) -> tuple[str, ...]:
        """The value of ``--connect_to`` with which a crawl finds the simulated hosts here."""
        return (f"*.{DOMAIN}:80:{ADDRESS}:{self.port}",)

    @property
    def seeds(self) -> list[str]:
        """The URL from which links lead to all others."""
        return list(self.site.seeds)

    def is_running(self) -> bool:
        """Returns whether all serving processes are alive."""
        return all(child.poll() is None for child in self._children)


def _listen(port: int, count: int) -> list[socket.socket]:
    """Opens ``count`` listening sockets on one port; the kernel distributes connections."""
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


def serve(web: SimWeb) -> int:
    """Serves until interrupted; prints how to crawl the simulated web.

    Returns:
        0 when interrupted, 3 when a serving process has died.

    Raises:
        ValueError: The port is taken.
    """
    with contextlib.suppress(KeyboardInterrupt), web:
        hosts, pages = web.site.hosts, web.site.hosts * web.site.pages
        print(f"simulated web on {ADDRESS}:{web.port}: {hosts} hosts, {pages} pages")
        print(f"seed: {web.seeds[0]}")
        print(f"crawl it with --connect_to '{web.connect_to[0]}'", flush=True)
        while web.is_running():
            time.sleep(0.5)
        return 3
    return 0
