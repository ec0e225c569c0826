"""Hashes of 64 bits in columns: as numbers, and as the 8 bytes that SimHash signatures have."""

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from ...policy.components.schema import to_frame
from ...policy.dedup.duplicates import simhashes
from ..elements.chunks import Chunk
from ..elements.rows import check_columns
from ..partition import hashes_of

_NUMBER = pa.uint64()


def with_hashes(chunk: Chunk, name: str) -> Chunk:
    """Returns a chunk whose columns ``hash`` and ``scope`` are uint64.

    Args:
        chunk: ``hash``: numbers, or 8 bytes; other bytes become null. ``scope``: numbers, text or
            bytes, of which hashes are made; without it all rows are in one scope.
        name: Name of the transform, for messages.

    Raises:
        ValueError: ``hash`` is missing, or has another type.

    >>> chunk = pa.table({"hash": [-1, 2], "scope": ["a", "a"]})
    >>> with_hashes(chunk, "NearPairs")["hash"].to_pylist()
    [18446744073709551615, 2]
    """
    check_columns(chunk.schema.names, {"hash": ["hash"]}, name)
    if all(kind == _NUMBER for kind in _types(chunk, "hash", "scope")):
        return chunk
    frame = to_frame(chunk)
    hashes = frame.get_column("hash")
    if not (hashes.dtype.is_integer() or hashes.dtype in (pl.Binary, pl.Null)):
        raise ValueError(f"{name} needs a column 'hash' of numbers or bytes, got {hashes.dtype}")
    numbers = simhashes(hashes) if hashes.dtype == pl.Binary else _to_unsigned(hashes)
    return frame.with_columns(hash=numbers, scope=_scopes(frame)).to_arrow()


def hashes_as(chunk: Chunk, kinds: Mapping[str, pa.DataType]) -> Chunk:
    """Returns a chunk with int64 or bytes instead of uint64 in some columns.

    >>> chunk = pa.table({"hash": pa.array([2**64 - 1], pa.uint64())})
    >>> hashes_as(chunk, {"hash": pa.int64()})["hash"].to_pylist()
    [-1]
    """
    for name, kind in kinds.items():
        values = chunk.column(name).combine_chunks().to_numpy(zero_copy_only=False)
        if pa.types.is_integer(kind):
            column = pa.array(values.view("int64")).cast(kind)
        else:
            packed = pa.py_buffer(values.astype(">u8").tobytes())
            column = pa.Array.from_buffers(pa.binary(8), len(values), [None, packed]).cast(kind)
        chunk = chunk.set_column(chunk.schema.get_field_index(name), name, column)
    return chunk


def _types(chunk: Chunk, *names: str) -> list[pa.DataType | None]:
    return [chunk.schema.field(name).type if name in chunk.schema.names else None for name in names]


def _scopes(frame: pl.DataFrame) -> pl.Series:
    if "scope" not in frame.columns:
        return pl.zeros(len(frame), pl.UInt64, eager=True)
    scopes = frame.get_column("scope")
    if scopes.dtype.is_integer():
        return _to_unsigned(scopes.fill_null(0))
    return pl.Series(hashes_of(scopes), dtype=pl.UInt64)


def _to_unsigned(numbers: pl.Series) -> pl.Series:
    """Returns numbers as uint64: negative ones have the same bits."""
    if numbers.dtype == pl.UInt64:
        return numbers
    return numbers.cast(pl.Int64).reinterpret(signed=False)
