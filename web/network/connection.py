"""HTTP/1.1 on one connection: one exchange at a time, with limits on time and sizes."""

import http.client
import ssl

from ..tls.contexts import check_host_name
from .dialer import Origin
from .guard import Destination
from .heads import Head
from .limits import Stopwatch, TooSlow
from .proxy import ProxyFailed, ProxyRefused
from .response_reader import ResponseReader
from .wire import Wire


class Connection:
    """A connection to a server, or through a proxy.

    Args:
        origin: Scheme, host and port of the server.
        wire: Carries the bytes.
        proxied: Whether it goes through a proxy.

    Attributes:
        origin: The argument ``origin``.
        proxied: The argument ``proxied``.
        checked: Whether the server's certificate is checked; None without TLS.
        request: The last request, without secrets.
        head: Head of its response.
    """

    request: bytes
    head: Head
    checked: bool | None = None

    def __init__(self, origin: Origin, wire: Wire, proxied: bool = False) -> None:
        self.origin, self.proxied = origin, proxied
        self._wire = wire
        self._reader: ResponseReader | None = None
        self._data = b""  # of the body, not yet taken

    @property
    def ip(self) -> str:
        """IP address of the server; empty if only the proxy's address is known."""
        return "" if self.proxied else self._wire.ip

    async def connect(self, target: Destination, tunnel: bytes, stopwatch: Stopwatch) -> None:
        """Connects to the server, or to the proxy.

        Args:
            target: Addresses to try.
            tunnel: CONNECT request for the proxy; empty for none.
            stopwatch: Measures the exchange.

        Raises:
            OSError: No address answers, or the proxy refuses.
        """
        self._wire.stopwatch = stopwatch
        try:
            await self._wire.dial(target)
        except TooSlow:
            raise
        except OSError as error:
            if self.proxied:
                raise ProxyFailed(f"the proxy cannot be reached: {error}") from error
            raise
        if tunnel:
            await self._open_tunnel(tunnel, stopwatch)

    async def _open_tunnel(self, tunnel: bytes, stopwatch: Stopwatch) -> None:
        try:
            status = (await self.exchange(tunnel, stopwatch)).status
        except http.client.HTTPException as error:
            raise ProxyFailed("the proxy's answer to CONNECT is no HTTP") from error
        if not 200 <= status < 300:
            failure = ProxyFailed if status == 407 else ProxyRefused
            raise failure(f"the proxy refuses CONNECT: {status}")
        self._reader = None

    async def secure(self, context: ssl.SSLContext, checked: bool) -> None:
        """Starts TLS with the server.

        Raises:
            OSError: The server has no valid certificate for its name.
        """
        self.checked, name = checked, self.origin[1].strip("[]").rstrip(".")
        await self._wire.secure(context, name)
        if checked and not context.check_hostname:
            check_host_name(self._wire.certificate(), name)

    async def exchange(self, request: bytes, stopwatch: Stopwatch) -> Head:
        """Sends a request and returns the head of the response; ``read`` reads the body.

        Raises:
            http.client.HTTPException: The response is not HTTP.
            OSError: The connection broke.
        """
        self._wire.stopwatch, self._wire.resting = stopwatch, False
        stopwatch.restart()
        reader = self._reader = ResponseReader(fresh=self._reader is None)
        await self._wire.send(request)
        self._data = b""
        while reader.head is None:
            await self._read_on(reader)
        self.head = reader.head
        return self.head

    async def read(self) -> bytes:
        """Returns the next bytes of the body, none at its end.

        Raises:
            http.client.HTTPException: The body is incomplete, or its framing is wrong.
            OSError: The connection broke.
        """
        reader = self._reader
        assert reader is not None
        while not self._data and not reader.ended:
            if reader.error is not None:
                raise reader.error
            await self._read_on(reader)
        data, self._data = self._data, b""
        return data

    @property
    def missing(self) -> int | None:
        """Number of bytes of the body that have not come; None if its length is unknown."""
        return None if self._reader is None else self._reader.missing

    async def _read_on(self, reader: ResponseReader) -> None:
        data = await self._wire.receive()
        self._data = reader.feed(data) if data else reader.end()

    def end_exchange(self) -> bool:
        """Ends an exchange; returns whether the connection may carry another one."""
        self._wire.resting = True
        reader = self._reader
        return reader is not None and reader.ended and reader.keeps and not self._data

    def is_idle(self) -> bool:
        """Returns whether it may carry another request: it is open, and has no unread bytes."""
        return self._wire.is_quiet()

    def close(self) -> None:
        """Ends the connection."""
        self._wire.close()
