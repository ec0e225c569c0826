"""The answers of a replay: a capture as an HTTP message again, for one client.

What was stored decides: heads of strangers are checked field by field, so that none of them breaks
the message. Headers that belonged to one connection are left out.
"""

import dataclasses
import http
import re
from typing import NamedTuple

from ..network.body import BodyDecoder, codings_of
from ..network.failures import BadEncoding
from ..network.heads import list_values
from .captures import Capture
from .http_messages import NOT_MODIFIED, RENAMED, decoded_headers, http_answer

# RFC 9110 7.6.1, and those that would lead a browser to another server.
_OF_CONNECTION = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "alt-svc",
    ]
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]+")
_MAX_FIELDS = 256
ORIGINAL = "X-Archive-Orig-"
# What a page may say to a browser on the address of the replay; all else could change other pages.
_OF_PAGES = frozenset({"content-type", "content-language", "last-modified"})

_Fields = list[tuple[str, str]]


class ReplayAnswer(NamedTuple):
    """An answer.

    Attributes:
        status: HTTP's status code, 200 to 999.
        reason: The reason phrase.
        fields: Headers, without Content-Length.
        body: Its body; empty for codes without one.
    """

    status: int
    reason: str
    fields: _Fields
    body: bytes

    @property
    def has_body(self) -> bool:
        """Whether answers with this code have a body, and a length."""
        return self.status not in (204, NOT_MODIFIED)


def original_answer(capture: Capture, accept_encoding: str) -> ReplayAnswer:
    """Returns the answer of a capture as its server gave it.

    The body as it was transferred is used if it was kept, is complete, and the client accepts its
    codings. Otherwise the decoded body is, with headers that fit it, as in WARC files.

    Args:
        capture: The capture.
        accept_encoding: The client's Accept-Encoding.

    >>> page = Capture("http://a/", "1", 0, status=200, status_line="HTTP/1.1 200 Fine",
    ...     headers=(("X", "a\\nb"), ("Connection", "close")), body=b"hi")
    >>> original_answer(page, "")
    ReplayAnswer(status=200, reason='Fine', fields=[('X', 'a b')], body=b'hi')
    """
    if not capture.status:  # of file: or ftp:
        kind = capture.content_type or "application/octet-stream"
        return _answer(200, "OK", [("Content-Type", kind)], capture.body or b"")
    coded = _coded_body(capture, accept_encoding)
    reason = capture.status_line.partition(" ")[2].lstrip("0123456789").strip(" ")
    if coded is not None:
        return _answer(capture.status, reason, list(capture.headers), coded)
    body, fields = decoded_body(capture), list(capture.headers)
    if list_values(fields, "content-encoding"):
        fields = decoded_headers(capture.headers, len(body))
    return _answer(capture.status, reason, fields, body)


def page_answer(capture: Capture) -> ReplayAnswer:
    """Returns the answer of a capture below the address of the replay.

    The body is decoded. Headers that could change other pages of this address, such as cookies, have
    other names, as in Wayback: ``X-Archive-Orig-Set-Cookie``.
    """
    original = original_answer(
        dataclasses.replace(capture, wire=None, body=decoded_body(capture)), ""
    )
    fields = [
        (name if name.lower() in _OF_PAGES else f"{ORIGINAL}{name.removeprefix(RENAMED)}", value)
        for name, value in original.fields
    ]
    return original._replace(fields=fields)


def decoded_body(capture: Capture) -> bytes:
    """Returns the body of a capture without the codings of HTTP; empty if it was not kept."""
    if capture.body is not None or capture.wire is None:
        return capture.body or b""
    payload = http_answer(capture).payload
    try:
        decoder = BodyDecoder(capture.headers, -1)
        decoder.take(payload)
    except BadEncoding:
        return payload
    return decoder.data


def _coded_body(capture: Capture, accept_encoding: str) -> bytes | None:
    """Returns the body without a transfer coding; None if the client is to get the decoded one."""
    if capture.wire is None or capture.truncated:
        return None
    try:
        codings = codings_of(capture.headers)
    except BadEncoding:  # nobody has decoded it
        codings = []
    accepted = {word.partition(";")[0].strip().lower() for word in accept_encoding.split(",")}
    accepted |= {f"x-{name}" for name in accepted}
    return http_answer(capture).payload if accepted.issuperset(codings) else None


def _answer(status: int, reason: str, fields: _Fields, body: bytes) -> ReplayAnswer:
    """Returns an answer without what no server may send."""
    if not 200 <= status <= 999:
        return ReplayAnswer(502, "Bad Gateway", [], b"")
    named = {name.strip().lower() for name in list_values(fields, "connection")}
    sent = [
        (name, _CONTROLS.sub(" ", value).strip(" "))
        for name, value in fields[:_MAX_FIELDS]
        if _TOKEN.fullmatch(name) and name.lower() not in _OF_CONNECTION | named
    ]
    phrase = _CONTROLS.sub(" ", reason) or _usual_reason(status)
    answer = ReplayAnswer(status, phrase, sent, body)
    return answer if answer.has_body else answer._replace(body=b"")


def _usual_reason(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""
