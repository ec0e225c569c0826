"""A ``requests`` adapter with limits, whose connections go only where the guard allows.

It can be mounted on any ``requests.Session``.
"""

import http.client
from typing import Any

import requests
from requests.adapters import BaseAdapter

from ..network.connection import Connection
from ..network.dialer import Dialer
from ..network.transport import Transport
from ..network.wire import run_directly


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
        """Returns the response, whose ``raw`` is a ``RawBody``.

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
        response.raw, response.request = RawBody(connection), request
        response.url = str(request.url)
        return response

    def close(self) -> None:
        """Closes the idle connections."""
        self._transport.idle.close()


class RawBody:
    """The body of a response without its transfer coding, otherwise as received.

    Attributes:
        connection: The connection that it is read from.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def read(self, _: int) -> bytes:
        """Returns the next bytes, in pieces of any size; none at the end."""
        return run_directly(self.connection.read())

    def close(self) -> None:
        """Ends the connection."""
        self.connection.close()
