"""A process that serves the simulated web: the part of HTTP/1.1 that crawlers use.

GET and HEAD, persistent connections, pipelining, If-None-Match and If-Modified-Since. There is
no Date header, so an answer always has the same bytes. Rendered answers are kept (the least
recently used go first), so serving takes little time.

Started by ``server.py`` as ``python -m nutbeam.web.simweb.worker JSON``, with a listening socket
to inherit. It ends when its standard input ends, or when its parent has ended.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import NamedTuple

from ..base.mappings import SizeCache
from .answers import HostileWire, Request
from .hostile import find_mode, respond
from .site import Answer, Site

_MAX_HEAD_BYTES = 32 << 10
_CACHE_BYTES = 64 << 20


class AnswerBytes(NamedTuple):
    """An answer as bytes: its head and body, the head of a 304, and what conditions ask for."""

    head: bytes
    body: bytes
    not_modified: bytes
    etag: str
    last_modified: str

    def size(self) -> int:
        return len(self.head) + len(self.body) + len(self.not_modified) + 500


class Pages:
    """The answers of a site as bytes, and the log of requests.

    Attributes:
        latency: Seconds from a request to its answer.
    """

    def __init__(self, site: Site, latency: float, log: int | None) -> None:
        self.latency = latency
        self._site, self._log = site, log
        self._cache: SizeCache[tuple[str, str], AnswerBytes] = SizeCache(
            _CACHE_BYTES, AnswerBytes.size
        )

    def note(self, host: str, target: str) -> None:
        """Logs a request, with the system's monotonic clock (the same for all processes)."""
        if self._log is not None:
            line = json.dumps([time.monotonic(), host, target])
            os.write(self._log, f"{line}\n".encode())

    def get(self, host: str, target: str) -> AnswerBytes:
        """Returns the answer of a host to a path and query."""
        key = (host, target)
        answer = self._cache.get(key)
        if answer is None:
            answer = render_answer(self._site.answer(host, target))
            self._cache.put(key, answer)
        return answer


def render_answer(answer: Answer) -> AnswerBytes:
    """Returns an answer as bytes."""
    headers = dict(answer.headers)
    shared = "".join(f"{name}: {value}\r\n" for name, value in answer.headers)
    start = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nServer: simweb\r\n"
    kind = f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n"
    return AnswerBytes(
        (start + kind + shared + "\r\n").encode("latin-1"),
        answer.body,
        f"HTTP/1.1 304 Not Modified\r\nServer: simweb\r\n{shared}\r\n".encode("latin-1"),
        headers.get("ETag", ""),
        headers.get("Last-Modified", ""),
    )


class _RefusedError(Exception):
    """A request is refused; the argument is the status code."""


async def serve_connection(
    pages: Pages, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answers the requests of a connection, one after another."""
    try:
        while await _serve_request(pages, reader, writer):
            await writer.drain()
    except _RefusedError as error:
        status = error.args[0]
        body = f"{HTTPStatus(status).phrase}\n".encode()
        head = render_answer(Answer("refused", status, body, "text/plain")).head
        writer.write(_with_close_header(head) + body)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client has gone
    finally:
        writer.close()


async def _serve_request(
    pages: Pages, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Answers the next request; returns whether another one may follow."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise _RefusedError(431) from error
    method, request, last = _read_head(head.strip(b"\r\n"))
    pages.note(request.host, request.target)
    mode = find_mode(request.host)
    if mode is not None:
        answering = asyncio.ensure_future(respond(mode, HostileWire(writer), request))
        leaving = asyncio.ensure_future(reader.read())
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        answering.cancel()
        leaving.cancel()
        return False
    if pages.latency > 0:
        await asyncio.sleep(pages.latency)
    answer = pages.get(request.host, request.target)
    if _is_fresh(answer, request.headers):
        data = answer.not_modified
    else:
        data = answer.head if method == "HEAD" else answer.head + answer.body
    writer.write(_with_close_header(data) if last else data)
    return not last


def _read_head(head: bytes) -> tuple[str, Request, bool]:
    """Returns the method, the request, and whether the connection ends after it."""
    line, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = line.partition(" ")
    target, _, version = rest.partition(" ")
    headers = {}
    for text in lines:
        name, colon, value = text.partition(":")
        if not colon or name != name.strip():  # RFC 9112 5.1
            raise _RefusedError(400)
        headers[name.lower()] = value.strip()
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise _RefusedError(400)
    if method not in ("GET", "HEAD"):
        raise _RefusedError(405)
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise _RefusedError(413)
    if target.startswith("http://"):  # a request to a proxy; RFC 9112 3.2.2
        headers["host"], _, path = target.removeprefix("http://").partition("/")
        target = "/" + path
    host = headers.get("host", "").partition(":")[0].lower()
    if not host or not target.startswith("/"):
        raise _RefusedError(400)
    last = version == "HTTP/1.0" or "close" in headers.get("connection", "").lower()
    return method, Request(host, target, headers), last


def _with_close_header(data: bytes) -> bytes:
    """Returns an answer that says that the connection ends."""
    return data.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)


def _is_fresh(answer: AnswerBytes, headers: Mapping[str, str]) -> bool:
    # RFC 9110 13.1.3: If-Modified-Since counts only without If-None-Match.
    if not answer.etag:
        return False
    etags = headers.get("if-none-match")
    if etags is not None:
        tags = [tag.strip().removeprefix("W/") for tag in etags.split(",")]
        return answer.etag in tags or tags == ["*"]
    return headers.get("if-modified-since") == answer.last_modified


async def serve_socket(pages: Pages, listening: socket.socket, parent: int) -> None:
    """Serves on a listening socket until standard input ends or the parent process changes."""
    ended = asyncio.Event()
    # The parent never writes, so standard input is readable only at its end.
    asyncio.get_running_loop().add_reader(0, ended.set)
    await asyncio.start_server(
        partial(serve_connection, pages), sock=listening, backlog=1024, limit=_MAX_HEAD_BYTES
    )
    print("ready", flush=True)
    # A fork of the parent may keep the pipe open, so check the parent, too.
    while not ended.is_set() and os.getppid() == parent:
        try:
            await asyncio.wait_for(ended.wait(), 1)
        except TimeoutError:
            continue


def main(argv: Sequence[str]) -> None:
    """Serves as the JSON object ``argv[0]`` says: site, socket, parent, latency, log."""
    config = json.loads(argv[0])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles a terminal's Ctrl-C
    pages = Pages(Site(**config["site"]), config["latency"], config["log"])
    asyncio.run(serve_socket(pages, socket.socket(fileno=config["socket"]), config["parent"]))


if __name__ == "__main__":
    main(sys.argv[1:])
