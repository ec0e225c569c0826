"""The HTTP client: one GET at a time, guarded, bounded, and never raising for the web.

``requests`` and urllib3 do the work below; ``GuardedAdapter`` can be mounted
on any ``requests.Session`` to give it the same guard and limits.
"""

import dataclasses
import functools
import re
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.certs import where as bundled_ca_file

from .agent import AgentOptions, agent_token, missing_agent, user_agent
from .body import read_body
from .failures import reason_of
from .guard import Denied, Guard, Target
from .options import option
from .wire import Exchange, Message, PlainConnection, TlsConnection, tls_context

# Not urlsplit: it drops tabs and newlines without a word.
_URL = re.compile(
    r"(https?)://(?:[^/?#@]*@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?"
    r"([/?][\x21\x22\x24-\x7e]*)?(?:#[\x21-\x7e]*)?",
)
_HEADER = re.compile(r"[\t\x20-\x7e]*")
_MAX_IDLE = 512
_PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int]


@dataclasses.dataclass(frozen=True)
class HttpOptions(AgentOptions):
    """How pages are asked for, and where connections may go."""

    timeout: float = option(
        10.0,
        "Longest wait for a connection, or for the next bytes.",
        unit="s",
        nutch="http.timeout",
        minimum=0.001,
    )
    http_time_limit: float = option(
        60.0, "Longest time for a whole request.", unit="s", nutch="http.time.limit", minimum=0.001
    )
    content_limit: int = option(
        1_048_576,
        "Most bytes of a body that are kept, after decoding; negative for all.",
        unit="bytes",
        nutch="http.content.limit",
    )
    accept: str = option(
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "Accept header.",
        nutch="http.accept",
    )
    accept_language: str = option(
        "en-us,en-gb,en;q=0.7,*;q=0.3", "Accept-Language header.", nutch="http.accept.language"
    )
    connect_to: tuple[str, ...] = option(
        (),
        "Reach a host elsewhere, as curl's: HOST:PORT:ADDRESS:PORT. HOST must be named; "
        "*.DOMAIN is the domain and all below it. Empty ports are any, or the same.",
    )
    allow_addresses: tuple[str, ...] = option(
        (), "CIDR blocks that may be reached though they are private or special."
    )
    allowed_ports: tuple[str, ...] = option(
        ("80", "443", "8000-8999"),
        "Ports that URLs may name, as PORT or FIRST-LAST; hosts of connect_to may name any.",
    )
    ca_file: str = option("", "File of certificates to trust instead of the bundled ones.")

    def __post_init__(self) -> None:
        for name in ("accept", "accept_language"):
            if not _HEADER.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} must be printable ASCII, got {getattr(self, name)!r}")
        guard_of(self)


def guard_of(options: HttpOptions) -> Guard:
    """Returns the guard that the options describe.

    Raises:
        ValueError: An entry of a list cannot be read.
    """
    return Guard(options.allow_addresses, options.connect_to, options.allowed_ports)


@dataclasses.dataclass(slots=True)
class Response:
    """What came over the wire for one request.

    Attributes:
        url: As asked for.
        http_version: ``HTTP/1.1``; empty without an answer.
        status: Status code; 0 without an answer.
        reason: Reason phrase.
        headers: (name, value) in the order received.
        body: Decoded bytes.
        truncated: None, or why the body is not whole; see ``Body``.
        ip: Address asked; empty where none was.
        request: Head of the request, as sent.
        started: UTC ms.
        elapsed_ms: Until the last byte, or the error.
        error: None, or a reason: dns, refused, timeout, too_slow, reset,
            unreachable, tls, incomplete, protocol_error, headers_too_large,
            bad_encoding, bad_url, address_denied, port_denied, agent_missing.
    """

    url: str
    http_version: str = ""
    status: int = 0
    reason: str = ""
    headers: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    body: bytes = b""
    truncated: str | None = None
    ip: str = ""
    request: str = ""
    started: int = 0
    elapsed_ms: int = 0
    error: str | None = None

    def header(self, name: str) -> str | None:
        """Returns the first header of a name, given in lower case."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None


def split_url(url: str) -> tuple[Origin, str]:
    """Returns ((scheme, host, port), request target); user info is dropped.

    Raises:
        ValueError: The URL is not http or https, or has characters that must
            not go into a request (controls, spaces, anything but ASCII).

    >>> split_url("http://u:p@Example.com:8080/a?b#c")
    (('http', 'example.com', 8080), '/a?b')
    """
    match = _URL.fullmatch(url)
    port = int(match[3]) if match and match[3] else 0
    if match is None or port > 65535:
        raise ValueError(f"expected an http or https URL in ASCII, got {url!r}")
    target = match[4] or "/"
    origin = (match[1], match[2].lower(), port or _PORTS[match[1]])
    return origin, target if target[0] == "/" else f"/{target}"


class GuardedAdapter(HTTPAdapter):
    """A ``requests`` adapter for GET whose connections ask the guard; safe for threads.

    Keeps at most ``_MAX_IDLE`` idle connections, whatever the number of hosts.
    Redirects and cookies are the caller's business.
    """

    def __init__(self, options: HttpOptions, guard: Guard | None = None) -> None:
        super().__init__(pool_connections=1, pool_maxsize=1)
        self._options = options
        self.guard = guard or guard_of(options)
        self._missing_agent = missing_agent(options)
        self._idle: OrderedDict[Origin, list[Exchange]] = OrderedDict()
        self._idle_count = 0
        self._lock = threading.Lock()

    def get_connection_with_tls_context(self, request: Any, *_: Any, **__: Any) -> Any:
        """Returns what ``send`` calls ``urlopen`` of."""
        return self

    def cert_verify(self, *_: Any) -> None:
        """Does nothing: the context of all connections verifies."""

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """Returns the whole URL: it is taken apart where it is sent."""
        return str(request.url)

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """Returns a response whose ``raw`` is the ``Message``; no cookies are kept."""
        response = requests.Response()
        response.status_code, response.reason = resp.status, resp.reason
        response.headers.update(resp.fields)
        response.raw, response.request, response.url = resp, req, str(req.url)
        return response

    def urlopen(self, method: str, url: str, headers: Any, **_: Any) -> Message:
        """Sends a request without a body and returns the response, its body unread."""
        origin, target = split_url(url)
        lines = [f"{method} {target} HTTP/1.1", f"Host: {_host_header(origin)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join((*lines, "\r\n")).encode("latin-1")
        deadline = time.monotonic() + self._options.http_time_limit
        connection = self._take(origin)
        if connection is not None:
            connection.deadline = deadline
            try:
                return connection.exchange(head)
            except ConnectionError:  # closed by the server while it was idle: RFC 9112 9.3.1
                connection.close()
        return self._exchange(self._connection(origin), deadline, head)

    def _exchange(self, connection: Exchange, deadline: float, head: bytes) -> Message:
        connection.deadline = deadline
        try:
            return connection.exchange(head)
        except BaseException:
            connection.close()
            raise

    def _connection(self, origin: Origin) -> Exchange:
        scheme, host, port = origin
        timeout = self._options.timeout
        connection: Exchange
        if scheme == "https":
            connection = TlsConnection(host, port, timeout=timeout, ssl_context=self._tls)
        else:
            connection = PlainConnection(host, port, timeout=timeout)
        connection.origin, connection.dial = origin, self.dial
        return connection

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext:
        return tls_context(self._options.ca_file or bundled_ca_file())

    def dial(self, host: str, port: int) -> Target:
        """Returns where to connect to for a host; see ``Guard.target``.

        Raises:
            Denied: Also when the host is a stranger's and the agent has no name.
        """
        target = self.guard.target(host, port)
        if self._missing_agent and not target.opened:
            raise Denied("agent_missing", f"add {self._missing_agent}")
        return target

    def _take(self, origin: Origin) -> Exchange | None:
        while True:
            with self._lock:
                waiting = self._idle.get(origin)
                if not waiting:
                    return None
                connection = waiting.pop()
                self._idle_count -= 1
                if not waiting:
                    del self._idle[origin]
            if connection.is_idle():
                return connection
            connection.close()

    def release(self, message: Message) -> None:
        """Keeps the connection of a response for the next request, if it can be used."""
        connection = message.connection
        if message.will_close or not message.isclosed():
            connection.close()
            return
        with self._lock:
            self._idle.setdefault(connection.origin, []).append(connection)
            self._idle.move_to_end(connection.origin)
            self._idle_count += 1
            oldest = self._oldest() if self._idle_count > _MAX_IDLE else None
        if oldest is not None:
            oldest.close()

    def _oldest(self) -> Exchange:
        origin, waiting = next(iter(self._idle.items()))
        if len(waiting) == 1:
            del self._idle[origin]
        self._idle_count -= 1
        return waiting.pop(0)

    def close(self) -> None:
        """Closes the idle connections."""
        with self._lock:
            idle = [connection for waiting in self._idle.values() for connection in waiting]
            self._idle.clear()
            self._idle_count = 0
        for connection in idle:
            connection.close()
        super().close()


class Client:
    """Asks for URLs, one at a time per thread; safe to share by threads.

    Args:
        options: Agent, limits, and where connections may go.
        guard: Stands for the guard that the options describe.
    """

    def __init__(self, options: HttpOptions, guard: Guard | None = None) -> None:
        self._options = options
        self._adapter = GuardedAdapter(options, guard)
        self.guard = self._adapter.guard
        self.token = agent_token(options)
        self._headers = {
            "User-Agent": user_agent(options),
            "Accept": options.accept,
            "Accept-Language": options.accept_language,
            "Accept-Encoding": "gzip, deflate",
        }

    def get(
        self,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        content_limit: int | None = None,
    ) -> Response:
        """Asks for a URL once; redirects are not followed.

        Args:
            url: Absolute http or https URL.
            headers: More headers; those whose value is not printable ASCII
                are left out.
            content_limit: Bytes, in place of the option.

        Returns:
            What came, or why nothing did; see ``Response.error``.
        """
        response = Response(url, started=time.time_ns() // 1_000_000)
        began = time.monotonic()
        limit = self._options.content_limit if content_limit is None else content_limit
        request = requests.PreparedRequest()
        request.method, request.url = "GET", url
        request.headers = self._headers | {n: v for n, v in headers if _HEADER.fullmatch(v)}  # type: ignore[assignment]
        if not _URL.fullmatch(url):
            response.error = "bad_url"
            return response
        try:
            message: Message = self._adapter.send(request, stream=True).raw
        except Exception as error:
            response.error = reason_of(error)
        else:
            self._take(response, message, limit)
        response.elapsed_ms = round((time.monotonic() - began) * 1000)
        return response

    def _take(self, response: Response, message: Message, limit: int) -> None:
        body = read_body(message, limit)
        response.http_version = "HTTP/1.0" if message.version == 10 else "HTTP/1.1"
        response.status, response.reason = message.status, message.reason
        response.headers = message.fields
        response.body, response.truncated, response.error = body
        response.ip = message.connection.ip
        response.request = message.request.decode("latin-1")
        self._adapter.release(message)

    def address(self, url: str) -> str | None:
        """Returns the first address at which a URL's host is reached.

        None where ``connect_to`` names the host, or it cannot be reached.
        """
        try:
            (_, host, port), _ = split_url(url)
            if self.guard.door(host, port):
                return None
            return str(self._adapter.dial(host.strip("[]"), port).addresses[0][1][0])
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Closes the idle connections."""
        self._adapter.close()


def _host_header(origin: Origin) -> str:
    scheme, host, port = origin
    return host if port == _PORTS[scheme] else f"{host}:{port}"
