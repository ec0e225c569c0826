"""A session with an FTP server, based on ftplib, with limits and only in passive mode."""

import contextlib
import ftplib
import socket
from typing import Any

from ..network.failures import UnsendableUrl
from ..network.guard import Denied, Destination, check_gate
from ..network.limits import Limits, Stopwatch
from ..network.transport import Gate
from ..network.wire import SocketWire, run_directly

_MAX_LINES = 500
# Lower ports belong to other services.
_LEAST_PORT = 1024


class Session(ftplib.FTP):
    """A session with a server; a context manager that ends it.

    Names are bytes, decoded as latin-1: one character per byte. The data connection goes to the
    address of the control connection, even if the server sends another address (RFC 2577 3).

    Args:
        target: Addresses of the server, from the guard.
        limits: Limits on time and rate; the rate is that of data.
        gate: Called right before the first request; False denies it.

    Attributes:
        ip: Address connected to.

    Raises:
        Denied: The gate denies the session.
        OSError: The connection failed.
        ftplib.Error: The server refuses the session, or its answer is not FTP.
    """

    # Bytes of a line of a reply; longer ones are refused.
    maxline = 2048
    sock: Any

    def __init__(self, target: Destination, limits: Limits, gate: Gate | None = None) -> None:
        super().__init__(timeout=limits.patience, encoding="latin-1")
        self._limits, self._lines, self._received = limits, 0, b""
        check_gate(gate)
        self._stopwatch = Stopwatch(limits._replace(rate=0.0))
        self._wire = _connected(target, self._stopwatch)
        self.sock, self.ip = self._wire.sock, self._wire.ip
        try:
            check_gate(gate)  # connecting may have taken long
            self.af = self.sock.family
            self.welcome = self.getresp()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self.sock.sendall(b"QUIT\r\n")  # without waiting for the answer
        self.close()

    def getline(self) -> str:
        """Returns a line of a reply; the number of lines per session is limited."""
        self._lines += 1
        if self._lines > _MAX_LINES:
            raise ftplib.error_proto("too many lines")
        while b"\n" not in self._received and len(self._received) <= self.maxline:
            data = run_directly(self._wire.receive())
            self._received += data
            if not data:
                break
        line, end, self._received = self._received.partition(b"\n")
        if len(line) > self.maxline:
            raise ftplib.error_proto(f"a line has over {self.maxline} bytes")
        if not line and not end:
            raise ConnectionResetError("the server closed the connection")
        return line.rstrip(b"\r").decode("latin-1")

    def putline(self, line: str) -> None:
        """Sends a command; refuses a line break, which would begin another command."""
        if any(letter in line for letter in "\r\n\0"):
            raise UnsendableUrl(f"expected no line break in a command, got {line!r}")
        self.sock.settimeout(self._stopwatch.time_left())
        super().putline(line)

    def transfer(self, command: str) -> SocketWire:
        """Returns the data connection of a command."""
        connection = self._data_connection()
        try:
            answer = self.sendcmd(command)
            if answer[:1] == "2":  # some servers send the final reply first
                answer = self.getresp()
            if answer[:1] != "1":
                raise ftplib.error_reply(answer)
        except BaseException:
            connection.close()
            raise
        return connection

    def _data_connection(self) -> SocketWire:
        peer = self.sock.getpeername()
        if self.af == socket.AF_INET6:
            port = ftplib.parse229(self.sendcmd("EPSV"), peer)[1]
        else:
            port = ftplib.parse227(self.sendcmd("PASV"))[1]
        if not _LEAST_PORT <= port < 65536:
            raise Denied("port_denied", f"port {port} is not for data")
        address = (peer[0], port, *peer[2:])
        stopwatch = Stopwatch(self._limits, self._stopwatch.deadline)
        return _connected(Destination(((self.af, address),), False), stopwatch)

    def read(self, connection: SocketWire, limit: int) -> tuple[bytes, bool]:
        """Reads the transferred data and the server's reply after it; closes the connection.

        Returns:
            (bytes, whether there are more than ``limit``; then the session is over).

        Raises:
            OSError: The transfer was too slow, or the connection broke.
            ftplib.Error: The server reports that the transfer failed.
        """
        data = bytearray()
        with contextlib.closing(connection):
            while piece := run_directly(connection.receive()):
                data += piece
                if 0 <= limit < len(data):
                    return bytes(data[:limit]), True
        self.voidresp()
        return bytes(data), False


def _connected(target: Destination, stopwatch: Stopwatch) -> SocketWire:
    wire = SocketWire()
    wire.stopwatch = stopwatch
    run_directly(wire.dial(target))
    return wire
