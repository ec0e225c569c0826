"""Records as they are read from archives: their fields, and whether their digests are right."""

import base64
import binascii
import dataclasses
import datetime
import functools
import hashlib
import re
from typing import Any

from ..archives.warc_records import RECORD_END, REQUEST, RESPONSE, REVISIT
from ..network.heads import end_of_head

_MAX_FIELDS = 1000
_MAX_HEAD_BYTES = 1 << 20  # of HTTP
_VERSION = re.compile(rb"WARC/(\d\.\d{1,2})[ \t]*\r?\n")
_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?)?)?(?:Z|\+00:00)?"
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_HTTP = re.compile(r"application/http\b", re.IGNORECASE)
_ALGORITHMS: dict[str, Any] = {
    name: getattr(hashlib, name) for name in ("sha1", "md5", "sha256", "sha512", "sha384", "sha224")
}
_IN_BASE32 = re.compile("[A-Z2-7]+")
# The digits of base 32 (RFC 4648), as Python's of the same base.
_BASE32 = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHIJKLMNOPQRSTUV")
_CONTROLS = dict.fromkeys((*range(0x20), 0x7F), " ")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x0c\x0e-\x1f\x7f]|\r(?!\n)")


@dataclasses.dataclass(slots=True)
class ArchivedRecord:
    """A record as it was read.

    Attributes:
        version: Of its format, such as ``1.0``.
        fields: Names, in lower case, and values, in order.
        offset: Position of its member in the file; in an uncompressed file, of the record.
        number: Number of the record in its member, from 0; 0 in an uncompressed file.
        length: Size in the file, bytes; 0 if it shares its member with other records.
        size: Size of the block, bytes, as Content-Length says.
        block: The block, or its beginning.
        is_cut: Whether its Content-Length is too short, so that the block is only its beginning.
        block_is_right: Whether the block has its digest; None: it has none that is known.
        payload_is_right: Whether what follows the head of an HTTP message has the payload's digest,
            or, without such a head, the block; None: it has none that is known.
    """

    version: str
    fields: list[tuple[str, str]]
    offset: int
    number: int
    length: int = 0
    size: int = 0
    block: bytes = b""
    is_cut: bool = False
    block_is_right: bool | None = None
    payload_is_right: bool | None = None
    _first: dict[str, str] = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._first = dict(reversed(self.fields))

    def field(self, name: str) -> str:
        """Returns the first field of a name, given in lower case; empty if there is none."""
        return self._first.get(name, "")

    @property
    def kind(self) -> str:
        """Its WARC-Type, in lower case."""
        return self.field("warc-type").lower()

    @property
    def id(self) -> str:
        """Its WARC-Record-ID without angle brackets."""
        return self.field("warc-record-id").strip("<>")

    @property
    def url(self) -> str:
        """Its WARC-Target-URI; some writers put it into angle brackets."""
        return self.field("warc-target-uri").strip("<>")

    @property
    def declared_size(self) -> int | None:
        """Its Content-Length; None if it has none that can be right."""
        size = self.field("content-length").strip()
        return int(size) if size.isascii() and size.isdigit() and len(size) <= 18 else None

    @property
    def time(self) -> int | None:
        """Its WARC-Date, UTC ms; None if it has none that can be read."""
        return parse_date(self.field("warc-date"))

    @property
    def is_http(self) -> bool:
        """Whether the block is a message of HTTP; a record that does not say it is one by its URL."""
        content_type = self.field("content-type")
        if not content_type and self.kind in (REQUEST, RESPONSE, REVISIT):
            return self.url.lower().startswith("http")
        return _HTTP.match(content_type) is not None


def end_of_record_head(data: bytes, at: int = 0) -> int:
    """Returns the position after the head that begins at a position; 0 if its end is not there."""
    usual = data.find(b"\n\r\n", at)
    bare = data.find(b"\n\n", at, None if usual < 0 else usual + 1)
    return bare + 2 if bare >= 0 else usual + 3 if usual >= 0 else 0


def parse_record_head(head: bytes, offset: int = 0, number: int = 0) -> ArchivedRecord | None:
    """Returns the record of a head, with its empty line; None if it is no head of a record.

    A folded line continues the one before. NULs and other control characters become blanks.
    """
    match = _VERSION.match(head)
    if match is None:
        return None
    fields: list[tuple[str, str]] = []
    lines = head[match.end() :].decode("utf-8", "replace")
    has_controls = _CONTROL.search(lines) is not None
    for line in lines.split("\n"):
        text = line.rstrip("\r")
        if text[:1] in (" ", "\t") and fields:
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {text.strip()}".strip())
            continue
        name, colon, value = text.partition(":")
        if colon:
            clean = value.translate(_CONTROLS) if has_controls else value
            fields.append((name.strip().lower(), clean.strip()))
        if len(fields) > _MAX_FIELDS:
            return None
    return ArchivedRecord(match[1].decode(), fields, offset, number)


def size_of_record(beginning: bytes) -> int | None:
    """Returns the size of a record that begins so, bytes; None if its head is not whole."""
    end = end_of_record_head(beginning)
    record = parse_record_head(beginning[:end]) if end else None
    size = record.declared_size if record else None
    return None if size is None else end + size + len(RECORD_END)


@functools.lru_cache(1024)  # each record is asked for its time several times
def parse_date(text: str) -> int | None:
    """Returns a WARC-Date as UTC ms; None if it is none. Version 1.1 allows parts of a date.

    >>> parse_date("2026-11-28T16:32:24.123456Z"), parse_date("2016"), parse_date("20161")
    (1795883544123, 1451606400000, None)
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (
        int(part) if part else default
        for part, default in zip(match.groups()[:6], (0, 1, 1, 0, 0, 0), strict=True)
    )
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
    except ValueError:
        return None
    fraction = int((match[7] or "0").ljust(3, "0")[:3])
    return (moment - _EPOCH) // datetime.timedelta(milliseconds=1) + fraction


class RecordDigests:
    """The digests of a block, and of the payload in it.

    Args:
        record: The record, whose fields name them.
    """

    def __init__(self, record: ArchivedRecord) -> None:
        self._block = _Digest.of(record.field("warc-block-digest"))
        # The payload of a revisit is not there.
        payload = record.field("warc-payload-digest") if record.kind != REVISIT else ""
        self._payload = _Digest.of(payload)
        self._head: bytes | None = b"" if record.is_http and self._payload else None

    def add(self, piece: bytes) -> None:
        """Adds a piece of the block."""
        if self._block:
            self._block.hasher.update(piece)
        if self._payload is None:
            return
        if self._head is not None:
            head = self._head + piece
            end = end_of_head(head)
            if not end:
                self._head = head
                if len(head) > _MAX_HEAD_BYTES:  # it is none, and the block must not be kept
                    self._payload = None
                return
            self._head = None
            self._payload.hasher.update(memoryview(head)[end:])
        else:
            self._payload.hasher.update(piece)

    def compare(self) -> tuple[bool | None, bool | None]:
        """Returns whether the digests of block and payload are right; None without a digest."""
        block = self._block.is_right() if self._block else None
        payload = None if self._head is not None or not self._payload else self._payload.is_right()
        return block, payload


class _Digest:
    """A labelled digest (5.8), in base 32 or hexadecimal, and the hash to compare it with."""

    def __init__(self, hasher: Any, expected: bytes) -> None:
        self.hasher, self._expected = hasher, expected

    @classmethod
    def of(cls, label: str) -> "_Digest | None":
        """Returns the digest of a label; None if its algorithm is not known."""
        name, _, text = label.strip().partition(":")
        algorithm = name.lower().replace("-", "")
        if algorithm not in _ALGORITHMS:
            return None
        hasher = _ALGORITHMS[algorithm](usedforsecurity=False)
        return cls(hasher, decode_digest(text, hasher.digest_size))

    def is_right(self) -> bool:
        """Returns whether the hashed bytes have the digest."""
        return bool(self.hasher.digest() == self._expected)


def decode_digest(text: str, size: int) -> bytes:
    """Returns a digest of a number of bytes, in base 32, hexadecimal or base 64; empty if it is none.

    >>> decode_digest("YIVV7ELYGQTASQUNN5I3FRNPJQF542SC", 20).hex()
    'c22b5f9178342609428d6f51b2c5af4c0bde6a42'
    """
    text = text.strip()
    try:
        digits = text.rstrip("=").upper()
        if len(digits) == -(
            -size * 8 // 5
        ):  # with its padding, MD5's has the length of hexadecimal
            if not _IN_BASE32.fullmatch(digits):
                return b""
            number = int(digits.translate(_BASE32), 32)  # base64.b32decode takes ten times as long
            return (number >> len(digits) * 5 - size * 8).to_bytes(size, "big")
        if len(text) == 2 * size:
            return bytes.fromhex(text)
        return base64.b64decode(text, altchars=b"-_")
    except (ValueError, binascii.Error):
        return b""
