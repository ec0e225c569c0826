"""Fetches ftp: URLs, as Nutch's protocol-ftp: a session per URL, passive mode, folders as pages.

The session is ftplib's, with limits.
"""

import calendar
import contextlib
import email.utils
import ftplib
import logging
import re
import socket
import time
from typing import Any

from ..exchange.credentials import Credentials
from ..exchange.http_options import HttpOptions, limits_of
from ..exchange.status import Response
from ..network.dialer import Dialer
from ..network.failures import NETWORK_ERRORS, UnsendableUrl, reason_of
from ..network.guard import Denied, Destination, check_gate
from ..network.transport import Gate
from ..network.wire import Limits, SocketWire, Stopwatch, run_directly
from ..urls.percent import path_bytes
from ..urls.schemes import FTP_PORT, split_ftp
from .other_clients import (
    INDEX_TYPE,
    OtherClient,
    fill_response,
    index_page,
    read_list,
    read_mlsd,
    type_of,
)

_LOG = logging.getLogger(__name__)
_MODIFIED = re.compile(r"213 (\d{14})(?:\.\d+)?\s*")
_SIZE = re.compile(r"213 (\d{1,18})\s*")
_TYPE_CODE = re.compile(rb";type=[aid]\Z", re.IGNORECASE)
_DENIED = re.compile(r"denied|permission|not allowed|forbidden|access|privilege", re.IGNORECASE)
_ODD = re.compile(r"[^\x20-\x7e]")
_SHOWN = 200
# Replies for an empty folder.
_NOTHING = ("450", "550")
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
        self._wire = _connect(target, self._stopwatch)
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
        return _connect(Destination(((self.af, address),), False), stopwatch)

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


def _connect(target: Destination, stopwatch: Stopwatch) -> SocketWire:
    wire = SocketWire()
    wire.stopwatch = stopwatch
    run_directly(wire.dial(target))
    return wire


class FtpClient(OtherClient):
    """Fetches from FTP servers.

    Responses are those of an HTTP server: 200, 301 to the name of a folder, 304 by MDTM, 401 for a
    refused login, 404 or 403 for 550, by its text, 503 for 421, 500 for other 4xx, and 400 for all
    other refusals.

    Args:
        options: Agent and limits.
        dialer: Decides where connections may go; the usual port needs no permission.
        credentials: Users and passwords; without an entry the login is anonymous.
        gate: Called right before each session; False denies it.
    """

    def __init__(
        self,
        options: HttpOptions,
        dialer: Dialer,
        credentials: Credentials,
        gate: Gate | None = None,
    ) -> None:
        self._options, self._dialer = options, dialer
        self._credentials, self._gate = credentials, gate

    def host(self, url: str) -> str:
        """Returns the host of a URL; see ``OtherClient``."""
        return split_ftp(url)[0]

    def address(self, url: str) -> str | None:
        """Returns the first address of a URL's host; see ``OtherClient``."""
        try:
            host, port, _ = split_ftp(url)
            direct = self._dialer.is_direct(("ftp", host, port))
            return str(self._dial(host, port).addresses[0][1][0]) if direct else None
        except (OSError, ValueError):
            return None

    def _dial(self, host: str, port: int) -> Destination:
        if self._dialer.is_proxied(("ftp", host, port)):
            raise Denied("ftp_through_proxy", "FTP does not go through an HTTP proxy")
        return self._dialer.dial(host, port, own=FTP_PORT)

    def _fetch(self, response: Response, since: float | None, limit: int) -> None:
        try:
            host, port, path = split_ftp(response.url)
            name = _TYPE_CODE.sub(b"", path_bytes(path)).decode("latin-1")
        except ValueError as error:
            raise UnsendableUrl(str(error)) from error
        target, limits = self._dial(host, port), limits_of(self._options)
        try:
            with Session(target, limits, self._gate) as session:
                response.ip = session.ip
                self._log_in(session, host, port)
                session.voidcmd("TYPE I")
                if name.endswith("/"):
                    _fetch_folder(session, response, name, limit)
                else:
                    _fetch_file(session, response, name, since, limit)
        except (ftplib.error_perm, ftplib.error_temp) as error:
            _fill_refusal(response, str(error))
        except ftplib.Error as error:
            response.error = reason_of(error)

    def _log_in(self, session: Session, host: str, port: int) -> None:
        entry = self._credentials.login(host, port)
        if entry is not None:
            session.login(*(text.encode().decode("latin-1") for text in entry))
            return
        session.login("anonymous", self._options.agent_email or "anonymous@")


def _fetch_file(
    session: Session, response: Response, name: str, since: float | None, limit: int
) -> None:
    changed, size = _modification_time(session, name), _fact(session, f"SIZE {name}", _SIZE)
    headers = []
    if changed is not None:
        headers = [("Last-Modified", email.utils.formatdate(changed, usegmt=True))]
        if since is not None and changed <= since:
            fill_response(response, 304, "Not Modified", *headers)
            return
    try:
        connection = session.transfer(f"RETR {name}")
    except ftplib.error_perm:
        if not _is_folder(session, name):
            raise
        fill_response(response, 301, "Moved", ("Location", f"{response.url}/"))
        return
    _read(session, response, connection, limit)
    if response.truncated is None and size is not None and len(response.body) < int(size):
        response.truncated, response.error = "disconnect", "incomplete"
    kind = type_of(name.encode("latin-1"), response.body)
    length = size or str(len(response.body))
    fill_response(response, 200, "OK", ("Content-Type", kind), ("Content-Length", length), *headers)


def _read(session: Session, response: Response, connection: SocketWire, limit: int) -> None:
    """Reads the body of a file."""
    try:
        response.body, more = session.read(connection, limit)
        response.truncated = "length" if more else None
    except (ftplib.Error, *NETWORK_ERRORS) as error:
        # The server did not send a length, so the body may be incomplete.
        response.truncated = "disconnect"
        response.error = "incomplete" if isinstance(error, ftplib.Error) else reason_of(error)


def _fetch_folder(session: Session, response: Response, name: str, limit: int) -> None:
    session.voidcmd(f"CWD {name.rstrip('/') or '/'}")
    data, more, reader = b"", False, read_mlsd
    try:
        # Without an argument, because servers may treat a name that begins with "-" as an option.
        data, more = session.read(session.transfer("MLSD"), limit)
    except ftplib.error_perm:
        reader = read_list
        try:
            data, more = session.read(session.transfer("LIST"), limit)
        except (ftplib.error_temp, ftplib.error_perm) as error:
            if str(error)[:3] not in _NOTHING:
                raise
    if more:
        data = data[: data.rfind(b"\n") + 1]  # the last line may be incomplete
    entries = sorted(set(reader(data)))
    page, left_out = index_page(name.encode("latin-1"), entries, limit=limit)
    if more or left_out:
        _LOG.warning("entries of %s are left out: its listing is over content_limit", response.url)
    fill_response(
        response, 200, "OK", ("Content-Type", INDEX_TYPE), ("Content-Length", str(len(page)))
    )
    response.body = page


def _fact(session: Session, command: str, pattern: re.Pattern[str]) -> str | None:
    """Returns a fact about a file, or None if the server does not support the command."""
    try:
        match = pattern.fullmatch(session.sendcmd(command))
    except (ftplib.error_perm, ftplib.error_temp):
        return None
    return match[1] if match else None


def _modification_time(session: Session, name: str) -> int | None:
    """Returns the time of the last change of a file, s since the epoch (RFC 3659 2.3)."""
    text = _fact(session, f"MDTM {name}", _MODIFIED)
    try:
        return None if text is None else calendar.timegm(time.strptime(text, "%Y%m%d%H%M%S"))
    except (ValueError, OverflowError):
        return None


def _is_folder(session: Session, name: str) -> bool:
    try:
        session.voidcmd(f"CWD {name}")
    except ftplib.error_perm:
        return False
    return True


def _fill_refusal(response: Response, reply: str) -> None:
    line = _ODD.sub("?", (reply.splitlines() or [""])[0])[:_SHOWN]
    response.status, response.reason = status_of(line), line
    response.status_line = line


def status_of(line: str) -> int:
    """Returns the HTTP status for a negative reply of an FTP server.

    >>> [status_of(line) for line in ("550 No such file", "550 Permission denied", "530 No.")]
    [404, 403, 401]
    >>> [status_of(line) for line in ("421 Too many users", "450 Busy", "502 What?")]
    [503, 500, 400]
    """
    code = line[:3]
    if code == "550":
        return 403 if _DENIED.search(line) else 404
    if code == "421":
        return 503
    if code in ("530", "532", "533", "534"):
        return 401
    return 500 if code.startswith("4") else 400
