"""The HTTP messages of a capture: as they came, or with a decoded body and changed headers.

Where only the decoded body is there, headers that do not fit it get other names, as Common Crawl
does it: ``X-Crawl-Content-Encoding: gzip`` says that the server has sent gzip.
"""

import http.client
import re
from typing import NamedTuple

from ..network.heads import (
    body_framing,
    end_of_head,
    head_text,
    list_values,
    transfer_codings,
)
from ..network.response_reader import ChunkReader
from .captures import Capture

RENAMED = "X-Crawl-"
NOT_MODIFIED = 304
NO_CONTENT = (204, NOT_MODIFIED)  # their headers may say the size of a body that does not follow
STATUS_LINE = f"{RENAMED}Status-Line"
_LENGTH, _CODING, _TRANSFER = "content-length", "content-encoding", "transfer-encoding"
# The codings that the clients undo.
_UNDONE = frozenset({"gzip", "x-gzip", "deflate", "br"})
# Readers of WARC give a file up at a status line that they do not know.
_STATUS_LINE = re.compile(r"HTTP/1\.[01] [1-9][0-9]{2}(?: [^\r\n]*)?(?=\r?\n|\Z)")
TLS_VERSIONS = {
    "TLSv1": "tls/1.0",
    "TLSv1.1": "tls/1.1",
    "TLSv1.2": "tls/1.2",
    "TLSv1.3": "tls/1.3",
}
_VERSION = re.compile(r"HTTP/([0-9](?:\.[0-9])?)", re.IGNORECASE)


class HttpMessage(NamedTuple):
    """The answer of a capture, as the block of a record.

    Attributes:
        head: Head with its empty line.
        body: What follows the head.
        payload: The body without a transfer coding: that of payload digests (ISO 28500 6.3.2).
    """

    head: bytes
    body: bytes
    payload: bytes


def http_answer(capture: Capture) -> HttpMessage:
    """Returns the answer of a capture of HTTP: as it came, if that was kept.

    >>> page = Capture("http://a/", "1", 0, status=200, status_line="HTTP/1.1 200 OK",
    ...     headers=(("Transfer-Encoding", "chunked"),), body=b"hi")
    >>> http_answer(page).head
    b'HTTP/1.1 200 OK\\r\\nX-Crawl-Transfer-Encoding: chunked\\r\\nContent-Length: 2\\r\\n\\r\\n'
    """
    if capture.wire is not None:
        payload, whole = _read_payload(capture, capture.wire)
        if whole:
            return HttpMessage(_head_of(capture), capture.wire, payload)
        head = _join_head(capture, decoded_headers(capture.headers, len(payload), coded=True))
        return HttpMessage(head, payload, payload)
    body = capture.body or b""
    if capture.status in NO_CONTENT or is_as_sent(capture.headers, body):
        head = _head_of(capture)
    else:
        head = _join_head(capture, decoded_headers(capture.headers, len(body)))
    return HttpMessage(head, body, body)


def is_as_sent(headers: tuple[tuple[str, str], ...], body: bytes) -> bool:
    """Returns whether headers fit a decoded body, so that it is what the server has sent."""
    if _has_undone(headers):
        return False
    lengths = list_values(headers, _LENGTH)
    return all(length == str(len(body)) for length in lengths)


def protocols(capture: Capture) -> list[str]:
    """Returns the values of WARC-Protocol: HTTP's version, and that of TLS if it is known.

    >>> protocols(Capture("https://a/", "1", 0, status_line="HTTP/1.0 200", cipher="TLSv1.3 X"))
    ['http/1.0', 'tls/1.3']
    """
    match = _VERSION.match(capture.status_line)
    version = match[1] if match and match[1] in ("0.9", "1.0", "1.1") else "1.1"
    tls = TLS_VERSIONS.get(capture.cipher.partition(" ")[0])
    return [f"http/{version}", *([tls] if tls else [])]


def _has_undone(headers: tuple[tuple[str, str], ...]) -> bool:
    codings = {name.lower() for name in list_values(headers, _CODING)}
    return bool(codings & _UNDONE or transfer_codings(headers))


def decoded_headers(
    headers: tuple[tuple[str, str], ...], length: int, *, coded: bool = False
) -> list[tuple[str, str]]:
    """Returns headers that fit a body without chunks, and say what they were.

    Args:
        headers: As the server sent them.
        length: Size of the body.
        coded: Whether the body still has its content coding.
    """
    renamed = {_LENGTH, _TRANSFER}
    if not coded and {name.lower() for name in list_values(headers, _CODING)} & _UNDONE:
        renamed.add(_CODING)
    changed = [
        (f"{RENAMED}{name}" if name.lower() in renamed else name, value) for name, value in headers
    ]
    return [*changed, ("Content-Length", str(length))]


def _head_of(capture: Capture) -> bytes:
    """Returns the head as it came, unless readers of WARC would not understand it."""
    came = capture.wire_head
    if came and has_whole_head(capture) and _STATUS_LINE.match(came):
        return _encode(came)
    return _join_head(capture, list(capture.headers))


def _join_head(capture: Capture, headers: list[tuple[str, str]]) -> bytes:
    line = capture.status_line
    if not _STATUS_LINE.fullmatch(line):
        line = f"HTTP/1.0 {capture.status}"
        headers = [(STATUS_LINE, capture.status_line), *headers]
    return _encode(head_text(line, headers))


def _encode(head: str) -> bytes:
    # Heads are read as Latin-1. A table that others have filled may have more.
    return head.encode("latin-1", "replace")


def _read_payload(capture: Capture, wire: bytes) -> tuple[bytes, bool]:
    """Returns a transferred body without chunks, and whether it ends where its head says."""
    try:
        chunked, length, _ = body_framing(capture.status, list(capture.headers))
    except http.client.HTTPException:  # a table that others have filled may have such headers
        return wire, False
    if not chunked:
        return wire, length in (None, len(wire))
    chunks = ChunkReader()
    return chunks.feed(wire), chunks.ended


def has_whole_head(capture: Capture) -> bool:
    """Returns whether the head of a capture, if it was kept as it came, has its empty line."""
    came = _encode(capture.wire_head or "")
    return not came or end_of_head(came) == len(came)


def is_whole_on_wire(capture: Capture) -> bool:
    """Returns whether the body that was kept as it came is all of it, as its head says.

    A body that ends with the connection does not show that it is.
    """
    framed = transfer_codings(capture.headers) or list_values(capture.headers, _LENGTH)
    return capture.wire is not None and bool(framed) and _read_payload(capture, capture.wire)[1]
