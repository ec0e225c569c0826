"""One HTTP/1.1 exchange on one connection, with a limit on everything.

Built on urllib3's connections (TLS, certificate and host name checks). Our own
are the dialling, which goes only where the guard allows; sockets with a deadline
for the whole request; and the reading of responses, see ``response_reader``.
"""

import http.client
import math
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from urllib3.connection import HTTPConnection, HTTPSConnection

from .guard import Denied, Target, check_gate
from .heads import Head
from .response_reader import ResponseReader

_PIECE_BYTES = 65_536


class TooSlow(OSError):
    """The time for the whole request is over."""


class LowRate(TooSlow):
    """Fewer bytes came than the minimum rate demands."""


class ProxyFailed(OSError):
    """The proxy cannot be reached, or refuses our credentials."""


class ProxyRefused(OSError):
    """The proxy refuses to connect to this host."""


class Limits(NamedTuple):
    """Limits on a request.

    Attributes:
        patience: Longest wait for a connection or the next bytes, in s.
        whole: Longest time for the whole request, in s.
        rate: Least bytes per second of a response, 0 for no limit.
        grace: Seconds after the first byte before ``rate`` counts.
    """

    patience: float = 10.0
    whole: float = 60.0
    rate: float = 0.0
    grace: float = 10.0


class _Timed:
    """A socket whose reads end at ``deadline``, a moment on the monotonic clock.

    They also end if fewer than ``rate`` bytes per second have come, ``grace`` seconds
    after the first byte.
    """

    deadline = math.inf
    rate = 0.0
    grace = 10.0
    _cut = False
    _first = 0.0
    _received = 0

    def expect(self, deadline: float) -> None:
        """Starts the limits of another response."""
        self.deadline, self._cut = deadline, False
        self._first, self._received = 0.0, 0

    def recv(self, *args: Any) -> bytes:
        """Receives within the limits."""
        data: bytes = self._in_time(super().recv, *args)  # type: ignore[misc]
        self._count(len(data))
        return data

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """Receives within the limits."""
        number: int = self._in_time(super().recv_into, *args, **kwargs)  # type: ignore[misc]
        self._count(number)
        return number

    def _in_time(self, receive: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
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
            return receive(*args, **kwargs)
        except TimeoutError as error:
            if self._cut:
                raise TooSlow("the time for the whole request is over") from error
            raise

    def _count(self, number: int) -> None:
        self._received += number
        if not self._first:
            self._first = time.monotonic()


class _Socket(_Timed, socket.socket):
    pass


def time_left(deadline: float, patience: float) -> float:
    """Returns the longest time for the next wait, in s.

    Raises:
        TooSlow: The deadline is over.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TooSlow("the time for the whole request is over")
    return min(patience, left)


def connect(target: Target, deadline: float, patience: float) -> "_Socket":
    """Connects to the first address that answers.

    Args:
        target: Checked addresses.
        deadline: Moment on the monotonic clock when all must be over.
        patience: Longest wait for one address, in s.

    Raises:
        OSError: No address answers.
    """
    failed: OSError = OSError("no address")
    for family, address in target.addresses:
        left = time_left(deadline, patience)
        sock = _Socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(left)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.connect(address)
            return sock
        except OSError as error:
            failed = error
            sock.close()
    raise failed


class _TlsSocket(_Timed, ssl.SSLSocket):
    pass


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
    # RFC 9525 2: the common name of a certificate names no server.
    context.hostname_checks_common_name = False
    return context


class Message:
    """A response whose head was read, and whose body is still to be read.

    Args:
        sock: The socket that it comes from.
        fresh: Whether it is the first one of the socket; see ``ResponseReader``.

    Attributes:
        head: The head.
        connection: The connection that it came from.
        request: The request as it was sent, without secrets.
    """

    head: Head
    connection: "Connection"
    request: bytes

    def __init__(self, sock: "_Socket", fresh: bool = False) -> None:
        self._sock = sock
        self._reader = ResponseReader(fresh)
        self._data = b""

    def begin(self) -> None:
        """Reads the head.

        Raises:
            http.client.HTTPException: The response is not HTTP, or too large.
            OSError: The connection broke.
        """
        while self._reader.head is None:
            self._receive(_PIECE_BYTES)
        self.head = self._reader.head

    def read(self, amount: int = -1) -> bytes:
        """Returns at most ``amount`` bytes of the body, all of it if negative; empty at its end.

        Raises:
            http.client.HTTPException: The body breaks off, or is not as it should be.
            OSError: The connection broke.
        """
        if amount < 0:
            return b"".join(iter(lambda: self.read(_PIECE_BYTES), b""))
        while not self._data and not self._reader.ended:
            if self._reader.error is not None:
                raise self._reader.error
            self._receive(amount)
        data, self._data = self._data[:amount], self._data[amount:]
        return data

    def _receive(self, amount: int) -> None:
        data = self._sock.recv(amount)
        self._data += self._reader.feed(data) if data else self._reader.end()

    def is_whole(self) -> bool:
        """Returns whether all of the body was read."""
        return self._reader.ended and not self._data

    def keeps(self) -> bool:
        """Returns whether its connection may carry another request."""
        return self._reader.keeps and self.is_whole()


def check_tunnel(status: int) -> None:
    """Checks a proxy's response to CONNECT.

    Raises:
        ProxyFailed: It refuses our credentials.
        ProxyRefused: It refuses to connect to this host.
    """
    if not 200 <= status < 300:
        failure = ProxyFailed if status == 407 else ProxyRefused
        raise failure(f"the proxy refuses CONNECT: {status}")


class PlainConnection(HTTPConnection):
    """An http connection.

    Attributes:
        origin: Key of the connection while it is idle.
        dial: Returns the checked addresses, or raises.
        deadline: Moment on the monotonic clock when all must be over.
        ip: Address connected to, empty before.
        patience: Longest wait for a connection, or for the next bytes, in s.
        gate: Called right before a request is sent, and before a connection is made for it.
        rate: Least bytes per second of a response, 0 for no limit.
        grace: Seconds after the first byte before ``rate`` counts.
        proxied: Whether ``dial`` leads to a proxy.
        tunnel: CONNECT request for the proxy; empty for none.
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
        try:
            target = self.dial(self.host.strip("[]"), self.port)
            sock = connect(target, self.deadline, self.patience)
        except (Denied, TooSlow):
            raise
        except OSError as error:
            if self.proxied:
                raise ProxyFailed(f"the proxy cannot be reached: {error}") from error
            raise
        if not self.proxied:  # the proxy's address says nothing about the server
            self.ip = str(sock.getpeername()[0])
        elif self.tunnel:
            self._open_tunnel(sock)
        return sock

    def _open_tunnel(self, sock: "_Socket") -> None:
        try:
            sock.expect(self.deadline)
            sock.sendall(self.tunnel)
            message = Message(sock)
            message.begin()
            check_tunnel(message.head.status)
        except BaseException as error:
            sock.close()
            if isinstance(error, http.client.HTTPException):
                raise ProxyFailed("the proxy's answer to CONNECT is no HTTP") from error
            raise

    def exchange(self, head: bytes) -> Message:
        """Sends a whole request and returns the response, its body still to be read.

        Raises:
            http.client.HTTPException: The response is not HTTP.
            OSError: No connection, or it broke.
            Denied: The gate is shut; nothing was sent.
        """
        check_gate(self.gate)
        fresh = self.sock is None
        if fresh:
            self.connect()
            check_gate(self.gate)  # connecting may have taken long
        self.sock.expect(self.deadline)
        self.sock.rate, self.sock.grace = self.rate, self.grace
        self.sock.settimeout(min(self.patience, max(0.001, self.deadline - time.monotonic())))
        self.sock.sendall(head)
        message = Message(self.sock, fresh)
        message.connection, message.request = self, head
        message.begin()
        return message

    def is_idle(self) -> bool:
        """Returns whether it may carry another request: open, and nothing to be read."""
        if self.sock is None or not self.is_connected:
            return False
        return not (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending())


class TlsConnection(PlainConnection, HTTPSConnection):
    """An https connection; see ``PlainConnection``."""


Connection = PlainConnection | TlsConnection
