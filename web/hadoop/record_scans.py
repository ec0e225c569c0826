"""Finds records and sync marks in the bytes of a SequenceFile, with bounded memory."""

import io
import struct
from typing import BinaryIO, NamedTuple

from .hadoop_codecs import MAX_RECORD_BYTES
from .hadoop_faults import HadoopFault

SYNC_BYTES = 16
MARK_BYTES = b"\xff\xff\xff\xff"  # -1 in place of a length; the bytes of the sync mark follow
_WINDOW_BYTES = 4 << 20
# A record with a sync mark within has a wrong length; shorter ones show it as bad values.
_SEARCHED_BYTES = 1 << 14
_LENGTHS = struct.Struct(">ii")


class FileWindow:
    """Reads parts of a file.

    Attributes:
        size: Bytes of the file.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._data = b""
        self._base = 0
        self.size = stream.seek(0, io.SEEK_END)

    def read(self, position: int, length: int) -> bytes:
        """Returns the bytes from a position on; fewer at the end of the file."""
        at = position - self._base
        if at < 0 or at + length > len(self._data):
            self._data = b""
            self._data, self._base = self._load(position, max(length, _WINDOW_BYTES)), position
            at = 0
        data = self._data[at : at + length]
        if len(self._data) > _WINDOW_BYTES:  # a long record is not kept
            self._data = b""
        return data

    def _load(self, position: int, length: int) -> bytes:
        """Reads bytes of the stream; some streams return fewer at a time."""
        self._stream.seek(position)
        pieces = []
        wanted = max(0, min(length, self.size - position))
        while wanted > 0:
            piece = self._stream.read(wanted)
            if not piece:
                break
            pieces.append(piece)
            wanted -= len(piece)
        return b"".join(pieces)


def find_mark(window: FileWindow, position: int, mark: bytes) -> int | None:
    """Returns where the next sync mark begins, with its -1, at or after a position; None: nowhere."""
    while position + len(mark) <= window.size:
        data = window.read(position, _WINDOW_BYTES)
        at = data.find(mark)
        if at >= 0:
            return position + at
        if len(data) < len(mark):  # the file has become shorter
            return None
        position += len(data) - len(mark) + 1
    return None


class RecordScan(NamedTuple):
    """Records in a part of a file.

    Attributes:
        data: The part.
        starts: Where the keys of records start in it; a value follows its key.
        key_lengths: Bytes of the keys.
        lengths: Bytes of keys and values together.
        scanned: Where the next record begins in the part.
        ended: Whether the range of the file has ended.
        fault: What is damaged at the next record.
    """

    data: bytes
    starts: list[int]
    key_lengths: list[int]
    lengths: list[int]
    scanned: int
    ended: bool = False
    fault: HadoopFault | None = None


def scan_records(window: FileWindow, position: int, limit: int, mark: bytes) -> RecordScan:
    """Returns the records from a position on: those that fit a window, but at least one.

    Args:
        position: Where a record or a sync mark begins.
        limit: A sync mark that begins there or later ends the scan.
        mark: A sync mark, with its -1.
    """
    length = _WINDOW_BYTES
    while True:
        data = window.read(position, length)
        is_last = len(data) < length or position + length >= window.size
        scan = _scan(data, position, limit, mark, is_last)
        if scan.scanned or scan.ended or scan.fault is not None:
            return scan
        # The first record is longer than the window.
        if data.find(mark) >= 0:
            return scan._replace(fault=_bad_length(position, *_LENGTHS.unpack_from(data)))
        length *= 2


def _scan(data: bytes, base: int, limit: int, mark: bytes, is_last: bool) -> RecordScan:
    starts: list[int] = []
    lengths: list[int] = []
    key_lengths: list[int] = []
    fault = None
    ended = False
    at, size, unpack = 0, len(data), _LENGTHS.unpack_from
    while at + 8 <= size:
        length, key_length = unpack(data, at)
        after = at + 8 + length
        if 0 < key_length <= length and after <= size:
            if length > _SEARCHED_BYTES and data.find(mark, at, after) >= 0:
                fault = _bad_length(base + at, length, key_length)
                break
            starts.append(at + 8)
            lengths.append(length)
            key_lengths.append(key_length)
            at = after
        elif length == -1:
            if at + len(mark) > size:
                break
            if data[at : at + len(mark)] != mark:
                fault = HadoopFault("bad_sync_mark", base + at, "that of the header was expected")
                break
            if base + at >= limit:
                ended = True
                break
            at += len(mark)
        else:
            # No text takes no byte: a file with a hole of zeros is no row of empty records.
            if not 0 < key_length <= length <= MAX_RECORD_BYTES:
                fault = _bad_length(base + at, length, key_length)
            break
    if is_last and at < size and not ended and fault is None:
        fault = HadoopFault("truncated_file", base + at, f"{size - at} bytes of a record")
    return RecordScan(
        data, starts, key_lengths, lengths, at, ended or (is_last and at == size), fault
    )


def _bad_length(position: int, length: int, key_length: int) -> HadoopFault:
    return HadoopFault(
        "bad_record_length", position, f"a record of {length} bytes with a key of {key_length}"
    )
