"""Protects standard output and error: control sequences in foreign text are shown as text."""

import codecs
import contextlib
import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TextIO, cast

from .visible import visible

_PLAIN_CONTROLS = "\n\t"
_PATIENCE_S = 1.0
_CLEAR_LINE = "\r\x1b[2K"


class Notice:
    """A line on a terminal that the next output replaces."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._terminal: TextIO | None = None

    def show(self, text: str, stream: TextIO) -> None:
        """Shows a line, if the stream is a terminal that can clear it."""
        terminal = _stream_of(stream)
        with contextlib.suppress(OSError, ValueError):
            if terminal.isatty() and os.environ.get("TERM", "dumb") != "dumb":
                terminal.write(f"{visible(text)}\r")
                terminal.flush()
                self._terminal = terminal

    def clear(self) -> None:
        """Clears the line, if there is one."""
        if self._terminal is None:
            return
        with self._lock, contextlib.suppress(OSError, ValueError):
            terminal, self._terminal = self._terminal, None
            if terminal is not None:
                terminal.write(_CLEAR_LINE)
                terminal.flush()


NOTICE = Notice()


class VisibleStream:
    """A text stream that writes all text through ``visible``, but keeps line feeds and tabs.

    Unless the stream is a terminal, bytes pass unchanged, and so does text after
    ``pass_records``: these are records for scripts.

    Attributes:
        stream: The stream that it writes to.
        exact: Whether text passes unchanged.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.exact = stream, False

    def write(self, text: str) -> int:
        """Writes a text; returns its length. A live view of the stream shows it above itself."""
        NOTICE.clear()
        visible_text = text if self.exact else visible(text, _PLAIN_CONTROLS)
        view = _VIEWS.get(self.stream)
        (self.stream if view is None else view).write(visible_text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> BinaryIO:
        """The stream of bytes; on a terminal, one that writes through ``visible``."""
        NOTICE.clear()
        if self.stream.isatty():
            return cast(BinaryIO, VisibleBytes(self.stream))
        return self.stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class LiveView:
    """A live view at the end of a stream, which shows the lines of other writers above itself.

    Args:
        show: Shows whole lines above the view; any thread may call it.
        close: Ends the view and leaves the cursor below it, before the process is ended.
    """

    def __init__(self, show: Callable[[str], object], close: Callable[[], object]) -> None:
        self.close = close
        self._show, self._lock, self._begun = show, threading.Lock(), ""

    def write(self, text: str) -> None:
        """Shows the lines that are complete with this text."""
        with self._lock:
            lines, end, self._begun = (self._begun + text).rpartition("\n")
        if end:
            self._show(lines)

    def unfinished_line(self) -> str:
        """Returns the text after the last complete line."""
        return self._begun


_VIEWS: dict[Any, LiveView] = {}  # by the stream that a visible stream writes to


@contextlib.contextmanager
def view_at(view: LiveView, streams: Iterable[TextIO | None]) -> Iterator[None]:
    """Shows what visible streams write above a view, until the end of the block."""
    inner_streams = {unwrap_stream(stream) for stream in streams if stream is not None}
    _VIEWS.update(dict.fromkeys(inner_streams, view))
    try:
        yield
    finally:
        for stream in inner_streams:
            _VIEWS.pop(stream, None)


def close_views() -> None:
    """Ends all live views, so that the terminal is as before; any thread may call it."""
    for view in set(_VIEWS.values()):
        view.close()
    _VIEWS.clear()


class VisibleBytes(io.RawIOBase):
    """A stream of bytes that writes them to a text stream, through ``visible``."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        """Returns True, for libraries that put a text stream on this one."""
        return True

    def write(self, data: Any) -> int:
        """Writes UTF-8, which may end within a character; returns the number of bytes."""
        self._stream.write(visible(self._decoder.decode(data), _PLAIN_CONTROLS))
        return len(data)

    def flush(self) -> None:
        """Flushes the text stream."""
        self._stream.flush()


class Relay:
    """Relays the standard error of child processes through ``visible``, if ours is a terminal.

    Attributes:
        stderr: Descriptor for the children; None if they may inherit ours.
    """

    def __init__(self) -> None:
        self.stderr: int | None = None
        with contextlib.suppress(OSError):
            if os.isatty(2):
                self._reader, self.stderr = os.pipe()
                self._thread = threading.Thread(target=self._copy, name="relay", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Waits for the rest of the output; call it when all children have ended."""
        if self.stderr is not None:
            os.close(self.stderr)
            self._thread.join(_PATIENCE_S)  # a process that a child started may still have it open
            self.stderr = None

    def _copy(self) -> None:
        out = VisibleBytes(sys.stderr)
        while data := os.read(self._reader, 1 << 16):
            with contextlib.suppress(OSError, ValueError):
                out.write(data)
                out.flush()
        os.close(self._reader)


_PACKAGE = __name__.partition(".")[0]
_MODULES = tuple(
    f"{_PACKAGE}.{room}." for room in ("pipelines", "transforms", "io", "policy", "web")
)


class LineFormatter(logging.Formatter):
    """Formats a record as one line; the lines of a traceback follow.

    Users know no modules of nutbeam: only debug messages name them.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        name = record.name
        try:
            if record.levelno > logging.DEBUG and name.startswith(_MODULES):
                record.name = _PACKAGE
            return visible(super().formatMessage(record))
        finally:
            record.name = name


@contextlib.contextmanager
def visible_streams() -> Iterator[None]:
    """Makes standard output and error visible streams, until the end of the block."""
    previous_streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast(TextIO, VisibleStream(_stream_of(stream))) if stream is not None else None
        for stream in previous_streams
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = previous_streams


def pass_records() -> None:
    """Prints records for scripts unchanged, unless standard output is a terminal."""
    if isinstance(sys.stdout, VisibleStream):
        sys.stdout.exact = not sys.stdout.isatty()


def unwrap_stream(stream: TextIO) -> TextIO:
    """Returns the stream below a VisibleStream, or the stream itself if it is another one.

    For text that is escaped already, and that contains nutbeam's own control sequences.
    """
    NOTICE.clear()
    return _stream_of(stream)


def _stream_of(stream: TextIO) -> TextIO:
    return stream.stream if isinstance(stream, VisibleStream) else stream
