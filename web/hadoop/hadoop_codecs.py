"""Hadoop's compression codecs, by the names of their classes.

Codecs with frames of their own (zlib, gzip, bzip2, zstd) are streams. Snappy and LZ4 have none, so that
Hadoop frames them (BlockCompressorStream): blocks with the length of their raw bytes, and in a block
chunks with the length of their compressed bytes, both as four bytes, big-endian.
"""

import bz2
import contextlib
import functools
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from ..base.zlib_choice import fastest_zlib
from .hadoop_faults import HadoopFileError

# Longest record, and longest part of a compressed block, in bytes.
MAX_RECORD_BYTES = 256 << 20
_LENGTH = struct.Struct(">I")
_PACKAGE = "org.apache.hadoop.io.compress."
# Decoded by Python's zlib, which needs half of the time of others for small values, and without a limit:
# deflate makes at most 1032 bytes of one.
_SMALL_BYTES = 1 << 12
_CHUNK_BYTES = (
    1 << 16
)  # raw bytes of a chunk that we write; Hadoop's readers have buffers of 256 KiB


class BrokenCompression(Exception):
    """Bytes cannot be decompressed, or become more than ``MAX_RECORD_BYTES``."""


class HadoopCodec(NamedTuple):
    """A codec.

    Attributes:
        class_name: The Java class in the header of files.
        decompress: Returns the raw bytes of one compressed value or buffer; raises ``BrokenCompression``.
        compress: Returns compressed bytes.
    """

    class_name: str
    decompress: Callable[[bytes], bytes]
    compress: Callable[[bytes], bytes]


def find_codec(class_name: str) -> HadoopCodec:
    """Returns the codec with a Java class.

    >>> find_codec("org.apache.hadoop.io.compress.GzipCodec").decompress(_gzip(b"text"))
    b'text'

    Raises:
        HadoopFileError: There is no such codec here.
    """
    name = class_name.rpartition(".")[2]
    if name not in _CODECS:
        known = ", ".join(sorted(_CODECS))
        raise HadoopFileError(
            f"the codec of a SequenceFile must be one of {known}, got {class_name[:200]!r}"
        )
    return HadoopCodec(class_name, *_CODECS[name])


def codec_class(name: str) -> str:
    """Returns the Java class of a codec of Hadoop.

    >>> codec_class("DefaultCodec")
    'org.apache.hadoop.io.compress.DefaultCodec'
    """
    return _PACKAGE + name


def _inflate(data: bytes) -> bytes:
    if len(data) > _SMALL_BYTES:
        return _inflate_members(data, 15)
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise BrokenCompression(str(error)) from error


def _gunzip(data: bytes) -> bytes:
    return _inflate_members(data, 31)


def _inflate_members(data: bytes, window_bits: int) -> bytes:
    """Decodes streams that follow one another, as Hadoop's decompressors do."""
    library = fastest_zlib()
    pieces = []
    room = MAX_RECORD_BYTES
    while data:
        decoder = library.decompressobj(window_bits)
        try:
            pieces.append(decoder.decompress(data, room))
        except library.error as error:
            raise BrokenCompression(str(error)) from error
        room -= len(pieces[-1])
        if not decoder.eof:
            raise BrokenCompression("the stream is cut off or too long")
        data = decoder.unused_data
        if room <= 0 and data:
            raise BrokenCompression("the stream is too long")
    return b"".join(pieces)


def _gzip(data: bytes) -> bytes:
    encoder = zlib.compressobj(wbits=31)
    return encoder.compress(data) + encoder.flush()


def _bunzip(data: bytes) -> bytes:
    pieces = []
    room = MAX_RECORD_BYTES
    while data:
        decoder = bz2.BZ2Decompressor()
        try:
            pieces.append(decoder.decompress(data, room))
        except (OSError, ValueError, EOFError) as error:
            raise BrokenCompression(str(error)) from error
        room -= len(pieces[-1])
        if not decoder.eof or room <= 0:
            raise BrokenCompression("the stream is cut off or too long")
        data = decoder.unused_data
    return b"".join(pieces)


def _unzstd(data: bytes) -> bytes:
    import zstandard  # late: few files need it

    decoder = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    try:
        with decoder.stream_reader(data, read_across_frames=True) as reader:
            raw: bytes = reader.read(MAX_RECORD_BYTES + 1)
    except zstandard.ZstdError as error:
        raise BrokenCompression(str(error)) from error
    if len(raw) > MAX_RECORD_BYTES:
        raise BrokenCompression("the stream is too long")
    return raw


def _zstd(data: bytes) -> bytes:
    import zstandard

    compressed: bytes = zstandard.ZstdCompressor(level=3).compress(data)
    return compressed


def _read_chunks(name: str, data: bytes) -> bytes:
    """Decodes the blocks and chunks of a codec that has no frames of its own."""
    codec = pa.Codec(name)
    pieces: list[bytes] = []
    at = total = 0
    try:
        while at < len(data):
            (raw_bytes,) = _LENGTH.unpack_from(data, at)
            at += 4
            total += raw_bytes
            if total > MAX_RECORD_BYTES:
                raise BrokenCompression("a block is too long")
            while raw_bytes:
                (chunk_bytes,) = _LENGTH.unpack_from(data, at)
                chunk = data[at + 4 : at + 4 + chunk_bytes]
                if len(chunk) != chunk_bytes:
                    raise BrokenCompression("a chunk is cut off")
                likely_bytes = len(pieces[-1]) if pieces else raw_bytes
                pieces.append(_raw_chunk(codec, name, chunk, raw_bytes, likely_bytes))
                raw_bytes -= len(pieces[-1])
                at += 4 + chunk_bytes
    except (struct.error, OSError, pa.ArrowException) as error:
        raise BrokenCompression(str(error)) from error
    return b"".join(pieces)


def _raw_chunk(codec: Any, name: str, chunk: bytes, most_bytes: int, likely_bytes: int) -> bytes:
    """Returns the raw bytes of a chunk; at least one and at most ``most_bytes``."""
    raw_bytes = _snappy_length(chunk) if name == "snappy" else most_bytes
    if not 0 < raw_bytes <= most_bytes:
        raise BrokenCompression(f"a chunk of {raw_bytes} bytes in a block of {most_bytes}")
    raw: bytes
    if name == "snappy":
        raw = codec.decompress(chunk, raw_bytes, asbytes=True)
    else:
        raw = _lz4_chunk(codec, chunk, most_bytes, likely_bytes)
    if not raw or len(raw) > most_bytes:
        raise BrokenCompression("a chunk does not fit its block")
    return raw


def _snappy_length(chunk: bytes) -> int:
    """Returns the number of raw bytes, with which a snappy chunk begins."""
    length = 0
    for index, byte in enumerate(chunk[:5]):
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return length
    return -1


def _lz4_chunk(codec: Any, chunk: bytes, most_bytes: int, likely_bytes: int) -> bytes:
    """Returns the raw bytes of an LZ4 chunk, which does not say how many it has.

    A chunk is the rest of its block, or as long as the one before it. It is, if it fits into that many
    bytes and not into one less. Arrow fills what a chunk does not need with any bytes.
    """
    for size in (most_bytes, min(likely_bytes, most_bytes)):
        with contextlib.suppress(OSError):
            raw: bytes = codec.decompress(chunk, size, asbytes=True)
            try:
                codec.decompress(chunk, size - 1)
            except OSError:
                return raw
    return codec.decompress(chunk, most_bytes, asbytes=True)[: _lz4_length(chunk)]


def _lz4_length(chunk: bytes) -> int:
    """Returns the number of raw bytes of an LZ4 block, counted over its sequences.

    >>> _lz4_length(bytes([0x11]) + b"a" + b"\\1\\0" + bytes([0x50]) + b"bcdef")
    11
    """
    length = at = 0
    end = len(chunk)
    while at < end:
        token = chunk[at]
        literals, at = _lz4_extended(chunk, at + 1, token >> 4)
        length += literals
        at += literals + 2  # and the offset of the match; the last sequence has none
        if at < end:
            match, at = _lz4_extended(chunk, at, token & 15)
            length += match + 4
    return length


def _lz4_extended(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while at < len(chunk):
            length += chunk[at]
            at += 1
            if chunk[at - 1] != 255:
                break
    return length, at


def _write_chunks(name: str, data: bytes) -> bytes:
    """Encodes one block as chunks."""
    codec = pa.Codec(name)
    pieces = [_LENGTH.pack(len(data))]
    for at in range(0, len(data), _CHUNK_BYTES):
        chunk = codec.compress(data[at : at + _CHUNK_BYTES], asbytes=True)
        pieces += (_LENGTH.pack(len(chunk)), chunk)
    return b"".join(pieces)


def _chunked(name: str) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    return functools.partial(_read_chunks, name), functools.partial(_write_chunks, name)


_CODECS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "DefaultCodec": (_inflate, zlib.compress),
    "DeflateCodec": (_inflate, zlib.compress),
    "GzipCodec": (_gunzip, _gzip),
    "BZip2Codec": (_bunzip, bz2.compress),
    "ZStandardCodec": (_unzstd, _zstd),
    "ZstdCodec": (_unzstd, _zstd),
    "SnappyCodec": _chunked("snappy"),
    "Lz4Codec": _chunked("lz4_raw"),
}
