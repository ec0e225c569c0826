"""Parses one response incrementally, for both HTTP clients, with limits on all sizes."""

import http.client

from . import heads
from .chunked import ChunkReader


class ResponseReader:
    """Reads a response.

    Args:
        fresh: Whether it is the first response of its connection. Only then a response may
            have no head; otherwise its data could be the rest of another response.

    Attributes:
        head: The head, after it was received.
        ended: Whether the body is complete.
        error: The error that ended the body, if any.
        keeps: Whether the connection may carry another request, once the body has ended.

    >>> reader = ResponseReader()
    >>> reader.feed(b"HTTP/1.1 200 OK\\r\\nContent-Le"), reader.feed(b"ngth: 2\\r\\n\\r\\nhi"), reader.ended
    (b'', b'hi', True)
    """

    def __init__(self, fresh: bool = False) -> None:
        self.head: heads.Head | None = None
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
        head = heads.parse_head(bytes(self._data[:end]))
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
