"""Reads files of seeds: lines of text in any UTF, plain or packed with gzip."""

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
        self._file, self._head = file, head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        return data or self._file.read(size) or b""


class _Gzip(_Plain):
    """Unpacks gzip members, one after the other; memory holds one block."""

    def __init__(self, file: IO[bytes], head: bytes) -> None:
        super().__init__(file, head)
        self._member = zlib.decompressobj(31)
        self._packed, self._taken, self._made = b"", 0, 0

    def _read(self, size: int) -> bytes:
        while True:
            if not self._packed:
                self._packed = super()._read(_BLOCK)
                self._taken += len(self._packed)
            if not self._packed:
                if not self._member.eof:
                    raise OSError("its gzip data is incomplete")
                return b""
            if self._member.eof:
                self._packed = self._packed.lstrip(b"\0")  # padding
                if not self._packed:
                    continue
                self._member = zlib.decompressobj(31)
            try:
                data = self._member.decompress(self._packed, size)
            except zlib.error as error:
                raise OSError(f"its gzip data is damaged ({error})") from error
            self._packed = self._member.unused_data or self._member.unconsumed_tail
            self._made += len(data)
            if self._made > EXEMPT_BYTES + MOST_TIMES * self._taken:
                raise OSError(f"its gzip data is more than {MOST_TIMES} times as large unpacked")
            if data:
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
