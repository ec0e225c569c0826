"""Reads responses for aiohttp's protocol: in C, and those that it refuses as ``wire`` does.

aiohttp's parser is strict: a header without a colon or a body that is longer
than it says cost the whole response. What it refuses before it has given away
a head is read anew by the rules of the other client.
"""

import asyncio
import http.client
import io
from typing import Any

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpVersion10, HttpVersion11, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from .wire import (
    MAX_HEAD_BYTES,
    MAX_INTERIM_HEADS,
    MAX_LINE_BYTES,
    HeadTooLarge,
    Message,
    parse_status_line,
)

Messages = list[tuple[RawResponseMessage, StreamReader]]
_PIECE_BYTES = 65_536
_NOTHING: tuple[Messages, bool, bytes] = ([], False, b"")


class Reader:
    """Stands for aiohttp's parser, of one response.

    Args:
        strict: aiohttp's parser.
        protocol: What is read for.
        loop: Its loop.
    """

    def __init__(
        self, strict: Any, protocol: BaseProtocol, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._strict, self._protocol, self._loop = strict, protocol, loop
        self._raw = b""
        self._begun = False
        self._interim = 0
        self._lenient: _Lenient | None = None
        self.pause_reading = strict.pause_reading

    def feed_data(self, data: bytes) -> tuple[Any, bool, bytes]:
        """Returns the responses that begin in what came; see aiohttp's parser."""
        if self._lenient is not None:
            return self._lenient.feed(data), False, b""
        if self._begun:
            return self._strict.feed_data(data)
        raw = self._raw = self._raw + data if self._raw else data
        try:
            found = self._strict.feed_data(data)
        except HttpProcessingError:
            return self._anew().feed(raw), False, b""
        if found[1]:  # it takes 101 for a change of protocol, which nobody asked for
            return self._anew().feed(raw), False, b""
        if found[0] and found[0][-1][0].code >= 200:
            self._begun, self._raw = True, b""
            return found
        if not found[0]:
            return found
        self._interim += len(found[0])
        if found[0][-1][0].code < 100:
            raise http.client.BadStatusLine(str(found[0][-1][0].code))
        if self._interim >= MAX_INTERIM_HEADS:
            raise http.client.BadStatusLine("too many interim responses")
        return _NOTHING

    def _anew(self) -> "_Lenient":
        self.pause_reading = _nothing
        self._lenient = _Lenient(self._protocol, self._loop)
        self._raw = b""
        return self._lenient

    def feed_eof(self) -> Any:
        """Is told of the end of the connection."""
        if self._lenient is not None:
            return self._lenient.end()
        return self._strict.feed_eof() if self._begun else None

    def last(self) -> Messages:
        """Returns the response whose head ends with the connection, if it does.

        Raises:
            http.client.HTTPException: It is no HTTP.
        """
        if self._begun or not (self._raw or self._lenient):
            return []
        raw = self._raw
        return (self._lenient or self._anew()).feed(raw, last=True)


def _nothing() -> None:
    pass


class _Lenient:
    """Reads a response by the rules of ``Message``, as its bytes come."""

    def __init__(self, protocol: BaseProtocol, loop: asyncio.AbstractEventLoop) -> None:
        self._protocol, self._loop = protocol, loop
        self._data = b""
        self._heads = 0
        self._message: Message | None = None
        self._payload: StreamReader = EMPTY_PAYLOAD
        self._left: int | None = None  # of the body, or of the chunk that is being read
        self._state = "size"

    def feed(self, data: bytes, last: bool = False) -> Messages:
        """Takes what came; returns the response if its head is whole now, or nothing more comes."""
        self._data += data
        found: Messages = []
        if self._message is None:
            found = self._head(last)
        if self._message is not None and not self._payload.is_eof():
            try:
                self._body()
            except (ValueError, http.client.HTTPException):
                self._fail()
        return found

    def _head(self, last: bool) -> Messages:
        while True:
            end = end_of_head(self._data)
            if not end and not (last and self._data.strip()):
                self._look()
                return []
            end = end or len(self._data)
            message = Message(_Bytes(self._data[:end]), method="GET")  # type: ignore[arg-type]
            message.begin_once()
            self._data = self._data[end:]
            self._heads += 1
            if message.status >= 200:
                break
            if self._heads >= MAX_INTERIM_HEADS:
                raise http.client.BadStatusLine("too many interim responses")
        self._message, self._left = message, message.length
        if message.chunked or message.length != 0:
            self._payload = StreamReader(self._protocol, limit=_PIECE_BYTES, loop=self._loop)
            self._left = None if message.chunked else message.length
        return [(_raw_message(message), self._payload)]

    def _look(self) -> None:
        """Looks whether what came of a head may become one."""
        line, newline, _ = self._data.partition(b"\n")
        if newline:
            parse_status_line(line.rstrip(b"\r").decode("latin-1"))
        if len(self._data) > MAX_HEAD_BYTES or len(line) > MAX_LINE_BYTES:
            raise HeadTooLarge("head of the response is too large")

    def _body(self) -> None:
        assert self._message is not None
        if self._message.chunked:
            self._chunks()
            return
        data, self._data = self._data, b""
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        if data:
            self._payload.feed_data(data)
        if self._left == 0:
            self._payload.feed_eof()

    def _chunks(self) -> None:
        """Takes chunks as http.client does (RFC 9112 7.1)."""
        while True:
            if self._state == "data":
                assert self._left is not None
                data, self._data = self._data[: self._left], self._data[self._left :]
                self._left -= len(data)
                if data:
                    self._payload.feed_data(data)
                if self._left:
                    return
                self._state = "end"
            if self._state == "end":
                if len(self._data) < 2:
                    return
                self._data, self._state = self._data[2:], "size"
            line, newline, rest = self._data.partition(b"\n")
            if not newline:
                if len(line) > _PIECE_BYTES:
                    raise http.client.LineTooLong("chunk size")
                return
            self._data = rest
            if self._state == "trailers":
                if line.strip(b"\r"):
                    continue
                self._payload.feed_eof()
                return
            self._left = int(line.partition(b";")[0], 16)
            if self._left < 0:
                raise ValueError("negative chunk size")
            self._state = "data" if self._left else "trailers"

    def end(self) -> None:
        """Is told of the end of the connection."""
        if self._message is None or self._payload.is_eof():
            return
        if self._state == "trailers" or not (self._message.chunked or self._left):
            self._payload.feed_eof()
        else:
            self._fail()

    def _fail(self) -> None:
        if self._payload.exception() is None:
            self._payload.set_exception(http.client.IncompleteRead(b""))
        self._data = b""


class _Bytes:
    """Bytes, as http.client wants a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self._data)


def _raw_message(message: Message) -> RawResponseMessage:
    fields = tuple((n.encode("latin-1"), v.encode("latin-1")) for n, v in message.fields)
    version = HttpVersion10 if message.version == 10 else HttpVersion11
    none: Any = None
    return RawResponseMessage(
        version, message.status, message.reason, none, fields, True, None, False, message.chunked
    )


def end_of_head(data: bytes) -> int:
    """Returns where a head ends; 0 if it does not.

    >>> end_of_head(b"HTTP/1.1 200 OK\\r\\n\\r\\nmore"), end_of_head(b"HTTP/1.1 200 OK\\r\\n")
    (19, 0)
    """
    ends = [at + len(end) for end in (b"\n\r\n", b"\n\n") if (at := data.find(end)) >= 0]
    return min(ends, default=0)
