"""Makes of the records of archives the responses that a fetch would have had.

This is the way back from ``page_records.py`` and ``http_messages.py``. The codings of HTTP are undone
where they are there: writers of archives may keep the headers of a coding that they have undone.
"""

import http.client
from typing import NamedTuple
from urllib.parse import urlsplit

from ..archives.http_messages import RENAMED, STATUS_LINE, TLS_VERSIONS
from ..archives.member_codecs import GZIP_MAGIC, ZSTD_MAGIC
from ..archives.warc_records import (
    CONVERSION,
    DISCONNECT,
    LENGTH,
    METADATA,
    REQUEST,
    RESOURCE,
    RESPONSE,
    REVISIT,
    TIME,
    WARCINFO,
)
from ..base.clock import TOLERANCE_MS
from ..clients.http_client import keep_answer
from ..content.whole_bodies import BROKEN, FRAME, is_whole_document
from ..exchange.http_options import limit_of
from ..exchange.status import Response
from ..network.body import BodyDecoder
from ..network.failures import BadEncoding
from ..network.heads import Head, end_of_head, list_values, parse_head
from ..network.response_reader import ChunkReader
from ..urls.userinfo import mask_headers
from .archived_records import ArchivedRecord

# Kinds of records that become pages, and those whose blocks are read.
PAGE_KINDS = frozenset({RESPONSE, REVISIT, RESOURCE})
READ_KINDS = PAGE_KINDS | {REQUEST}
_OTHER_KINDS = frozenset({WARCINFO, METADATA, CONVERSION, "continuation"})
_TRUNCATIONS = {LENGTH: "length", TIME: "time", DISCONNECT: "disconnect"}
_SCHEMES = ("http", "https", "ftp")
_UNCHANGED = "server-not-modified"
_MOST_HEADS = 10
# How bodies begin whose coding was not undone: gzip, zstd, compress.
_CODED = (GZIP_MAGIC, ZSTD_MAGIC, b"\x1f\x9d")
_TLS_NAMES = {value: name for name, value in TLS_VERSIONS.items()}


class BodyLimits(NamedTuple):
    """Most decoded bytes to keep; negative: no limit. See ``HttpOptions``."""

    content: int
    document: int

    def limit(self, content_type: str | None) -> int:
        """Returns the limit for a body of a content type."""
        limits = [self.content]
        if limit_of(content_type) == "document_limit":
            limits.append(self.document)
        return -1 if min(limits) < 0 else max(limits)

    @property
    def most_of_block(self) -> int | None:
        """How many bytes of a block are needed at most; None: all."""
        return None if min(self) < 0 else max(self) + (1 << 20)


class _Transferred(NamedTuple):
    """A body without its transfer coding.

    Attributes:
        data: Its bytes.
        is_whole: Whether it ends where its head says.
        missing: Number of bytes that it lacks then; None: unknown.
    """

    data: bytes
    is_whole: bool = True
    missing: int | None = None


class BadAnswer(Exception):
    """A record has no answer that can be read; the message is the reason, a counter's name."""


def reason_to_skip(record: ArchivedRecord, now: int) -> str | None:
    """Returns why a record is no page, as a counter's name; None if it may be one.

    Args:
        record: The record.
        now: Time in ms. A later time is that of a wrong clock: it would always be the newest.
    """
    kind = record.kind
    if kind not in PAGE_KINDS:
        return kind if kind in _OTHER_KINDS else "other_kind"
    scheme = record.url.partition(":")[0].lower()
    if scheme == "dns":
        return "dns"
    if scheme not in _SCHEMES:
        return "other_scheme"
    if record.url.endswith("/robots.txt") and _path(record.url) == "/robots.txt":
        return "robots"
    if record.time is None or record.time < 0:
        return "bad_date"
    return "future_date" if record.time > now + TOLERANCE_MS else None


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def is_unchanged(record: ArchivedRecord) -> bool:
    """Returns whether a revisit record says that the server has answered 304."""
    return _UNCHANGED in record.field("warc-profile")


def archived_response(
    record: ArchivedRecord, request: str, limits: BodyLimits, *, keeps_wire: bool = False
) -> Response:
    """Returns the response in a record of kind response, revisit or resource.

    Args:
        record: The record, with its block or the beginning of it.
        request: Head of the request; empty if it is not known.
        limits: Most bytes of bodies.
        keeps_wire: Whether to keep the answer as it came, too.

    Raises:
        BadAnswer: It is not HTTP.
    """
    response = Response(record.url, started=record.time or 0, request=request)
    response.ip = record.field("warc-ip-address")
    if record.is_http:
        _fill_answer(response, record, limits, keeps_wire=keeps_wire)
    else:
        _fill_resource(response, record, limits)
    return response


def _truncation_of(record: ArchivedRecord) -> str | None:
    """Returns why the body in a record is incomplete, as far as the record says it."""
    if record.size > len(record.block):
        return "length"
    if reason := record.field("warc-truncated").lower():
        return _TRUNCATIONS.get(reason, "disconnect")
    if record.field("warc-segment-number") == "1":
        return "length"  # the rest is in continuation records
    return "disconnect" if record.is_cut else None


def _fill_resource(response: Response, record: ArchivedRecord, limits: BodyLimits) -> None:
    kind = record.field("content-type")
    response.status, response.reason = 200, "OK"
    response.status_line = "200 OK"
    response.headers = [("Content-Type", kind)] if kind else []
    limit = limits.limit(kind)
    response.body = record.block if limit < 0 else record.block[:limit]
    is_over = len(response.body) < len(record.block)
    response.truncated = "length" if is_over else _truncation_of(record)


def _fill_answer(
    response: Response, record: ArchivedRecord, limits: BodyLimits, *, keeps_wire: bool
) -> None:
    head, came, data = _split_answer(record.block)
    response.http_version, response.status_line = head.version, head.status_line
    response.status, response.reason = head.status, head.reason
    response.headers = mask_headers(head.fields, record.url)
    _fill_body(response, record, _without_chunks(head, data), limits)
    if keeps_wire and record.size == len(record.block):
        keep_answer(response, head, came, data)
        response.cipher = _cipher_of(record)
    _restore_headers(response)


def _split_answer(block: bytes) -> tuple[Head, bytes, bytes]:
    """Returns the head of an answer, its bytes, and what follows it.

    Raises:
        BadAnswer: It has none.
    """
    for _ in range(_MOST_HEADS):  # before the last one there may be interim ones
        end = end_of_head(block[: 1 << 20]) or len(block)
        try:
            head = parse_head(block[:end])
        except (http.client.HTTPException, ValueError) as error:
            raise BadAnswer("bad_http") from error
        if head.status >= 200:
            return head, block[:end], block[end:]
        block = block[end:]
    raise BadAnswer("bad_http")


def _without_chunks(head: Head, data: bytes) -> _Transferred:
    """Returns a body without its transfer coding, if that is there."""
    if head.chunked:
        reader = ChunkReader()
        body = reader.feed(data)
        if not reader.ended:
            reader.end()
        if not body and not reader.ended:  # many archives have the header and no chunks
            return _Transferred(data)
        return _Transferred(body, reader.ended, getattr(reader.error, "expected", None))
    missing = (head.length or 0) - len(data)
    # Writers that have undone a content coding may have kept the length of the coded body.
    if missing > 0 and not list_values(head.fields, "content-encoding"):
        return _Transferred(data, False, missing)
    return _Transferred(data)


def _fill_body(
    response: Response, record: ArchivedRecord, body: _Transferred, limits: BodyLimits
) -> None:
    """Decodes a body; one that broke off is marked as a fetch with ``keep_incomplete`` marks it."""
    content_type = response.header("content-type")
    try:
        why, decoder = _decode(response.headers, body.data, limits.limit(content_type))
    except BadEncoding:
        response.error = "bad_encoding"
        return
    response.body = decoder.data
    broke_off = None if body.is_whole else "disconnect"
    why = why or _truncation_of(record) or broke_off or decoder.end()
    if why in BROKEN and (
        decoder.coding_ended or is_whole_document(response.body, content_type or "", body.missing)
    ):
        why = FRAME
    response.truncated = why


def _decode(
    fields: list[tuple[str, str]], data: bytes, limit: int
) -> tuple[str | None, BodyDecoder]:
    """Returns a body in its decoder, and why decoding has stopped, see ``BodyDecoder.take``.

    Raises:
        BadEncoding: Its coding cannot be undone.
    """
    try:
        decoder = BodyDecoder(fields, limit)
        why = decoder.take(data)
        if why or decoder.data or not decoder.end() or data.startswith(_CODED):
            return why, decoder
    except BadEncoding:
        if data.startswith(_CODED):
            raise
    decoder = BodyDecoder((), limit)  # it was undone when the archive was written
    return decoder.take(data), decoder


def _restore_headers(response: Response) -> None:
    """Gives headers the names that the server sent, where a writer has given them others."""
    if not any(name.startswith(RENAMED) for name, _ in response.headers):
        return
    response.status_line = response.header(STATUS_LINE.lower()) or response.status_line
    response.headers = [
        (name.removeprefix(RENAMED), value)
        for name, value in response.headers
        if name.lower() != "content-length" and name != STATUS_LINE  # that of the decoded body
    ]


def _cipher_of(record: ArchivedRecord) -> str:
    suite = record.field("warc-cipher-suite")
    versions = [value for name, value in record.fields if name == "warc-protocol"]
    name = next((_TLS_NAMES[value] for value in versions if value in _TLS_NAMES), "")
    return f"{name} {suite}" if name and suite else ""


def revisited_response(revisit: Response, source: Response) -> Response:
    """Returns the response of a revisit with the body of the capture that it refers to.

    Args:
        revisit: What the revisit record says; its status is 0 if it has no head.
        source: The response in that capture.
    """
    own = revisit if revisit.status and revisit.status != http.client.NOT_MODIFIED else source
    return Response(
        revisit.url,
        own.http_version,
        own.status,
        own.reason,
        own.headers,
        source.body,
        source.truncated,
        revisit.ip or source.ip,
        revisit.request,
        revisit.started,
        error=source.error,
        status_line=own.status_line,
        wire=source.wire,
        wire_head=own.wire_head,
        cipher=revisit.cipher,
    )
