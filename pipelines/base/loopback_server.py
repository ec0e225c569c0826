"""A server of pages for people, by default on this machine only: its socket, its answers, its end."""

import base64
import contextlib
import hashlib
import html
import http.server
import logging
import math
import re
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...web.base.errors import UsageError
from ...web.base.visible import visible

LOOPBACK = "127.0.0.1"
_LOG = logging.getLogger(__name__)
_TIMEOUT_S = 10.0
_MOST_CONNECTIONS = 256  # others wait
_POLL_S = 0.2  # how soon a signal is noticed
_STYLE = Path(__file__).with_name("loopback_page.css").read_text("utf-8")


def content_policy(*styles: str, more: str = "") -> str:
    """Returns the policy of a page: nothing is loaded, no script runs, no other page frames it.

    Args:
        styles: Texts of the page's own style elements, after the style of all pages.
        more: Further directives, for what is loaded all the same.
    """
    digests = (hashlib.sha256(style.encode()).digest() for style in (_STYLE, *styles))
    sources = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; style-src {sources}; {more}form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


POLICY = content_policy()


class LoopbackServer(http.server.ThreadingHTTPServer):
    """A server on loopback, or on another address of this machine.

    Args:
        port: Its port; 0 takes a free one.
        handler: Answers requests.
        host: Its IP address.

    Attributes:
        port: Its port.

    Raises:
        UsageError: The port is taken, or this machine does not have the address.
    """

    daemon_threads = True
    request_queue_size = 128
    longest_s: float = math.inf  # of a connection; then it is closed

    def __init__(self, port: int, handler: "type[LoopbackHandler]", host: str = LOOPBACK) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), handler)
        except OSError as error:
            word = f"--port {port}" if host == LOOPBACK else f"--host {host} --port {port}"
            raise UsageError(f"{word} cannot be used: {error.strerror}") from error
        self.port = self.server_port
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._open: dict[socket.socket, float] = {}  # with the time when each began

    @property
    def names(self) -> tuple[str, ...]:
        """The values of Host that name this server."""
        return tuple(f"{name}:{self.port}" for name in (LOOPBACK, "localhost"))

    def serve_until_interrupted(self) -> None:
        """Serves until Ctrl-C or SIGTERM."""
        with contextlib.suppress(KeyboardInterrupt):
            self.serve_forever(poll_interval=_POLL_S)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts a thread for a connection, as soon as there are not too many."""
        while not self._free.acquire(timeout=_POLL_S):  # a signal may not wake a lock
            self.service_actions()
        self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers the requests of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.pop(request, None)
            self._free.release()

    def service_actions(self) -> None:
        """Closes connections that are open for too long, however slowly they go on."""
        for connection, began in list(self._open.items()):
            if time.monotonic() - began > self.longest_s:
                with contextlib.suppress(OSError):  # it was closed meanwhile
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs a failed request; a browser that goes away is no error."""
        _LOG.debug("a request failed", exc_info=True)


class LoopbackHandler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of a connection."""

    server: LoopbackServer
    timeout = _TIMEOUT_S
    server_version = "nutbeam"
    sys_version = ""

    @property
    def host(self) -> str:
        """The value of Host, in lower case; empty if there is none."""
        return (self.headers.get("Host") or "").strip().lower()

    def parse_request(self) -> bool:
        """Reads the head of a request; refuses one that does not name one host (RFC 9112 3.2)."""
        if not super().parse_request():
            return False
        hosts = len(self.headers.get_all("Host", ()))
        if hosts > 1 or (hosts == 0 and self.request_version >= "HTTP/1.1"):
            self.send_error(http.HTTPStatus.BAD_REQUEST, "expected one header Host")
            return False
        return True

    def is_local(self) -> bool:
        """Returns whether the request names this machine, so that no other site can read it."""
        return self.host in self.server.names

    def send_text(
        self, status: int, kind: str, text: str, fields: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Sends a text of this server, which no other site may show or keep.

        Args:
            status: HTTP's status code.
            kind: Its content type, without charset.
            text: The text.
            fields: Further headers, such as the policy of its content.
        """
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs for developers only."""
        _LOG.debug(format, *args)


def page_start(title: str, head: str = "") -> str:
    """Returns the start of a page, up to its body, with the style that ``POLICY`` allows.

    Args:
        title: Its title.
        head: HTML of further elements of its head.
    """
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{shown(title)}</title><style>{_STYLE}</style>{head}</head>"
    )


def shown(text: str) -> str:
    """Returns a text of strangers as HTML on one line, where it stays text.

    >>> shown("<b>\\n\\x1b")
    '&lt;b&gt; \\\\x1b'
    """
    return html.escape(visible(re.sub(r"\s+", " ", text)))
