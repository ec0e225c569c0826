"""Reads one response from its bytes as they come, for both HTTP clients, with a limit on everything."""

import http.client

from .chunked import ChunkReader
from .heads import (
    MAX_HEAD_BYTES,
    MAX_INTERIM_HEADS,
    MAX_LINE_BYTES,
    NO_HEAD,
    Head,
    HeadTooLarge,
    check_page,
    end_of_head,
    lead_of,
    parse_head,
    parse_status_line,
)


class ResponseReader:
    """Reads a response.

    Args:
        fresh: Whether its connection carried none before. Only then may the head
            be missing: else its page could be what is left of another response.

    Attributes:
        head: The head, once it has come.
        ended: Whether the body is whole.
        error: Why no more can be read of the body, if so.
        keeps: Whether the connection may carry another request, once the body has ended.

    >>> reader = ResponseReader()
    >>> reader.feed(b"HTTP/1.1 200 OK\\r\\nContent-Le"), reader.feed(b"ngth: 2\\r\\n\\r\\nhi"), reader.ended
    (b'', b'hi', True)
    """

    def __init__(self, fresh: bool = False) -> None:
        self.head: Head | None = None
        self.ended = self.keeps = False
        self.error: Exception | None = None
        self._fresh = fresh
        self._clean, self._begun = True, False
        self._data = b""
        self._looked = self._interim = 0
        self._left: int | None = None
        self._chunks: ChunkReader | None = None

    def feed(self, data: bytes) -> bytes:
        """Returns what a piece holds of the body.

        Raises:
            http.client.HTTPException: It is no HTTP, or its head is too large.
        """
        if self.head is None:
            self._data += data
            if not self._find_head(False):
                return b""
            data, self._data = self._data, b""
        return self._body(data)

    def end(self) -> bytes:
        """Ends the response with the connection; returns what that makes known of the body.

        Raises:
            http.client.HTTPException: It is no HTTP.
        """
        body = b""
        if self.head is None:
            self._find_head(True)
            body, self._data = self._body(self._data), b""
        self.keeps = False
        if self._chunks is not None:
            self._chunks.end()
            self.ended, self.error = self._chunks.ended, self._chunks.error
        elif self._left is None:
            self.ended = True
        elif not self.ended:
            self.error = http.client.IncompleteRead(b"", self._left)
        return body

    def _find_head(self, last: bool) -> bool:
        """Looks for the head in what came; returns whether it is known now."""
        while self.head is None:
            lead = lead_of(self._data)
            start = self._data[lead : lead + 4].upper()
            if start != b"HTTP" and (last or not b"HTTP".startswith(start)):
                return self._take_page(lead, last)
            end = end_of_head(self._data, max(lead, self._looked - 3))
            self._looked = len(self._data)
            if not end and not last:
                self._check_begin(lead)
                return False
            self._take_head(end or len(self._data))
        return True

    def _take_head(self, end: int) -> None:
        head = parse_head(self._data[:end])
        self._data, self._looked, self._begun = self._data[end:], 0, False
        if head.status >= 200:
            self.head, self._left = head, head.length
            self.keeps = self._clean and head.keeps
            self._chunks = ChunkReader() if head.chunked else None
            return
        self._interim += 1  # RFC 9110 15.2
        self._clean = self._clean and head.keeps
        if self._interim >= MAX_INTERIM_HEADS:
            raise http.client.BadStatusLine("too many interim responses")

    def _take_page(self, lead: int, last: bool) -> bool:
        """Takes what has no head for a page, once its first line is here (HTTP/0.9)."""
        if last and not self._data:
            raise http.client.RemoteDisconnected("no response")
        line, newline, _ = self._data[lead:].partition(b"\n")
        if not last and not newline and len(line) <= MAX_LINE_BYTES:
            return False
        if not self._fresh:
            raise http.client.RemoteDisconnected("what came is no response")
        if self._interim:
            raise http.client.BadStatusLine("an interim response, and no head after it")
        check_page(line + newline)
        self.head = NO_HEAD
        return True

    def _check_begin(self, lead: int) -> None:
        """Checks whether what came of a head may become one."""
        end = self._data.find(b"\n", lead, lead + MAX_LINE_BYTES)
        if end >= 0 and not self._begun:
            parse_status_line(self._data[lead:end].rstrip(b"\r").decode("latin-1"))
            self._begun = True
        last = len(self._data) - max(lead, self._data.rfind(b"\n") + 1)
        if len(self._data) > MAX_HEAD_BYTES or last > MAX_LINE_BYTES:
            raise HeadTooLarge("head of the response is too large")

    def _body(self, data: bytes) -> bytes:
        if self._chunks is not None:
            body = self._chunks.feed(data)
            self.ended, self.error = self._chunks.ended, self._chunks.error
            self.keeps = self.keeps and not self._chunks.lenient
            return body
        if self._left is None:
            return data
        body = data[: self._left]
        self._left -= len(body)
        self.ended = not self._left
        self.keeps = self.keeps and len(body) == len(data)
        return body
