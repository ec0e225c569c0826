"""One HTTP/1.1 exchange at a time on one connection of an event loop, with a limit on everything.

aiohttp's protocol and streams do the work below. Our own are the dialling, which
asks the guard; the reading of responses, see ``response_reader``; the limits on
time, rate and size; and the errors, which are those of ``wire``.
"""

import asyncio
import http.client
import socket
import ssl
import time
from typing import Any, cast

from aiohttp import ClientError, ClientOSError, ClientPayloadError, ServerDisconnectedError
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import _EXC_SENTINEL
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EofStream, StreamReader

from .aio_reader import Reader
from .body import Body, Taker, broken_body
from .failures import NETWORK_ERRORS
from .guard import Target
from .heads import Head
from .idle import Origin
from .response_reader import ResponseReader
from .wire import LowRate, ProxyFailed, TooSlow, check_tunnel

_PIECE_BYTES = 65_536
_GOODBYE_SECONDS = 1.0
_NONE = _EXC_SENTINEL


class AioConnection(ResponseHandler):
    """A connection.

    Attributes:
        origin: What it is kept under while idle.
        ip: Address connected to; empty where a proxy was.
        proxied: Whether it leads to a proxy.
        checked: Whether the server's certificate is; None without TLS.
        rate: Least bytes per second of a response, 0 for no least.
        grace: Seconds after its first byte from which on that counts.
    """

    origin: Origin
    ip = ""
    proxied = False
    checked: bool | None = None
    rate = 0.0
    grace = 10.0
    _first = 0.0
    _received = 0
    _reader: Reader | None = None
    _late: asyncio.TimerHandle | None = None

    async def exchange(
        self, head: bytes, deadline: float, patience: float
    ) -> tuple[Head, StreamReader]:
        """Sends a whole request; returns the head of the response, and its body to be read.

        Args:
            head: The request.
            deadline: Moment on the monotonic clock when all must be over, the body too.
            patience: Longest wait for the next bytes, in s.

        Raises:
            http.client.HTTPException: What came back is no HTTP.
            OSError: The connection broke.
        """
        self._first, self._received, self._payload = 0.0, 0, None
        self.set_response_params(
            read_until_eof=True,
            auto_decompress=False,
            read_timeout=patience,
            read_bufsize=_PIECE_BYTES,
        )
        reader = self._reader = Reader(self, self._loop, fresh=self._reader is None)
        self._parser = cast(Any, reader)
        if self.transport is None:
            raise ConnectionResetError("closed while it was idle")
        self.transport.write(head)
        self.start_timeout()
        self._late = self._loop.call_at(deadline, self._expire)
        try:
            _, payload = await self.read()
        except (ClientError, HttpProcessingError, EofStream) as error:
            raise plain(error) from error
        assert reader.response.head is not None
        return reader.response.head, payload

    async def body(self, payload: StreamReader, fields: list[tuple[str, str]], limit: int) -> Body:
        """Reads and decodes a body; see ``read_body``."""
        parts: list[bytes] = []
        try:
            taker = Taker(fields, limit)
            parts = taker.parts
            try:
                while piece := await payload.read(_PIECE_BYTES):
                    why = taker.take(piece)
                    if why is not None:
                        return taker.cut(why)
            except (ClientError, HttpProcessingError, OSError, http.client.HTTPException) as error:
                at = payload._buffer_offset  # aiohttp keeps to itself what came before an error
                for piece in payload._buffer:
                    why = taker.take(piece[at:])
                    if why is not None:
                        return taker.cut(why)
                    at = 0
                if isinstance(error, HttpProcessingError):
                    raise http.client.IncompleteRead(b"") from error
                raise plain(error) from error
            return taker.end()
        except NETWORK_ERRORS as error:
            return broken_body(parts, error)

    def end(self) -> None:
        """Ends an exchange: from now on nothing is late."""
        self._drop_timeout()
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def is_idle(self) -> bool:
        """Returns whether it may carry another request: open, and nothing to be read."""
        keeps = self._reader is None or self._reader.response.keeps
        return keeps and not self.should_close and self.is_connected()

    def close(self) -> None:
        """Ends the connection at once, and whatever goes on."""
        self.end()
        self.abort()

    def data_received(self, data: bytes) -> None:
        """Is given what came, and counts it."""
        if not data or self._reader is None:
            super().data_received(data)
            return
        if self._late is None:  # nobody asked
            self.close()
            return
        now = time.monotonic()
        if not self._received:
            self._first = now
        self._received += len(data)
        super().data_received(data)
        payload = self._payload
        if payload is not None and payload.is_eof():
            return
        if self.rate:
            took = now - self._first
            if took > self.grace and self._received < self.rate * took:
                self._fail(LowRate(f"{self._received} bytes in {took:.1f} s"))

    def _expire(self) -> None:
        self._fail(TooSlow("the time for the whole request is over"))

    def _fail(self, error: Exception) -> None:
        if self.exception() is None:
            self.set_exception(error)
        if self.transport is not None:
            self.transport.abort()

    def set_exception(self, exc: BaseException, exc_cause: BaseException = _NONE) -> None:
        """Is told what went wrong; whoever reads a body is told, too."""
        self._break_off(exc)
        super().set_exception(exc, exc_cause)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Is told that the connection is over; ``exc`` says if not as it should be."""
        if exc is not None:  # else a body that ends with the connection would seem whole
            self._break_off(exc)
        elif self._reader is not None:
            try:
                for message, payload in self._reader.last():
                    self._payload = payload
                    self.feed_data((cast(Any, message), payload))
            except http.client.HTTPException as error:
                self.set_exception(HttpProcessingError(), error)
        super().connection_lost(exc)

    def _break_off(self, error: BaseException) -> None:
        payload = self._payload
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            payload.set_exception(error)


def plain(error: BaseException) -> Exception:
    """Returns the error of ``wire`` that stands for one of aiohttp's."""
    cause = error.__cause__
    if isinstance(error, http.client.HTTPException):
        return error
    if isinstance(cause, http.client.HTTPException):
        return cause
    if isinstance(error, ClientPayloadError):
        return http.client.IncompleteRead(b"")
    if isinstance(error, ServerDisconnectedError):
        return http.client.RemoteDisconnected("no response")
    if isinstance(error, ClientOSError) and isinstance(cause, OSError):
        return cause
    return error if isinstance(error, OSError) else http.client.HTTPException(str(error))


async def connect(
    connection: AioConnection,
    target: Target,
    tls: ssl.SSLContext | None,
    tunnel: bytes,
    deadline: float,
    patience: float,
) -> None:
    """Connects to the first address that answers, all of them checked.

    Args:
        connection: What is to speak.
        target: Where to.
        tls: Context, where TLS is to be spoken.
        tunnel: CONNECT request for the proxy, empty where there is none to send.
        deadline: Moment on the monotonic clock when all must be over.
        patience: Longest wait for each step, in s.

    Raises:
        OSError: Nobody answers.
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
