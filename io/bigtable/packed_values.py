"""Packs Arrow values of any size into bytes, and unpacks them, over whole columns.

All lengths and numbers are little-endian; a length has 4 bytes and is -1 for null::

    text, bytes   as they are, text in UTF-8
    number        as it is in memory; a Boolean is a byte
    list          the number of items, the length of each item, then the items
    map           as a list, with the lengths of key and value of each entry, then key, value,
                  key, value and so on
    struct        the length of each field, then the fields

It avoids ``pa.array``, ``pa.scalar`` and ``to_numpy``: their first call imports pandas, if it
is installed, which takes longer than a small job.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


def is_number(kind: pa.DataType) -> bool:
    """Returns whether values of a type are numbers or Booleans."""
    floats = kind in (pa.float32(), pa.float64())
    return floats or pa.types.is_boolean(kind) or pa.types.is_integer(kind)


def can_pack(kind: pa.DataType) -> bool:
    """Returns whether values of a type can be packed.

    >>> can_pack(pa.list_(pa.int8())), can_pack(pa.list_(pa.date32()))
    (True, False)
    """
    if _is_list(kind) or pa.types.is_map(kind) or pa.types.is_struct(kind):
        parts = _parts(kind)
        return bool(parts) and all(map(can_pack, parts))
    texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return kind in texts or is_number(kind)


def pack(values: pa.Array) -> pa.Array:
    """Returns the bytes of each value, as large_binary; null becomes empty."""
    kind = values.type
    if pa.types.is_struct(kind):
        packed = _join_fields([values.field(at) for at in range(kind.num_fields)])
    elif pa.types.is_map(kind) or _is_list(kind):
        packed = _pack_lists(values)
    elif is_number(kind):
        plain = as_numpy(values.fill_null(number_as(0, kind)))
        size = dtype_of(kind).itemsize
        data = np.ascontiguousarray(plain.astype(dtype_of(kind).newbyteorder("<")))
        packed = binary_array(data.view(np.uint8), np.arange(len(values) + 1) * size)
    else:
        return values.cast(BINARY).fill_null(EMPTY)
    return pc.if_else(values.is_valid(), packed, EMPTY) if values.null_count else packed


def _pack_lists(values: pa.Array) -> pa.Array:
    if pa.types.is_map(values.type):
        entry = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
        values = values.cast(pa.list_(entry))
        flat = values.drop_null().flatten()
        columns = [flat.field(0), flat.field(1)]
    else:
        columns = [values.drop_null().flatten()]
    lengths = pc.list_value_length(values)
    counts = as_numpy(lengths.fill_null(number_as(0, lengths.type)))
    ends = ends_of(counts)
    sizes, items = _packed_columns(columns)
    data, offsets = buffers_of(items)
    return pc.binary_join_element_wise(
        binary_array(counts.astype("<i4").view(np.uint8), np.arange(len(values) + 1) * 4),
        binary_array(sizes.reshape(-1).view(np.uint8), ends * 4 * len(columns)),
        binary_array(data, offsets[ends]),
        EMPTY,
    )


def _join_fields(columns: Sequence[pa.Array]) -> pa.Array:
    """Returns the bytes of structs with the given fields."""
    sizes, items = _packed_columns(columns)
    ends = np.arange(len(sizes) + 1) * 4 * len(columns)
    heads = binary_array(sizes.reshape(-1).view(np.uint8), ends)
    return pc.binary_join_element_wise(heads, items, EMPTY)


def _packed_columns(columns: Sequence[pa.Array]) -> tuple[np.ndarray, pa.Array]:
    """Returns the length of each value, a row per row of the columns; and their joined bytes."""
    packed = [pack(column) for column in columns]
    sizes = np.empty((len(packed[0]), len(packed)), "<i4")
    for at, (column, values) in enumerate(zip(columns, packed, strict=True)):
        lengths = as_numpy(pc.binary_length(values))
        sizes[:, at] = np.where(as_numpy(column.is_valid()), lengths, -1)
    return sizes, pc.binary_join_element_wise(*packed, EMPTY)


def unpack(packed: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns the values of a type; null where the bytes are null.

    Raises:
        ValueError: The bytes are damaged.
    """
    if pa.types.is_struct(kind):
        return _unpack_structs(packed, kind)
    if pa.types.is_map(kind) or _is_list(kind):
        return _unpack_lists(packed, kind)
    if is_number(kind):
        return _unpack_numbers(packed, kind)
    return packed.cast(kind)


def _unpack_numbers(packed: pa.Array, kind: pa.DataType) -> pa.Array:
    stored = dtype_of(kind).newbyteorder("<")
    data, offsets = buffers_of(packed.fill_null(_bytes(stored.itemsize)))
    if (np.diff(offsets) != stored.itemsize).any():
        raise ValueError("a number is cut short")
    numbers = np.ascontiguousarray(data[offsets[0] : offsets[-1]]).view(stored)
    return numbers_as(numbers, kind, as_numpy(packed.is_null()))


def _unpack_lists(packed: pa.Array, kind: pa.DataType) -> pa.Array:
    parts = _parts(kind)
    data, offsets = buffers_of(packed.fill_null(_bytes(4)))
    if (np.diff(offsets) < 4).any():
        raise ValueError("a list is cut short")
    counts = join_slices(data, offsets[:-1], np.full(len(packed), 4)).view("<i4").astype(np.int64)
    columns = _unpack_columns(data, offsets[:-1] + 4, offsets[1:], counts, parts)
    ends, mask = ends_of(counts), packed.is_null()
    if pa.types.is_map(kind):
        at = numbers_as(ends.astype(np.int32), pa.int32())
        return pa.MapArray.from_arrays(at, *columns, mask=mask)
    if pa.types.is_large_list(kind):
        at = numbers_as(ends, pa.int64())
        return pa.LargeListArray.from_arrays(at, *columns, mask=mask).cast(kind)
    at = numbers_as(ends.astype(np.int32), pa.int32())
    return pa.ListArray.from_arrays(at, *columns, mask=mask).cast(kind)


def _unpack_structs(packed: pa.Array, kind: pa.DataType) -> pa.Array:
    parts = _parts(kind)
    data, offsets = buffers_of(packed.fill_null(_bytes(4 * len(parts), 255)))  # null fields
    one = np.ones(len(packed), np.int64)
    columns = _unpack_columns(data, offsets[:-1], offsets[1:], one, parts)
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=packed.is_null())


def _unpack_columns(
    data: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    counts: np.ndarray,
    parts: Sequence[pa.DataType],
) -> list[pa.Array]:
    """Unpacks the entries of values, a value of each part per entry.

    Args:
        data: Bytes of all values.
        starts: Start of the lengths of each value's entries.
        stops: End of each value.
        counts: Number of entries of each value.
        parts: The types in an entry.

    Raises:
        ValueError: The lengths do not fit the bytes.
    """
    # Two lists of pairs: [("ab", "c")] and [("d", null), ("", "e")].
    #
    #   data      1 2 1 a b c  2 1 -1 0 1 d e     counts and lengths have 4 bytes each, drawn as one sign
    #   starts      ^            ^
    #   bodies          ^                 ^
    #   stops                 ^                ^
    #   counts    1            2                  entries of each list
    #   lengths   [2 1]        [1 -1] [0 1]       a row per entry; -1 is null
    #   ends      0  1  3                         entries of the lists, summed up
    #   totals    0  3  4  5                      bytes of the entries, summed up
    #
    # ``start`` is where the next value of each entry begins: at a, d, e; after the first part at c, e, e.
    width = len(parts)
    bodies = starts + counts * 4 * width  # start of the bytes of each value's entries
    if (counts < 0).any() or (bodies > stops).any():
        raise ValueError("a list is cut short")
    lengths = join_slices(data, starts, counts * 4 * width).view("<i4").reshape(-1, width)
    sizes = np.maximum(lengths, 0).astype(np.int64)
    ends = ends_of(counts)
    totals = ends_of(sizes.sum(axis=1))  # bytes of all entries before each one
    if (bodies + np.diff(totals[ends]) != stops).any():
        raise ValueError("the lengths of a list do not add up")
    start = np.repeat(bodies - totals[ends[:-1]], counts) + totals[:-1]
    columns = []
    for at, part in enumerate(parts):
        values = binary_array(join_slices(data, start, sizes[:, at]), ends_of(sizes[:, at]))
        present = numbers_as(lengths[:, at] >= 0, pa.bool_())
        columns.append(unpack(pc.if_else(present, values, NULL), part))
        start = start + sizes[:, at]
    return columns


def _parts(kind: pa.DataType) -> list[pa.DataType]:
    """Returns the types in an entry of a map, an item of a list, or a struct."""
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [field.type for field in kind] if pa.types.is_struct(kind) else [kind.value_type]


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _bytes(number: int, value: int = 0) -> pa.Scalar:
    return binary_array(np.full(number, value, np.uint8), np.array([0, number]))[0]
