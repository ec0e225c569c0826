"""Unpacks gzip files."""

import zlib

# Each costs a copy of what follows it.
MAX_MEMBERS = 100
GZIP_MARK = b"\x1f\x8b"


def unpack_gzip(packed: bytes, most: int) -> bytes:
    """Returns the first ``most`` bytes of the content of a gzip file.

    The file may have up to 100 members (RFC 1952 2.2). If it is cut or damaged, this is the part
    before that.

    Raises:
        zlib.error: Nothing of it can be unpacked.

    >>> import gzip
    >>> unpack_gzip(gzip.compress(b"ab") + gzip.compress(b"cd"), 3)
    b'abc'
    """
    parts: list[bytes] = []
    try:
        while packed.startswith(GZIP_MARK) and most > 0 and len(parts) < MAX_MEMBERS:
            inflate = zlib.decompressobj(wbits=31)
            parts.append(inflate.decompress(packed, most))
            most -= len(parts[-1])
            packed = inflate.unused_data
    except zlib.error:
        if not any(parts):
            raise
    return b"".join(parts)
