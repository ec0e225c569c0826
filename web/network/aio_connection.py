"""One HTTP/1.1 exchange at a time on one connection of an event loop, with a limit on everything.

``asyncio`` moves the bytes. The rest is the same as in ``connection``: connections go only where the
guard allows, ``response_reader`` reads responses, and time, rate and size are limited.
"""

import asyncio
import http.client
import math
import socket
import ssl
import time
from collections import deque
from typing import Any, cast

from .body import Body, Taker, broken_body
from .connection import LowRate, ProxyFailed, TooSlow, check_tunnel
from .failures import NETWORK_ERRORS
from .guard import Target
from .heads import Head
from .idle_connections import Origin
from .response_reader import ResponseReader

_PIECE_BYTES = 65_536
_MAX_UNREAD_BYTES = 131_072
_GOODBYE_SECONDS = 1.0


class AioConnection(asyncio.Protocol):
    """A connection.

    Attributes:
        origin: Key of the connection while it is idle.
        ip: Address connected to; empty for a proxy.
        proxied: Whether it leads to a proxy.
        checked: Whether the server's certificate is checked; None without TLS.
        rate: Least bytes per second of a response, 0 for no limit.
        grace: Seconds after the first byte before ``rate`` counts.
    """

    origin: Origin
    ip = ""
    proxied = False
    checked: bool | None = None
    rate = 0.0
    grace = 10.0

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._unread: deque[bytes] = deque()  # as received
        self._unread_bytes = self._received = 0
        self._body = b""  # decoded from the chunked coding, not yet taken
        self._first = 0.0
        self._deadline, self._patience = math.inf, math.inf
        self._busy = self._closed = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def exchange(self, head: bytes, deadline: float, patience: float) -> Head:
        """Sends a whole request and returns the head of the response; ``body`` reads the rest.

        Args:
            head: The request.
            deadline: Moment on the monotonic clock at which the exchange must be over, with the body.
            patience: Longest wait for the next bytes, in s.

        Raises:
            http.client.HTTPException: The response is not HTTP.
            OSError: The connection broke.
        """
        if self._transport is None or self._closed:
            raise ConnectionResetError("the idle connection was closed")
        self._first, self._received, self._busy = 0.0, 0, True
        self._deadline, self._patience = deadline, patience
        reader = self._reader = ResponseReader(fresh=self._reader is None)
        self._transport.write(head)
        while reader.head is None:
            self._body = await self._next(reader)
        return reader.head

    async def body(self, fields: list[tuple[str, str]], limit: int) -> Body:
        """Reads and decodes a body; see ``read_body``."""
        reader, parts = self._reader, list[bytes]()
        assert reader is not None
        try:
            taker = Taker(fields, limit)
            parts = taker.parts
            while True:
                why = taker.take(self._body) if self._body else None
                if why is not None:
                    return taker.cut(why)
                if reader.ended:
                    return taker.end()
                if reader.error is not None:
                    raise reader.error
                self._body = await self._next(reader)
        except NETWORK_ERRORS as error:
            return broken_body(parts, error)

    async def _next(self, reader: ResponseReader) -> bytes:
        """Reads on and returns the bytes of the body among the next bytes."""
        if time.monotonic() >= self._deadline:
            raise TooSlow("the time for the whole request is over")
        if not self._unread and not self._closed:
            await self._wait()
        if not self._unread:
            if self._error is not None:
                raise self._error
            return reader.end()
        data = self._unread.popleft()
        self._unread_bytes -= len(data)
        if not self._unread and self._transport is not None:
            self._transport.resume_reading()
        return reader.feed(data)

    async def _wait(self) -> None:
        """Waits until bytes come or the connection ends."""
        now = time.monotonic()
        took = now - self._first
        if self.rate and self._first and took > self.grace and self._received < self.rate * took:
            raise LowRate(f"{self._received} bytes in {took:.1f} s")
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_at(min(now + self._patience, self._deadline), self._expire)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _expire(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            late = time.monotonic() >= self._deadline
            error = TooSlow("the time for the whole request is over") if late else TimeoutError()
            self._waiter.set_exception(error)

    def end(self) -> None:
        """Ends an exchange: bytes that come later were not requested."""
        self._busy = False

    def is_idle(self) -> bool:
        """Returns whether it may carry another request: open, and nothing to be read."""
        if self._transport is None or self._transport.is_closing() or self._unread:
            return False
        return self._reader is None or (self._reader.ended and self._reader.keeps)

    def close(self) -> None:
        """Ends the connection at once."""
        self._busy, self._closed = False, True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Callback: the connection is open."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Callback: keeps and counts received bytes."""
        if self._reader is not None and not self._busy:  # not requested
            self.close()
            return
        self._first = self._first or time.monotonic()
        self._received += len(data)
        # In small pieces, as a bomb must be noticed early.
        starts = range(0, len(data), _PIECE_BYTES)
        self._unread.extend(data[start : start + _PIECE_BYTES] for start in starts)
        self._unread_bytes += len(data)
        if self._unread_bytes > _MAX_UNREAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Callback: the connection is over; ``exc`` says why, if it broke."""
        self._closed = True
        if exc is not None and not isinstance(exc, OSError):
            exc = http.client.HTTPException(str(exc))
        self._error = exc
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def connect(
    connection: AioConnection,
    target: Target,
    tls: ssl.SSLContext | None,
    tunnel: bytes,
    deadline: float,
    patience: float,
) -> None:
    """Connects to the first checked address that answers.

    Args:
        connection: The new connection.
        target: Addresses to try.
        tls: TLS context; None for plain HTTP.
        tunnel: CONNECT request for the proxy; empty for none.
        deadline: Moment on the monotonic clock when all must be over.
        patience: Longest wait for each step, in s.

    Raises:
        OSError: No address answers.
    """
    loop = asyncio.get_running_loop()
    try:
        sock, ip = await _dialled(loop, target, deadline, patience)
    except TooSlow:
        raise
    except OSError as error:
        if connection.proxied:
            raise ProxyFailed(f"the proxy cannot be reached: {error}") from error
        raise
    connection.ip = "" if connection.proxied else ip  # the proxy's says nothing about the server
    try:
        async with _patient(deadline, patience):
            if tunnel:
                await _open_tunnel(loop, sock, tunnel)
            more: dict[str, Any] = {}
            if tls is not None:
                name = connection.origin[1].strip("[]").rstrip(".")
                more = {"ssl": tls, "server_hostname": name}
                more["ssl_shutdown_timeout"] = _GOODBYE_SECONDS
            await loop.create_connection(lambda: connection, sock=sock, **more)
    except BaseException as error:
        sock.close()
        if isinstance(error, TimeoutError) and time.monotonic() >= deadline:
            raise TooSlow("the time for the whole request is over") from error
        raise


def _patient(deadline: float, patience: float) -> asyncio.Timeout:
    return asyncio.timeout_at(min(time.monotonic() + patience, deadline))


async def _dialled(
    loop: asyncio.AbstractEventLoop, target: Target, deadline: float, patience: float
) -> tuple[socket.socket, str]:
    failed: OSError = OSError("no address")
    for family, address in target.addresses:
        if time.monotonic() >= deadline:
            raise TooSlow("the time for the whole request is over")
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with _patient(deadline, patience):
                await loop.sock_connect(sock, address)
        except OSError as error:
            failed = error
            sock.close()
            continue
        except BaseException:
            sock.close()
            raise
        return sock, str(address[0])
    raise failed


async def _open_tunnel(loop: asyncio.AbstractEventLoop, sock: socket.socket, tunnel: bytes) -> None:
    await loop.sock_sendall(sock, tunnel)
    reader = ResponseReader()
    try:
        while reader.head is None:
            data = await loop.sock_recv(sock, _PIECE_BYTES)
            reader.feed(data) if data else reader.end()
    except http.client.HTTPException as error:
        raise ProxyFailed("the proxy's answer to CONNECT is no HTTP") from error
    check_tunnel(reader.head.status)
