"""Converts between Arrow arrays and their bytes, without needless copies.

It avoids ``pa.array``, ``pa.scalar`` and ``to_numpy``: their first call imports pandas, if it
is installed, which takes longer than a small job.
"""

import numpy as np
import pyarrow as pa

BINARY = pa.large_binary()
_NUMPY = {pa.bool_(): "u1", pa.float32(): "f4", pa.float64(): "f8"}


def numbers_as(values: np.ndarray, kind: pa.DataType, absent: np.ndarray | None = None) -> pa.Array:
    """Returns numbers as an Arrow array, null where they are absent."""
    plain = np.ascontiguousarray(values)
    if pa.types.is_boolean(kind):
        plain = np.packbits(plain.astype(bool), bitorder="little")
    valid = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(plain)])


def as_numpy(array: pa.Array) -> np.ndarray:
    """Returns the numbers of an array without nulls."""
    assert not array.null_count
    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, dtype_of(array.type))
    if pa.types.is_boolean(array.type):
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return bits[array.offset : array.offset + len(array)].astype(bool)
    kind = dtype_of(array.type)
    return np.frombuffer(data, kind, len(array), array.offset * kind.itemsize)


def dtype_of(kind: pa.DataType) -> np.dtype:
    """Returns numpy's type for an Arrow type of numbers; a Boolean is a byte."""
    return np.dtype(_NUMPY.get(kind, str(kind)))


def number_as(value: int, kind: pa.DataType) -> pa.Scalar:
    """Returns a number as an Arrow scalar."""
    return numbers_as(np.full(1, value, dtype_of(kind)), kind)[0]


def buffers_of(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Returns the data of a large_binary array, and the offsets of its values in the data."""
    _, offsets, data = array.buffers()
    at = (
        np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
        if offsets
        else np.zeros(1, np.int64)
    )
    return (np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)), at


def binary_array(data: np.ndarray, offsets: np.ndarray) -> pa.Array:
    """Returns the large_binary array of contiguous pieces."""
    at = np.ascontiguousarray(offsets, np.int64)
    return pa.LargeBinaryArray.from_buffers(
        BINARY, len(at) - 1, [None, pa.py_buffer(at), pa.py_buffer(np.ascontiguousarray(data))]
    )


def join_slices(data: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Returns the bytes of slices, joined."""
    ends = ends_of(sizes)
    return data[np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])]


def ends_of(sizes: np.ndarray) -> np.ndarray:
    """Returns the offsets of contiguous slices: 0, then the end of each slice."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


EMPTY = binary_array(np.zeros(0, np.uint8), np.zeros(2, np.int64))[0]
NULL = pa.nulls(1, BINARY)[0]
