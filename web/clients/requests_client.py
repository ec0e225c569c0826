"""The HTTP client for threads: each thread sends one GET at a time, with a guard and limits.

Faults of servers never raise exceptions. It sends requests with ``requests``, through
``GuardedAdapter``, which can be mounted on any ``requests.Session``.
"""

import http.client
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import requests
from requests.adapters import BaseAdapter

from ..network.dialer import Dialer
from ..network.transport import Connection, Transport
from ..network.wire import run_directly
from .client_base import ClientBase

_T = TypeVar("_T")


class GuardedAdapter(BaseAdapter):
    """Sends requests without a body through a transport; safe for threads.

    The session handles redirects and cookies. Bodies are not decoded.

    Args:
        dialer: Writes the heads of requests.
        transport: Sends them.
    """

    def __init__(self, dialer: Dialer, transport: Transport) -> None:
        super().__init__()
        self._dialer, self._transport = dialer, transport

    def send(
        self, request: requests.PreparedRequest, *_: Any, fresh: bool = False, **__: Any
    ) -> requests.Response:
        """Returns the response; ``raw`` reads the body without its transfer coding, and ends it.

        Args:
            request: The request.
            fresh: See ``Transport.send``.

        Raises:
            requests.ConnectionError: There was no response; its first argument is the cause.
            ValueError: The URL cannot go into a request.
        """
        head = self._dialer.head(str(request.method), str(request.url), request.headers)
        try:
            connection = run_directly(self._transport.send(head, fresh))
        except (OSError, http.client.HTTPException) as error:
            raise requests.ConnectionError(error, request=request) from error
        response = requests.Response()
        response.status_code, response.reason = connection.head.status, connection.head.reason
        response.headers.update(connection.head.fields)
        response.raw = SimpleNamespace(
            read=lambda _: run_directly(connection.read()),
            close=connection.close,
            connection=connection,
        )
        response.request, response.url = request, str(request.url)
        return response

    def close(self) -> None:
        """Closes the idle connections."""
        self._transport.idle.close()


class Client(ClientBase):
    """Fetches URLs, one at a time per thread; safe to share by threads.

    See ``ClientBase`` for the arguments.
    """

    def _open(self) -> None:
        self._adapter = GuardedAdapter(self.dialer, self.transport)

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """See ``ClientBase``."""
        return run_directly(coroutine)

    async def _send(self, url: str, headers: dict[str, str], fresh: bool = False) -> Connection:
        request = requests.PreparedRequest()
        request.method, request.url = "GET", url
        request.headers = cast(Any, headers)
        try:
            return cast(Connection, self._adapter.send(request, fresh=fresh).raw.connection)
        except requests.ConnectionError as error:
            raise error.args[0] from None
