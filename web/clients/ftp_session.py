"""One session with an FTP server: ftplib's, with limits, and in passive mode only."""

import contextlib
import ftplib
import socket
from collections.abc import Callable
from typing import Any, Self

from ..network.connection import Limits, connect, time_left
from ..network.failures import UnsendableUrl
from ..network.guard import Denied, Target, check_gate

_MAX_LINES = 500
_PIECE_BYTES = 65_536
# Below are the services of a machine: no server sends its files from there.
_LEAST_PORT = 1024


class Session(ftplib.FTP):
    """A session with a server; a context manager that ends it.

    Names go over the wire as the bytes that they are: here each is a letter of
    latin-1. The data connection goes to the address that the control
    connection has, whatever the server says (RFC 2577 3).

    Args:
        target: Where the server is, as the guard says.
        limits: Limits on time and rate.
        deadline: Moment on the monotonic clock at which the session must be over.
        gate: Called right before the first request; False denies it.

    Attributes:
        ip: Address connected to.

    Raises:
        Denied: The gate is shut.
        OSError: No connection.
        ftplib.Error: The server refuses the session, or its answer is not FTP.
    """

    # Of an answer's line; ftplib refuses longer ones.
    maxline = 2048
    sock: Any

    def __init__(
        self,
        target: Target,
        limits: Limits,
        deadline: float,
        gate: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(timeout=limits.patience, encoding="latin-1")
        self._deadline, self._limits, self._lines = deadline, limits, 0
        check_gate(gate)
        self.sock = connect(target, self._deadline, limits.patience)
        try:
            check_gate(gate)  # connecting may have taken long
            self.af = self.sock.family
            self.ip = str(self.sock.getpeername()[0])
            self.sock.expect(self._deadline)
            self.file = self.sock.makefile("r", encoding="latin-1")
            self.welcome = self.getresp()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self.sock.sendall(b"QUIT\r\n")  # without waiting for the answer
        self.close()

    def _left(self) -> float:
        return time_left(self._deadline, self._limits.patience)

    def getline(self) -> str:
        """Returns a line of an answer; the lines of a session are limited."""
        self._lines += 1
        if self._lines > _MAX_LINES:
            raise ftplib.error_proto("too many lines")
        self.sock.settimeout(self._left())
        try:
            return super().getline()
        except EOFError as error:
            raise ConnectionResetError("the server closed the connection") from error

    def putline(self, line: str) -> None:
        """Sends a command; a line break in it would begin another one."""
        if any(letter in line for letter in "\r\n\0"):
            raise UnsendableUrl(f"expected no line break in a command, got {line!r}")
        self.sock.settimeout(self._left())
        super().putline(line)

    def ntransfercmd(self, cmd: str, rest: Any = None) -> tuple[Any, int | None]:
        """Returns the data connection of a command."""
        connection = self._data_connection()
        try:
            answer = self.sendcmd(cmd)
            if answer[:1] == "2":  # some servers send the final reply first
                answer = self.getresp()
            if answer[:1] != "1":
                raise ftplib.error_reply(answer)
        except BaseException:
            connection.close()
            raise
        return connection, None

    def _data_connection(self) -> Any:
        peer = self.sock.getpeername()
        if self.af == socket.AF_INET6:
            port = ftplib.parse229(self.sendcmd("EPSV"), peer)[1]
        else:
            port = ftplib.parse227(self.sendcmd("PASV"))[1]
        if not _LEAST_PORT <= port < 65536:
            raise Denied("port_denied", f"port {port} is not for data")
        address = (peer[0], port, *peer[2:])
        target = Target(((self.af, address),), False)
        return connect(target, self._deadline, self._limits.patience)

    def read(self, connection: Any, limit: int) -> tuple[bytes, bool]:
        """Reads the transferred data; closes the connection.

        Returns:
            (bytes, whether there are more than ``limit``; then the session is over).

        Raises:
            OSError: Too slow, or broken off.
        """
        parts, piece = bytearray(), bytearray(_PIECE_BYTES)
        with connection:
            connection.expect(self._deadline)
            connection.rate, connection.grace = self._limits.rate, self._limits.grace
            while True:
                connection.settimeout(self._left())
                number = connection.recv_into(piece)
                if not number:
                    return bytes(parts), False
                parts += memoryview(piece)[:number]
                if 0 <= limit < len(parts):
                    return bytes(parts[:limit]), True
