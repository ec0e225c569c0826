"""Chooses the addresses, the proxy and the certificates of connections."""

import dataclasses
import re
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from ..tls.contexts import needs_own_check, tls_context
from .failures import UnsendableUrl
from .guard import Denied, Destination, Guard
from .heads import SECRET, WITHHELD, head_text
from .proxy import Proxy, as_address, judge_name

# Not urlsplit, because it silently drops tabs and newlines.
_URL = re.compile(
    r"(https?)://(?:[^/?#@]*@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?"
    r"([/?][\x21\x22\x24-\x7e]*)?(?:#[\x21-\x7e]*)?"
)
_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]  # scheme, host, port


def split_url(url: str) -> tuple[Origin, str]:
    """Returns ((scheme, host, port), request target); user info is dropped.

    Raises:
        UnsendableUrl: The URL is not http or https, or has characters that must
            not go into a request (controls, spaces, anything but ASCII).

    >>> split_url("http://u:p@Example.com:8080/a?b#c")
    (('http', 'example.com', 8080), '/a?b')
    """
    match = _URL.fullmatch(url)
    port = int(match[3]) if match and match[3] else 0
    if match is None or port > 65535:
        raise UnsendableUrl(f"expected an http or https URL in ASCII, got {url!r}")
    target = match[4] or "/"
    origin = (match[1], match[2].lower(), port or _PORTS[match[1]])
    return origin, target if target[0] == "/" else f"/{target}"


def request_url(url: str) -> str:
    """Returns a URL without the parts that do not change its request.

    Raises:
        UnsendableUrl: See ``split_url``.

    >>> request_url("http://u:p@Example.com.:80/a?b#c")
    'http://example.com/a?b'
    """
    (scheme, host, port), target = split_url(url)
    return f"{scheme}://{_host_header((scheme, host.rstrip('.'), port))}{target}"


class RequestHead(NamedTuple):
    """The head of a request.

    Attributes:
        origin: Its destination.
        sent: As it is sent.
        shown: As it is stored: without secrets.
    """

    origin: Origin
    sent: bytes
    shown: bytes


@dataclasses.dataclass(eq=False)
class Dialer:
    """Chooses the addresses of connections and writes the heads of requests; safe for threads.

    Attributes:
        guard: Decides where connections may go.
        ca_file: Certificates to trust; empty for the bundled ones.
        missing_agent: Options to add before requests to hosts that the operator did not
            open with ``connect_to`` or ``allow_addresses``; None if nothing is missing.
        unchecked: Hosts whose certificates are not checked.
        proxy: Proxy of all connections, except those that ``connect_to`` names.
        proxy_auth: Value of Proxy-Authorization; empty for none.
    """

    guard: Guard
    ca_file: str = ""
    missing_agent: str | None = None
    unchecked: frozenset[str] = frozenset()
    proxy: Proxy | None = None
    proxy_auth: str = ""

    def head(self, method: str, url: str, headers: Mapping[str, str]) -> RequestHead:
        """Returns the head of a request without a body.

        Raises:
            UnsendableUrl: The URL cannot go into a request.
        """
        origin, target = split_url(url)
        host, forwarded = _host_header(origin), origin[0] == "http" and self.is_proxied(origin)
        fields = [("Host", host), *headers.items()]
        if forwarded:  # RFC 9112 3.2.2: absolute-form
            target = f"http://{host}{target}"
            fields += [("Proxy-Authorization", self.proxy_auth)] if self.proxy_auth else []
        start = f"{method} {target} HTTP/1.1"
        sent = shown = head_text(start, fields).encode("latin-1")
        if not SECRET.isdisjoint([name.lower() for name, _ in fields]):
            shown = head_text(start, [_withhold_secret(*field) for field in fields]).encode(
                "latin-1"
            )
        return RequestHead(origin, sent, shown)

    def tunnel(self, origin: Origin) -> bytes:
        """Returns the CONNECT request for the proxy; empty if none is needed."""
        scheme, host, port = origin
        if scheme != "https" or not self.is_proxied(origin):
            return b""
        fields = [("Host", f"{host}:{port}")]
        fields += [("Proxy-Authorization", self.proxy_auth)] if self.proxy_auth else []
        return head_text(f"CONNECT {host}:{port} HTTP/1.1", fields).encode("latin-1")

    def is_proxied(self, origin: Origin) -> bool:
        """Returns whether requests to an origin go through the proxy."""
        return self.proxy is not None and self.guard.connect_to(_name(origin[1]), origin[2]) is None

    def is_checked(self, host: str) -> bool:
        """Returns whether the certificate of a host is checked."""
        return host not in self.unchecked

    def tls(self, host: str) -> ssl.SSLContext:
        """Returns the context for TLS with a host."""
        return tls_context(self.ca_file, self.is_checked(host), not needs_own_check(host))

    def dial(self, host: str, port: int, own: int = 0) -> Destination:
        """Returns the addresses for connections to a host; see ``Guard.target``.

        For the proxy, the host is checked as far as possible without a lookup.

        Raises:
            Denied: Also if the operator did not open the host and the agent has no name.
        """
        host = _name(host)
        proxied = self.is_proxied(("", host, port))
        target = self._dial_proxy(host, port) if proxied else self.guard.target(host, port, own)
        if self.missing_agent and not target.opened:
            raise Denied("agent_missing", f"add {self.missing_agent}")
        return target

    def _dial_proxy(self, host: str, port: int) -> Destination:
        assert self.proxy is not None
        self.guard.check_port(port)
        opened = self.guard.allows(as_address(host) or "")
        judge_name(host, opened)
        return Destination(self.guard.addresses(*self.proxy), opened)

    def needs_lookup(self, host: str, port: int) -> bool:
        """Returns whether ``dial`` may request a name server, which may take long."""
        host = _name(host)
        entry = self.guard.connect_to(host, port)
        if entry is not None:
            host = entry.address or host
        elif self.proxy is not None:
            host = self.proxy.host
        return as_address(host) is None and not self.guard.knows(host)

    def is_direct(self, origin: Origin) -> bool:
        """Returns whether connections go to an origin's address: no proxy, no ``connect_to``."""
        _, host, port = origin
        return self.proxy is None and self.guard.connect_to(_name(host), port) is None


def _name(host: str) -> str:
    """Returns the host of an origin in the form that the guard takes."""
    return host.strip("[]").rstrip(".")


def _host_header(origin: Origin) -> str:
    scheme, host, port = origin
    return host if port == _PORTS[scheme] else f"{host}:{port}"


def _withhold_secret(name: str, value: str) -> tuple[str, str]:
    return (name, WITHHELD) if name.lower() in SECRET else (name, value)
