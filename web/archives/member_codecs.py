"""Encodes and decodes the members of an archive: gzip members, zstd frames, or a whole uncompressed file.

Most archives compress each record alone (ISO 28500 annex D). The output of each call of a decoder is
bounded, so that a small member cannot fill the memory.
"""

import abc
import threading
import zlib
from collections.abc import Callable

from ..base.zlib_choice import fastest_zlib
from .warc_options import ZSTD

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
# Frames that decoders skip (RFC 8878 3.1.2); the one with a dictionary has the first of these bytes.
SKIPPABLE = tuple(bytes((0x50 + number,)) + b"\x2a\x4d\x18" for number in range(16))
DICTIONARY = SKIPPABLE[0xD]
TRUNCATED_FILE = "truncated_file"  # a reason
_GZIP_LEVEL = 6
_ZSTD_LEVEL = 3  # the default of zstd
_THREAD = threading.local()
_PIECE_BYTES = 1 << 20
_INPUT_BYTES = 1 << 15  # most records need no more; what follows one is copied
# zstd's decoder has no limit of its output; a block of 128 KiB may have 4 bytes.
_ZSTD_INPUT_BYTES = 1 << 9
_MAX_DICTIONARY_BYTES = 64 << 20


class BadMember(Exception):
    """A member is damaged; the message is the reason: ``broken_compression`` or ``truncated_file``."""


class MemberDecoder(abc.ABC):
    """Decodes one member.

    Attributes:
        input_bytes: How many bytes to feed at a time, at most.
        ended: Whether the end of the member has come.
        has_more: Whether the decoder has more bytes of what was fed.
        unused: Number of the fed bytes that follow the member, once it has ended.
    """

    input_bytes = _INPUT_BYTES
    ended = has_more = False
    unused = 0

    @abc.abstractmethod
    def feed(self, data: bytes) -> bytes:
        """Returns decoded bytes; they may be empty before the end.

        Args:
            data: The next bytes of the file; empty if ``has_more``.

        Raises:
            BadMember: The member is damaged.
        """

    def finish(self) -> None:
        """Ends the member with the file.

        Raises:
            BadMember: Its end is missing.
        """
        if not self.ended:
            raise BadMember(TRUNCATED_FILE)


class PlainDecoder(MemberDecoder):
    """The whole file as one member."""

    input_bytes = _PIECE_BYTES

    def feed(self, data: bytes) -> bytes:
        """See ``MemberDecoder``."""
        return data

    def finish(self) -> None:
        """See ``MemberDecoder``."""
        self.ended = True


class GzipDecoder(MemberDecoder):
    """Decodes a gzip member (RFC 1952), and checks its checksum and length."""

    def __init__(self) -> None:
        self._zlib = fastest_zlib()
        self._decoder = self._zlib.decompressobj(31)
        self._tail = b""

    def feed(self, data: bytes) -> bytes:
        """See ``MemberDecoder``."""
        try:
            piece: bytes = self._decoder.decompress(data or self._tail, _PIECE_BYTES)
        except self._zlib.error as error:
            raise BadMember("broken_compression") from error
        self._tail = self._decoder.unconsumed_tail
        if self._decoder.eof:
            self.ended, self.unused = True, len(self._decoder.unused_data)
        self.has_more = bool(self._tail) or len(piece) == _PIECE_BYTES
        return piece


class ZstdDecoder(MemberDecoder):
    """Decodes a zstd frame (RFC 8878).

    Not that of HTTP bodies: there a frame follows another, and the window is limited by RFC 9659.

    Args:
        dictionary: The dictionary of the file; empty: it has none.
    """

    input_bytes = _ZSTD_INPUT_BYTES

    def __init__(self, dictionary: bytes = b"") -> None:
        import zstandard  # late: few archives need it

        self._error = zstandard.ZstdError
        shared = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self._decoder = zstandard.ZstdDecompressor(dict_data=shared).decompressobj()

    def feed(self, data: bytes) -> bytes:
        """See ``MemberDecoder``."""
        try:
            piece = self._decoder.decompress(data)
        except self._error as error:
            raise BadMember("broken_compression") from error
        if self._decoder.eof:
            self.ended, self.unused = True, len(self._decoder.unused_data)
        return piece


class MemberCodec:
    """How the members of a file are compressed.

    Attributes:
        magics: The first bytes of a member; none: the file is one member.
        decoder: Returns a decoder of one member.
    """

    def __init__(self, magics: tuple[bytes, ...], decoder: Callable[[], MemberDecoder]) -> None:
        self.magics, self.decoder = magics, decoder


def codec_of(beginning: bytes, dictionary: bytes = b"") -> MemberCodec:
    """Returns the codec of a file.

    Args:
        beginning: The first bytes of the file, at least four.
        dictionary: Of a zstd file with a dictionary: see ``split_dictionary``.
    """
    if beginning.startswith(GZIP_MAGIC):
        return MemberCodec((GZIP_MAGIC,), GzipDecoder)
    if beginning.startswith((ZSTD_MAGIC, *SKIPPABLE)):
        return MemberCodec((ZSTD_MAGIC,), lambda: ZstdDecoder(dictionary))
    return MemberCodec((), PlainDecoder)


def is_compressed(beginning: bytes) -> bool:
    """Returns whether a file begins with a member of gzip or a frame of zstd."""
    return bool(codec_of(beginning).magics)


def dictionary_length(beginning: bytes) -> int:
    """Returns the length of the frame with the dictionary of a zstd file; 0 without a dictionary."""
    if not beginning.startswith(DICTIONARY) or len(beginning) < 8:
        return 0
    return 8 + int.from_bytes(beginning[4:8], "little")


def dictionary_in(frame: bytes) -> bytes:
    """Returns the dictionary in its frame, where it may be compressed itself.

    Source: IIPC's "WARC Zstandard" 0.1, and Archive Team's files.

    Raises:
        BadMember: It is damaged.
    """
    content = frame[8:]
    if not content.startswith(ZSTD_MAGIC):
        return content
    decoder, pieces = ZstdDecoder(), list[bytes]()
    for at in range(0, len(content), decoder.input_bytes):
        pieces.append(decoder.feed(content[at : at + decoder.input_bytes]))
        if decoder.ended or sum(map(len, pieces)) > _MAX_DICTIONARY_BYTES:
            break
    decoder.finish()
    return b"".join(pieces)


def record_encoder(compression: str) -> Callable[[bytes], bytes]:
    """Returns the function that compresses a record.

    Args:
        compression: ``gzip``: a member of RFC 1952 per record, as ISO 28500 D.2 recommends.
            ``zstd``: a frame per record with its length and a checksum, without a dictionary, as
            IIPC's "WARC Zstandard" demands.
    """
    if compression == ZSTD:
        return _encode_zstd
    return encode_gzip


def _encode_zstd(record: bytes) -> bytes:
    import zstandard  # late: few commands need it

    if not hasattr(_THREAD, "zstd"):  # a compressor serves one thread
        _THREAD.zstd = zstandard.ZstdCompressor(_ZSTD_LEVEL, write_checksum=True)
    compressed: bytes = _THREAD.zstd.compress(record)
    return compressed


def encode_gzip(record: bytes) -> bytes:
    """Returns a member without name and time, so that the same record makes the same bytes."""
    return zlib.compress(record, _GZIP_LEVEL, wbits=31)
