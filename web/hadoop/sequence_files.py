"""Reads Hadoop's SequenceFiles, in columns: versions 4 to 6, with no, record or block compression.

::

    header                       SEQ, version, classes, compression, codec, metadata, sync mark
    none      record record … [-1 sync] record …     record: its length, key length, key, value
    record    the same, each value compressed
    block     [-1 sync] number, key lengths, keys, value lengths, values; [-1 sync] …
                                 each of the four is a length, and that many compressed bytes

A sync mark is 16 random bytes of the file. Readers that begin anywhere go on at the next one, and so
does a reader after a damaged part. See org.apache.hadoop.io.SequenceFile.
"""

import enum
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from .byte_spans import Bytes, Integers, bytes_of
from .compressed_blocks import BlockParts, read_block
from .hadoop_codecs import BrokenCompression, HadoopCodec, codec_class, find_codec
from .hadoop_faults import HadoopFault, HadoopFileError, OnFault, raise_fault
from .record_scans import MARK_BYTES, SYNC_BYTES, FileWindow, find_mark, scan_records
from .writables import BadWritable, WritableReader

_MAGIC = b"SEQ"
_VERSIONS = range(4, 7)
_MAX_HEADER_BYTES = 1 << 20
_BLOCK_ROWS = 8192  # of a RecordBlock, at least, and unless it has as many bytes as this:
_BLOCK_BYTES = 4 << 20


class Compression(enum.Enum):
    """How a SequenceFile is compressed."""

    NONE = "none"
    RECORD = "record"
    BLOCK = "block"


class SequenceFileHeader(NamedTuple):
    """What a SequenceFile says of itself.

    Attributes:
        version: 4 to 6.
        key_class: Java class of the keys.
        value_class: Java class of the values.
        compression: What is compressed.
        codec_class: Java class of the codec; empty: nothing is compressed.
        metadata: Texts by their names.
        sync: The 16 bytes of its sync marks.
        header_bytes: Where the records begin.
    """

    version: int
    key_class: str
    value_class: str
    compression: Compression
    codec_class: str
    metadata: dict[str, str]
    sync: bytes
    header_bytes: int


class RecordBlock(NamedTuple):
    """Some thousand records, in two buffers.

    Attributes:
        keys: Bytes that have the keys, as their class writes them.
        key_starts: Where each key starts in ``keys``; they ascend.
        key_lengths: Bytes of each key.
        values: Bytes that have the values, decompressed.
        value_starts: Where each value starts in ``values``; they ascend.
        value_lengths: Bytes of each value.
        positions: Byte of the file where each record begins, or its compressed block.
    """

    keys: Bytes
    key_starts: Integers
    key_lengths: Integers
    values: Bytes
    value_starts: Integers
    value_lengths: Integers
    positions: Integers

    @property
    def position(self) -> int:
        """Byte of the file where the first record begins."""
        return int(self.positions[0])

    @property
    def rows(self) -> int:
        """Number of records."""
        return len(self.positions)


def read_header(stream: BinaryIO) -> SequenceFileHeader:
    """Reads the header of a SequenceFile.

    Args:
        stream: Seekable.

    Raises:
        HadoopFileError: It is none, of another version, or its header is damaged.
    """
    stream.seek(0)
    data = stream.read(_MAX_HEADER_BYTES)
    if data[:3] != _MAGIC or len(data) < 4:
        raise HadoopFileError(f"a SequenceFile must begin with SEQ, got {data[:8]!r}")
    version = data[3]
    if version not in _VERSIONS:
        raise HadoopFileError(f"the version of a SequenceFile must be 4 to 6, got {version}")
    try:
        return _parse_header(WritableReader(data, 4), version)
    except BadWritable as error:
        raise HadoopFileError(f"the header of a SequenceFile is damaged: {error}") from error


def _parse_header(reader: WritableReader, version: int) -> SequenceFileHeader:
    key_class, value_class = reader.read_text(), reader.read_text()
    is_compressed, in_blocks = reader.read_boolean(), reader.read_boolean()
    codec = ""
    if is_compressed:
        codec = reader.read_text() if version >= 5 else codec_class("DefaultCodec")
    metadata = {}
    if version >= 6:
        for _ in range(reader.read_count(2)):
            name = reader.read_text()
            metadata[name] = reader.read_text()
    sync = reader.read_bytes(SYNC_BYTES)
    compression = Compression.NONE
    if is_compressed:
        compression = Compression.BLOCK if in_blocks else Compression.RECORD
    elif in_blocks:
        raise BadWritable("blocks that are not compressed")
    return SequenceFileHeader(
        version, key_class, value_class, compression, codec, metadata, sync, reader.position
    )


def read_blocks(
    stream: BinaryIO,
    *,
    start: int = 0,
    end: int | None = None,
    on_fault: OnFault = raise_fault,
    header: SequenceFileHeader | None = None,
) -> Iterator[RecordBlock]:
    """Yields the records of a file, or of a range of its bytes.

    A range has the records from the first sync mark that begins in it, or from the header if it starts
    at 0, to the first mark that does not. So ranges that follow one another have each record once.

    Args:
        stream: Seekable.
        start: First byte of the range.
        end: First byte after the range; None: that of the file.
        on_fault: Called for each damaged part, after which the next sync mark is looked for.
        header: The header of the file, if it has been read.

    Raises:
        HadoopFileError: The header is damaged, or the codec is unknown.
    """
    header = header or read_header(stream)
    is_compressed = header.compression is not Compression.NONE
    codec = find_codec(header.codec_class) if is_compressed else None
    window = FileWindow(stream)
    limit = window.size if end is None else end
    mark = MARK_BYTES + header.sync
    first: int | None = header.header_bytes
    if start > 0:
        first = find_mark(window, max(start, header.header_bytes), mark)
    if first is None or (start > 0 and first >= limit):
        return
    if header.compression is Compression.BLOCK:
        assert codec is not None
        yield from _read_compressed(window, first, limit, mark, codec, on_fault)
    else:
        yield from _read_records(window, first, limit, mark, codec, on_fault)


def _read_records(
    window: FileWindow,
    first: int,
    limit: int,
    mark: bytes,
    codec: HadoopCodec | None,
    on_fault: OnFault,
) -> Iterator[RecordBlock]:
    """Reads records that lie one after another; their values may be compressed."""
    position: int | None = first
    while position is not None and position < window.size:
        scan = scan_records(window, position, limit, mark)
        if scan.starts:
            block = _plain_block(scan.data, position, scan.starts, scan.key_lengths, scan.lengths)
            if codec is not None:
                block = _decompress_values(block, codec, on_fault)
            if block.rows:
                yield block
        if scan.fault is not None:
            on_fault(scan.fault)
            position = find_mark(window, scan.fault.position + 1, mark)
            if position is not None and position >= limit:
                return
        elif scan.ended:
            return
        else:
            position += scan.scanned


def _plain_block(
    data: bytes, position: int, starts: list[int], key_lengths: list[int], lengths: list[int]
) -> RecordBlock:
    buffer = np.frombuffer(data, np.uint8)
    key_starts = np.array(starts, np.int64)
    key_sizes = np.array(key_lengths, np.int64)
    return RecordBlock(
        buffer, key_starts, key_sizes,
        buffer, key_starts + key_sizes, np.array(lengths, np.int64) - key_sizes,
        key_starts + (position - 8),
    )  # fmt: skip


def _decompress_values(block: RecordBlock, codec: HadoopCodec, on_fault: OnFault) -> RecordBlock:
    data = bytes_of(block.values)
    decompress = codec.decompress
    raw_values: list[bytes] = []
    intact = np.ones(block.rows, bool)
    ends = block.value_starts + block.value_lengths
    for row, (at, to) in enumerate(zip(block.value_starts.tolist(), ends.tolist(), strict=True)):
        try:
            raw_values.append(decompress(data[at:to]))
        except BrokenCompression as error:
            intact[row] = False
            on_fault(HadoopFault("broken_compression", int(block.positions[row]), str(error)))
    lengths = np.fromiter(map(len, raw_values), np.int64, len(raw_values))
    return RecordBlock(
        block.keys, block.key_starts[intact], block.key_lengths[intact],
        np.frombuffer(b"".join(raw_values), np.uint8), _starts_of(lengths), lengths,
        block.positions[intact],
    )  # fmt: skip


def _read_compressed(
    window: FileWindow,
    first: int,
    limit: int,
    mark: bytes,
    codec: HadoopCodec,
    on_fault: OnFault,
) -> Iterator[RecordBlock]:
    """Reads compressed blocks; small ones become one block."""
    position: int | None = first
    parts: list[BlockParts] = []
    while position is not None and position < window.size and position < limit:
        block = read_block(window, position, mark, codec)
        if isinstance(block, HadoopFault):
            on_fault(block)
            position = find_mark(window, position + 1, mark)
            continue
        if block.rows:
            parts.append(block)
        position = block.end
        if (
            sum(part.rows for part in parts) >= _BLOCK_ROWS
            or sum(part.raw_bytes for part in parts) >= _BLOCK_BYTES
        ):
            yield _join_parts(parts)
            parts = []
    if parts:
        yield _join_parts(parts)


def _join_parts(parts: list[BlockParts]) -> RecordBlock:
    key_lengths = np.concatenate([part.key_lengths for part in parts])
    value_lengths = np.concatenate([part.value_lengths for part in parts])
    positions = np.repeat([part.position for part in parts], [part.rows for part in parts])
    return RecordBlock(
        np.frombuffer(b"".join(part.keys for part in parts), np.uint8),
        _starts_of(key_lengths), key_lengths,
        np.frombuffer(b"".join(part.values for part in parts), np.uint8),
        _starts_of(value_lengths), value_lengths,
        positions.astype(np.int64),
    )  # fmt: skip


def _starts_of(lengths: Integers) -> Integers:
    """Returns where spans of these lengths start that lie one after another."""
    return np.cumsum(lengths) - lengths
