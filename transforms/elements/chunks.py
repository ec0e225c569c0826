"""Chunks: Arrow tables of many rows, the elements of every PCollection."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from ...policy.components.schema import conform, to_frame
from ...web.content.signature import mix_bits

Chunk: TypeAlias = pa.Table
MAX_ROWS = 131_072
MAX_BYTES = 16 << 20


def to_chunks(frame: pl.DataFrame, schema: pa.Schema | None = None) -> Iterator[Chunk]:
    """Cuts a frame into chunks of at most ``MAX_ROWS`` rows and about ``MAX_BYTES``.

    Args:
        frame: The rows; no rows give no chunk.
        schema: Declared columns (policy/components/schema.py); chunks are cast to them. None keeps
            the columns of the frame.
    """
    for part in frame.iter_slices(MAX_ROWS):
        table = part.to_arrow() if schema is None else conform(part, schema)
        # The frame's own estimate may count equal strings only once.
        rows = max(1, len(table) * MAX_BYTES // max(1, table.nbytes))
        for start in range(0, len(table), rows):
            yield table.slice(start, rows)


def named_chunks(
    name: str, frame: pl.DataFrame, schema: pa.Schema | None = None
) -> Iterator[tuple[str, Chunk]]:
    """Yields the chunks of a frame with a name, such as that of the component to change."""
    for chunk in to_chunks(frame, schema):
        yield name, chunk


class NamedRows(NamedTuple):
    """Rows with a name, such as that of the component to change.

    Attributes:
        name: The name.
        rows: The rows.
        schema: See ``to_chunks``.
    """

    name: str
    rows: pl.DataFrame
    schema: pa.Schema | None = None


def chunk_outputs(outputs: Iterable[Any]) -> Iterator[Any]:
    """Yields the outputs of a step: of named rows pairs of the name and a chunk, others as they are."""
    for output in outputs:
        if isinstance(output, NamedRows):
            yield from named_chunks(*output)
        else:
            yield output


def rechunk(chunk: Chunk) -> Iterator[Chunk]:
    """Cuts a chunk that has grown too large."""
    yield from to_chunks(to_frame(chunk), chunk.schema)


def split_by_hash(chunk: Chunk, key: str, partitions: int) -> Iterator[tuple[int, Chunk]]:
    """Splits a chunk by hash, so that equal values of ``key`` get the same number.

    Args:
        chunk: Rows with the column ``key``: text, bytes, numbers or booleans;
            nulls are equal, too.
        partitions: Number of partitions; at least 1.

    Yields:
        (number in [0, partitions), its rows); numbers without rows are skipped.

    Raises:
        ValueError: The column has another type.
    """
    if partitions == 1:
        if len(chunk):
            yield 0, chunk
        return
    hashes = hashes_of(pl.Series(key, chunk.column(key))) >> np.uint64(32)
    number = pl.Series("_part", hashes * np.uint64(partitions) >> np.uint64(32))
    for (part,), rows in to_frame(chunk).group_by(number, maintain_order=True):
        yield int(str(part)), conform(rows, chunk.schema)


def hashes_of(keys: pl.Series) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each value, the same on every worker.

    Whole columns are hashed at once: this takes a hundredth of the time of crc32 by value.

    Args:
        keys: Text, bytes, numbers or booleans; nulls are equal, too.

    Raises:
        ValueError: The column has another type.

    >>> one, other, same = hashes_of(pl.Series(["a", "b", "a"]))
    >>> one == same, one == other
    (np.True_, np.False_)
    """
    if keys.dtype.is_nested():
        raise ValueError(
            f"column {keys.name!r} must be text or numbers to be a key, got {keys.dtype}"
        )
    if keys.dtype.is_integer():
        numbers = keys.fill_null(0).to_numpy().astype(np.uint64)
        return _spread(numbers)
    if keys.dtype not in (pl.String, pl.Binary):
        keys = keys.cast(pl.String)
    values = keys.cast(pl.Binary).fill_null(b"").to_arrow().cast(pa.large_binary())
    starts = np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: len(values) + 1]
    data = np.frombuffer((values.buffers()[2] or b""), np.uint8)
    # values     "ab"  "c"  "defghijklm"      Each round takes eight more bytes of the values that
    # data       a b c d e f g h i j k l m    have some left:
    # starts     0   2 3                  13
    # lengths    2   1 10                     round 0: ab, c, defghijk; round 1: lm
    #
    # ``words[n]`` is the number in the eight bytes from ``data[n]`` on, also across the end of a value.
    # A shift moves the bytes after the end out: "ab" is read as "abcdefgh", and six bytes leave.
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray(len(data) + 1, np.dtype("<u8"), padded.data, strides=(1,))
    lengths = np.diff(starts)
    hashes = _spread(lengths.astype(np.uint64))
    for done in range(0, int(lengths.max(initial=0)), 8):
        rows = np.flatnonzero(lengths > done)
        unused = np.maximum(0, 8 - (lengths[rows] - done)).astype(np.uint64) * np.uint64(8)
        word = words[starts[rows] + done] << unused
        hashes[rows] = _spread(hashes[rows] ^ word)
    return hashes


def _spread(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads each number over all bits (SplitMix64)."""
    return mix_bits(numbers + np.uint64(0x9E3779B97F4A7C15))
