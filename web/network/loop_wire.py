"""Sends and receives bytes on an event loop of asyncio."""

import asyncio
import contextlib
import http.client
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from ..tls.tls_reasons import NoTls
from .wire import READ_BYTES, Wire

_MAX_UNREAD_BYTES = 131_072
_GOODBYE_SECONDS = 1.0


class LoopWire(Wire, asyncio.Protocol):
    """A wire on the running event loop."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._closed = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def _open(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        loop = asyncio.get_running_loop()
        sock.setblocking(False)
        async with self._limit_time():
            await loop.sock_connect(sock, address)
            await loop.create_connection(lambda: self, sock=sock)

    async def secure(self, context: ssl.SSLContext, name: str) -> None:
        """See ``Wire``."""
        if self._unread:  # bytes before TLS must not be taken for a response over TLS
            raise NoTls("the server sends before TLS begins")
        async with self._limit_time():
            transport = await asyncio.get_running_loop().start_tls(
                self._open_transport(),
                *(self, context),
                server_hostname=name,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        self._transport = cast(asyncio.Transport, transport)

    @contextlib.asynccontextmanager
    async def _limit_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.stopwatch.time_left()):
                yield
        except TimeoutError as error:
            raise self.stopwatch.timed_out() from error

    def _open_transport(self) -> asyncio.Transport:
        if self._transport is None or self._closed:
            raise self._error or ConnectionResetError("the connection is closed")
        return self._transport

    def certificate(self) -> Mapping[str, Any]:
        """See ``Wire``."""
        return self._open_transport().get_extra_info("peercert") or {}

    async def send(self, data: bytes) -> None:
        """See ``Wire``."""
        self._open_transport().write(data)

    async def receive(self) -> bytes:
        """See ``Wire``."""
        seconds_left = self.stopwatch.time_left()
        if not self._unread and not self._closed:
            await self._wait(seconds_left)
        if not self._unread:
            if self._error is not None:
                raise self._error
            return b""
        data = self._unread.popleft()
        self._unread_bytes -= len(data)
        if not self._unread and self._transport is not None:
            self._transport.resume_reading()
        return data

    async def _wait(self, seconds: float) -> None:
        """Waits until bytes come or the connection ends."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._expire)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _expire(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(self.stopwatch.timed_out())

    def is_quiet(self) -> bool:
        """See ``Wire``."""
        if self._transport is None or self._transport.is_closing():
            return False
        return not self._unread

    def close(self) -> None:
        """See ``Wire``."""
        self.resting = self._closed = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Callback: the connection is open."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Callback: keeps and counts received bytes."""
        if self.resting:
            self.close()
            return
        self.stopwatch.count(len(data))
        # In small pieces, so that a decompression bomb is noticed early.
        starts = range(0, len(data), READ_BYTES)
        self._unread.extend(data[start : start + READ_BYTES] for start in starts)
        self._unread_bytes += len(data)
        if self._unread_bytes > _MAX_UNREAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Callback: the connection has ended; ``exc`` is the error, if it broke."""
        self._closed = True
        if exc is not None and not isinstance(exc, OSError):
            exc = http.client.HTTPException(str(exc))
        self._error = exc
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
