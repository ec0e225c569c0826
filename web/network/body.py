"""Reads and decodes a response's body, within a limit."""

import bisect
import http.client
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import brotli

from .failures import NETWORK_ERRORS, BadEncoding, reason_of
from .heads import list_values
from .transport import Connection
from .wire import READ_BYTES

_MAX_CODINGS = 2
_MAX_RATIO = 200
# Small bodies may have any ratio: 1 MiB of spaces is harmless.
_RATIO_FREE_BYTES = 1 << 20
# Of a coded body, to decode it again if its checksum is wrong.
_MAX_MEMBER_BYTES = 1 << 20
ACCEPTED = "gzip, deflate, br"
# zstd is not asked for, but servers and archives have it.
_DECODED = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd"})
_UNDECODABLE = frozenset({"compress", "x-compress", "dcb", "dcz"})
_GZIP_MAGIC = b"\x1f\x8b"
# Value of ``truncated`` by reason; ``disconnect`` for all others.
_KEPT = {"too_slow": "time", "low_rate": "time", "timeout": "time", "bad_encoding": "encoding"}

_MAX_ZSTD_WINDOW = 8 << 20  # RFC 9659
# zstd's decoder has no limit of its output; a block of 128 KiB may have 4 bytes.
_ZSTD_PIECE_BYTES = 1 << 7
# zlib's messages about the check values of gzip and zlib.
_WRONG_CHECK = re.compile("incorrect (data|length) check")


class Body(NamedTuple):
    """A body, or the part of it that was read.

    Attributes:
        data: Decoded bytes.
        truncated: None, or the reason why it is incomplete: ``length`` (the limit),
            ``ratio`` (a decompression bomb), ``time``, ``disconnect`` or ``encoding``; or
            ``checksum``: the data is there, and does not have the checksum of its coding.
        error: None, or the reason why reading failed.
        coding_ended: Whether the body has a coding, such as gzip, and its end has come.
        missing: Number of bytes that did not come; None if it is unknown.
    """

    data: bytes
    truncated: str | None = None
    error: str | None = None
    coding_ended: bool = False
    missing: int | None = None


class BodyDecoder:
    """Decodes a body in pieces, and reports when the limit is reached.

    Args:
        fields: Headers of the response.
        limit: Most decoded bytes to keep; negative: no limit.

    Raises:
        BadEncoding: Its coding is not supported.

    >>> import gzip
    >>> decoder = BodyDecoder([("Content-Encoding", "gzip")], 3)
    >>> decoder.take(gzip.compress(b"hello")), decoder.data
    ('length', b'hel')
    """

    def __init__(self, fields: Iterable[tuple[str, str]], limit: int) -> None:
        self._first: bytes | None = None  # a body that comes in one part is not copied
        self._data = io.BytesIO()  # unlike a list of parts, it becomes bytes without a copy
        self._inflaters = [_inflater_of(coding) for coding in codings_of(fields)]
        self._limit = limit
        self._taken = self._received = 0

    @property
    def data(self) -> bytes:
        """The decoded bytes so far."""
        return self._data.getvalue() if self._first is None else self._first

    def take(self, piece: bytes) -> str | None:
        """Decodes a piece; returns ``length`` or ``ratio`` if reading must stop, else None.

        Raises:
            BadEncoding: The piece is damaged.
        """
        limit, inflaters = self._limit, self._inflaters
        self._received += len(piece)
        for part in _inflate(inflaters, piece):
            room = len(part) if limit < 0 else limit - self._taken
            self._keep(part[:room])
            self._taken += len(part)
            if len(part) > room:
                return "length"
            if inflaters and self._taken > max(_RATIO_FREE_BYTES, _MAX_RATIO * self._received):
                return "ratio"
        return None

    def _keep(self, part: bytes) -> None:
        if not self._taken:
            self._first = bytes(part)
            return
        if self._first is not None:
            self._data.write(self._first)
            self._first = None
        self._data.write(part)

    def end(self) -> str | None:
        """Ends the body; returns ``encoding`` if its last part is missing, or ``checksum``, or None."""
        if not all(inflater.ended for inflater in self._inflaters):
            return "encoding"
        return "checksum" if any(inflater.is_wrong for inflater in self._inflaters) else None

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached, so that of a body without a coding no more would be kept."""
        return not self._inflaters and 0 <= self._limit == self._taken

    @property
    def coding_ended(self) -> bool:
        """Whether the body has a coding, and its end has come."""
        inflaters = self._inflaters
        return bool(self._received and inflaters) and all(
            inflater.ended and not inflater.plain for inflater in inflaters
        )


async def read_body(connection: Connection, limit: int) -> Body:
    """Reads and decodes a body; never raises for a fault of the server.

    If the body is incomplete, the connection must not be used again.

    Args:
        connection: A connection on which the head of a response was received.
        limit: Most decoded bytes to return; negative: no limit.
    """
    decoder = why = reason = missing = None
    try:
        decoder = BodyDecoder(connection.head.fields, limit)
        while why is None and (piece := await connection.read()):
            why = decoder.take(piece)
        why = why or decoder.end()
    except NETWORK_ERRORS as error:
        reason = reason_of(error)
        why = _KEPT.get(reason, "disconnect")
        missing = connection.missing
        if isinstance(error, http.client.IncompleteRead):
            missing = error.expected
        if missing and decoder is not None and decoder.is_full:
            why, reason = "length", None
    if decoder is None:
        return Body(b"", why, reason)
    return Body(decoder.data, why, reason, decoder.coding_ended, missing)


def codings_of(fields: Iterable[tuple[str, str]]) -> list[str]:
    """Returns the codings to undo, the last one applied first.

    Raises:
        BadEncoding: One of them is not supported, or there are too many.
    """
    names = [coding.lower() for coding in list_values(fields, "content-encoding")]
    # Any other name, such as "utf-8" or "none", is a mistake and is ignored.
    codings = [name for name in reversed(names) if name in _DECODED]
    if _UNDECODABLE.intersection(names) or len(codings) > _MAX_CODINGS:
        raise BadEncoding(f"cannot undo Content-Encoding {names!r}")
    return codings


def _inflater_of(coding: str) -> "_Inflater | _Unbrotli | _Unzstd":
    if coding == "br":
        return _Unbrotli()
    return _Unzstd() if coding == "zstd" else _Inflater(coding)


def _inflate(inflaters: "list[_Inflater | _Unbrotli | _Unzstd]", piece: bytes) -> Iterator[bytes]:
    if not inflaters:
        yield piece
        return
    for part in inflaters[0].feed(piece):
        yield from _inflate(inflaters[1:], part)


class _Inflater:
    """Decodes gzip or deflate, at most ``READ_BYTES`` at a time."""

    def __init__(self, coding: str) -> None:
        self._zipped = coding != "deflate"
        # 32: gzip or zlib, as its header says.
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._begun = False
        self._member: list[bytes] = []
        self._member_bytes = self._decoded = 0
        self.plain = self.is_wrong = False
        self.ended = True  # an empty body is complete

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the decoded bytes of a piece of the stream, in bounded parts.

        Raises:
            BadEncoding: The stream is damaged.
        """
        if data and not self._begun:
            self._begin(data)
        if self.plain:
            yield data
            return
        self._keep(data)
        while data and not self.ended:
            try:
                part = self._zlib.decompress(data, READ_BYTES)
            except zlib.error as error:
                if not _WRONG_CHECK.search(str(error)) or self._member_bytes > _MAX_MEMBER_BYTES:
                    raise BadEncoding(str(error)) from error
                self.ended = self.is_wrong = True
                yield self._decode_unchecked()
                return
            yield part
            self._decoded += len(part)
            data = self._zlib.unconsumed_tail
            if self._zlib.eof:
                data = self._zlib.unused_data
                self.ended = not data.startswith(_GZIP_MAGIC)  # RFC 1952 2.2: members
                self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 32)
                self._keep(data, first=True)
            elif not data and len(part) == READ_BYTES:
                yield self._zlib.decompress(b"", READ_BYTES)

    def _keep(self, data: bytes, first: bool = False) -> None:
        """Keeps what came of a member of the stream, until it is too much."""
        if first:
            self._member, self._member_bytes, self._decoded = [], 0, 0
        self._member_bytes += len(data)
        if self._member_bytes <= _MAX_MEMBER_BYTES:
            self._member.append(data)
        else:
            self._member = []

    def _decode_unchecked(self) -> bytes:
        """Returns the rest of a member whose check value turned out to be wrong.

        zlib withholds it. So the longest beginning of the member that is no error is decoded again.
        """
        data, most = b"".join(self._member), self._decoded + READ_BYTES

        def decode(length: int) -> bytes | None:
            try:
                return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data[:length], most)
            except zlib.error:
                return None

        fits = bisect.bisect_left(range(1, len(data) + 1), True, key=lambda n: decode(n) is None)
        return (decode(fits) or b"")[self._decoded :]

    def _begin(self, data: bytes) -> None:
        self._begun, self.ended = True, False
        if self._zipped:
            # Some servers declare gzip and send the plain page.
            self.plain = self.ended = not data.startswith(_GZIP_MAGIC[: len(data)])
        elif data[0] & 0x0F != 8 or int.from_bytes(data[:2]) % 31:
            # Some send deflate without zlib's header (RFC 1950 2.2).
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS)


class _Unbrotli:
    """Decodes brotli, about ``READ_BYTES`` at a time."""

    plain = is_wrong = False

    def __init__(self) -> None:
        self._brotli = brotli.Decompressor()
        self.ended = True  # an empty body is complete

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the decoded bytes of a piece of the stream, in bounded parts.

        Raises:
            BadEncoding: The stream is damaged.
        """
        if not data or self._brotli.is_finished():
            return
        self.ended = False
        while True:
            try:
                part = self._brotli.process(data, output_buffer_limit=READ_BYTES)
            except brotli.error as error:
                raise BadEncoding(str(error)) from error
            yield part
            data = b""
            if self._brotli.is_finished() or len(part) < READ_BYTES:
                break
        self.ended = self._brotli.is_finished()


class _Unzstd:
    """Decodes zstd (RFC 8878), some blocks at a time."""

    plain = is_wrong = False

    def __init__(self) -> None:
        import zstandard  # late: few servers send it

        self._error = zstandard.ZstdError
        self._zstd = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)
        self._frame = self._zstd.decompressobj()
        self._frames = 0  # which have ended
        self.ended = True  # an empty body is complete

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the decoded bytes of a piece of the stream, in bounded parts.

        Raises:
            BadEncoding: The stream is damaged.
        """
        at = 0
        while at < len(data):
            piece = data[at : at + _ZSTD_PIECE_BYTES]
            try:
                part = self._frame.decompress(piece)
            except self._error as error:
                self.ended = self._frames > 0  # no frame follows, but other bytes
                if self.ended:
                    return
                raise BadEncoding(str(error)) from error
            at, self.ended = at + len(piece), self._frame.eof
            if self.ended:
                at -= len(self._frame.unused_data)
                self._frame = self._zstd.decompressobj()
                self._frames += 1
            yield part
