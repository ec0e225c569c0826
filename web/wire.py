"""One HTTP/1.1 exchange on one connection, with a limit on everything.

Built on urllib3's connections (TLS, certificate and host name checks) and
http.client's reading of bodies. Our own are the dialling, which asks the
guard; sockets that know when the whole request must be over; and the reading
of heads, which keeps headers as they came and costs a third of http.client's.
"""

import http.client
import math
import re
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection

from .guard import Denied, Target

# More than RFC 9112 4 allows, as http.client does: tabs, spaces, versions.
_STATUS_LINE = re.compile(r"(HTTP/[^\s]*)[ \t]+([1-9][0-9]{2})(?:[ \t](.*))?[ \t]*", re.DOTALL)
MAX_LINE_BYTES = 65_536
MAX_HEAD_BYTES = 262_144
MAX_HEADERS = 256
MAX_INTERIM_HEADS = 10
# RFC 9112 2.2, RFC 9110 5.5: a CR that ends no line, and NUL, are read as spaces.
_BARE = bytes(32 if byte in b"\r\0" else byte for byte in range(256))


class TooSlow(OSError):
    """The time for the whole request is over."""


class LowRate(TooSlow):
    """Less came than the minimum rate asks for."""


class ProxyFailed(OSError):
    """The proxy cannot be reached, or does not know us."""


class ProxyRefused(OSError):
    """The proxy will not lead to this host."""


class HeadTooLarge(http.client.HTTPException):
    """A response's head has too many headers, or too long ones."""


class _Timed:
    """Lets no read outlast ``deadline``, a moment on the monotonic clock.

    Nor may less than ``rate`` bytes a second have come once the first of them
    is ``grace`` seconds ago.
    """

    deadline = math.inf
    rate = 0.0
    grace = 10.0
    _cut = False
    _first = 0.0
    _received = 0

    def expect(self, deadline: float) -> None:
        """Begins with another response."""
        self.deadline, self._cut = deadline, False
        self._first, self._received = 0.0, 0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        now = time.monotonic()
        left = self.deadline - now
        if left <= 0:
            raise TooSlow("the time for the whole request is over")
        if self._first and self.rate:
            took = now - self._first
            if took > self.grace and self._received < self.rate * took:
                raise LowRate(f"{self._received} bytes in {took:.1f} s")
        before = self.gettimeout()  # type: ignore[attr-defined]
        if before is None or left < before:
            self._cut = True
            self.settimeout(left)  # type: ignore[attr-defined]
        try:
            number: int = super().recv_into(*args, **kwargs)  # type: ignore[misc]
        except TimeoutError as error:
            if self._cut:
                raise TooSlow("the time for the whole request is over") from error
            raise
        self._received += number
        if not self._first:
            self._first = time.monotonic()
        return number


class _Socket(_Timed, socket.socket):
    pass


class _TlsSocket(_Timed, ssl.SSLSocket):
    pass


TimedSocket = _Socket  # what FTP's connections are, too


def tls_context(ca_file: str, check: bool = True) -> ssl.SSLContext:
    """Returns the context of TLS connections.

    Args:
        ca_file: Certificates to trust.
        check: Whether certificates and names are checked; False only for hosts
            that the operator has named.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.sslsocket_class = _TlsSocket
    if not check:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Message(http.client.HTTPResponse):
    """A response whose head was read with bounds; bodies are read by the base class.

    Attributes:
        status_line: As received, without the line's end.
        fields: (name, value) of each header, in the order received.
        connection: What it came on.
        request: The request as it was sent, but for what is secret.
    """

    status_line: str
    fields: list[tuple[str, str]]
    connection: "Connection"
    request: bytes
    # Declared for http.client's private reading of bodies.
    chunked: bool
    chunk_left: int | None
    length: int | None
    will_close: bool

    def begin(self) -> None:
        """Reads the status line and the headers.

        Raises:
            http.client.HTTPException: What came is no HTTP, or too large.
            OSError: The connection broke.
        """
        for _ in range(MAX_INTERIM_HEADS):
            self.begin_once()
            if self.status >= 200:
                return
        raise http.client.BadStatusLine("too many interim responses")

    def begin_once(self) -> None:
        """Reads one head, which may be that of an interim response (RFC 9110 15.2)."""
        version, self.status, reason = self._read_status()
        self.fields = self._read_fields()
        self.code = self.status
        self.reason = reason.strip()
        self.version = 10 if version == "HTTP/1.0" else 11
        self.headers = self.msg = http.client.HTTPMessage()
        self._frame()

    def _read_status(self) -> tuple[str, int, str]:
        line = self.fp.readline(MAX_LINE_BYTES + 1).decode("latin-1")
        if len(line) > MAX_LINE_BYTES:
            raise http.client.LineTooLong("status line")
        if not line:
            raise http.client.RemoteDisconnected("no response")
        self.status_line = line.rstrip("\r\n")
        return parse_status_line(self.status_line)

    def _read_fields(self) -> list[tuple[str, str]]:
        fields: list[tuple[str, str]] = []
        left = MAX_HEAD_BYTES
        while True:
            line = self.fp.readline(MAX_LINE_BYTES + 1)
            left -= len(line)
            if len(line) > MAX_LINE_BYTES or left < 0 or len(fields) > MAX_HEADERS:
                raise HeadTooLarge("head of the response is too large")
            if line in (b"\r\n", b"\n", b""):
                return fields
            line = line.removesuffix(b"\n").removesuffix(b"\r").translate(_BARE)
            name, colon, value = line.decode("latin-1").partition(":")
            if line[0] in b" \t" and fields:  # RFC 9112 5.2: a folded line
                last, start = fields[-1]
                fields[-1] = (last, f"{start} {(name + colon + value).strip()}".strip())
            elif colon and name.strip():
                fields.append((name.strip(), value.strip()))

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:  # int() takes a sign; reading -1 bytes would mean all there are
            raise ValueError("negative chunk size")
        return size

    def _frame(self) -> None:
        """Finds where the body ends (RFC 9112 6.3)."""
        lengths, codings, connection = set(), "", ""
        for name, value in self.fields:
            lower = name.lower()
            if lower == "content-length":
                lengths |= {part.strip() for part in value.split(",")}
            elif lower == "transfer-encoding":
                codings = value.lower()
            elif lower == "connection":
                connection += value.lower()
        self.chunked = codings.endswith("chunked")
        self.chunk_left = None
        self.length = None
        if self.status in (204, 304) or self._method == "HEAD":  # type: ignore[attr-defined]
            self.length, self.chunked = 0, False
        elif not self.chunked and lengths:
            self.length = _length(lengths)
        keep = "keep-alive" in connection if self.version == 10 else "close" not in connection
        self.will_close = not keep or (self.length is None and not self.chunked)


def _length(lengths: set[str]) -> int:
    value = min(lengths)
    # RFC 9112 6.3: lengths that differ, or are no numbers, cannot be framed.
    if len(lengths) > 1 or not (value.isascii() and value.isdigit()):
        raise http.client.HTTPException(f"bad Content-Length {value!r}")
    return int(value)


def parse_status_line(line: str) -> tuple[str, int, str]:
    """Returns version, status and reason phrase of a status line without its end.

    Raises:
        http.client.BadStatusLine: It is none.

    >>> parse_status_line("HTTP/1.1 404 Not Found")
    ('HTTP/1.1', 404, 'Not Found')
    """
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise http.client.BadStatusLine(line[:100])
    return match[1], int(match[2]), match[3] or ""


class PlainConnection(HTTPConnection):
    """An http connection.

    Attributes:
        origin: What it is kept under while idle.
        dial: Says where the connection may go, or raises.
        deadline: Moment on the monotonic clock when all must be over.
        ip: Address connected to, empty before.
        patience: Longest wait for a connection, or for the next bytes, in s.
        gate: Is asked right before a request is sent, and before a connection is made for it.
        rate: Least bytes per second of a response, 0 for no least.
        grace: Seconds after its first byte from which on that counts.
        proxied: Whether ``dial`` leads to a proxy.
        tunnel: CONNECT request for the proxy, empty where there is none to send.
        checked: Whether the server's certificate is; None without TLS.
    """

    origin: tuple[str, str, int]
    dial: Callable[[str, int], Target]
    deadline = math.inf
    ip = ""
    patience = 10.0
    gate: Callable[[], bool] | None = None
    rate = 0.0
    grace = 10.0
    proxied = False
    tunnel = b""
    checked: bool | None = None
    sock: Any

    def _new_conn(self) -> socket.socket:
        """Connects to the first address that answers, all of them checked."""
        if not self.proxied:
            return self._connect(self.dial(self.host.strip("[]"), self.port))
        try:
            sock = self._connect(self.dial(self.host.strip("[]"), self.port))
        except (Denied, TooSlow):
            raise
        except OSError as error:
            raise ProxyFailed(f"the proxy cannot be reached: {error}") from error
        self.ip = ""  # the proxy's says nothing about the server
        if self.tunnel:
            self._open_tunnel(sock)
        return sock

    def _open_tunnel(self, sock: "_Socket") -> None:
        try:
            sock.expect(self.deadline)
            sock.sendall(self.tunnel)
            message = Message(sock, method="CONNECT")
            message.begin()
            if not 200 <= message.status < 300:
                failure = ProxyFailed if message.status == 407 else ProxyRefused
                raise failure(f"the proxy refuses CONNECT: {message.status}")
            message.fp.close()  # what follows is TLS
        except BaseException as error:
            sock.close()
            if isinstance(error, http.client.HTTPException):
                raise ProxyFailed("the proxy's answer to CONNECT is no HTTP") from error
            raise

    def _connect(self, target: Target) -> "_Socket":
        failed: OSError = OSError("no address")
        for family, address in target.addresses:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise TooSlow("the time for the whole request is over")
            sock = _Socket(family, socket.SOCK_STREAM)
            try:
                sock.settimeout(min(self.patience, left))
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.connect(address)
            except OSError as error:
                failed = error
                sock.close()
                continue
            self.ip = address[0]
            return sock
        raise failed

    def exchange(self, head: bytes) -> Message:
        """Sends a whole request and returns the response, its body still to be read.

        Raises:
            http.client.HTTPException: What came back is no HTTP.
            OSError: No connection, or it broke.
            Denied: The gate is shut; nothing was sent.
        """
        self._pass()
        if self.sock is None:
            self.connect()
            self._pass()  # connecting may have taken long
        self.sock.expect(self.deadline)
        self.sock.rate, self.sock.grace = self.rate, self.grace
        self.sock.settimeout(min(self.patience, max(0.001, self.deadline - time.monotonic())))
        self.sock.sendall(head)
        message = Message(self.sock, method="GET")
        message.connection, message.request = self, head
        message.begin()
        return message

    def _pass(self) -> None:
        if self.gate is not None and not self.gate():
            raise Denied("stopped", "no more requests may be sent")

    def is_idle(self) -> bool:
        """Returns whether it may carry another request: open, and nothing to be read."""
        return self.sock is not None and self.is_connected


class TlsConnection(PlainConnection, HTTPSConnection):
    """An https connection; see ``PlainConnection``."""


Connection = PlainConnection | TlsConnection
