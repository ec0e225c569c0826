"""The HTTP client for threads: each thread sends one GET at a time, with a guard and limits.

Faults of servers never raise exceptions. It sends requests with ``requests``, through
``GuardedAdapter``.
"""

from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import requests

from ..network.connection import Connection
from ..network.wire import run_directly
from .client_base import ClientBase
from .requests_adapter import GuardedAdapter, RawBody

_T = TypeVar("_T")


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
            raw = cast(RawBody, self._adapter.send(request, fresh=fresh).raw)
        except requests.ConnectionError as error:
            raise error.args[0] from None
        return raw.connection
