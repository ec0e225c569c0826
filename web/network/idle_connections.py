"""Keeps idle connections for their next request, up to a limit."""

import threading
from collections import OrderedDict

from .connection import Connection
from .dialer import Origin

try:
    import resource

    _MAX_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
except ImportError:  # Windows has neither the module nor the limit
    _MAX_FILES = 2048
_MAX_IDLE = min(512, _MAX_FILES // 4) if _MAX_FILES > 0 else 512


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
