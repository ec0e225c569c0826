"""A ``requests`` adapter with limits, whose connections go only where the guard allows.

It can be mounted on any ``requests.Session``.
"""

import time
from collections.abc import Callable
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from ..network.connection import Connection, Limits, Message, PlainConnection, TlsConnection
from ..network.idle_connections import IdleClosed, IdleConnections, Origin
from ..network.route import Route


class GuardedAdapter(HTTPAdapter):
    """A ``requests`` adapter for GET whose connections go only where the guard allows; safe for threads.

    Keeps a bounded number of idle connections, whatever the number of hosts.
    Redirects and cookies are the caller's business.

    Args:
        route: Where connections go, with which certificates.
        limits: Limits on time and rate.
        gate: Called right before each request; False denies it.

    Attributes:
        idle: The idle connections.
    """

    def __init__(
        self,
        route: Route,
        limits: Limits = Limits(),  # noqa: B008 - it is immutable
        gate: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(pool_connections=1, pool_maxsize=1)
        self.route, self._limits, self._gate = route, limits, gate
        self.idle: IdleConnections[Connection] = IdleConnections()

    def get_connection_with_tls_context(self, request: Any, *_: Any, **__: Any) -> Any:
        """Returns the object whose ``urlopen`` is called by ``send``."""
        return self

    def cert_verify(self, *_: Any) -> None:
        """Does nothing: the TLS contexts of connections define the checks."""

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """Returns the whole URL; ``urlopen`` splits it."""
        return str(request.url)

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """Returns a response whose ``raw`` is the ``Message``; no cookies are kept."""
        response = requests.Response()
        response.status_code, response.reason = resp.head.status, resp.head.reason
        response.headers.update(resp.head.fields)
        response.raw, response.request, response.url = resp, req, str(req.url)
        return response

    def urlopen(self, method: str, url: str, headers: Any, **_: Any) -> Message:
        """Sends a request without a body and returns the response, its body unread."""
        head = self.route.head(method, url, headers)
        message = self._fetch(head.origin, head.sent)
        message.request = head.shown
        return message

    def _fetch(self, origin: Origin, head: bytes) -> Message:
        deadline = time.monotonic() + self._limits.whole
        connection = self.idle.take(origin)
        if connection is None:
            return self._exchange(self._connection(origin), deadline, head)
        try:
            return self._exchange(connection, deadline, head)
        except ConnectionError as error:
            raise IdleClosed("an idle connection was closed") from error

    def _exchange(self, connection: Connection, deadline: float, head: bytes) -> Message:
        connection.deadline = deadline
        try:
            return connection.exchange(head)
        except BaseException:
            connection.close()
            raise

    def _connection(self, origin: Origin) -> Connection:
        scheme, host, port = origin
        patience = self._limits.patience
        connection: Connection
        if scheme == "https":
            context = self.route.tls(host)
            connection = TlsConnection(host, port, timeout=patience, ssl_context=context)
            connection.checked = self.route.is_checked(host)
        else:
            connection = PlainConnection(host, port, timeout=patience)
        connection.origin, connection.dial = origin, self.route.dial
        connection.patience, connection.gate = patience, self._gate
        connection.rate, connection.grace = self._limits.rate, self._limits.grace
        connection.proxied = self.route.is_proxied(origin)
        connection.tunnel = self.route.tunnel(origin)
        return connection

    def release(self, message: Message, whole: bool) -> None:
        """Keeps the connection of a response for the next request, if it can be used.

        Args:
            message: A response whose body was read.
            whole: Whether all of it was, and without errors.
        """
        connection = message.connection
        if whole and message.keeps():
            self.idle.put(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Closes the idle connections."""
        self.idle.close()
        super().close()
