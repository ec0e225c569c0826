"""Unpacks and decodes the body of a sitemap, piece by piece."""

import codecs
import itertools
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator

from ..content.charset import encoding_as_declared, is_text
from ..content.gzip_members import GZIP_MARK, MAX_MEMBERS
from ..content.whatwg_encodings import CODECS
from ..content.xml_start import BLANKS, without_junk
from ..pages.page import ParseFailed
from ..pages.xml_repair import without_controls
from ..urls.percent import ESCAPED

_READ_BYTES = 64 << 10
_TOO_LARGE = "too_large"
# Stands for bytes that are invalid in an encoding other than UTF-8; which URL was meant, nobody knows.
INVALID = "\ufffd"


def unpacked_stream(body: bytes, max_bytes: int, dropped: Counter[str]) -> Iterator[bytes]:
    """Yields the content of a body, unpacked if it begins as gzip does.

    Args:
        body: Plain, or gzip of any number of members, up to 100.
        max_bytes: Bytes to yield at most; ``too_large`` is counted if there are more.
        dropped: Counts of dropped parts, by reason; also ``cut_gzip``: a file ends early or is damaged.

    Raises:
        ParseFailed: ``malformed_gzip``: nothing of it can be unpacked.

    >>> import gzip
    >>> b"".join(unpacked_stream(gzip.compress(b"a") + gzip.compress(b"b"), 9, Counter()))
    b'ab'
    """
    pieces = _inflate_members(body, dropped) if body.startswith(GZIP_MARK) else _cut_pieces(body)
    for piece in pieces:
        yield piece[:max_bytes]
        max_bytes -= len(piece)
        if max_bytes < 0:
            dropped[_TOO_LARGE] += 1
            return


def _cut_pieces(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), _READ_BYTES):
        yield body[at : at + _READ_BYTES]


def _inflate_members(packed: bytes, dropped: Counter[str]) -> Iterator[bytes]:
    has_output = False
    for _ in range(MAX_MEMBERS):
        inflate = zlib.decompressobj(wbits=31)
        unread = memoryview(packed)
        try:
            while unread and not inflate.eof:
                piece = inflate.decompress(unread[:_READ_BYTES], _READ_BYTES)
                unread = unread[_READ_BYTES:]
                while piece:
                    has_output = True
                    yield piece
                    if inflate.eof:  # what follows is of the next member
                        break
                    piece = inflate.decompress(inflate.unconsumed_tail, _READ_BYTES)
        except zlib.error as error:
            if not has_output:
                raise ParseFailed("malformed_gzip") from error
            dropped["cut_gzip"] += 1
            return
        if not inflate.eof:
            dropped["cut_gzip"] += 1
            return
        packed = (inflate.unused_data + unread).lstrip(b"\0")  # padding
        if not packed.startswith(GZIP_MARK):
            return
    dropped["cut_gzip"] += 1


def utf8_stream(pieces: Iterable[bytes], content_type: str | None) -> tuple[str, Iterator[bytes]]:
    """Returns the name of the encoding of a document, and its pieces as UTF-8.

    They are without byte-order mark, control characters, and what stands before XML. The encoding is
    what the first piece or the header declares, else UTF-8. Bytes that are invalid in UTF-8 are
    escaped (``%E9``), since most are in URLs; in other encodings they become U+FFFD.

    Raises:
        ParseFailed: ``not_text``: it begins like a binary file.

    >>> name, stream = utf8_stream([b"\\xff\\xfe<\\0a", b"\\0>\\0"], None)
    >>> name, b"".join(stream)
    ('utf-16le', b'<a>')
    """
    source = iter(pieces)
    first = next(source, b"")
    if not is_text(first, content_type):
        raise ParseFailed("not_text")
    first = without_junk(first)
    name = encoding_as_declared(first, content_type)
    return name, _decode_pieces(itertools.chain((first,), source), name)


def _decode_pieces(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    error_handler = ESCAPED if name == "utf-8" else "replace"
    decoder = codecs.getincrementaldecoder(CODECS.get(name, "utf-8"))(errors=error_handler)
    has_begun = False
    for piece in pieces:
        text = decoder.decode(piece)
        if not has_begun:
            text = text.lstrip(BLANKS)
            has_begun = bool(text)
        yield without_controls(text.encode("utf-8", "replace"))
    yield without_controls(decoder.decode(b"", final=True).encode("utf-8", "replace"))
