"""Packs each row of a component into one cell of Bigtable, and unpacks it.

``cell_layout.py`` derives the columns of a layout from the declaration of the component. The cell
of a row of the state (``s:state``), all numbers little-endian unless said otherwise::

    due       8 bytes   fetch_time, big-endian, sign bit flipped: cells sort by
                        time, so one value range selects the due rows; in a row
                        without a time all bits are set, so it sorts last
    version   1 byte    of the layout below
    present   8 bytes   bit set: which columns are not null, in the layout's order
    fixed     ...       one number per fixed column, 0 where it is null
    lengths   4 bytes   per variable column, how many bytes it has
    variable  ...       the variable columns, one after the other

A component without such a time, such as the hosts (``h:host``), has the same layout without
``due``. ``packed_values.py`` says what the bytes of a variable column are.

An empty cell is a tombstone: the row was deleted. A layout never changes: a layout with
more columns gets the next version number, and readers support all layouts. A row is written
in the oldest layout that has its columns, so new columns take no bytes where they are null.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from ...policy.components.schema import conform
from ...web.base.errors import UserError
from .cell_layout import CellKind, Layout
from .packed_values import (
    BINARY,
    EMPTY,
    as_numpy,
    binary_array,
    buffers_of,
    dtype_of,
    number_as,
    numbers_as,
    pack,
    unpack,
)

TOMBSTONE = b""
_SIGN = np.uint64(1 << 63)
_NEVER = np.uint64(2**64 - 1)


def due_bytes(time_ms: int) -> bytes:
    """Returns the first bytes of the cell of a row that is due at a time (ms).

    >>> due_bytes(-1) < due_bytes(0) < due_bytes(1), due_bytes(0).hex()
    (True, '8000000000000000')
    """
    return ((time_ms + (1 << 63)) & (2**64 - 1)).to_bytes(8, "big")


def encode(rows: pa.Table | pl.DataFrame, kind: CellKind) -> pa.Table:
    """Packs rows.

    Args:
        rows: Rows of the kind's schema; missing columns are null.
        kind: The kind of the cells.

    Returns:
        Columns ``key`` and ``cell`` (large_binary), in the order of the rows.
    """
    table = conform(rows, kind.schema).combine_chunks()
    return _in_order(table, _layouts(table, kind), lambda part, at: _pack(part, kind.layouts[at]))


def _layouts(table: pa.Table, kind: CellKind) -> np.ndarray:
    """Returns the position of the oldest layout that has all columns that a row needs.

    So columns of later layouts take no bytes in rows where they are null.
    """
    needed = np.zeros(len(table), np.uint8)
    for at, (older, layout) in enumerate(itertools.pairwise(kind.layouts), 1):
        for name in set(layout.columns) - set(older.columns):
            if table.column(name).null_count < len(table):
                needed[_valid(table, name)] = at
    return needed


def _in_order(
    table: pa.Table, groups: np.ndarray, work: Callable[[pa.Table, int], pa.Table]
) -> pa.Table:
    """Applies a function to the rows of each group; returns the results in row order."""
    group_values = np.unique(groups).tolist()
    if len(group_values) <= 1:
        return work(table, group_values[0] if group_values else 0)
    places = [np.flatnonzero(groups == group) for group in group_values]
    parts = [
        work(table.take(numbers_as(at, pa.int64())), group)
        for group, at in zip(group_values, places, strict=True)
    ]
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_tables(parts).combine_chunks().take(numbers_as(order, pa.int64()))


def _pack(table: pa.Table, layout: Layout) -> pa.Table:
    header = np.zeros(len(table), _header_type(table.schema, layout))
    header["version"] = layout.version
    for bit, name in enumerate(layout.columns):
        header["present"] |= _valid(table, name).astype(np.uint64) << np.uint64(bit)
    if layout.due:
        times = _numbers(table, layout.due).view(np.uint64) ^ _SIGN
        header["due"] = np.where(_valid(table, layout.due), times, _NEVER)
    for name in layout.fixed:
        header[name] = _numbers(table, name)
    parts = [pack(_array(table, name)) for name in layout.variable]
    for at, part in enumerate(parts):
        header["lengths"][:, at] = as_numpy(pc.binary_length(part))
    heads = binary_array(header.view(np.uint8), np.arange(len(table) + 1) * header.itemsize)
    cells = pc.binary_join_element_wise(heads, *parts, EMPTY)
    keys = _array(table, "key").cast(BINARY)
    return pa.table({"key": keys, "cell": cells})


def decode(cells: pa.Table, kind: CellKind, columns: Sequence[str] | None = None) -> pa.Table:
    """Unpacks cells.

    Args:
        cells: Columns ``key`` and ``cell``, as ``encode`` returns them; any kind
            of binary, no tombstones.
        kind: The kind of the cells.
        columns: The columns to unpack; all if None. A column that is not in a cell's
            layout is null.

    Returns:
        The rows, in order, with the columns as the schema declares them.

    Raises:
        UserError: A cell is damaged, or was written by a newer nutbeam.
    """
    schema = kind.schema if columns is None else pa.schema([kind.schema.field(n) for n in columns])
    keys, packed = (_array(cells, name).cast(BINARY) for name in ("key", "cell"))
    versions = _versions_of(packed, keys, kind)
    layouts = {layout.version: layout for layout in kind.layouts}
    for version in np.unique(versions).tolist():
        if version not in layouts:
            raise UserError(
                f"cell {kind.family}:{kind.qualifier.decode()} of row "
                f"{_key_text(keys, int(np.argmax(versions == version)))} has version {version!r}, "
                f"this nutbeam reads up to {kind.newest.version}: upgrade nutbeam; "
                "if no newer nutbeam has written to the table, this is damage"
            )
    return _in_order(
        pa.table({"key": keys, "cell": packed}),
        versions,
        lambda part, version: _unpack(part, kind, layouts[version or kind.newest.version], schema),
    )


def _unpack(cells: pa.Table, kind: CellKind, layout: Layout, schema: pa.Schema) -> pa.Table:
    keys, packed = (_array(cells, name) for name in ("key", "cell"))
    header, pieces = _split(keys, packed, kind, layout)
    columns = []
    for field in schema:
        try:
            column = keys if field.name == "key" else _column(header, pieces, layout, field)
            columns.append(column if column.type == field.type else column.cast(field.type))
        except (ValueError, IndexError) as error:  # ArrowInvalid is a ValueError
            first, last = (_key_text(keys, at) for at in (0, len(keys) - 1))
            raise UserError(
                f"a cell {kind.family}:{kind.qualifier.decode()} between rows {first} and {last} "
                f"is damaged: {field.name}: {error}"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _split(
    keys: pa.Array, packed: pa.Array, kind: CellKind, layout: Layout
) -> tuple[np.ndarray, pa.Array]:
    """Returns the headers, and the pieces of each row: its header and its variable columns."""
    number, dtype = len(packed), _header_type(kind.schema, layout)
    data, offsets = buffers_of(packed)
    heads = pc.binary_slice(packed, 0, dtype.itemsize)
    short = as_numpy(pc.binary_length(heads)) != dtype.itemsize
    if short.any():
        raise _cut_short_error(keys, int(np.argmax(short)), kind)
    head_data, head_offsets = buffers_of(heads)
    header = (
        np.frombuffer(head_data, dtype, number, head_offsets[0]) if number else np.zeros(0, dtype)
    )
    # Two rows with two variable columns, of 2 and 3, and of 0 and 1 bytes:
    #
    #   data      H H H H a a b b b H H H H c
    #   offsets   0                 9         14
    #   lengths           2   3               0 1
    #   bounds            4   6             13 13 14    a row: where its columns begin, and the end
    #
    # The end of a row is where the next header begins, so the bounds of all rows, one after the other,
    # are the offsets of one array over the same bytes, without a copy: aa, bbb, HHHH, (empty), c. The
    # variable column n of row r is its piece r * (columns + 1) + n.
    bounds = np.empty((number, len(layout.variable) + 1), np.int64)
    bounds[:, 0] = offsets[:-1] + dtype.itemsize
    np.cumsum(header["lengths"], axis=1, dtype=np.int64, out=bounds[:, 1:])
    bounds[:, 1:] += bounds[:, :1]
    wrong = bounds[:, -1] != offsets[1:]
    if wrong.any():
        raise _cut_short_error(keys, int(np.argmax(wrong)), kind)
    return header, binary_array(data, np.append(bounds.ravel(), offsets[-1]))


def _column(header: np.ndarray, pieces: pa.Array, layout: Layout, field: pa.Field) -> pa.Array:
    """Unpacks one column.

    Raises:
        ValueError: The column is damaged.
    """
    if field.name not in layout.columns:
        return pa.nulls(len(header), field.type)
    bit = np.uint64(layout.columns.index(field.name))
    absent = (header["present"] >> bit) & np.uint64(1) == 0
    if field.name == layout.due:
        times = (header["due"].astype(np.uint64) ^ _SIGN).view(np.int64)
        return numbers_as(times, field.type, absent)
    if field.name in layout.fixed:
        return numbers_as(header[field.name], field.type, absent)
    width = len(layout.variable) + 1
    piece = np.arange(len(header)) * width + layout.variable.index(field.name)
    values = pieces.take(numbers_as(piece, pa.int64(), absent))
    return unpack(values, field.type)


@functools.lru_cache(maxsize=16)
def _header_type(schema: pa.Schema, layout: Layout) -> np.dtype:
    fields: list[Any] = [("due", ">u8")] if layout.due else []
    fields += [("version", "u1"), ("present", "<u8")]
    for name in layout.fixed:
        declared = schema.field(name).type
        fields.append((name, dtype_of(declared).newbyteorder("<")))
    return np.dtype([*fields, ("lengths", "<u4", (len(layout.variable),))])


def _array(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.chunked_array(column).combine_chunks()


def _valid(table: pa.Table, name: str) -> np.ndarray:
    return as_numpy(_array(table, name).is_valid())


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    column = _array(table, name)
    return as_numpy(column.fill_null(number_as(0, column.type)))


def _versions_of(packed: pa.Array, keys: pa.Array, kind: CellKind) -> np.ndarray:
    """Returns the version byte of each cell."""
    at = 8 if kind.newest.due else 0
    sizes = as_numpy(pc.binary_length(packed).fill_null(number_as(0, pa.int64())))
    short = sizes <= at
    if short.any():
        raise _cut_short_error(keys, int(np.argmax(short)), kind)
    data, offsets = buffers_of(packed)
    return data[offsets[:-1] + at]


def _cut_short_error(keys: pa.Array, row: int, kind: CellKind) -> UserError:
    column = f"{kind.family}:{kind.qualifier.decode()}"
    return UserError(f"cell {column} of row {_key_text(keys, row)} is damaged: it is cut short")


def _key_text(keys: pa.Array, row: int) -> str:
    return repr(keys[row].as_py().decode("utf-8", "replace"))[:200]
