"""Compresses records one by one, so that each can be read alone."""

import threading
import zlib
from collections.abc import Callable

from .warc_options import ZSTD

_GZIP_LEVEL = 6
_ZSTD_LEVEL = 3  # the default of zstd
_THREAD = threading.local()


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
