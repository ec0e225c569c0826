"""Spans of bytes in a buffer, many at a time: texts, numbers and lengths of Hadoop's values.

A span is a pair of numbers in two arrays: where it starts in the buffer, and its length.

::

    buffer   x x a b c x d e x x        starts 2, 6        lengths 3, 2
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

_MOST = 1 << 40
Bytes: TypeAlias = npt.NDArray[np.uint8]
Integers: TypeAlias = npt.NDArray[np.int64]


def copy_spans(
    buffer: bytes | Bytes, starts: Integers, lengths: Integers, empty_is_null: bool = False
) -> pa.LargeBinaryArray:
    """Returns spans, which ascend and do not overlap, as an array of bytes.

    >>> copy_spans(b"..abc.de", np.array([2, 6]), np.array([3, 2])).to_pylist()
    [b'abc', b'de']

    Raises:
        ValueError: Spans overlap, or lie outside the buffer: Arrow would read any memory.
    """
    # The spans and the gaps between them are one array; every second value is a span.
    ends = np.empty(2 * len(starts) + 1, np.int64)
    ends[0] = 0
    ends[1::2] = starts
    ends[2::2] = starts + lengths
    if (np.diff(ends) < 0).any() or ends[-1] > len(buffer):
        raise ValueError(f"spans must ascend within {len(buffer)} bytes")
    pieces = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2 * len(starts), [None, pa.py_buffer(ends), pa.py_buffer(buffer)]
    )
    chosen = np.arange(1, 2 * len(starts), 2)
    return pieces.take(pa.array(chosen, mask=lengths == 0 if empty_is_null else None))


def read_texts(buffer: bytes | Bytes, starts: Integers, lengths: Integers) -> pl.Series:
    """Returns spans as texts; bytes that are not UTF-8 become U+FFFD, as in Java.

    >>> read_texts(b"..abc.d\\xff", np.array([2, 6]), np.array([3, 2])).to_list()
    ['abc', 'd\\ufffd']
    """
    spans = copy_spans(buffer, starts, lengths)
    try:
        return pl.Series(pl.from_arrow(spans.cast(pa.large_string())))
    except pa.ArrowInvalid:
        return pl.Series(
            [each.as_py().decode("utf-8", "replace") for each in spans], dtype=pl.String
        )


def read_vints(buffer: Bytes, starts: Integers) -> tuple[Integers, Integers]:
    """Returns (numbers, how many bytes each takes) of Hadoop's variable-length numbers.

    One byte from -112 to 127 is the number. Else it says how many bytes follow, up to eight, big-endian,
    and whether the number is negative (WritableUtils.readVLong). What would lie after the buffer is 0.
    Numbers are cut to 40 bits, so that sums of them are exact.

    >>> numbers, widths = read_vints(np.frombuffer(b"\\x05\\x8f\\xc8\\x87\\x00", np.uint8), np.array([0, 1, 3]))
    >>> numbers.tolist(), widths.tolist()
    ([5, 200, -1], [1, 2, 2])
    """
    first = _bytes_at(buffer, starts).astype(np.int8).astype(np.int64)
    numbers, widths = first.copy(), np.ones(len(starts), np.int64)
    (longer,) = np.nonzero(first < -112)
    if not len(longer):
        return numbers, widths
    negative = first[longer] < -120
    following = np.where(negative, -120, -112) - first[longer]
    widths[longer] = following + 1
    value = np.zeros(len(longer), np.uint64)
    for index in range(1, int(following.max()) + 1):
        byte = _bytes_at(buffer, starts[longer] + index).astype(np.uint64)
        value = np.where(index <= following, value << np.uint64(8) | byte, value)
    signed = np.minimum(value, np.uint64(_MOST)).astype(np.int64)
    numbers[longer] = np.where(negative, ~signed, signed)
    return numbers, widths


def _bytes_at(buffer: Bytes, places: Integers) -> Bytes:
    """Returns the bytes at places; 0 for places outside the buffer."""
    inside = (places >= 0) & (places < len(buffer))
    if inside.all():
        return buffer[places]
    result = np.zeros(len(places), np.uint8)
    result[inside] = buffer[places[inside]]
    return result


def read_rows(buffer: Bytes, starts: Integers, fields: np.dtype) -> npt.NDArray[np.void]:
    """Returns structs of fixed size that start at places of the buffer.

    All must lie in the buffer.
    """
    if not len(starts):
        return np.empty(0, fields)
    windows = np.lib.stride_tricks.sliding_window_view(buffer, fields.itemsize)
    rows: npt.NDArray[np.void] = windows[starts].view(fields)[:, 0]
    return rows


def bytes_of(buffer: Bytes) -> bytes:
    """Returns the bytes of a buffer; those that it was made of, if it was."""
    return buffer.base if isinstance(buffer.base, bytes) else buffer.tobytes()
