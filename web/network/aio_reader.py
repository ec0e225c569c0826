"""Reads responses for aiohttp's protocol, by the rules of both clients (``response_reader``)."""

import asyncio
from typing import NamedTuple

from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from .response_reader import ResponseReader

_PIECE_BYTES = 65_536


class Begun(NamedTuple):
    """What aiohttp's protocol must know of a response whose head has come.

    Attributes:
        code: Status code.
        should_close: Nothing; ``ResponseReader.keeps`` says it.
    """

    code: int
    should_close: bool = False


Messages = list[tuple[Begun, StreamReader]]


class Reader:
    """Stands for aiohttp's parser, of one response.

    Args:
        protocol: What is read for.
        loop: Its loop.
        fresh: See ``ResponseReader``.

    Attributes:
        response: What has come.
    """

    def __init__(
        self, protocol: BaseProtocol, loop: asyncio.AbstractEventLoop, fresh: bool
    ) -> None:
        self.response = ResponseReader(fresh)
        self._protocol, self._loop = protocol, loop
        self._payload: StreamReader | None = None

    def feed_data(self, data: bytes) -> tuple[Messages, bool, bytes]:
        """Returns the response if its head has come with this; see aiohttp's parser."""
        return self._take(self.response.feed(data)), False, b""

    def last(self) -> Messages:
        """Ends the response with the connection; returns it if only that ends its head.

        Raises:
            http.client.HTTPException: It is no HTTP.
        """
        return self._take(self.response.end())

    def _take(self, body: bytes) -> Messages:
        found: Messages = []
        response = self.response
        if response.head is None:
            return found
        if self._payload is None:
            self._payload = EMPTY_PAYLOAD
            if body or not response.ended:
                self._payload = StreamReader(self._protocol, _PIECE_BYTES, loop=self._loop)
            found.append((Begun(response.head.status), self._payload))
        if body:
            self._payload.feed_data(body)
        if response.ended and not self._payload.is_eof():
            self._payload.feed_eof()
        elif response.error is not None and self._payload.exception() is None:
            self._payload.set_exception(response.error)
        return found

    def feed_eof(self) -> None:
        """Does nothing: ``last`` has seen to the end."""

    def pause_reading(self) -> None:
        """Does nothing: what has come was given away."""
