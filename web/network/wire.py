"""Sends and receives bytes on a blocking socket; every wire limits time and rate.

The coroutines of ``SocketWire`` never wait for an event loop: ``run_directly`` runs them, and all
coroutines that use them, in the calling thread. So both HTTP clients share the code that uses
wires.
"""

import socket
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from urllib3.util.wait import wait_for_read

from .guard import Destination


class TooSlow(OSError):
    """A request took longer than its time limit."""


class LowRate(TooSlow):
    """A response was slower than the minimum rate."""


class Limits(NamedTuple):
    """Limits on a request.

    Attributes:
        patience: Longest wait for a connection or the next bytes, in s.
        whole: Longest time for the whole request, in s.
        rate: Minimum rate of a response in bytes per second, 0 for no limit.
        grace: Seconds after the first byte before ``rate`` is checked.
    """

    patience: float = 10.0
    whole: float = 60.0
    rate: float = 0.0
    grace: float = 10.0


class Stopwatch:
    """Measures one exchange against its limits; starts when it is created.

    Args:
        limits: The limits.
        deadline: Time on the monotonic clock at which the exchange must have ended, instead of
            ``limits.whole``.

    Attributes:
        deadline: That moment.
    """

    __slots__ = ("_first", "_limits", "_received", "deadline")

    def __init__(self, limits: Limits, deadline: float | None = None) -> None:
        self._limits = limits
        self.deadline = time.monotonic() + limits.whole if deadline is None else deadline
        self.restart()

    def restart(self) -> None:
        """Starts to measure the rate of another response; the deadline stays."""
        self._first = 0.0
        self._received = 0

    def count(self, number: int) -> None:
        """Counts received bytes."""
        self._received += number
        self._first = self._first or time.monotonic()

    def time_left(self) -> float:
        """Returns the longest time for the next wait, in s.

        Raises:
            TooSlow: The deadline has passed, or too few bytes have arrived.
        """
        patience, _, rate, grace = self._limits
        now = time.monotonic()
        seconds_left = self.deadline - now
        if seconds_left <= 0:
            raise TooSlow("the time for the whole request is over")
        took = now - self._first
        if rate and self._first and took > grace and self._received < rate * took:
            raise LowRate(f"{self._received} bytes in {took:.1f} s")
        return min(patience, seconds_left)

    def timed_out(self) -> OSError:
        """Returns the error for a wait that took as long as ``time_left`` allowed."""
        late = time.monotonic() >= self.deadline
        return TooSlow("the time for the whole request is over") if late else TimeoutError()


_T = TypeVar("_T")
READ_BYTES = 65_536


def cipher_words(cipher: tuple[str, str, int] | None) -> str:
    """Returns version of TLS and cipher suite of what ``SSLSocket.cipher`` returns.

    >>> cipher_words(("TLS_AES_128_GCM_SHA256", "TLSv1.3", 128)), cipher_words(None)
    ('TLSv1.3 TLS_AES_128_GCM_SHA256', '')
    """
    return f"{cipher[1]} {cipher[0]}" if cipher else ""


class Wire(ABC):
    """A connection that carries bytes.

    Attributes:
        stopwatch: Measures the exchange under way.
        ip: Address connected to; empty before.
        resting: Whether no exchange is under way; bytes that come now were not requested.
    """

    stopwatch: Stopwatch
    ip = ""
    resting = False

    async def dial(self, target: Destination) -> None:
        """Connects to the first checked address that answers.

        Raises:
            OSError: No address answers.
        """
        failure: OSError = OSError("no address")
        for family, address in target.addresses:
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._open(sock, address)
            except OSError as error:
                failure = error
                sock.close()
            except BaseException:
                sock.close()
                raise
            else:
                self.ip = str(address[0])
                return
        raise failure

    @abstractmethod
    async def _open(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        """Connects a socket."""

    @abstractmethod
    async def secure(self, context: ssl.SSLContext, name: str) -> None:
        """Starts TLS with the server of a name."""

    @abstractmethod
    def certificate(self) -> Mapping[str, Any]:
        """Returns the server's certificate, as ``SSLSocket.getpeercert`` does."""

    @abstractmethod
    def cipher(self) -> str:
        """Returns the version of TLS and the cipher suite, with a space between; empty without TLS."""

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Sends a request."""

    @abstractmethod
    async def receive(self) -> bytes:
        """Returns the next bytes, at most ``READ_BYTES``; none at the end of the connection.

        Raises:
            OSError: No bytes arrived in time, or the connection broke.
        """

    @abstractmethod
    def is_quiet(self) -> bool:
        """Returns whether the connection is open and has no unread bytes."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection at once."""


class SocketWire(Wire):
    """A wire on a blocking socket.

    Attributes:
        sock: The socket; None before.
    """

    sock: socket.socket | None = None

    async def _open(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        self.sock = sock
        try:
            self._timed_socket().connect(address)
        except TimeoutError as error:
            raise self.stopwatch.timed_out() from error

    async def secure(self, context: ssl.SSLContext, name: str) -> None:
        """See ``Wire``."""
        sock = self._timed_socket()
        try:
            self.sock = context.wrap_socket(sock, server_hostname=name)
        except TimeoutError as error:
            raise self.stopwatch.timed_out() from error

    def certificate(self) -> Mapping[str, Any]:
        """See ``Wire``."""
        certificate = self.sock.getpeercert() if isinstance(self.sock, ssl.SSLSocket) else None
        return certificate or {}

    def cipher(self) -> str:
        """See ``Wire``."""
        return cipher_words(self.sock.cipher() if isinstance(self.sock, ssl.SSLSocket) else None)

    async def send(self, data: bytes) -> None:
        """See ``Wire``."""
        self._timed_socket().sendall(data)

    async def receive(self) -> bytes:
        """See ``Wire``."""
        sock = self._timed_socket()
        try:
            data = sock.recv(READ_BYTES)
        except TimeoutError as error:
            raise self.stopwatch.timed_out() from error
        self.stopwatch.count(len(data))
        return data

    def _timed_socket(self) -> socket.socket:
        """Returns the socket, with the time that is left as its timeout."""
        seconds_left = self.stopwatch.time_left()
        if self.sock is None:
            raise ConnectionResetError("the connection is closed")
        if seconds_left != self.sock.gettimeout():  # setting it is a system call
            self.sock.settimeout(seconds_left)
        return self.sock

    def is_quiet(self) -> bool:
        """See ``Wire``."""
        if self.sock is None or wait_for_read(self.sock, timeout=0.0):
            return False
        return not (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending())

    def close(self) -> None:
        """See ``Wire``."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None


def run_directly(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine that never waits for an event loop, and returns its result.

    >>> async def double(number):
    ...     return 2 * number
    >>> run_directly(double(21))
    42
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    raise RuntimeError("expected a coroutine that does not wait for an event loop")
