"""Checks that a Parquet file is not made to fill the memory.

A text that a column repeats is stored once, in the dictionary of its row group. So a file of some
kilobytes can unpack to terabytes. Its end does not say how long the texts are, so the dictionaries
that could matter are read (Parquet's format, ``Encodings.md`` and ``parquet.thrift``).

pyarrow ends the process for some damage to the end of a file, so what must be known before a file
is opened is read here, in Thrift's compact protocol.
"""

import struct
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Fields = dict[int, Any]
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_DEEPEST = 12


def read_struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[Fields, int]:
    """Returns (the fields of a structure by number, where it ends).

    Raises:
        ValueError: It is damaged, or ends after the data.

    >>> read_struct(bytes([0x15, 0x04, 0x18, 0x01, 0x61, 0x00]))
    ({1: 2, 2: b'a'}, 6)
    """
    if depth > _DEEPEST:
        raise ValueError("a structure is too deep")
    fields: Fields = {}
    number = 0
    try:
        while (byte := data[at]) != _STOP:
            at += 1
            kind, step = byte & 15, byte >> 4
            if step:
                number += step
            else:
                number, at = _integer(data, at)
            if kind in (_TRUE, _FALSE):
                fields[number] = kind == _TRUE
            else:
                fields[number], at = _value(data, at, kind, depth)
    except IndexError:
        raise ValueError("a structure ends after the data") from None
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == _BINARY:
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    if kind == _STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in (_LIST, _SET):
        return _list(data, at, depth + 1)
    if kind in (_BYTE, _TRUE, _FALSE):
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    raise ValueError("a structure has a value of an unknown kind")


def _list(data: bytes, at: int, depth: int) -> tuple[list, int]:
    if depth > _DEEPEST:
        raise ValueError("a structure is too deep")
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind, depth)
        values.append(value)
    return values, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    number, shift = byte & 127, 7
    while byte > 127:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if shift > 70:
            raise ValueError("a structure has a number that is too large")
    return number, at


# A file that unpacks to more than both, or has more rows, is made to fill the memory: in files of
# tables a file of pages unpacks to two gigabytes at most, and a row takes some bytes.
_UNPACKED_BYTES, _FEW_ROWS, _GROWTH = 3 << 30, 10_000_000, 200
# Encodings of texts that jobs write: PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY. In
# others a text can repeat most of the one before it.
_ENCODINGS = {0, 2, 3, 4, 8}
_BYTE_ARRAY, _DICTIONARY_PAGE = 6, 2
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
# Of a page of texts that are in no dictionary, the header has the first and the last text, twice each at
# most; writers leave out those of more than 4 KiB.
_LONGEST_HEADER, _LONGEST_END, _ROWS = 32 << 10, 256 << 20, 65_536
_LENGTH = struct.Struct("<I")


class _Chunk(NamedTuple):
    """The part of a column with texts that is in a row group."""

    group: int
    column: str
    encodings: list[int]
    codec: int
    values: int
    bytes: int
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


def check_dictionaries(file: IO[bytes], size: int) -> None:
    """Checks that the texts in dictionaries are not so long that their rows fill the memory.

    Args:
        file: A Parquet file, whose end ``check_growth`` has checked.
        size: Its size, bytes.

    Raises:
        ValueError: The rows have far more bytes than those of a table, or the file is damaged.
    """
    try:
        _check_texts(file, size)
    except (LookupError, TypeError, AttributeError, OverflowError, struct.error):
        raise ValueError("its end or a page has other fields than Parquet's format") from None


def _check_texts(file: IO[bytes], size: int) -> None:
    chunks = list(_chunks_of_texts(_end_of(file, size)))
    if sum(chunk.values * chunk.bytes for chunk in chunks) <= _UNPACKED_BYTES:
        return
    most, unpacked = max(_UNPACKED_BYTES, size * _GROWTH), 0
    for chunk in chunks:
        if strange := set(chunk.encodings) - _ENCODINGS:
            raise ValueError(f"texts have an encoding that no job writes: {min(strange)}")
        bound = chunk.bytes + chunk.values * _longest_text(file, chunk)
        if unpacked + bound > most:
            bound = _bytes_of_texts(file, chunk)
        unpacked += bound
        _check_bytes(unpacked, size, _UNPACKED_BYTES)


def _check_bytes(unpacked: int, size: int, most: int) -> None:
    if unpacked > max(most, size * _GROWTH):
        raise ValueError(f"it has {size:,} bytes and unpacks to {unpacked:,}")


def _end_of(file: IO[bytes], size: int) -> dict[int, Any]:
    file.seek(max(0, size - 8))
    (length,) = _LENGTH.unpack_from(file.read(4))
    if not 0 < length <= min(size, _LONGEST_END):
        raise ValueError("its end has a length that cannot be")
    file.seek(max(0, size - 8 - length))
    return read_struct(file.read(length))[0]


def _chunks_of_texts(end: dict[int, Any]) -> Iterator[_Chunk]:
    """Yields the parts of columns with texts; numbers of fields are those of ``parquet.thrift``."""
    for number, group in enumerate(end[4]):
        for column in group[1]:
            facts = column[3]
            if facts[1] == _BYTE_ARRAY:
                name = b".".join(facts[3]).decode()
                starts = [offset for offset in (facts.get(11), facts[9]) if offset]
                if starts:  # else it has no page, because the group has no rows
                    yield _Chunk(number, name, facts[2], facts[4], facts[5], facts[6], min(starts))


def _longest_text(file: IO[bytes], chunk: _Chunk) -> int:
    """Returns a bound of the longest text in the dictionary of a chunk; 0 if it has none."""
    file.seek(chunk.start)
    page, length = read_struct(file.read(_LONGEST_HEADER))
    if page.get(1) != _DICTIONARY_PAGE:
        return 0
    unpacked, packed, values = page[2], page[3], page[7][1]
    if not 0 <= unpacked <= _UNPACKED_BYTES or packed < 0:
        raise ValueError("a page has a size that cannot be")
    # All texts together: it is enough for dictionaries of some short words.
    together = unpacked - _LENGTH.size * values
    if together * chunk.values <= _UNPACKED_BYTES // 256:
        return int(max(0, together))
    file.seek(chunk.start + length)
    data = file.read(packed)
    if chunk.codec:
        data = pa.decompress(data, unpacked, _CODECS[chunk.codec], asbytes=True)
    return _longest_of(data, values)


def _longest_of(data: bytes, values: int) -> int:
    """Returns the length of the longest text of a dictionary: each has its length before it."""
    read = _LENGTH.unpack_from
    (first,) = read(data)
    if len(data) == values * (_LENGTH.size + first):  # often they have one length: signatures
        lengths = np.frombuffer(data, np.uint8).reshape(values, -1)[:, : _LENGTH.size]
        if (lengths == lengths[0]).all():
            return int(first)
    longest = at = 0
    for _ in range(values):
        (length,) = read(data, at)
        at += _LENGTH.size + length
        longest = max(longest, length)
    return int(longest)


def _bytes_of_texts(file: IO[bytes], chunk: _Chunk) -> int:
    """Returns how many bytes the texts of a chunk have; each text is read once."""
    import pyarrow.compute as pc  # late: it takes as long as pyarrow itself

    unpacked = 0
    reader = pq.ParquetFile(file, read_dictionary=[chunk.column])
    for batch in reader.iter_batches(
        _ROWS, row_groups=[chunk.group], columns=[chunk.column], use_threads=False
    ):
        texts: Any = batch.column(0)
        while not pa.types.is_dictionary(texts.type):
            texts = texts.field(0) if pa.types.is_struct(texts.type) else texts.flatten()
        lengths = pc.binary_length(texts.dictionary).to_numpy(zero_copy_only=False)
        unpacked += int(lengths[texts.indices.drop_null().to_numpy()].sum())
    return unpacked
