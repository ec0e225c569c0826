"""The base of the clients for schemes that are not HTTP."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable

from ..base.clock import now_ms
from ..content.content_type import sniff, type_of_name
from ..exchange.status import Response, moment_of
from ..network.failures import NETWORK_ERRORS, reason_of


class OtherClient(ABC):
    """Fetches URLs of a scheme, and answers as an HTTP server would; safe to share by threads."""

    @abstractmethod
    def host(self, url: str) -> str:
        """Returns the host of a URL.

        Raises:
            ValueError: It is not of this scheme.
        """

    @abstractmethod
    def address(self, url: str) -> str | None:
        """Returns the first IP address for connections to a URL's host.

        None if ``connect_to`` has the host, or if the host has no allowed address.
        """

    @abstractmethod
    def _fetch(self, response: Response, since: float | None, limit: int) -> None:
        """Fills in the response.

        Args:
            response: The response; only its URL is set.
            since: Time of If-Modified-Since, s since the epoch, or None.
            limit: Limit of the body in bytes; negative: no limit.

        Raises:
            OSError: There is no answer.
            ValueError: The URL cannot be fetched.
        """

    def get(
        self, url: str, headers: Iterable[tuple[str, str]] = (), content_limit: int = -1
    ) -> Response:
        """Fetches a URL once; blocks, and raises nothing.

        Args:
            url: Absolute URL.
            headers: Headers; only If-Modified-Since has an effect.
            content_limit: Limit in bytes; negative: no limit.
        """
        response = Response(url, started=now_ms())
        began = time.monotonic()
        headers = list(headers)
        lines = [f"GET {url}", *(f"{name}: {value}" for name, value in headers), "\r\n"]
        response.request = "\r\n".join(lines)  # in the form of a request's head; none is sent
        fields = {name.lower(): value for name, value in headers}
        try:
            self._fetch(response, moment_of(fields.get("if-modified-since", "")), content_limit)
        except NETWORK_ERRORS as error:
            response.error = reason_of(error)
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response


def type_of(path: bytes, body: bytes) -> str:
    """Returns the MIME type of a file: by its extension, or by its content.

    >>> type_of(b"/a/b.HTML", b""), type_of(b"/a/b", b"%PDF-1.7")
    ('text/html', 'application/pdf')
    """
    return type_of_name(path.rpartition(b"/")[2].decode("latin-1")) or sniff(body, None)


def fill_response(response: Response, status: int, reason: str, *headers: tuple[str, str]) -> None:
    """Fills in the status line and the headers that an HTTP server would send."""
    response.status, response.reason = status, reason
    response.status_line, response.headers = f"{status} {reason}", list(headers)
