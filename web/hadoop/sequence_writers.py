"""Writes SequenceFiles of version 6, and map files, which Hadoop and Nutch open."""

import os
import struct
from typing import BinaryIO

from .hadoop_codecs import codec_class, find_codec
from .sequence_files import Compression
from .writable_encoding import encode_text, encode_vint

TEXT_CLASS = "org.apache.hadoop.io.Text"
_LONG_CLASS = "org.apache.hadoop.io.LongWritable"
_VERSION = 6
_SYNC_INTERVAL = 10_000  # bytes between sync marks
_BLOCK_BYTES = 1_000_000  # raw bytes of a compressed block, as Hadoop has
_INDEX_INTERVAL = 128  # records for each key in an index
_LENGTHS, _LONG = struct.Struct(">ii"), struct.Struct(">q")


class SequenceFileWriter:
    """Writes one SequenceFile.

    Args:
        stream: Where it is written; it stays open.
        value_class: Java class of the values.
        key_class: Java class of the keys.
        compression: What is compressed.
        codec: The codec, a Java class or its name without the package.
        sync: The sync mark; None: 16 random bytes.

    Attributes:
        position: Bytes that have been written.
    """

    def __init__(
        self,
        stream: BinaryIO,
        value_class: str,
        *,
        key_class: str = TEXT_CLASS,
        compression: Compression = Compression.BLOCK,
        codec: str = "DefaultCodec",
        sync: bytes | None = None,
    ) -> None:
        codec = codec if "." in codec else codec_class(codec)
        self._stream = stream
        self._compression = compression
        self._compress = find_codec(codec).compress
        self._sync = sync or os.urandom(16)
        self._mark = b"\xff\xff\xff\xff" + self._sync
        self._last_mark = 0
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._waiting_bytes = 0
        self.position = 0
        is_compressed = compression is not Compression.NONE
        header = [b"SEQ", bytes([_VERSION]), encode_text(key_class), encode_text(value_class)]
        header.append(bytes([is_compressed, compression is Compression.BLOCK]))
        if is_compressed:
            header.append(encode_text(codec))
        self._write(b"".join([*header, bytes(4), self._sync]))  # without metadata

    def append(self, key: bytes, value: bytes) -> None:
        """Adds a record; both are bytes as their classes write them."""
        if self._compression is Compression.BLOCK:
            self._keys.append(key)
            self._values.append(value)
            self._waiting_bytes += len(key) + len(value)
            if self._waiting_bytes >= _BLOCK_BYTES:
                self._write_block()
            return
        if self._compression is Compression.RECORD:
            value = self._compress(value)
        if self.position >= self._last_mark + _SYNC_INTERVAL:
            self._write(self._mark)
            self._last_mark = self.position
        self._write(_LENGTHS.pack(len(key) + len(value), len(key)) + key + value)

    def close(self) -> None:
        """Writes what waits for its block."""
        if self._keys:
            self._write_block()

    def _write_block(self) -> None:
        pieces = [self._mark, encode_vint(len(self._keys))]
        for items in (self._keys, self._values):
            for part in (b"".join(encode_vint(len(item)) for item in items), b"".join(items)):
                compressed = self._compress(part)
                pieces += (encode_vint(len(compressed)), compressed)
        self._write(b"".join(pieces))
        self._keys, self._values, self._waiting_bytes = [], [], 0

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self.position += len(data)


class MapFileWriter:
    """Writes a map file: sorted records with text keys, and an index of every 128th.

    Args:
        data: Where the file ``data`` is written.
        index: Where the file ``index`` is written.
        value_class: Java class of the values.
        compression: What is compressed in ``data``; the index is always compressed in blocks.
        codec: The codec of ``data``.
    """

    def __init__(
        self,
        data: BinaryIO,
        index: BinaryIO,
        value_class: str,
        *,
        compression: Compression = Compression.BLOCK,
        codec: str = "DefaultCodec",
    ) -> None:
        self._data = SequenceFileWriter(data, value_class, compression=compression, codec=codec)
        self._index = SequenceFileWriter(index, _LONG_CLASS)
        self._last_key = b""
        self._rows = 0
        self._next_indexed = 0
        self._indexed_position = -1

    def append(self, key: bytes, value: bytes) -> None:
        """Adds a record.

        Args:
            key: The bytes of the text, at least as large as those before.

        Raises:
            ValueError: The key is smaller than the one before.
        """
        if key < self._last_key:
            raise ValueError(
                f"keys of a map file must ascend, got {key!r} after {self._last_key!r}"
            )
        encoded, position = encode_vint(len(key)) + key, self._data.position
        # In blocks, only the first key of a block has a new position.
        if self._rows >= self._next_indexed and position > self._indexed_position:
            self._index.append(encoded, _LONG.pack(position))
            self._indexed_position = position
            self._next_indexed = self._rows + _INDEX_INTERVAL
        self._data.append(encoded, value)
        self._last_key = key
        self._rows += 1

    def close(self) -> None:
        """Writes what waits; the streams stay open."""
        self._data.close()
        self._index.close()
