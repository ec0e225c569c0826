"""The simulated web's bad neighbourhood: hosts that answer as no server should.

Each is a name of its own, reached by no link from the friendly pages. Their robots.txt
is an honest 404, so that a crawler comes to see the rest. To add one, write a coroutine and
give it a name in ``HOSTILE``; when it returns, the connection is closed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from .model import DOMAIN


class Wire(Protocol):
    """What a hostile host can do with a connection."""

    def write(self, data: bytes) -> None:
        """Sends bytes."""

    async def drain(self) -> None:
        """Waits until the client has taken most of what was sent."""

    def abort(self) -> None:
        """Resets the connection."""


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


async def slow(wire: Wire, target: str) -> None:
    """Sends 100 bytes of HTML, one each 0.2 seconds."""
    body = b"<title>slow</title>".ljust(100)
    wire.write(_HEAD + b"Content-Length: 100\r\n\r\n")
    for place in range(len(body)):
        wire.write(body[place : place + 1])
        await asyncio.sleep(0.2)


async def hang(wire: Wire, target: str) -> None:
    """Takes the request and says nothing for an hour."""
    await asyncio.sleep(3600)


async def garbage(wire: Wire, target: str) -> None:
    """Answers with what is no status line."""
    wire.write(b"\x00\xffBANANA 200\r\n\r\n<title>garbage</title>")


async def endless(wire: Wire, target: str) -> None:
    """Sends a body without end."""
    wire.write(_HEAD + b"Connection: close\r\n\r\n")
    while True:
        wire.write(b"<p>and on and on</p>\n" * 1000)
        await wire.drain()
        await asyncio.sleep(0)


async def reset(wire: Wire, target: str) -> None:
    """Resets the connection in the middle of the body."""
    wire.write(_HEAD + b"Content-Length: 1000\r\n\r\n<title>reset")
    await asyncio.sleep(0.05)
    wire.abort()


async def cut(wire: Wire, target: str) -> None:
    """Promises 1000 bytes, sends 500 and closes."""
    wire.write(_HEAD + b"Content-Length: 1000\r\n\r\n" + b"<title>cut</title>".ljust(500))


async def loop(wire: Wire, target: str) -> None:
    """Redirects each URL to itself."""
    url = f"http://loop.hostile.{DOMAIN}{target}".encode()
    wire.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\n")
    wire.write(b"Location: " + url + b"\r\n\r\n")


HOSTILE: dict[str, Callable[[Wire, str], Awaitable[None]]] = {
    f"{handler.__name__}.hostile.{DOMAIN}": handler
    for handler in (slow, hang, garbage, endless, reset, cut, loop)
}
