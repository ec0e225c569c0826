"""The answers of a replay: a capture as an HTTP message again, for one client.

What was stored decides: heads of strangers are checked field by field, so that none of them breaks
the message. Headers that belonged to one connection are left out. An answer whose body was cut claims
more bytes than it has, so that no client takes it for the whole.
"""

import http
import re
from typing import NamedTuple

from ..archives.captures import Capture
from ..archives.http_messages import (
    NOT_MODIFIED,
    RENAMED,
    decoded_headers,
    http_answer,
    is_whole_on_wire,
)
from ..archives.page_records import truncation
from ..content.whole_bodies import WHOLE
from ..network.body import BodyDecoder, codings_of
from ..network.failures import BadEncoding
from ..network.heads import list_values

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
# What an answer lacks whose length is not known: more than clients overlook.
_UNKNOWN_BYTES = 1 << 16
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
        incomplete: Why the body is not all that the server has sent, as WARC-Truncated says it; None:
            it is.
        missing: Number of bytes that its length claims besides, so that it breaks off.
    """

    status: int
    reason: str
    fields: _Fields
    body: bytes
    incomplete: str | None = None
    missing: int = 0

    @property
    def length(self) -> int:
        """Its Content-Length."""
        return len(self.body) + self.missing

    @property
    def has_body(self) -> bool:
        """Whether answers with this code have a body, and a length."""
        return self.status not in (204, NOT_MODIFIED)


def original_answer(capture: Capture, accept_encoding: str) -> ReplayAnswer:
    """Returns the answer of a capture as its server gave it.

    The body as it was transferred is used if it was kept, is complete, and the client accepts its
    codings. Otherwise the decoded body is, with headers that fit it, as in WARC files. A page whose body
    is incomplete breaks off.

    Args:
        capture: The capture.
        accept_encoding: The client's Accept-Encoding.

    >>> page = Capture("http://a/", "1", 0, status=200, status_line="HTTP/1.1 200 Fine",
    ...     headers=(("X", "a\\nb"), ("Connection", "close")), body=b"hi")
    >>> answer = original_answer(page, "")
    >>> (answer.status, answer.reason, answer.fields, answer.body, answer.length)
    (200, 'Fine', [('X', 'a b')], b'hi', 2)
    """
    answer, why = _whole_answer(capture, accept_encoding), incompleteness(capture)
    if why is None:
        return answer
    # The bodies of errors and redirects decide nothing.
    missing = _missing_bytes(capture, len(answer.body)) if answer.status // 100 == 2 else 0
    return answer._replace(incomplete=why, missing=missing if answer.has_body else 0)


def _whole_answer(capture: Capture, accept_encoding: str) -> ReplayAnswer:
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


def incompleteness(capture: Capture) -> str | None:
    """Returns why the body of a capture is incomplete, as WARC-Truncated says it; None if it is whole."""
    return None if capture.truncated in WHOLE else truncation(capture)


def _missing_bytes(capture: Capture, stored: int) -> int:
    """Returns how many bytes of a body did not come, as its head says, or more than a few."""
    if not list_values(capture.headers, "content-encoding"):
        lengths = list_values(capture.headers, "content-length")
        if len(lengths) == 1 and lengths[0].isascii() and lengths[0].isdigit():
            declared = int(lengths[0][:18])
            if declared > stored:
                return declared - stored
    return _UNKNOWN_BYTES


def page_answer(capture: Capture) -> ReplayAnswer:
    """Returns the answer of a capture below the address of the replay.

    The body is decoded. Headers that could change other pages of this address, such as cookies, have
    other names, as in Wayback: ``X-Archive-Orig-Set-Cookie``.
    """
    original = original_answer(capture, "")
    fields = [
        (name if name.lower() in _OF_PAGES else f"{ORIGINAL}{name.removeprefix(RENAMED)}", value)
        for name, value in original.fields
    ]
    return original._replace(fields=fields)


def decoded_body(capture: Capture) -> bytes:
    """Returns the body of a capture without the codings of HTTP; empty if it was not kept."""
    is_cut = capture.truncated not in (None, *WHOLE) and is_whole_on_wire(capture)
    if capture.wire is None or (capture.body is not None and not is_cut):
        return capture.body or b""
    payload = http_answer(capture).payload
    try:
        decoder = BodyDecoder(capture.headers, -1)
        decoder.take(payload)
    except BadEncoding:
        return capture.body or payload
    return decoder.data


def _coded_body(capture: Capture, accept_encoding: str) -> bytes | None:
    """Returns the body without a transfer coding; None if the client is to get the decoded one."""
    if capture.wire is None or incompleteness(capture):
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
