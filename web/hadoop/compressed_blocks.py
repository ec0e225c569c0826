"""Reads one block of a SequenceFile that is compressed in blocks."""

from typing import NamedTuple

import numpy as np

from .byte_spans import Bytes, Integers, read_vints
from .hadoop_codecs import MAX_RECORD_BYTES, BrokenCompression, HadoopCodec
from .hadoop_faults import HadoopFault
from .record_scans import FileWindow

_VINT_BYTES = 5
_PARTS = 4  # key lengths, keys, value lengths, values
_LARGE_BYTES = 8 << 20  # Hadoop's blocks have a million raw bytes, unless a record has more


class BlockParts(NamedTuple):
    """The records of a block, decompressed.

    Attributes:
        position: Where the block begins in the file.
        end: Where the next one begins.
        keys: The keys, one after another.
        key_lengths: Bytes of each key.
        values: The values, one after another.
        value_lengths: Bytes of each value.
    """

    position: int
    end: int
    keys: bytes
    key_lengths: Integers
    values: bytes
    value_lengths: Integers

    @property
    def rows(self) -> int:
        """Number of records."""
        return len(self.key_lengths)

    @property
    def raw_bytes(self) -> int:
        """Decompressed bytes of keys and values."""
        return len(self.keys) + len(self.values)


class _BadBlock(Exception):
    """The reason of a fault, and what is expected."""


def read_block(
    window: FileWindow, position: int, mark: bytes, codec: HadoopCodec
) -> BlockParts | HadoopFault:
    """Returns the block at a position, or why there is none.

    Args:
        mark: A sync mark, with its -1; each block begins with one.
    """
    try:
        return _read_block(window, position, mark, codec)
    except _BadBlock as error:
        reason, detail = error.args
    except BrokenCompression as error:
        reason, detail = "broken_compression", str(error)
    return HadoopFault(reason, position, detail)


def _read_block(window: FileWindow, position: int, mark: bytes, codec: HadoopCodec) -> BlockParts:
    opening = window.read(position, len(mark))
    if opening != mark:
        cut_off = len(opening) < len(mark) and mark.startswith(opening)
        reason = "truncated_file" if cut_off else "bad_sync_mark"
        raise _BadBlock(reason, "a block begins with a sync mark")
    rows, at = _read_vint(window, position + len(mark))
    if not 0 <= rows <= MAX_RECORD_BYTES:
        raise _BadBlock("bad_record_length", f"a block of {rows} records")
    parts = []
    for _ in range(_PARTS):
        length, at = _read_vint(window, at)
        parts.append(_read_part(window, at, length, mark))
        at += length
    key_sizes, keys, value_sizes, values = map(codec.decompress, parts)
    return BlockParts(
        position, at,
        keys, _lengths_of(key_sizes, rows, len(keys)),
        values, _lengths_of(value_sizes, rows, len(values)),
    )  # fmt: skip


def _read_vint(window: FileWindow, position: int) -> tuple[int, int]:
    """Returns a number, and where it ends."""
    data = window.read(position, _VINT_BYTES)
    numbers, widths = read_vints(np.frombuffer(data, np.uint8), np.zeros(1, np.int64))
    if widths[0] > len(data):
        if position + _VINT_BYTES > window.size:
            raise _BadBlock("truncated_file", "a block is cut off")
        raise _BadBlock("bad_record_length", f"a length of {widths[0]} bytes")
    return int(numbers[0]), position + int(widths[0])


def _read_part(window: FileWindow, position: int, length: int, mark: bytes) -> bytes:
    if not 0 <= length <= MAX_RECORD_BYTES:
        raise _BadBlock("bad_record_length", f"a part of {length} bytes")
    cut_off = _BadBlock("truncated_file", f"a part of {length} bytes is cut off")
    if position + length > window.size:
        raise cut_off
    # No part has a sync mark within; a wrong length must not bring the whole file into memory.
    if length > _LARGE_BYTES and mark in window.read(position, _LARGE_BYTES):
        raise _BadBlock("bad_record_length", f"a part of {length} bytes with a sync mark within")
    part = window.read(position, length)
    if len(part) < length:
        raise cut_off
    return part


def _lengths_of(data: bytes, rows: int, total_bytes: int) -> Integers:
    """Decodes the lengths of keys or values."""
    if rows > len(data):
        raise _BadBlock("bad_record_length", f"lengths of {len(data)} bytes for {rows} records")
    buffer = np.frombuffer(data, np.uint8)
    starts = np.arange(rows)
    if len(data) > rows:  # some have several bytes
        starts = _vint_starts(buffer, rows)
    lengths, widths = read_vints(buffer, starts)
    if int(widths.sum()) != len(data) or (lengths < 0).any() or int(lengths.sum()) != total_bytes:
        raise _BadBlock("bad_record_length", "lengths of records that do not fit their bytes")
    return lengths


def _vint_starts(buffer: Bytes, rows: int) -> Integers:
    """Returns where the numbers start that lie one after another."""
    first = buffer.astype(np.int8).astype(np.int64)
    widths = np.where(first >= -112, 1, np.where(first < -120, -119, -111) - first).tolist()
    starts = []
    at, size = 0, len(widths)
    for _ in range(rows):
        if at >= size:
            raise _BadBlock("bad_record_length", "fewer lengths than records")
        starts.append(at)
        at += widths[at]
    return np.array(starts, np.int64)
