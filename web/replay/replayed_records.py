"""Records of WARC files as captures, for a replay."""

import dataclasses
from typing import NamedTuple

from ..archive_reading.archived_answers import (
    BadAnswer,
    BodyLimits,
    archived_response,
    is_unchanged,
)
from ..archive_reading.archived_records import ArchivedRecord, parse_date
from ..archives.captures import Capture
from ..archives.http_messages import NOT_MODIFIED
from ..archives.warc_records import RESOURCE, RESPONSE, REVISIT
from ..urls.row_keys import BadUrl, parse_url, to_key

REPLAYED_KINDS = frozenset({RESPONSE, REVISIT, RESOURCE})
_NO_LIMITS = BodyLimits(-1, -1)
# The beginning of a block that has the head of most answers.
HEAD_BYTES = 1 << 16


class ListedRecord(NamedTuple):
    """A record in a list of captures.

    Attributes:
        key: Row key of its URL.
        time: Its time, UTC ms.
        status: HTTP's status code; None if it is of another protocol.
        mime: Its content type.
        offset: Position of its member in the file.
        number: Number of the record in its member.
    """

    key: str
    time: int
    status: int | None
    mime: str
    offset: int
    number: int


class RevisitSource(NamedTuple):
    """The capture whose body a revisit has: its URL, and its time, UTC ms."""

    url: str
    time: int


def list_record(record: ArchivedRecord) -> ListedRecord | None:
    """Returns a record as it is listed, from the beginning of its block; None if it is no page.

    Raises:
        BadAnswer: It is one that cannot be read.
    """
    url, time = parse_url(record.url), record.time
    if record.kind not in REPLAYED_KINDS or url is None:
        return None
    if time is None:
        raise BadAnswer("bad_date")
    try:
        key = to_key(url.partition("#")[0])
    except BadUrl:
        return None
    status: int | None = None
    mime = record.field("content-type")
    if record.is_http:
        response = archived_response(record, "", BodyLimits(0, 0))
        status, mime = response.status, response.header("content-type") or ""
    elif record.kind == REVISIT:
        mime = ""
    if record.kind == REVISIT and is_unchanged(record):
        status = NOT_MODIFIED
    return ListedRecord(key, time, status, mime, record.offset, record.number)


def capture_of_record(record: ArchivedRecord) -> Capture | None:
    """Returns the capture of a record with its whole block; of a revisit it lacks the body.

    None if it has no answer that can be read.
    """
    try:
        response = archived_response(record, "", _NO_LIMITS, keeps_wire=True)
    except BadAnswer:
        return None
    is_http = record.is_http
    return Capture(
        record.url,
        "",
        record.time or 0,
        status=response.status if is_http else 0,
        status_line=response.status_line,
        headers=tuple(response.headers),
        body=response.body,
        truncated=response.truncated,
        content_type=response.header("content-type") or "",
        ip=response.ip,
        wire=response.wire,
        wire_head=response.wire_head,
    )


def source_of_revisit(record: ArchivedRecord) -> RevisitSource | None:
    """Returns the capture that a record of another kind of answer 304 refers to.

    None if it is no such record. Old ones name none: then it is one of the same URL before it.
    """
    if record.kind != REVISIT or is_unchanged(record):
        return None
    url = record.field("warc-refers-to-target-uri").strip("<>") or record.url
    date = parse_date(record.field("warc-refers-to-date"))
    return RevisitSource(url, (record.time or 0) - 1 if date is None else date)


def with_body_of(revisit: Capture, source: Capture) -> Capture:
    """Returns the capture of a revisit with the body that it had.

    >>> page = Capture("http://a/", "", 1, status=200, body=b"hi")
    >>> with_body_of(Capture("http://b/", "", 2, status=0), page).body
    b'hi'
    """
    if not revisit.status:
        return dataclasses.replace(source, url=revisit.url, time=revisit.time)
    return dataclasses.replace(
        revisit, body=source.body, wire=source.wire, truncated=source.truncated
    )
