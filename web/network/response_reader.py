"""Parses one response incrementally, for both HTTP clients, with limits on all sizes; chunks: RFC 9112 7.1."""

import http.client
import re

from . import heads

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


class ResponseReader:
    """Reads a response.

    Args:
        fresh: Whether it is the first response of its connection. Only then a response may
            have no head; otherwise its data could be the rest of another response.
        keeps_wire: Whether to keep the bytes as they come.

    Attributes:
        head: The head, after it was received.
        ended: Whether the body is complete.
        error: The error that ended the body, if any.
        keeps: Whether the connection may carry another request, once the body has ended.
        wire_head: The head as it came, if that is kept.
        wire: The pieces of the body as they came; None if they are not kept.

    >>> reader = ResponseReader()
    >>> reader.feed(b"HTTP/1.1 200 OK\\r\\nContent-Le"), reader.feed(b"ngth: 2\\r\\n\\r\\nhi"), reader.ended
    (b'', b'hi', True)
    """

    def __init__(self, fresh: bool = False, keeps_wire: bool = False) -> None:
        self.head: heads.Head | None = None
        self.wire_head = b""
        self.wire: list[bytes] | None = [] if keeps_wire else None
        self.ended = self.keeps = False
        self.error: Exception | None = None
        self._fresh = fresh
        self._clean, self._begun = True, False
        self._data = bytearray()
        # Positions in the data: of the status line, of the last line, and of the first byte that
        # was not searched yet. So no byte is searched again with each piece.
        self._lead = self._line = self._looked = 0
        self._interim = 0
        self._missing: int | None = None
        self._chunks: ChunkReader | None = None

    def feed(self, data: bytes) -> bytes:
        """Returns the bytes of the body in a piece.

        Raises:
            http.client.HTTPException: It is not HTTP, or its head is too large.
        """
        if self.head is None:
            self._data += data
            if not self._find_head(False):
                return b""
            data = self._take_data()
        return self._body(data)

    def end(self) -> bytes:
        """Ends the response with the connection; returns the rest of the body.

        Raises:
            http.client.HTTPException: It is not HTTP.
        """
        body = b""
        if self.head is None:
            self._find_head(True)
            body = self._body(self._take_data())
        self.keeps = False
        if self._chunks is not None:
            self._chunks.end()
            self.ended, self.error = self._chunks.ended, self._chunks.error
        elif self._missing is None:
            self.ended = True
        elif not self.ended:
            self.error = http.client.IncompleteRead(b"", self._missing)
        return body

    @property
    def missing(self) -> int | None:
        """Number of bytes of the body that have not come; None if its length is unknown."""
        return self._missing

    def _find_head(self, last: bool) -> bool:
        """Searches the received data for the head; returns whether the head is known."""
        while self.head is None:
            if self._lead >= self._looked - 2:  # nothing else has come yet, or part of a mark
                self._lead = heads.lead_of(self._data, self._lead)
                self._check_lead()
            start = bytes(self._data[self._lead : self._lead + 4]).upper()
            if start != b"HTTP" and (last or not b"HTTP".startswith(start)):
                return self._take_page(last)
            at = max(self._lead, self._looked - 3)
            end = heads.end_of_head(self._data[at:])
            if not end and not last:
                self._check_begin()
                return False
            self._take_head(at + end if end else len(self._data))
        return True

    def _take_data(self) -> bytes:
        data, self._data = bytes(self._data), bytearray()
        return data

    def _check_lead(self) -> None:
        """Checks that there are not too many bytes before the status line."""
        if self._lead > heads.MAX_LEAD_BYTES:
            if not self._fresh:
                raise http.client.RemoteDisconnected("what came is no response")
            raise http.client.BadStatusLine("too much white space, and no status line")

    def _take_head(self, end: int) -> None:
        head_bytes = bytes(self._data[:end])
        head = heads.parse_head(head_bytes)
        if self.wire is not None:
            self.wire_head = head_bytes
        del self._data[:end]
        self._lead = self._line = self._looked = 0
        self._begun = False
        if head.status >= 200:
            self.head, self._missing = head, head.length
            self.keeps = self._clean and head.keeps
            self._chunks = ChunkReader() if head.chunked else None
            return
        self._interim += 1  # RFC 9110 15.2
        self._clean = self._clean and head.keeps
        if self._interim >= heads.MAX_INTERIM_HEADS:
            raise http.client.BadStatusLine("too many interim responses")

    def _take_page(self, last: bool) -> bool:
        """Takes data without a head as a page (HTTP/0.9), once its first line is complete."""
        if last and not self._data:
            raise http.client.RemoteDisconnected("no response")
        end = self._end_of_line()
        if not last and not end and len(self._data) - self._lead <= heads.MAX_LINE_BYTES:
            return False
        if not self._fresh:
            raise http.client.RemoteDisconnected("what came is no response")
        if self._interim:
            raise http.client.BadStatusLine("an interim response, and no head after it")
        most = self._lead + heads.MAX_LINE_BYTES
        heads.check_page(bytes(self._data[self._lead : min(end or most, most)]))
        self.head = heads.NO_HEAD
        return True

    def _end_of_line(self) -> int:
        """Returns the end of the first line that ends in the new data; 0 if none does."""
        at = max(self._lead, self._looked)
        new = self._data[at:]
        self._looked = len(self._data)
        if b"\n" not in new:
            return 0
        self._line = at + new.rfind(b"\n") + 1
        return at + new.find(b"\n") + 1

    def _check_begin(self) -> None:
        """Checks whether the beginning of a head is valid."""
        end = self._end_of_line()
        first = end - self._lead if end and not self._begun else 0
        longest = max(first, len(self._data) - max(self._lead, self._line))
        if len(self._data) > heads.MAX_HEAD_BYTES or longest > heads.MAX_LINE_BYTES:
            raise heads.HeadTooLarge("head of the response is too large")
        if first:
            heads.parse_status_line(self._data[self._lead : end].rstrip(b"\r\n").decode("latin-1"))
            self._begun = True

    def _body(self, data: bytes) -> bytes:
        if self.wire is not None and not self.ended:
            self.wire.append(data if self._missing is None else data[: self._missing])
        if self._chunks is not None:
            body = self._chunks.feed(data)
            self.ended, self.error = self._chunks.ended, self._chunks.error
            self.keeps = self.keeps and not self._chunks.lenient
            return body
        if self._missing is None:
            return data
        body = data[: self._missing]
        self._missing -= len(body)
        self.ended = not self._missing
        self.keeps = self.keeps and len(body) == len(data)
        return body
