"""Sends requests to servers: on an idle connection, or on a new one where the guard allows it.

Idle connections wait for their next request, up to a limit.
"""

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from .connection import Connection
from .dialer import Dialer, Origin, RequestHead
from .failures import IdleClosed
from .guard import Destination, check_gate
from .limits import Limits, Stopwatch
from .wire import SocketWire, Wire

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
    ) -> None:
        self._dialer, self._limits, self._gate = dialer, limits, gate
        self._wire, self._run_blocking = wire, run_blocking
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
        connection = Connection(origin, self._wire(), dialer.is_proxied(origin))
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
