"""Protocols of plug-ins: the transport of a scheme, such as ``gemini:``, or of a host.

A plug-in is called inside the limits of the other protocols: the guard has checked the addresses of
the host, the queue of the host keeps its delay, a call that takes too long is given up, and a body is
cut at the limit. Robots.txt is obeyed for http and https, and is requested through the plug-in.
"""

import datetime
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..base.wording import quote_value
from ..content.content_type import sniff
from ..exchange.http_options import HttpOptions, limits_of
from ..exchange.status import Response
from ..network.dialer import Dialer
from ..network.failures import UnsendableUrl
from ..network.guard import Denied, Destination, check_gate
from ..network.transport import Gate
from ..network.wire import SocketWire, Stopwatch, TooSlow, run_directly
from ..plugins.plugin_files import fault_text, plugin_label
from ..plugins.plugins import callable_plugin, load_plugin
from ..urls.schemes import PROTOCOLS, scheme_of
from ..urls.url_parts import host_of_url
from ..urls.userinfo import mask_headers
from .other_clients import OtherClient, fill_response

_LOG = logging.getLogger("nutbeam.plugins")
_PORTS = {"http": 80, "https": 443}
_ANY_PORT = 443  # for the check of addresses, if the plug-in names no port
_MOST_STUCK = 16


@dataclass(frozen=True)
class ProtocolAnswer:
    """What a protocol answers, in the terms of HTTP.

    Attributes:
        status: Status code of HTTP: 200 for a page, 301 with the header Location for a redirect,
            304 for a page that has not changed since ``request.since``, 404 for a missing page.
        body: The page.
        content_type: Its media type, perhaps with a charset; without it, the body is looked at.
        headers: Further headers, each a name and a value without line breaks.
        reason: A few words about the status.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = ""
    headers: Sequence[tuple[str, str]] = ()
    reason: str = ""


@dataclass(frozen=True)
class ProtocolRequest:
    """What a protocol is asked for.

    Attributes:
        url: The URL, normalized.
        host: Its host, in lower case.
        port: The port that it names, or None.
        since: A page that has not changed since then need not be sent; None: it is wanted.
        content_limit: Most bytes of the body that are kept; negative: no limit.
        timeout: Longest time for the whole call, s.
    """

    url: str
    host: str
    port: int | None
    since: datetime.datetime | None
    content_limit: int
    timeout: float
    _connect: Callable[[int, bool], socket.socket] = field(repr=False, compare=False)

    def connect(self, port: int, tls: bool = False) -> socket.socket:
        """Returns a connection to the host of the URL, to an address that the guard has checked.

        Args:
            port: The port.
            tls: Whether to start TLS; the certificate is checked as for https.

        Raises:
            OSError: The connection fails, or is not allowed.
        """
        return self._connect(port, tls)


class ProtocolPlugin(Protocol):
    """What a protocol is: a function of a request, or a class whose objects are such functions.

    It runs in the threads of fetch and of the checkers, in several at a time, and never for one
    host more often than its delay allows. Before the call the guard checks the addresses of the
    host. For connections use ``request.connect``; nobody checks other connections of a plug-in.
    A call that takes longer than ``--http_time_limit`` is given up: its page is a failure
    (``too_slow``), and its thread goes on in the background, 16 of them at most.

    Attributes of the function or class, all optional:
        port: The usual port of the scheme, which needs no entry in ``--allowed_ports``.
        connects: False if it makes no connection to the host of the URL, such as one that reads a
            database: then no address is looked up, and ``request.connect`` fails.
    """

    def __call__(self, request: ProtocolRequest, /) -> ProtocolAnswer:
        """Returns the answer.

        Raises:
            OSError: There is no answer; counted as for HTTP: ``timeout``, ``refused``, ``reset``.
                Any other exception is a fault of the plug-in, counted as ``protocol_NAME``.
        """


def plugin_clients(
    options: HttpOptions, dialer: Dialer, gate: Gate | None
) -> tuple[dict[str, OtherClient], dict[str, OtherClient]]:
    """Returns the clients of ``--protocols``: (by scheme, by host).

    Raises:
        UsageError: A plug-in is unknown, or cannot be imported.
    """
    by_scheme: dict[str, OtherClient] = {}
    by_host: dict[str, OtherClient] = {}
    for text in options.protocols:
        key, _, name = text.partition("=")
        client = PluginClient(name, load_plugin(PROTOCOLS, name), options, dialer, gate)
        clients = by_scheme if key.endswith(":") else by_host
        clients[key.rstrip(":").lower()] = client
    return by_scheme, by_host


class PluginClient(OtherClient):
    """Fetches with a plug-in.

    Args:
        name: Its name in options.
        function: The plug-in; see ``ProtocolPlugin``.
        options: Limits.
        dialer: Decides where connections may go.
        gate: Called right before each call; False denies it.

    Attributes:
        fault: What the plug-in raised last, and where; empty if it did not fail.

    Raises:
        UsageError: The plug-in is a class, and no object of it can be made.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        options: HttpOptions,
        dialer: Dialer,
        gate: Gate | None = None,
    ) -> None:
        self.name = plugin_label(name)
        self._function = callable_plugin(function, f"protocol {name!r}")
        self._port = int(getattr(function, "port", 0))
        self._connects = bool(getattr(function, "connects", True))
        self._options, self._dialer, self._gate = options, dialer, gate
        self._stuck = 0
        self._lock = threading.Lock()
        self._logged = False
        self.fault = ""

    def host(self, url: str) -> str:
        """Returns the host of a URL; see ``OtherClient``."""
        host = host_of_url(url)
        if not host:
            raise UnsendableUrl(f"expected a URL with a host, got {url!r}")
        return host

    def address(self, url: str) -> str | None:
        """Returns the first address of a URL's host; see ``OtherClient``."""
        if not self._connects:
            return None
        try:
            host, port = self._place(url)
            if not self._dialer.is_direct((scheme_of(url), host, port)):
                return None
            return str(self._dial(host, port).addresses[0][1][0])
        except (OSError, ValueError):
            return None

    def _place(self, url: str) -> tuple[str, int]:
        """Returns the host of a URL, and the port for the check of its addresses."""
        return self.host(url), _port_in(url) or self._usual_port(url)

    def _usual_port(self, url: str) -> int:
        return self._port or _PORTS.get(scheme_of(url), _ANY_PORT)

    def _dial(self, host: str, port: int, usual: int = 0) -> Destination:
        if self._dialer.is_proxied(("", host, port)):
            raise Denied("plugin_through_proxy", "a plug-in does not go through an HTTP proxy")
        return self._dialer.dial(host, port, own=usual or self._port or _ANY_PORT)

    def _fetch(self, response: Response, since: float | None, limit: int) -> None:
        url = response.url
        host, port = self._place(url)
        if self._connects:
            target = self._dial(host, port, self._usual_port(url))
            response.ip = str(target.addresses[0][1][0])
        check_gate(self._gate)
        moment = None if since is None else datetime.datetime.fromtimestamp(since, datetime.UTC)
        timeout = self._options.http_time_limit
        stopwatch = Stopwatch(limits_of(self._options))
        request = ProtocolRequest(
            url, host, _port_in(url), moment, limit, timeout,
            lambda port, tls: self._connect(host, port, tls, stopwatch),
        )  # fmt: skip
        try:
            answer = self._call(request)
            _fill_answer(response, answer, limit)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            self._log_fault(url, error)
            response.error = f"protocol_{self.name}"
            response.status, response.headers, response.body = 0, [], b""

    def _connect(self, host: str, port: int, tls: bool, stopwatch: Stopwatch) -> socket.socket:
        if not self._connects:
            raise Denied("port_denied", "the plug-in says that it makes no connection")
        wire = SocketWire()
        wire.stopwatch = stopwatch
        run_directly(wire.dial(self._dial(host, port)))
        sock = wire.sock
        assert sock is not None
        sock.settimeout(min(self._options.timeout, stopwatch.time_left()))
        if not tls:
            return sock
        try:
            context: ssl.SSLContext = self._dialer.tls(host)
            return context.wrap_socket(sock, server_hostname=host.strip("[]"))
        except BaseException:
            sock.close()
            raise

    def _call(self, request: ProtocolRequest) -> Any:
        """Calls the plug-in in a thread of its own, which is left alone if it takes too long."""
        if self._stuck >= _MOST_STUCK:
            raise RuntimeError(f"{_MOST_STUCK} earlier calls have not ended")
        outcome: list[Any] = []
        thread = threading.Thread(
            target=self._run, args=(request, outcome), name=f"protocol {self.name}", daemon=True
        )
        with self._lock:
            self._stuck += 1
        thread.start()
        thread.join(request.timeout)
        if not outcome:
            raise TooSlow("the plug-in took too long")
        answer, error = outcome
        if error is not None:
            raise error
        return answer

    def _run(self, request: ProtocolRequest, outcome: list[Any]) -> None:
        answer: Any = None
        fault: Exception | None = None
        try:
            answer = self._function(request)
        # BaseException: SystemExit in a plug-in is a mistake.
        except BaseException as error:  # noqa: BLE001
            fault = error if isinstance(error, Exception) else RuntimeError(repr(error))
        finally:
            with self._lock:
                self._stuck -= 1
        outcome.extend((answer, fault))

    def _log_fault(self, url: str, error: Exception) -> None:
        self.fault = fault = fault_text(error, self._function)
        if not self._logged:
            self._logged = True
            _LOG.warning(
                "protocol %r failed for %s: %s; the URLs that fail are counted as protocol_%s",
                *(self.name, quote_value(url), fault, self.name),
            )


def _port_in(url: str) -> int | None:
    site = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    port = site.rpartition("]")[2].partition(":")[2]
    return int(port) if port.isdigit() and 0 < int(port) < 65536 else None


def _fill_answer(response: Response, answer: Any, limit: int) -> None:
    """Fills in the response of an answer.

    Raises:
        TypeError, ValueError: It is none, or has a value that HTTP could not send.
    """
    if not isinstance(answer, ProtocolAnswer):
        raise TypeError(f"expected a ProtocolAnswer, got {quote_value(answer)}")
    if not isinstance(answer.status, int) or not 100 <= answer.status <= 599:
        raise ValueError(f"a status must be 100 to 599, got {quote_value(answer.status)}")
    if not isinstance(answer.body, bytes | bytearray):
        raise TypeError(f"a body must be bytes, got {type(answer.body).__name__}")
    texts = [
        answer.content_type,
        answer.reason,
        *(text for pair in answer.headers for text in pair),
    ]
    for text in texts:
        if not isinstance(text, str) or any(letter in text for letter in "\r\n\0"):
            raise ValueError(f"a header must be a text of one line, got {quote_value(text)}")
    body = bytes(answer.body)
    if 0 <= limit < len(body):
        body, response.truncated = body[:limit], "length"
    fields = [("Content-Type", answer.content_type or sniff(body, None))] if body else []
    fields += [(name, value) for name, value in answer.headers]
    fill_response(response, answer.status, answer.reason, *mask_headers(fields, response.url))
    response.body = body
