"""A process that serves the simulated web: HTTP/1.1, and no more of it than crawlers use.

GET and HEAD, persistent connections, pipelining, If-None-Match and If-Modified-Since. There is
no Date header, so that answers are the same bytes always. Rendered answers are kept (the least
recently used go first), so that serving costs some 50 µs.

Started by ``server.py`` as ``python -m nutbeam.web.simweb.worker JSON``, with listening sockets
to inherit; it ends when its standard input does, or when it has lost its parent.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import NamedTuple

from .answers import Request
from .hostile import find, respond
from .site import Answer, Site

CONTROL_HOST = "control.invalid"  # RFC 2606: no simulated page can ever be there
MAX_HEAD_BYTES = 32 << 10


class _Cached(NamedTuple):
    head: bytes
    body: bytes
    not_modified: bytes
    etag: str
    last_modified: str

    def size(self) -> int:
        return len(self.head) + len(self.body) + len(self.not_modified) + 500


class Pages:
    """The answers of a site, as bytes, and the log of what was asked.

    Attributes:
        site: The web to serve.
        cache_bytes: How much may be kept.
        log_limit: How many requests the log keeps; older ones are forgotten.
        latency: Seconds from a request to its answer.
    """

    def __init__(
        self, site: Site, cache_bytes: int = 64 << 20, log_limit: int = 500_000, latency: float = 0
    ) -> None:
        self.site = site
        self.latency = latency
        self.asked = 0
        self._cache: OrderedDict[tuple[str, str], _Cached] = OrderedDict()
        self._room = cache_bytes
        self._log: deque[tuple[float, str, str]] = deque(maxlen=log_limit)

    def note(self, host: str, target: str) -> None:
        """Logs a request, with the system's monotonic clock (the same for all processes)."""
        self.asked += 1
        self._log.append((time.monotonic(), host, target))

    def get(self, host: str, target: str) -> _Cached:
        """The answer of a host to a path and query."""
        if host == CONTROL_HOST:
            return _to_bytes(self._control(target))
        key = (host, target)
        cached = self._cache.get(key)
        if cached is not None:
            self._cache.move_to_end(key)
            return cached
        cached = _to_bytes(self.site.answer(host, target))
        self._room -= cached.size()
        self._cache[key] = cached
        while self._room < 0 and self._cache:
            self._room += self._cache.popitem(last=False)[1].size()
        return cached

    def _control(self, target: str) -> Answer:
        if target != "/__log":
            return Answer("unknown", 404, b"there is /__log\n", "text/plain")
        log = {"asked": self.asked, "requests": list(self._log)}
        return Answer("control", 200, json.dumps(log).encode(), "application/json")


def _to_bytes(answer: Answer) -> _Cached:
    headers = dict(answer.headers)
    shared = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
    start = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nServer: simweb\r\n"
    kind = f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n"
    return _Cached(
        (start + kind + shared + "\r\n").encode("latin-1"),
        answer.body,
        f"HTTP/1.1 304 Not Modified\r\nServer: simweb\r\n{shared}\r\n".encode("latin-1"),
        headers.get("ETag", ""),
        headers.get("Last-Modified", ""),
    )


class Connection(asyncio.Protocol):
    """One connection; requests are answered one after another, in their order."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._inbox = b""
        self._busy = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._inbox = b""
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        self._transport.resume_reading()
        self._serve()

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        self._serve()

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._transport.write(data)

    async def drain(self) -> None:
        """Waits until the client has taken most of what was sent."""
        await self._writable.wait()

    def abort(self) -> None:
        """Resets the connection."""
        # Linger 0 makes it a RST even when all that was sent has arrived.
        raw: socket.socket = self._transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._transport.abort()

    def _serve(self) -> None:
        while not self._busy and self._writable.is_set():
            head, end, rest = self._inbox.partition(b"\r\n\r\n")
            if len(head) > MAX_HEAD_BYTES:
                self._refuse(431)
                return
            if not end:
                return
            self._inbox = rest
            self._take(head.lstrip(b"\r\n"))

    def _take(self, head: bytes) -> None:
        line, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = line.partition(" ")
        target, _, version = rest.partition(" ")
        headers = {}
        for text in lines:
            name, colon, value = text.partition(":")
            if not colon or name != name.strip():  # RFC 9112 5.1
                return self._refuse(400)
            headers[name.lower()] = value.strip()
        if version not in ("HTTP/1.1", "HTTP/1.0"):
            return self._refuse(400)
        if method not in ("GET", "HEAD"):
            return self._refuse(405)
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return self._refuse(413)
        if target.startswith("http://"):  # as a proxy is asked; RFC 9112 3.2.2
            headers["host"], _, path = target.removeprefix("http://").partition("/")
            target = "/" + path
        host = headers.get("host", "").partition(":")[0].lower()
        if not host or not target.startswith("/"):
            return self._refuse(400)
        if host != CONTROL_HOST:
            self._pages.note(host, target)
        last = version == "HTTP/1.0" or "close" in headers.get("connection", "").lower()
        self._answer(method, host, target, headers, last)

    def _answer(
        self, method: str, host: str, target: str, headers: dict[str, str], last: bool
    ) -> None:
        mode = find(host)
        if mode is not None:
            self._busy = True
            request = Request(host, target, headers)
            self._task = asyncio.ensure_future(respond(mode, self, request))
            self._task.add_done_callback(lambda task: self._transport.close())
            return
        cached = self._pages.get(host, target)
        if _is_fresh(cached, headers):
            data = cached.not_modified
        else:
            data = cached.head if method == "HEAD" else cached.head + cached.body
        if last:
            data = data.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
        if self._pages.latency > 0 and host != CONTROL_HOST:
            self._busy = True
            loop = asyncio.get_running_loop()
            loop.call_later(self._pages.latency, self._send_later, data, last)
        else:
            self._send(data, last)

    def _send(self, data: bytes, last: bool) -> None:
        self._transport.write(data)
        if last:
            self._busy = True
            self._transport.close()

    def _send_later(self, data: bytes, last: bool) -> None:
        self._busy = False
        self._send(data, last)
        self._serve()

    def _refuse(self, status: int) -> None:
        body = f"{HTTPStatus(status).phrase}\n".encode()
        data = _to_bytes(Answer("refused", status, body, "text/plain"))
        self._inbox = b""
        self._send(data.head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1) + body, True)


def _is_fresh(cached: _Cached, headers: dict[str, str]) -> bool:
    # RFC 9110 13.1.3: If-Modified-Since counts only where there is no If-None-Match.
    if not cached.etag:
        return False
    asked = headers.get("if-none-match")
    if asked is not None:
        tags = [tag.strip().removeprefix("W/") for tag in asked.split(",")]
        return cached.etag in tags or tags == ["*"]
    return headers.get("if-modified-since") == cached.last_modified


async def serve_sockets(pages: Pages, sockets: Sequence[socket.socket], parent: int) -> None:
    """Serves on listening sockets until standard input ends or the parent is another one."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(0, ended.set)  # the parent never writes: only the end can be read
    for listening in sockets:
        await loop.create_server(partial(Connection, pages), sock=listening, backlog=1024)
    print("ready", flush=True)
    # A pipe's other end may live on in a fork of the parent: look at the parent, too.
    while not ended.is_set() and os.getppid() == parent:
        try:
            await asyncio.wait_for(ended.wait(), 1)
        except TimeoutError:
            continue


def main(argv: Sequence[str]) -> None:
    """Serves as the JSON object ``argv[0]`` says: site, sockets, parent, latency."""
    config = json.loads(argv[0])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal's Ctrl-C the parent takes care
    sockets = [socket.socket(fileno=number) for number in config["sockets"]]
    pages = Pages(Site(**config["site"]), latency=config["latency"])
    asyncio.run(serve_sockets(pages, sockets, config["parent"]))


if __name__ == "__main__":
    main(sys.argv[1:])
