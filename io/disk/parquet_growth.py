"""Checks that a Parquet file is not made to fill the memory.

A text that a column repeats is stored once, in the dictionary of its row group. So a file of some
kilobytes can unpack to terabytes. Its end does not say how long the texts are, so the dictionaries
that could matter are read (Parquet's format, ``Encodings.md`` and ``parquet.thrift``).
"""

import struct
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# A file that unpacks to more than both, or has more rows, is made to fill the memory: in files of
# tables a file of pages unpacks to two gigabytes at most, and a row takes some bytes.
_UNPACKED_BYTES, _FEW_ROWS, _GROWTH = 3 << 30, 10_000_000, 200
# Encodings of texts that jobs write, as the format names them. In others a text can repeat most of
# the one before it.
_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_LONGEST_HEADER, _ROWS = 512, 65_536
_LENGTH = struct.Struct("<I")
# Numbers of types in Thrift's compact protocol, and of fields in a page's header.
_STOP, _TRUE, _FALSE, _BINARY, _STRUCT = 0, 1, 2, 8, 12
_INTEGERS = (3, 4, 5, 6)
_TYPE, _UNPACKED, _PACKED, _DICTIONARY = 1, 2, 3, 7
_DICTIONARY_PAGE = 2


class _Page(NamedTuple):
    """What the header of a page says: whether it is a dictionary, its bytes, where they begin."""

    is_dictionary: bool
    unpacked: int
    packed: int
    values: int
    start: int


def check_growth(metadata: pq.FileMetaData, size: int, most: int = _UNPACKED_BYTES) -> None:
    """Checks the end of a Parquet file.

    Args:
        metadata: Its end.
        size: Its size, bytes.
        most: The number of bytes that it may unpack to, however small it is.

    Raises:
        ValueError: It unpacks to far more than rows of a table do.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    _check_bytes(sum(group.total_byte_size for group in groups), size, most)
    if metadata.num_rows > max(_FEW_ROWS, size * _GROWTH):
        raise ValueError(f"it has {size:,} bytes and {metadata.num_rows:,} rows")


def check_dictionaries(file: IO[bytes], metadata: pq.FileMetaData, size: int) -> None:
    """Checks that the texts in dictionaries are not so long that their rows fill the memory.

    Args:
        file: A Parquet file.
        metadata: Its end, which ``check_growth`` has checked.
        size: Its size, bytes.

    Raises:
        ValueError: The rows have far more bytes than those of a table.
    """
    chunks = list(_chunks_of_texts(metadata))
    if sum(one.num_values * one.total_uncompressed_size for _, one in chunks) <= _UNPACKED_BYTES:
        return
    most = max(_UNPACKED_BYTES, size * _GROWTH)
    unpacked = 0
    for group, chunk in chunks:
        if strange := set(chunk.encodings) - _ENCODINGS:
            raise ValueError(f"texts have an encoding that no job writes: {min(strange)}")
        bound = chunk.total_uncompressed_size + chunk.num_values * _longest_text(file, chunk)
        if unpacked + bound > most:
            bound = _bytes_of_texts(file, metadata, group, chunk.path_in_schema)
        unpacked += bound
        _check_bytes(unpacked, size, _UNPACKED_BYTES)


def _check_bytes(unpacked: int, size: int, most: int) -> None:
    if unpacked > max(most, size * _GROWTH):
        raise ValueError(f"it has {size:,} bytes and unpacks to {unpacked:,}")


def _chunks_of_texts(metadata: pq.FileMetaData) -> Iterator[tuple[int, pq.ColumnChunkMetaData]]:
    """Yields (number of the row group, part of a column with texts)."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in range(group.num_columns):
            chunk = group.column(column)
            if chunk.physical_type == "BYTE_ARRAY":
                yield number, chunk


def _bytes_of_texts(file: IO[bytes], metadata: pq.FileMetaData, group: int, column: str) -> int:
    """Returns how many bytes the texts of a column have in a row group; each is read once."""
    unpacked = 0
    reader = pq.ParquetFile(file, metadata=metadata, read_dictionary=[column])
    for batch in reader.iter_batches(
        _ROWS, row_groups=[group], columns=[column], use_threads=False
    ):
        texts: Any = batch.column(0)
        while not pa.types.is_dictionary(texts.type):
            texts = texts.field(0) if pa.types.is_struct(texts.type) else texts.flatten()
        lengths = pc.binary_length(texts.dictionary).to_numpy(zero_copy_only=False)
        unpacked += int(lengths[texts.indices.drop_null().to_numpy()].sum())
    return unpacked


def _longest_text(file: IO[bytes], chunk: pq.ColumnChunkMetaData) -> int:
    """Returns a bound of the longest text in the dictionary of a chunk; 0 if it has none."""
    offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
    start = min(offset for offset in offsets if offset)
    file.seek(start)
    page = _page(file.read(_LONGEST_HEADER))
    if not page.is_dictionary or not page.values:
        return 0
    # All texts together: it is enough for dictionaries of some short words.
    together = page.unpacked - _LENGTH.size * page.values
    if together * chunk.num_values <= _UNPACKED_BYTES // 256:
        return together
    file.seek(start + page.start)
    data = file.read(page.packed)
    if chunk.compression != "UNCOMPRESSED":
        codec = "lz4_raw" if chunk.compression == "LZ4" else chunk.compression.lower()
        data = pa.decompress(data, page.unpacked, codec, asbytes=True)
    return _longest_of(data, page.values)


def _longest_of(data: bytes, values: int) -> int:
    """Returns the length of the longest text of a dictionary: each has its length before it."""
    (first,) = _LENGTH.unpack_from(data)
    if len(data) == values * (_LENGTH.size + first):  # many have texts of one length: signatures
        lengths = np.frombuffer(data, np.uint8).reshape(values, -1)[:, : _LENGTH.size]
        if (lengths == lengths[0]).all():
            return int(first)
    longest = at = 0
    read = _LENGTH.unpack_from
    for _ in range(values):
        (length,) = read(data, at)
        at += _LENGTH.size + length
        if length > longest:
            longest = length
    return int(longest)


def _page(header: bytes) -> _Page:
    """Returns what the header of a page says, in Thrift's compact protocol.

    Raises:
        ValueError: It is no such header.
    """
    try:
        fields, start = _struct(header, 0, 0)
    except IndexError:
        raise ValueError("a page has no header") from None
    values = fields.get(_DICTIONARY, {}).get(1, 0)
    sizes = (int(fields.get(name, -1)) for name in (_UNPACKED, _PACKED))
    unpacked, packed = sizes
    if min(unpacked, packed, values) < 0:
        raise ValueError("a page has no header")
    return _Page(fields.get(_TYPE) == _DICTIONARY_PAGE, unpacked, packed, values, start)


def _struct(data: bytes, at: int, depth: int) -> tuple[dict, int]:
    fields: dict = {}
    number = 0
    while (byte := data[at]) != _STOP:
        at += 1
        kind, step = byte & 15, byte >> 4
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        elif kind in _INTEGERS:
            fields[number], at = _integer(data, at)
        elif kind == _BINARY:
            length, at = _varint(data, at)
            at += length
        elif kind == _STRUCT and depth < 4:
            fields[number], at = _struct(data, at, depth + 1)
        else:
            raise ValueError("a page has no header")
    return fields, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
