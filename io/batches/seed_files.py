"""Reads files of seeds: lines of text in any UTF, plain or packed with gzip."""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO

from ...web.content.charset import encoding_as_declared

LONGEST_LINE = 1 << 16  # characters
# A packed file may be larger when it is unpacked by this factor: lists of URLs shrink 3- to
# 30-fold. The first bytes are exempt, as small files of equal lines are harmless.
MOST_TIMES = 200
EXEMPT_BYTES = 100 << 20
_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 16
_START = 1 << 10  # bytes that show the encoding


def is_binary(start: bytes) -> bool:
    """Returns whether the first bytes of a file show that it is no text.

    >>> is_binary("http://a.com/".encode("utf-16")), is_binary(b"\\x7fELF\\0\\0")
    (False, True)
    """
    return "\0" in start.decode(_encoding_of(start), "replace")


def _encoding_of(start: bytes) -> str:
    return encoding_as_declared(start[:_START], None)


def open_unpacked(file: IO[bytes]) -> io.BufferedReader:
    """Returns the content of a file, unpacked if it begins as gzip does; its name does not matter.

    Reading it raises an OSError if the packed data is damaged, incomplete, or grows too much.
    Closing it leaves ``file`` open.
    """
    head = file.read(len(_MAGIC)) or b""
    if len(head) == 1:
        head += file.read(1) or b""
    kind = _Gzip if head == _MAGIC else _Plain
    return io.BufferedReader(kind(file, head), _BLOCK)


class _Plain(io.RawIOBase):
    """A file whose first bytes were read already."""

    def __init__(self, file: IO[bytes], head: bytes) -> None:
        self._file, self._head, self.taken = file, head, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        data = data or self._file.read(size) or b""
        self.taken += len(data)
        return data


class _Gzip(_Plain):
    """Unpacks a file of gzip members; memory holds one block."""

    def __init__(self, file: IO[bytes], head: bytes) -> None:
        super().__init__(file, head)
        self._packed, self._made = _Plain(file, head), 0
        packed = io.BufferedReader(self._packed, _BLOCK)
        self._content = gzip.GzipFile(fileobj=packed)

    def _read(self, size: int) -> bytes:
        try:
            data = self._content.read1(size)
        except EOFError as error:
            raise OSError("its gzip data is incomplete") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise OSError(f"its gzip data is damaged ({error})") from error
        self._made += len(data)
        if self._made > EXEMPT_BYTES + MOST_TIMES * self._packed.taken:
            raise OSError(f"its gzip data is more than {MOST_TIMES} times as large unpacked")
        return data


def lines(file: IO[bytes]) -> Iterator[str]:
    """Yields the lines of a file; of a line that is too long only ``LONGEST_LINE`` characters."""
    content = open_unpacked(file)
    start = content.read(_START)
    whole = io.BufferedReader(_Plain(content, start), _BLOCK)
    with io.TextIOWrapper(whole, encoding=_encoding_of(start), errors="replace") as text:
        mark = "\ufeff"  # Windows writes it at the beginning
        while line := text.readline(LONGEST_LINE):
            line, mark = line.removeprefix(mark), ""
            yield line
            while len(line) == LONGEST_LINE and not line.endswith("\n"):
                line = text.readline(LONGEST_LINE)
