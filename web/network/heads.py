"""Header fields that are sent; heads of HTTP/1.1 responses, and the length of the body after a head.

Heads are read as browsers read them. A head that RFC 9112 does not allow is read if only one reading
makes sense. Then the connection must not carry another request.
"""

import http.client
import re
from collections.abc import Iterable
from typing import NamedTuple

_HEADER = re.compile(
    r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)"
)
_MOST = 100
_INSTEAD = {
    "authorization": "use --http_credentials",
    "proxy-authorization": "use --http_credentials",
    "cookie": "use --http_cookies",
    "user-agent": "use --agent_name",
    "accept": "use --accept",
    "accept-language": "use --accept_language",
}
# Headers that frame a request, belong to one connection (RFC 9110 7.6.1), or are set by nutbeam.
_OURS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "expect", "connection", "keep-alive"),
        *("proxy-connection", "proxy-authenticate", "te", "trailer", "upgrade", "cookie2"),
        *("http2-settings", "accept-encoding", "range"),
    }
)
WITHHELD = "(withheld)"
# The values of these are not stored with a request.
SECRET = frozenset({"authorization", "proxy-authorization", "cookie"})


def parse_headers(entries: Iterable[str]) -> dict[str, str]:
    """Returns the headers of ``http_header`` by name.

    Raises:
        ValueError: An entry is no header, would break the request, or has another option. The
            message does not quote the value, as it may be a secret.

    >>> parse_headers(["X-Crawl: nightly", "From: crawl@example.com"])
    {'X-Crawl': 'nightly', 'From': 'crawl@example.com'}
    """
    headers: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        match = _HEADER.fullmatch(entry.strip(" "))
        if match is None:
            raise ValueError(
                f"http_header must be 'Name: value' in printable ASCII, its number {number} is not"
            )
        name, lower = match[1], match[1].lower()
        if lower in _INSTEAD:
            raise ValueError(f"http_header must not be {name}: {_INSTEAD[lower]}")
        if lower in _OURS or lower.startswith("if-"):
            raise ValueError(f"http_header must not be {name}, which nutbeam sets itself")
        if lower in {earlier_name.lower() for earlier_name in headers}:
            raise ValueError(f"http_header must name each header once, got {name} twice")
        headers[name] = match[2]
    if len(headers) > _MOST:
        raise ValueError(f"http_header must be at most {_MOST} headers, got {len(headers)}")
    return headers


MAX_LINE_BYTES = 65_536
MAX_HEAD_BYTES = 262_144
MAX_HEADERS = 256
MAX_INTERIM_HEADS = 10
MAX_LEAD_BYTES = 512

_CLEAN_STATUS_LINE = re.compile(rb"HTTP/1\.[01] [1-9][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?\r\n")
# More than RFC 9112 4 allows: tabs, any version or none, anything right after the code.
_STATUS_LINE = re.compile(
    r"(HTTP[^ \t]*)[ \t]+([1-9][0-9]{2})(?![0-9])(.*)", re.DOTALL | re.IGNORECASE
)
_CLEAN_FIELDS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[\t\x20-\x7e\x80-\xff]*+\r\n)*+\r\n")
# RFC 9112 2.2, RFC 9110 5.5: a CR that ends no line, and NUL, are read as spaces.
_BARE = bytes(32 if byte in b"\r\0" else byte for byte in range(256))
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_BLANK = " \t"
_LEAD = re.compile(rb"(?:\A\xef\xbb\xbf)?[ \t\r\n]*")
# The binary data bytes of https://mimesniff.spec.whatwg.org/#binary-data-byte.
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
# Greetings of other protocols: SSH, SMTP, FTP, POP3, IMAP, Redis, memcached, VNC, rsync, RTSP; and
# PNG, whose first line has no binary data byte.
_GREETING = re.compile(
    rb"[0-9]{3}[ -]|[A-Z]+[/-][0-9]+\.[0-9]|[+](?:OK|PONG)\b|-[A-Z]+ |[*] (?:OK|BYE|PREAUTH)\b"
    rb"|RFB [0-9]|ICY [0-9]|@RSYNCD:|ERROR\r?\n|\x89PNG\r"
)
_MAX_LENGTH_DIGITS = 18


class HeadTooLarge(http.client.HTTPException):
    """A response's head has too many headers, or too long ones."""


class Head(NamedTuple):
    """The head of a response.

    Attributes:
        version: ``HTTP/1.1``, ``HTTP/1.0``, or ``HTTP/0.9`` where there is no head at all.
        status: Status code.
        reason: Reason phrase.
        status_line: As received, without the line's end.
        fields: (name, value) of each header, in the order received.
        chunked: Whether the body is chunked.
        length: Bytes of a body that is not chunked; None if it ends with the connection.
        keeps: Whether the connection may carry another request after the body.
    """

    version: str
    status: int
    reason: str
    status_line: str
    fields: list[tuple[str, str]]
    chunked: bool
    length: int | None
    keeps: bool

    @property
    def content_type(self) -> str:
        """The first Content-Type, as received; empty if there is none."""
        return next((value for name, value in self.fields if name.lower() == "content-type"), "")


NO_HEAD = Head("HTTP/0.9", 200, "", "", [], False, None, False)


def parse_status_line(line: str) -> tuple[str, int, str]:
    """Returns version, status and reason phrase of a status line without its end.

    Raises:
        http.client.BadStatusLine: It is not a status line.

    >>> parse_status_line("HTTP/1.1 404 Not Found"), parse_status_line("HTTP/1.1 200: OK")
    (('HTTP/1.1', 404, 'Not Found'), ('HTTP/1.1', 200, 'OK'))
    """
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise http.client.BadStatusLine(line[:100])
    return match[1], int(match[2]), match[3].lstrip(_BLANK + ":").rstrip(_BLANK)


def lead_of(data: bytes | bytearray, start: int = 0) -> int:
    """Returns how many bytes come before the status line: white space and a byte order mark.

    Args:
        data: The bytes received so far.
        start: How many such bytes are known already.
    """
    match = _LEAD.match(data, start)
    return match.end() if match else start


def check_page(line: bytes) -> None:
    """Checks the first line of an answer that has no head.

    Text is a page, as for browsers and Nutch (HTTP/0.9). Binary data and
    greetings of other protocols are not.

    Raises:
        http.client.BadStatusLine: It is not a page.
    """
    if not line.strip() or _BINARY.search(line) or _GREETING.match(line):
        raise http.client.BadStatusLine(line[:100].decode("latin-1"))


def parse_head(data: bytes) -> Head:
    """Parses a head, which may have white space before it.

    Raises:
        http.client.HTTPException: It is not HTTP, or too large.

    >>> parse_head(b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\n").length
    5
    """
    start = lead_of(data)
    at = data.find(b"\n", start) + 1 or len(data)
    if at - start > MAX_LINE_BYTES or len(data) > MAX_HEAD_BYTES:
        raise HeadTooLarge("head of the response is too large")
    status_line = data[start:at].rstrip(b"\r\n").decode("latin-1")
    version, status, reason = parse_status_line(status_line)
    clean = start == 0 and _CLEAN_STATUS_LINE.match(data) is not None
    if _CLEAN_FIELDS.fullmatch(data, at):
        lines = data[at:-4].decode("latin-1").split("\r\n") if len(data) > at + 2 else []
        fields = _clean_fields(lines)
    else:
        fields, clean = _odd_fields(data, at), False
    chunked, length, clean_framing = body_framing(status, fields)
    http_version = "HTTP/1.0" if version.upper() == "HTTP/1.0" else "HTTP/1.1"
    keeps = clean and clean_framing and (chunked or length is not None)
    keeps = keeps and _is_kept(http_version, fields)
    return Head(http_version, status, reason, status_line, fields, chunked, length, keeps)


def _clean_fields(lines: list[str]) -> list[tuple[str, str]]:
    fields = []
    for line in lines:
        name, _, value = line.partition(":")
        fields.append((name, value.strip(_BLANK)))
        if len(line) > MAX_LINE_BYTES - 2 or len(fields) > MAX_HEADERS:
            raise HeadTooLarge("head of the response is too large")
    return fields


def _odd_fields(data: bytes, at: int) -> list[tuple[str, str]]:
    """Returns the headers that begin at ``at``, where some are not valid."""
    fields: list[tuple[str, list[str]]] = []
    for match in _LINE.finditer(data, at):
        line = match[0]
        _add_odd_line(fields, line)
        if len(line) > MAX_LINE_BYTES or len(fields) > MAX_HEADERS:
            raise HeadTooLarge("head of the response is too large")
    return [(name, " ".join(filter(None, parts))) for name, parts in fields]


def _add_odd_line(fields: list[tuple[str, list[str]]], line: bytes) -> None:
    text = line.removesuffix(b"\n").removesuffix(b"\r").translate(_BARE).decode("latin-1")
    name, colon, value = text.partition(":")
    if text[:1] in (" ", "\t") and fields:  # RFC 9112 5.2: a folded line
        fields[-1][1].append(text.strip(_BLANK))
    elif colon and name.strip(_BLANK):
        fields.append((name.strip(_BLANK), [value.strip(_BLANK)]))


def body_framing(status: int, fields: list[tuple[str, str]]) -> tuple[bool, int | None, bool]:
    """Returns whether a body is chunked, its length, and whether its head follows RFC 9112.

    Raises:
        http.client.HTTPException: Lengths disagree. To take either could make a
            part of the body the next response (RFC 9112 6.3, 11.2).
    """
    lengths = list_values(fields, "content-length")
    named, codings = list_values(fields, "transfer-encoding"), transfer_codings(fields)
    if status in (204, 304) or status < 200:
        return False, 0, not named
    if codings:  # RFC 9112 6.1: where both are there, a length means nothing
        chunked = codings[-1] == "chunked"
        return chunked, None, len(named) == 1 and not lengths
    if len(set(lengths)) > 1:
        raise http.client.HTTPException(f"Content-Length {lengths[0]!r} and {lengths[1]!r}")
    length = _length(lengths[0]) if lengths else None
    return False, length, len(lengths) == 1 and length is not None and not named


def list_values(fields: Iterable[tuple[str, str]], wanted: str) -> list[str]:
    """Returns the values of all headers of a name that are lists; the name in lower case.

    >>> list_values([("A", "b, c"), ("a", "d")], "a")
    ['b', 'c', 'd']
    """
    values: list[str] = []
    for name, value in fields:
        if len(name) == len(wanted) and name.lower() == wanted:
            values += [part.strip(_BLANK) for part in value.split(",")]
    return values


def transfer_codings(fields: Iterable[tuple[str, str]]) -> list[str]:
    """Returns the transfer codings of a body, in lower case, without those that change nothing.

    >>> transfer_codings([("Transfer-Encoding", "Chunked, identity")])
    ['chunked']
    """
    codings = (coding.lower() for coding in list_values(fields, "transfer-encoding"))
    return [coding for coding in codings if coding not in ("", "identity")]


def head_text(start: str, fields: Iterable[tuple[str, str]]) -> str:
    """Returns a head of a request or an answer, with its empty line.

    Args:
        start: Its first line.
        fields: Its headers.
    """
    return "\r\n".join([start, *(f"{name}: {value}" for name, value in fields), "\r\n"])


def _length(text: str) -> int | None:
    """Returns a length; None if it is not valid: then the body ends with the connection.

    >>> _length("0019"), _length("thousand"), _length("-5"), _length("9" * 25)
    (19, None, None, None)
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MAX_LENGTH_DIGITS else None


def _is_kept(version: str, fields: list[tuple[str, str]]) -> bool:
    connection = ",".join(list_values(fields, "connection")).lower()
    return "keep-alive" in connection if version == "HTTP/1.0" else "close" not in connection


def end_of_head(data: bytes | bytearray) -> int:
    """Returns the length of a head with its empty line; 0 if its end has not come.

    >>> end_of_head(b"HTTP/1.1 200 OK\\r\\n\\r\\nmore"), end_of_head(b"HTTP/1.1 200 OK\\r\\n")
    (19, 0)
    """
    usual = data.find(b"\n\r\n")
    bare = data.find(b"\n\n", 0, None if usual < 0 else usual + 1)
    return bare + 2 if bare >= 0 else usual + 3 if usual >= 0 else 0
