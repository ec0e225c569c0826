"""The web that crawlers are judged on: servers in this process that write down each request.

``ServedWeb`` answers by the Host header, so one address may stand for any number of hosts. Hosts of
the hostile web answer as ``nutbeam simweb`` does; the others as a scenario says. A ``Canary`` listens
on private addresses, where no crawler has any business.
"""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Self

from nutbeam.web.simweb.site import Answer, Site
from nutbeam.web.simweb.worker import AnswerBytes, Pages, render_answer, serve_connection

# Answers a GET: host, path with query, number of earlier requests for it.
AnswerFunction = Callable[[str, str, int], Answer]


class Seen(NamedTuple):
    """A request that arrived: monotonic time in seconds, host, path with query."""

    time: float
    host: str
    target: str


class _Scenario(Pages):
    """The answers of a scenario; ``seen`` has the requests, in the order in which they came."""

    def __init__(self, answer: AnswerFunction) -> None:
        super().__init__(Site(hosts=1, pages=1), 0, None)
        self._answer_of, self.seen = answer, list[Seen]()

    def note(self, host: str, target: str) -> None:
        self.seen.append(Seen(time.monotonic(), host, target))

    def get(self, host: str, target: str) -> AnswerBytes:
        earlier = sum(seen[1:] == (host, target) for seen in self.seen) - 1
        return render_answer(self._answer_of(host, target, earlier))


class ServedWeb:
    """Serves a scenario while its context lasts.

    Args:
        answer: What friendly hosts answer.
        address: Where to listen.
        port: 0: a free one.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, answer: AnswerFunction, address: str = "127.0.0.1", port: int = 0) -> None:
        self._scenario = _Scenario(answer)
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server((address, port), backlog=1024)
        self.port = self._socket.getsockname()[1]

    @property
    def seen(self) -> list[Seen]:
        """The requests so far."""
        return list(self._scenario.seen)

    def __enter__(self) -> Self:
        serve = asyncio.start_server(
            partial(serve_connection, self._scenario), sock=self._socket, limit=32 << 10
        )
        self._loop.run_until_complete(serve)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._socket.close()


class Canary:
    """Counts connections to addresses that no crawler may reach; used as a context.

    Attributes:
        connections: How many were made.
        targets: The paths that were requested.
        port: Where it listens at each address.
    """

    def __init__(self, addresses: Iterable[str], port: int = 0) -> None:
        self.connections, self.targets, self.port = 0, list[str](), port
        self._sockets: list[socket.socket] = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listening = socket.create_server((address, self.port), family=family, backlog=200)
            self.port = listening.getsockname()[1]
            self._sockets.append(listening)

    def __enter__(self) -> Self:
        for listening in self._sockets:
            threading.Thread(target=self._accept, args=(listening,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for listening in self._sockets:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self.connections += 1
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, IndexError), connection:
            head = connection.recv(65_536).decode("latin-1")
            self.targets.append(head.split(" ")[1])
            status = "404 Not Found" if "/robots.txt " in head else "200 OK"
            head = f"HTTP/1.1 {status}\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret"
            connection.sendall(head.encode())
