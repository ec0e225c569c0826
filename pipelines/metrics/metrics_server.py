"""Serves metrics to Prometheus while a command runs."""

import http
import threading
import time
from collections.abc import Callable

from ...web.base.errors import UsageError
from ..base.loopback_server import LOOPBACK, LoopbackHandler, LoopbackServer

_PATH = "/metrics"
_OPENMETRICS = "application/openmetrics-text"
_RENDERED_S = 1.0
# Gets the header Accept; returns (text, its content type).
Render = Callable[[str], tuple[bytes, str]]


class MetricsServer(LoopbackServer):
    """A server of metrics; a thread answers until ``close``.

    Args:
        named: ``PORT`` or ``ADDRESS:PORT``.
        render: Makes the text.

    Attributes:
        address: Where the metrics are.
        is_loopback: Whether only this machine reaches it.

    Raises:
        UsageError: The port is taken, or this machine does not have the address.
    """

    def __init__(self, named: str, render: Render) -> None:
        address, _, port = named.rpartition(":")
        host = address.strip("[]") or LOOPBACK
        self.is_loopback = host == LOOPBACK
        self._render, self._rendering = render, threading.Lock()
        self._rendered: dict[bool, tuple[float, tuple[bytes, str]]] = {}
        try:
            super().__init__(int(port), _Handler, host)
        except (UsageError, OverflowError, OSError) as error:
            cause = error.__cause__ if isinstance(error, UsageError) else error
            reason = getattr(cause, "strerror", None) or str(cause)
            raise UsageError(f"--metrics_port {named} cannot be used: {reason}") from error
        self.address = f"http://{address or LOOPBACK}:{self.port}{_PATH}"
        threading.Thread(
            target=self.serve_forever, args=(0.2,), name="metrics", daemon=True
        ).start()

    def text_for(self, accept: str) -> tuple[bytes, str]:
        """Returns (text, its content type); one text serves all requests of a second."""
        is_open = _OPENMETRICS in accept
        with self._rendering:
            made, text = self._rendered.get(is_open, (float("-inf"), (b"", "")))
            if time.monotonic() >= made + _RENDERED_S:
                text = self._render(accept if is_open else "")
                self._rendered[is_open] = time.monotonic(), text
            return text

    def close(self) -> None:
        """Ends the server."""
        self.shutdown()
        self.server_close()


class _Handler(LoopbackHandler):
    server: MetricsServer

    def do_GET(self) -> None:
        """Answers with the metrics."""
        if self.server.is_loopback and not self.is_local():
            self.send_error(http.HTTPStatus.FORBIDDEN, "expected the name of this machine as Host")
        elif self.path.partition("?")[0] != _PATH:
            self.send_error(http.HTTPStatus.NOT_FOUND, f"metrics are at {_PATH}")
        else:
            self._send(*self.server.text_for(self.headers.get("Accept") or ""))

    do_HEAD = do_GET

    def _send(self, body: bytes, content_type: str) -> None:
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
