"""Decodes the chunked transfer coding (RFC 9112 7.1) incrementally, with a limit on its framing."""

import http.client
import re

# Limit of one line, of all trailers, and of all extensions beyond the bytes of their chunks.
_MAX_BYTES = 16_384
_MAX_EXTENSIONS = 64
_MAX_TRAILERS = 100

# The end of a chunk, and the size of the next one.
_NEXT = re.compile(rb"\r\n([0-9A-Fa-f]{1,15})(?:[ \t]*(;[^\r\n]*))?\r\n")
_ODD_NEXT = re.compile(rb"\r?\n([0-9A-Fa-f]{1,15})[ \t]*(;[^\r\n]*)?\r?\n")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n")


class FramingTooLarge(http.client.HTTPException):
    """Trailers or chunk extensions are too many, or too long."""


class ChunkReader:
    """Decodes one body; the work depends on the number of chunks, not of bytes.

    Attributes:
        ended: Whether the body is complete.
        lenient: Whether the framing breaks RFC 9112.
        error: The error that ended the reading, if any.

    >>> chunks = ChunkReader()
    >>> chunks.feed(b"3\\r\\nabc\\r\\n2;x"), chunks.feed(b"=y\\r\\nde\\r\\n0\\r\\n\\r\\n"), chunks.ended
    (b'abc', b'de', True)
    """

    def __init__(self) -> None:
        self.ended = self.lenient = False
        self.error: Exception | None = None
        self._rest = bytearray(b"\r\n")  # as if there were a chunk before the first
        self._waits = True  # for the end of an incomplete line
        self._chunk_left = 0
        self._excess = 0
        self._trailing = False
        self._trailers = self._trailer_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """Returns the bytes of the body in a piece; sets ``error`` if the framing is damaged."""
        if self.error is not None:
            return b""
        # An incomplete line is not read again with each piece.
        if self._waits and b"\n" not in data:
            self._rest += data
            if self._trailer_bytes + len(self._rest) <= _MAX_BYTES:
                return b""
            data = b""
        data, parts = bytes(self._rest) + data, list[bytes]()
        try:
            at = self._take_chunks(data, parts)
            if self._trailing:
                at = self._take_trailers(data, at)
            self._rest = bytearray(data[at:])
            self._waits = not self.ended and (self._trailing or b"\n" in self._rest[:2])
        except (ValueError, http.client.HTTPException) as error:
            self.error = error
        return b"".join(parts)

    def end(self) -> None:
        """Ends the body with the connection; it is complete if the last chunk was received."""
        if self._trailing:
            self.lenient = self.ended = True
        elif self.error is None:
            # Whether only the last chunk, which is empty, is missing.
            only_end = not self._chunk_left and bytes(self._rest).strip() in (b"", b"0")
            self.error = http.client.IncompleteRead(b"", 0 if only_end else None)

    def _take_chunks(self, data: bytes, parts: list[bytes]) -> int:
        """Appends the data of received chunks to ``parts``; returns the position of their end."""
        at, chunk_left = 0, self._chunk_left
        while not self._trailing:
            if chunk_left:
                part = data[at : at + chunk_left]
                parts.append(part)
                at += len(part)
                chunk_left -= len(part)
                if chunk_left:
                    break
            match = _NEXT.match(data, at) or _ODD_NEXT.match(data, at)
            if match is None:
                _check_line(data[at : at + _MAX_BYTES + 1])
                break
            self.lenient |= match.re is _ODD_NEXT
            if match[2] or match.end() - at > _MAX_BYTES:
                self._check_extensions(match)
            at, chunk_left = match.end(), int(match[1], 16)
            self._trailing = not chunk_left
        self._chunk_left = chunk_left
        return at

    def _check_extensions(self, match: re.Match[bytes]) -> None:
        extensions = match[2] or b""
        self._excess = max(0, self._excess + len(extensions) - int(match[1], 16))
        longest = max(self._excess, len(match[0]))
        if longest > _MAX_BYTES or extensions.count(b";") > _MAX_EXTENSIONS:
            raise FramingTooLarge("chunk extensions")

    def _take_trailers(self, data: bytes, at: int) -> int:
        """Skips the received trailers; returns the position of their end."""
        while not self.ended and (end := data.find(b"\n", at) + 1):
            line, at = data[at:end], end
            self._trailer_bytes += len(line)
            self.ended = line in (b"\r\n", b"\n")
            if not self.ended:
                self._trailers += 1
            if line != b"\r\n" and not _TRAILER.fullmatch(line):
                self.lenient = True
            self._check_trailers(0)
        if self.ended:
            self.lenient |= at < len(data)  # data that was not requested
            return len(data)
        self._check_trailers(len(data) - at)
        return at

    def _check_trailers(self, more: int) -> None:
        if self._trailers > _MAX_TRAILERS or self._trailer_bytes + more > _MAX_BYTES:
            raise FramingTooLarge("trailers")


def _check_line(line: bytes) -> None:
    """Checks whether an incomplete size line may still become valid.

    Raises:
        http.client.IncompleteRead: The line is not a size.
        FramingTooLarge: The line is too long.
    """
    after = line.removeprefix(b"\r")
    if not after:
        return
    if after[:1] != b"\n" or b"\n" in after[1:]:
        raise http.client.IncompleteRead(b"")
    if len(line) > _MAX_BYTES:
        raise FramingTooLarge("chunk size")
