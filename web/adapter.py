"""A ``requests`` adapter whose connections ask the guard, within limits.

It can be mounted on any ``requests.Session``.
"""

import functools
import re
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import certifi
import requests
from requests.adapters import HTTPAdapter

from .failures import BadUrl
from .guard import Denied, Guard, Target
from .headers import SECRET, WITHHELD
from .proxy import Proxy, as_address, judge_name
from .wire import Connection, Message, PlainConnection, TlsConnection, tls_context

# Not urlsplit: it drops tabs and newlines without a word.
_URL = re.compile(
    r"(https?)://(?:[^/?#@]*@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?"
    r"([/?][\x21\x22\x24-\x7e]*)?(?:#[\x21-\x7e]*)?",
)
try:
    import resource

    _MAX_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
except ImportError:  # Windows has neither the module nor the limit
    _MAX_FILES = 2048
_MAX_IDLE = min(512, _MAX_FILES // 4) if _MAX_FILES > 0 else 512
_PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int]


def split_url(url: str) -> tuple[Origin, str]:
    """Returns ((scheme, host, port), request target); user info is dropped.

    Raises:
        BadUrl: The URL is not http or https, or has characters that must
            not go into a request (controls, spaces, anything but ASCII).

    >>> split_url("http://u:p@Example.com:8080/a?b#c")
    (('http', 'example.com', 8080), '/a?b')
    """
    match = _URL.fullmatch(url)
    port = int(match[3]) if match and match[3] else 0
    if match is None or port > 65535:
        raise BadUrl(f"expected an http or https URL in ASCII, got {url!r}")
    target = match[4] or "/"
    origin = (match[1], match[2].lower(), port or _PORTS[match[1]])
    return origin, target if target[0] == "/" else f"/{target}"


class GuardedAdapter(HTTPAdapter):
    """A ``requests`` adapter for GET whose connections ask the guard; safe for threads.

    Keeps at most ``_MAX_IDLE`` idle connections, whatever the number of hosts.
    Redirects and cookies are the caller's business.

    Args:
        guard: Says where connections may go.
        timeout: Longest wait for a connection or the next bytes, in s.
        time_limit: Longest time for a whole request, in s.
        ca_file: Certificates to trust; empty for the bundled ones.
        missing_agent: What to add before a host is asked to which the operator
            did not open the way himself; None if nothing is missing.
        gate: Is asked right before each request; False denies it.
        rate: Least bytes per second of a response, 0 for no least.
        grace: Seconds after its first byte from which on that counts.
        unchecked: Hosts whose certificates are not checked.
        proxy: What all connections go through, but those that ``connect_to`` names.
        proxy_auth: Value of Proxy-Authorization; empty for none.
    """

    def __init__(
        self,
        guard: Guard,
        timeout: float = 10.0,
        time_limit: float = 60.0,
        ca_file: str = "",
        missing_agent: str | None = None,
        gate: Callable[[], bool] | None = None,
        *,
        rate: float = 0.0,
        grace: float = 10.0,
        unchecked: frozenset[str] = frozenset(),
        proxy: Proxy | None = None,
        proxy_auth: str = "",
    ) -> None:
        super().__init__(pool_connections=1, pool_maxsize=1)
        self.guard = guard
        self._timeout, self._time_limit = timeout, time_limit
        self._ca_file, self._missing_agent = ca_file, missing_agent
        self._gate = gate
        self._rate, self._grace, self._unchecked = rate, grace, unchecked
        self._proxy, self._proxy_auth = proxy, proxy_auth
        self._idle: OrderedDict[Origin, list[Connection]] = OrderedDict()
        self._idle_count = 0
        self._lock = threading.Lock()

    def get_connection_with_tls_context(self, request: Any, *_: Any, **__: Any) -> Any:
        """Returns what ``send`` calls ``urlopen`` of."""
        return self

    def cert_verify(self, *_: Any) -> None:
        """Does nothing: the contexts of connections say what is checked."""

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
        host, forwarded = _host_header(origin), origin[0] == "http" and self.is_proxied(origin)
        fields = [("Host", host), *headers.items()]
        if forwarded:  # RFC 9112 3.2.2: absolute-form
            target = f"http://{host}{target}"
            fields += [("Proxy-Authorization", self._proxy_auth)] if self._proxy_auth else []
        start = f"{method} {target} HTTP/1.1"
        message = self._ask(origin, _head(start, fields))
        if not SECRET.isdisjoint(map(str.lower, dict(fields))):
            message.request = _head(start, [_shown(*field) for field in fields])
        return message

    def is_proxied(self, origin: Origin) -> bool:
        """Returns whether an origin is asked through the proxy."""
        return self._proxy is not None and self.guard.door(origin[1].strip("[]"), origin[2]) is None

    def _ask(self, origin: Origin, head: bytes) -> Message:
        deadline = time.monotonic() + self._time_limit
        connection = self._take(origin)
        if connection is not None:
            connection.deadline = deadline
            try:
                return connection.exchange(head)
            except ConnectionError:  # closed by the server while it was idle: RFC 9112 9.3.1
                connection.close()
        return self._exchange(self._connection(origin), deadline, head)

    def _exchange(self, connection: Connection, deadline: float, head: bytes) -> Message:
        connection.deadline = deadline
        try:
            return connection.exchange(head)
        except BaseException:
            connection.close()
            raise

    def _connection(self, origin: Origin) -> Connection:
        scheme, host, port = origin
        connection: Connection
        if scheme == "https":
            checked = host not in self._unchecked
            context = self._tls if checked else self._tls_unchecked
            connection = TlsConnection(host, port, timeout=self._timeout, ssl_context=context)
            connection.checked = checked
        else:
            connection = PlainConnection(host, port, timeout=self._timeout)
        connection.origin, connection.dial = origin, self.dial
        connection.patience, connection.gate = self._timeout, self._gate
        connection.rate, connection.grace = self._rate, self._grace
        connection.proxied = self.is_proxied(origin)
        if connection.proxied and scheme == "https":
            fields = [("Host", f"{host}:{port}")]
            fields += [("Proxy-Authorization", self._proxy_auth)] if self._proxy_auth else []
            connection.tunnel = _head(f"CONNECT {host}:{port} HTTP/1.1", fields)
        return connection

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext:
        return tls_context(self._ca_file or certifi.where())

    @functools.cached_property
    def _tls_unchecked(self) -> ssl.SSLContext:
        return tls_context(self._ca_file or certifi.where(), check=False)

    def dial(self, host: str, port: int) -> Target:
        """Returns where to connect to for a host; see ``Guard.target``.

        Where that is the proxy, the host is judged as far as can be.

        Raises:
            Denied: Also when the host is a stranger's and the agent has no name.
        """
        proxied = self.is_proxied(("", host, port))
        target = self._through_proxy(host, port) if proxied else self.guard.target(host, port)
        if self._missing_agent and not target.opened:
            raise Denied("agent_missing", f"add {self._missing_agent}")
        return target

    def _through_proxy(self, host: str, port: int) -> Target:
        assert self._proxy is not None
        self.guard.check_port(port)
        opened = self.guard.allows(as_address(host) or "")
        judge_name(host, opened)
        return Target(self.guard.addresses(*self._proxy), opened)

    def _take(self, origin: Origin) -> Connection | None:
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

    def release(self, message: Message, whole: bool) -> None:
        """Keeps the connection of a response for the next request, if it can be used.

        Args:
            message: A response whose body was read.
            whole: Whether all of it was, and without errors.
        """
        connection = message.connection
        if message.will_close or not whole or not message.isclosed():
            connection.close()
            return
        with self._lock:
            self._idle.setdefault(connection.origin, []).append(connection)
            self._idle.move_to_end(connection.origin)
            self._idle_count += 1
            oldest = self._oldest() if self._idle_count > _MAX_IDLE else None
        if oldest is not None:
            oldest.close()

    def _oldest(self) -> Connection:
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


def _host_header(origin: Origin) -> str:
    scheme, host, port = origin
    return host if port == _PORTS[scheme] else f"{host}:{port}"


def _head(start: str, fields: Iterable[tuple[str, str]]) -> bytes:
    lines = [start, *(f"{name}: {value}" for name, value in fields), "\r\n"]
    return "\r\n".join(lines).encode("latin-1")


def _shown(name: str, value: str) -> tuple[str, str]:
    return (name, WITHHELD) if name.lower() in SECRET else (name, value)
