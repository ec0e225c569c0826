"""Requests to hostile hosts, their connection, and the answers that several of them give."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

from .model import DOMAIN


class Request(NamedTuple):
    """A request to a hostile host.

    Attributes:
        host: The Host header, lower case, without port.
        target: Path and query.
        headers: By name in lower case.
    """

    host: str
    target: str
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


class HostileWire:
    """The connection that a hostile host answers on."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.write = writer.write
        self.drain = writer.drain

    def abort(self) -> None:
        """Resets the connection."""
        # Linger 0 makes it a RST even when all that was sent has arrived.
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._writer.transport.abort()


# Answers a request in a hostile mode.
Handler = Callable[[HostileWire, Request], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def url_of(kind: str, target: str = "/") -> str:
    """Returns a URL on the host of a mode.

    >>> url_of("loop")
    'http://loop.hostile.example.com/'
    """
    return f"http://{kind}.hostile.{DOMAIN}{target}"


def honest_answer(body: bytes | str, status: int = 200, *headers: str) -> bytes:
    """Returns a complete and honest answer; the connection closes after it."""
    body = body.encode() if isinstance(body, str) else body
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def redirect(url: str, status: int = 302) -> bytes:
    """Returns a redirect."""
    return honest_answer(b"", status, f"Location: {url}")


def page(title: str, links: list[str], text: str = "") -> bytes:
    """Returns an answer that is a page with links."""
    links_html = "".join(f'<p><a href="{link}">{link}</a></p>\n' for link in links)
    return honest_answer(f"<title>{title}</title>\n<p>{text}</p>\n{links_html}")
