"""WARC records (ISO 28500:2017; version 1.0 is ISO 28500:2009) and their bytes.

Ids and dates depend only on what is recorded. So the same capture makes the same bytes wherever and
however often it is written.
"""

import base64
import datetime
import hashlib
import re
import uuid
from collections.abc import Iterable, Sequence
from typing import NamedTuple

WARCINFO, REQUEST, RESPONSE, REVISIT = "warcinfo", "request", "response", "revisit"
RESOURCE, METADATA, CONVERSION = "resource", "metadata", "conversion"
FIELDS_TYPE = "application/warc-fields"
RECORD_END = b"\r\n\r\n"
# Reasons of WARC-Truncated (5.13).
LENGTH, TIME, DISCONNECT, UNSPECIFIED = "length", "time", "disconnect", "unspecified"

_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class WarcRecord(NamedTuple):
    """A record.

    Attributes:
        kind: Its WARC-Type.
        id: Its WARC-Record-ID, without angle brackets.
        time: Its WARC-Date, UTC ms.
        fields: Its other fields, in order, without Content-Length and block digest.
        block: Its content, in pieces.
    """

    kind: str
    id: str
    time: int
    fields: Sequence[tuple[str, str]]
    block: tuple[bytes, ...] = ()

    def field(self, name: str) -> str | None:
        """Returns the first field of a name, or None."""
        return next((value for other, value in self.fields if other == name), None)


def header_fields(record: WarcRecord, version: str = "1.1") -> list[tuple[str, str]]:
    """Returns all fields of the header of a record (5), with the block digest."""
    return [
        ("WARC-Type", record.kind),
        ("WARC-Record-ID", f"<{record.id}>"),
        ("WARC-Date", warc_date(record.time, version)),
        *((name, _BREAKS.sub(" ", value)) for name, value in record.fields),
        ("WARC-Block-Digest", sha1_digest(*record.block)),
        ("Content-Length", str(sum(map(len, record.block)))),
    ]


def encode_record(
    record: WarcRecord, version: str = "1.1", order: Sequence[str] | None = None
) -> bytes:
    """Returns the bytes of a record (4), with its block digest.

    Args:
        record: The record.
        version: Version of the WARC format.
        order: Names of all fields, in the order that they get; None: they have that of the record.

    >>> made = WarcRecord("metadata", "urn:uuid:1", 1500, [("Content-Type", "text/plain")], (b"hi",))
    >>> print(encode_record(made).decode().replace("\\r", ""), end="")
    WARC/1.1
    WARC-Type: metadata
    WARC-Record-ID: <urn:uuid:1>
    WARC-Date: 1970-01-01T00:00:01.500Z
    Content-Type: text/plain
    WARC-Block-Digest: sha1:YIVV7ELYGQTASQUNN5I3FRNPJQF542SC
    Content-Length: 2
    <BLANKLINE>
    hi
    <BLANKLINE>
    """
    fields = header_fields(record, version)
    if order is not None:
        fields.sort(key=lambda field: order.index(field[0]))
    lines = [f"WARC/{version}", *(f"{name}: {value}" for name, value in fields)]
    head = "\r\n".join(lines).encode()
    return b"".join((head, b"\r\n\r\n", *record.block, RECORD_END))


def sha1_digest(*pieces: bytes) -> str:
    """Returns the labelled digest of bytes (5.8), with SHA-1 in base 32 as most archives have it.

    >>> sha1_digest(b"h", b"i")
    'sha1:YIVV7ELYGQTASQUNN5I3FRNPJQF542SC'
    """
    hasher = hashlib.sha1(usedforsecurity=False)
    for piece in pieces:
        hasher.update(piece)
    return label_digest(hasher.digest())


def label_digest(digest: bytes) -> str:
    """Returns a SHA-1 as a labelled digest."""
    return f"sha1:{base32(digest)}"


def base32(digest: bytes) -> str:
    """Returns a digest as text in base 32."""
    return base64.b32encode(digest).decode()


def record_id(*parts: str | int) -> str:
    """Returns the id of a record that is known by some words, always the same.

    >>> record_id("a", 1) == record_id("a", 1) != record_id("a", 2)
    True
    """
    name = "\n".join(map(str, parts)).encode()
    return uuid.UUID(bytes=hashlib.sha1(name, usedforsecurity=False).digest()[:16], version=5).urn


def warc_date(time: int, version: str = "1.1") -> str:
    """Returns a time, in UTC ms, as a WARC-Date (5.4); in version 1.0 it has no fraction.

    >>> warc_date(1_795_883_544_123), warc_date(1_795_883_544_123, "1.0")
    ('2026-11-28T16:32:24.123Z', '2026-11-28T16:32:24Z')
    """
    moment = _EPOCH + datetime.timedelta(milliseconds=time)
    text = moment.isoformat(timespec="seconds" if version == "1.0" else "milliseconds")
    return text.removesuffix("+00:00") + "Z"


def timestamp14(time: int) -> str:
    """Returns a time, in UTC ms, as 14 digits, as in the names of files and in CDX.

    >>> timestamp14(1_795_883_544_123)
    '20261128163224'
    """
    return f"{_EPOCH + datetime.timedelta(milliseconds=time):%Y%m%d%H%M%S}"


def warc_fields(fields: Iterable[tuple[str, str]]) -> bytes:
    """Returns lines of names and values, the content type ``application/warc-fields``."""
    return "".join(f"{name}: {_BREAKS.sub(' ', value)}\r\n" for name, value in fields).encode()
