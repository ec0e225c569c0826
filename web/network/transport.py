"""HTTP/1.1 on one connection, and sending requests: on an idle connection, or on a new one.

The guard decides where new connections may go. Idle connections wait for their next request, up to a
limit.
"""

import http.client
import ssl
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from ..tls.contexts import check_host_name
from .dialer import Dialer, Origin, RequestHead
from .failures import IdleClosed
from .guard import Destination, check_gate
from .heads import Head
from .proxy import ProxyFailed, ProxyRefused
from .response_reader import ResponseReader
from .wire import Limits, SocketWire, Stopwatch, TooSlow, Wire


class Connection:
    """A connection to a server, or through a proxy.

    Args:
        origin: Scheme, host and port of the server.
        wire: Carries the bytes.
        proxied: Whether it goes through a proxy.
        keeps_wire: Whether answers are kept as they come, too.

    Attributes:
        origin: The argument ``origin``.
        proxied: The argument ``proxied``.
        checked: Whether the server's certificate is checked; None without TLS.
        cipher: Version of TLS and cipher suite, see ``cipher_words``; empty without TLS.
        request: The last request, without secrets.
        head: Head of its response.
    """

    request: bytes
    head: Head
    checked: bool | None = None
    cipher: str = ""

    def __init__(
        self, origin: Origin, wire: Wire, proxied: bool = False, keeps_wire: bool = False
    ) -> None:
        self.origin, self.proxied = origin, proxied
        self._keeps_wire = keeps_wire
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
        self.cipher = self._wire.cipher()
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
        reader = self._reader = ResponseReader(self._reader is None, self._keeps_wire)
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
    def answer_on_wire(self) -> tuple[bytes, bytes] | None:
        """Head and body of the answer as they came so far; None if they are not kept."""
        reader = self._reader
        if reader is None or reader.wire is None:
            return None
        return reader.wire_head, b"".join(reader.wire)

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


try:
    import resource

    _MAX_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
except ImportError:  # Windows has neither the module nor the limit
    _MAX_FILES = 2048
_MAX_IDLE = min(512, _MAX_FILES // 4) if _MAX_FILES > 0 else 512

Gate = Callable[[], bool]
RunBlocking = Callable[[Callable[[], Destination]], Awaitable[Destination]]


async def run_in_this_thread(call: Callable[[], Destination]) -> Destination:
    """Runs a call that may block in the calling thread."""
    return call()


class IdleConnections:
    """Idle connections, at most ``_MAX_IDLE`` for all hosts together; safe for threads.

    Attributes:
        count: Number of idle connections.
    """

    def __init__(self) -> None:
        self.count = 0
        self._waiting: OrderedDict[Origin, list[Connection]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, origin: Origin) -> Connection | None:
        """Removes and returns a connection that can be used."""
        while True:
            with self._lock:
                if origin not in self._waiting:
                    return None
                connection = self._pop(origin, -1)
            if connection.is_idle():
                return connection
            connection.close()

    def put(self, connection: Connection) -> None:
        """Keeps a connection; over the limit, closes the one that has waited longest."""
        with self._lock:
            self._waiting.setdefault(connection.origin, []).append(connection)
            self._waiting.move_to_end(connection.origin)
            self.count += 1
            full = self.count > _MAX_IDLE
            oldest = self._pop(next(iter(self._waiting)), 0) if full else None
        if oldest is not None:
            oldest.close()

    def _pop(self, origin: Origin, at: int) -> Connection:
        waiting = self._waiting[origin]
        connection = waiting.pop(at)
        if not waiting:
            del self._waiting[origin]
        self.count -= 1
        return connection

    def forget(self, origin: Origin) -> None:
        """Closes the idle connections to an origin."""
        with self._lock:
            waiting = self._waiting.pop(origin, [])
            self.count -= len(waiting)
        for connection in waiting:
            connection.close()

    def close(self) -> None:
        """Closes them all."""
        for origin in list(self._waiting):
            self.forget(origin)


class Transport:
    """Sends requests, and keeps connections for the next ones.

    Args:
        dialer: Determines addresses, proxy and certificates of connections.
        limits: Limits on time and rate.
        gate: Called right before each request; False denies it.
        wire: Makes the wire of a connection.
        run_blocking: Runs a name lookup, which may block, in a suitable thread.
        keeps_wire: Whether answers are kept as they come, too.

    Attributes:
        idle: The idle connections.
    """

    def __init__(
        self,
        dialer: Dialer,
        limits: Limits = Limits(),  # noqa: B008 - it is immutable
        gate: Gate | None = None,
        wire: Callable[[], Wire] = SocketWire,
        run_blocking: RunBlocking = run_in_this_thread,
        keeps_wire: bool = False,
    ) -> None:
        self._dialer, self._limits, self._gate = dialer, limits, gate
        self._wire, self._run_blocking, self._keeps_wire = wire, run_blocking, keeps_wire
        self.idle = IdleConnections()

    async def send(self, head: RequestHead, fresh: bool = False) -> Connection:
        """Sends a request and returns its connection, for reading the body.

        Args:
            head: The request.
            fresh: Whether to make a new connection, and to close the idle ones of the origin.

        Raises:
            http.client.HTTPException: The response is not HTTP.
            OSError: The connection failed or broke.
            Denied: The gate denies the request; nothing was sent.
            IdleClosed: An idle connection was closed.
        """
        check_gate(self._gate)
        stopwatch = Stopwatch(self._limits)
        if fresh:
            self.idle.forget(head.origin)
        # Meanwhile another thread may have put a connection there.
        idle = None if fresh else self.idle.take(head.origin)
        connection = idle or await self._connect(head.origin, stopwatch)
        try:
            if idle is None:
                check_gate(self._gate)  # connecting may have taken long
            await connection.exchange(head.sent, stopwatch)
            connection.request = head.shown
        except BaseException as error:
            connection.close()
            if idle is not None and isinstance(error, ConnectionError):
                raise IdleClosed("an idle connection was closed") from error
            raise
        return connection

    async def dial(self, host: str, port: int) -> Destination:
        """Returns the addresses for connections to a host; see ``Dialer.dial``."""
        if self._dialer.needs_lookup(host, port):
            return await self._run_blocking(lambda: self._dialer.dial(host, port))
        return self._dialer.dial(host, port)

    async def _connect(self, origin: Origin, stopwatch: Stopwatch) -> Connection:
        scheme, host, port = origin
        target, dialer = await self.dial(host, port), self._dialer
        proxied = dialer.is_proxied(origin)
        connection = Connection(origin, self._wire(), proxied, self._keeps_wire)
        try:
            await connection.connect(target, dialer.tunnel(origin), stopwatch)
            if scheme == "https":
                await connection.secure(dialer.tls(host), dialer.is_checked(host))
        except BaseException:
            connection.close()
            raise
        return connection

    def release(self, connection: Connection, whole: bool) -> None:
        """Keeps a connection for the next request if it can carry one; else closes it.

        Args:
            connection: A connection whose exchange is over.
            whole: Whether the complete body was read, without errors.
        """
        if connection.end_exchange() and whole:
            self.idle.put(connection)
        else:
            connection.close()
