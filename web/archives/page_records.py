"""The records of a capture: request, response or revisit, and what was made of the page."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..urls.schemes import scheme_of
from .captures import USUAL_TYPE, Capture
from .http_messages import (
    NO_CONTENT,
    NOT_MODIFIED,
    HttpMessage,
    has_whole_head,
    http_answer,
    is_whole_on_wire,
    protocols,
)
from .warc_records import (
    CONVERSION,
    DISCONNECT,
    FIELDS_TYPE,
    LENGTH,
    METADATA,
    REQUEST,
    RESOURCE,
    RESPONSE,
    REVISIT,
    TIME,
    UNSPECIFIED,
    WARCINFO,
    WarcRecord,
    label_digest,
    record_id,
    sha1_digest,
    timestamp14,
    warc_date,
    warc_fields,
)

_PROFILE = "http://netpreserve.org/warc/{version}/revisit/{name}"
_IDENTICAL, _UNCHANGED = "identical-payload-digest", "server-not-modified"
# Values of the column ``truncated``; of ``checksum`` all bytes are there.
_REASONS = {"length": LENGTH, "ratio": LENGTH, "time": TIME, "disconnect": DISCONNECT,
            "encoding": UNSPECIFIED, "frame": DISCONNECT, "checksum": None}  # fmt: skip
_ANSWER = "answer"  # name of the record of an answer, also of a revisit
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]+")


class EarlierCapture(NamedTuple):
    """The capture that a revisit record refers to; its time is UTC ms."""

    url: str
    time: int
    batch: str


class PageContent(NamedTuple):
    """What parsing has made of a page.

    Attributes:
        text: Its text.
        fields: Names and values that describe it, such as its title and its language.
        links: URLs that it links to.
    """

    text: str
    fields: Sequence[tuple[str, str]]
    links: Sequence[str]

    def field(self, name: str) -> str | None:
        """Returns the value of a field, or None."""
        return dict(self.fields).get(name)


class CapturedContent(NamedTuple):
    """A capture, and what parsing has made of its page; None: it was not parsed, or is no page."""

    capture: Capture
    page: PageContent | None


class HttpAnswer(NamedTuple):
    """The answer of a capture.

    Attributes:
        message: As a message of HTTP; of other protocols the body, without a head.
        digest: SHA-1 of its payload; None if nothing of that was kept.
    """

    message: HttpMessage
    digest: bytes | None


def answer_of(capture: Capture) -> HttpAnswer:
    """Returns the answer of a capture, with the digest of its payload."""
    body = capture.body or b""
    message = http_answer(capture) if capture.status else HttpMessage(b"", body, body)
    if capture.body is None and capture.wire is None:
        return HttpAnswer(message, None)
    return HttpAnswer(message, hashlib.sha1(message.payload, usedforsecurity=False).digest())


def comparable_digest(capture: Capture, answer: HttpAnswer) -> bytes | None:
    """Returns the digest by which revisits are found; None if the payload is empty or incomplete."""
    return answer.digest if answer.message.payload and not truncation(capture) else None


def truncation(capture: Capture) -> str | None:
    """Returns the reason why the record of an answer is incomplete, for WARC-Truncated (5.13).

    A body that was not kept is missing without a reason. One that was kept as it came may be whole
    although its decoded form is not, as with a limit of its size.

    >>> truncation(Capture("http://a/", "1", 0, status=404, status_line="HTTP/1.1 404"))
    'unspecified'
    """
    if not has_whole_head(capture):
        return DISCONNECT
    if capture.truncated:
        whole = is_whole_on_wire(capture)
        return None if whole else _REASONS.get(capture.truncated, UNSPECIFIED)
    if capture.body is not None or capture.wire is not None or capture.status in NO_CONTENT:
        return None
    length = capture.header("content-length").strip()
    return None if length and not length.strip("0") else UNSPECIFIED


def capture_records(
    capture: Capture,
    answer: HttpAnswer,
    version: str = "1.1",
    *,
    earlier: EarlierCapture | None = None,
    request: bool = True,
    page: PageContent | None = None,
    text: bool = False,
    data: bool = False,
) -> Iterator[WarcRecord]:
    """Yields the records of a capture; none if nothing was answered.

    Args:
        capture: The capture.
        answer: Its answer, see ``answer_of``.
        version: Version of the WARC format.
        earlier: The capture whose payload is the same, or, of a 304, the one that it confirms.
        request: Whether to write the request.
        page: What parsing has made of the page.
        text: Whether to write its text.
        data: Whether to write its title and links.
    """
    if scheme_of(capture.url) in ("http", "https"):
        if not capture.status:
            return
        record = _http_record(capture, answer, version, earlier)
        if request and capture.request:
            yield _request_record(capture, record.id)
    elif answer.digest is None:
        return
    else:
        record = _resource_record(capture, answer.digest)
    yield record
    if page is not None and text and page.text:
        yield _text_record(capture, record.id, page)
    if page is not None and data:
        yield _data_record(capture, record.id, page)


def _http_record(
    capture: Capture, answer: HttpAnswer, version: str, earlier: EarlierCapture | None
) -> WarcRecord:
    message, not_modified = answer.message, capture.status == NOT_MODIFIED
    revisits = not_modified or earlier is not None
    reason = None if revisits else truncation(capture)
    fields = [
        *_address_fields(capture),
        *(("WARC-Protocol", name) for name in protocols(capture)),
        *_cipher_fields(capture),
    ]
    if revisits:
        fields += _revisit_fields(version, earlier, not_modified=not_modified)
    if reason:
        fields.append(("WARC-Truncated", reason))
    if not not_modified and answer.digest is not None:
        fields.append(("WARC-Payload-Digest", label_digest(answer.digest)))
    fields.append(("Content-Type", "application/http; msgtype=response"))
    block = (message.head,) if revisits else (message.head, message.body)
    # A capture has the same id whether it is a response or a revisit.
    kind = REVISIT if revisits else RESPONSE
    return _record(kind, _ANSWER, capture, fields, block)


def _revisit_fields(
    version: str, earlier: EarlierCapture | None, *, not_modified: bool
) -> Iterator[tuple[str, str]]:
    name = _UNCHANGED if not_modified else _IDENTICAL
    yield "WARC-Profile", _PROFILE.format(version=version, name=name)
    if earlier is not None:
        yield "WARC-Refers-To", f"<{record_id(_ANSWER, earlier.batch, earlier.url, earlier.time)}>"
        yield "WARC-Refers-To-Target-URI", earlier.url
        yield "WARC-Refers-To-Date", warc_date(earlier.time, version)


def _address_fields(capture: Capture) -> Iterator[tuple[str, str]]:
    if _ADDRESS.fullmatch(capture.ip):
        yield "WARC-IP-Address", capture.ip


def _cipher_fields(capture: Capture) -> Iterator[tuple[str, str]]:
    """Yields the cipher suite if it has IANA's name: OpenSSL gives it to those of TLS 1.3."""
    suite = capture.cipher.partition(" ")[2]
    if suite.startswith("TLS_"):
        yield "WARC-Cipher-Suite", suite


def _record(
    kind: str,
    name: str,
    capture: Capture,
    fields: Iterable[tuple[str, str]],
    block: Sequence[bytes],
) -> WarcRecord:
    """Returns a record of a capture.

    Args:
        kind: WARC-Type.
        name: Name of the record among those of the capture; its id follows from it.
        capture: The capture.
        fields: Fields after WARC-Target-URI.
        block: Its content, in pieces.
    """
    own_id = record_id(name, capture.batch, capture.url, capture.time)
    own_fields = [("WARC-Target-URI", capture.url), *fields]
    return WarcRecord(kind, own_id, capture.time, own_fields, tuple(block))


def _request_record(capture: Capture, answer: str) -> WarcRecord:
    fields = [
        *_address_fields(capture),
        ("WARC-Concurrent-To", f"<{answer}>"),
        ("Content-Type", "application/http; msgtype=request"),
    ]
    block = capture.request.encode("latin-1", "replace")
    return _record(REQUEST, "request", capture, fields, [block])


def _resource_record(capture: Capture, digest: bytes) -> WarcRecord:
    reason = truncation(capture)
    fields = [
        *_address_fields(capture),
        *((("WARC-Truncated", reason),) if reason else ()),
        ("WARC-Payload-Digest", label_digest(digest)),
        ("Content-Type", capture.content_type or USUAL_TYPE),
    ]
    return _record(RESOURCE, _ANSWER, capture, fields, [capture.body or b""])


def _text_record(capture: Capture, answer: str, page: PageContent) -> WarcRecord:
    fields = [
        ("WARC-Refers-To", f"<{answer}>"),
        ("Content-Type", "text/plain; charset=UTF-8"),
    ]
    return _record(CONVERSION, "text", capture, fields, [page.text.encode("utf-8", "replace")])


def _data_record(capture: Capture, answer: str, page: PageContent) -> WarcRecord:
    fields = [("WARC-Concurrent-To", f"<{answer}>"), ("Content-Type", FIELDS_TYPE)]
    # As Heritrix writes links: the URL, the kind of hop, where the link was.
    links = (("outlink", f"{url} L a/@href") for url in page.links)
    return _record(METADATA, "data", capture, fields, [warc_fields((*page.fields, *links))])


def robots_record(url: str, text: str, time: int, batch: str) -> WarcRecord:
    """Returns the record of a robots.txt, whose headers are not known.

    Args:
        url: Its URL.
        text: Its content.
        time: When it was requested, UTC ms.
        batch: Id of the batch whose fetch has requested it.
    """
    body = text.encode("utf-8", "replace")
    fields = [
        ("WARC-Target-URI", url),
        ("WARC-Payload-Digest", sha1_digest(body)),
        ("Content-Type", "text/plain"),
    ]
    return WarcRecord(RESOURCE, record_id("robots", batch, url, time), time, fields, (body,))


def dns_record(host: str, address: str, time: int, part: str) -> WarcRecord:
    """Returns the record of the address of a host (RFC 4501, RFC 4027), as far as it is known.

    >>> dns_record("a.com", "::1", 0, "1").block
    (b'19700101000000\\na.com. IN AAAA ::1\\n',)
    """
    kind = "AAAA" if ":" in address else "A"
    block = f"{timestamp14(time)}\n{host}. IN {kind} {address}\n".encode()
    fields = [("WARC-Target-URI", f"dns:{host}"), ("Content-Type", "text/dns")]
    return WarcRecord(RESOURCE, record_id("dns", part, host, address), time, fields, (block,))


def warcinfo_record(name: str, time: int, fields: Iterable[tuple[str, str]]) -> WarcRecord:
    """Returns the record at the beginning of a file.

    Args:
        name: Name of the file.
        time: UTC ms.
        fields: What it says, in order.
    """
    own = [("WARC-Filename", name), ("Content-Type", FIELDS_TYPE)]
    return WarcRecord(WARCINFO, record_id("warcinfo", name), time, own, (warc_fields(fields),))
