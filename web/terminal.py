"""Standard output and error as people see them: what strangers said is shown, never obeyed."""

import codecs
import contextlib
import logging
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, TextIO, cast

from .visible import visible

_KEPT = "\n\t"


class VisibleStream:
    """A text stream that writes all text through ``visible``, lines and tabs apart.

    Records for scripts pass as they are (``pass_records``, and all bytes) where the stream is no
    terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.records = stream, False

    def write(self, text: str) -> int:
        """Writes a text; returns its length."""
        exact = self.records and not self.stream.isatty()
        self.stream.write(text if exact else visible(text, _KEPT))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> BinaryIO:
        """The stream of bytes below; on a terminal one that shows them."""
        if self.stream.isatty():
            return cast(BinaryIO, VisibleBytes(self.stream))
        return self.stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class VisibleBytes:
    """A stream of bytes that writes them to a text stream, through ``visible``."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes) -> int:
        """Writes bytes of UTF-8, which may end within a character; returns how many."""
        self._stream.write(visible(self._decoder.decode(data), _KEPT))
        return len(data)

    def flush(self) -> None:
        """Flushes the text stream."""
        self._stream.flush()


class LineFormatter(logging.Formatter):
    """Makes one line of a record; the lines of a traceback follow."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (logging's name)
        """Returns the line."""
        return visible(super().formatMessage(record))


@contextlib.contextmanager
def visible_streams() -> Iterator[None]:
    """Makes this process' standard output and error visible streams, until the block is left."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast(TextIO, VisibleStream(unwrapped(stream))) if stream is not None else None
        for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def pass_records() -> None:
    """Lets what is printed pass as it is, where standard output is no terminal: it is for scripts."""
    if isinstance(sys.stdout, VisibleStream):
        sys.stdout.records = True


def unwrapped(stream: TextIO) -> TextIO:
    """Returns the stream that a visible stream writes to; any other as it is.

    For who has made what is written visible and has sequences of our own in it.
    """
    return stream.stream if isinstance(stream, VisibleStream) else stream
