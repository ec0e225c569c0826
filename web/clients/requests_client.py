"""The HTTP client: one GET at a time, guarded, bounded, and never raising for the web.

``requests`` and urllib3 send the requests, through ``GuardedAdapter``; with
``http_client=asyncio`` ``aio_client`` does, under the same rules.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import cast

import requests

from ..base.clock import now_ms
from ..exchange.http_options import HttpOptions
from ..exchange.response import Response
from ..network.body import read_body
from ..network.connection import Message
from ..network.failures import NETWORK_ERRORS
from ..network.guard import Guard
from ..network.route import split_url
from ..urls.schemes import scheme_of
from .client_base import ClientBase, failed_response
from .requests_adapter import GuardedAdapter


class Client(ClientBase):
    """Fetches URLs, one at a time per thread; safe to share by threads.

    See ``ClientBase`` for the arguments.
    """

    def __init__(
        self,
        options: HttpOptions,
        guard: Guard | None = None,
        gate: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(options, guard, gate)
        self._adapter = GuardedAdapter(self.route, self.limits, gate)
        self.idle = self._adapter.idle

    def get(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
        fresh: bool = False,
    ) -> Response:
        """See ``ClientBase``."""
        other = self._others.get(scheme_of(url))
        if other is not None:
            return other.get(url, headers, self._limit_elsewhere(content_limit, url))
        response = Response(url, started=now_ms())
        began = time.monotonic()
        try:
            if fresh:
                self.idle.forget(split_url(url)[0])
            for sent in self._attempts(response, headers):
                self._exchange(response, sent, content_limit)
        except NETWORK_ERRORS as error:
            response = failed_response(response, error)
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response

    def _exchange(
        self, response: Response, headers: Mapping[str, str], content_limit: int | None
    ) -> None:
        """Sends one request and fills in the response."""
        request = requests.PreparedRequest()
        request.method, request.url = "GET", response.url
        request.headers = headers  # type: ignore[assignment]
        message = cast(Message, self._adapter.send(request, stream=True).raw)
        body = read_body(message, self._limit(content_limit, message.head.content_type))
        self._fill(response, message.head, body, message.request, message.connection)
        self._adapter.release(message, whole=body.truncated is None and body.error is None)

    def address(self, url: str) -> str | None:
        """See ``ClientBase``."""
        other = self._others.get(scheme_of(url))
        return other.address(url) if other is not None else self.route.address(url)

    def close(self) -> None:
        """Closes the idle connections."""
        self._adapter.close()
