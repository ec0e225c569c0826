"""Decides whether a body is whole although the frame of its answer is wrong.

Many servers send a length that is too large, or leave out the last chunk. A document that has its own
end is whole if the end has come. Others are whole if the frame lacks a few bytes at most.
"""

import json
import re
import zlib

# Values of ``truncated`` for bodies that are whole: the answer ended early or late, or the checksum of
# its coding is wrong.
FRAME, CHECKSUM = "frame", "checksum"
WHOLE = (FRAME, CHECKSUM)

_FEW_BYTES = 16
_TAIL_BYTES = 4_096
_MAX_UNPACKED_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_ROOTS = frozenset(["html", "rss", "feed", "urlset", "sitemapindex", "rdf:rdf", "svg", "opml"])
_LAST_TAG = re.compile(rb"</([A-Za-z_][A-Za-z0-9_:.-]*)\s*>")
_FIRST_TAG = re.compile(
    rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?\s*"
    rb"(?:(?:<!--(?:[^-]|-(?!->))*+-->|<\?[^>]*+>|<![^-][^>]*+>)\s*)*+<([A-Za-z_][A-Za-z0-9_:.-]*)"
)
# Types without an end of their own.
_PLAIN = ("", "text/plain", "text/csv", "text/markdown", "text/css", "text/tab-separated-values")


def is_whole_document(body: bytes, content_type: str = "", missing: int | None = None) -> bool:
    """Returns whether a body is whole by its own format.

    Args:
        body: The bytes that came, decoded.
        content_type: Header of the answer; formats are found in the bytes first.
        missing: Bytes that the frame lacks; None: unknown, or more may be missing.

    >>> is_whole_document(b"<html>One</html>\\n"), is_whole_document(b"<html>One"), is_whole_document(b"One", "text/plain", 3)
    (True, False, True)
    """
    if not body:
        return False
    if body.startswith(b"%PDF-"):
        return b"%%EOF" in body[-1_024:]
    if body.startswith(b"PK\x03\x04"):
        return _is_whole_archive(body)
    if body.startswith(b"\x1f\x8b"):
        return _is_whole_gzip(body)
    if (root := _root_of(body)) is not None:
        return _ends(body, root)
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith(("/json", "+json")):
        return _is_json(body)
    return kind in _PLAIN and missing is not None and missing <= _FEW_BYTES


def _root_of(body: bytes) -> bytes | None:
    """Returns the name of the first tag, in lower case; None if the body does not begin as markup."""
    head = body[:_TAIL_BYTES].replace(b"\0", b"")  # of UTF-16, every other byte
    match = _FIRST_TAG.match(head)
    if match is None:
        return b"" if head.lstrip().startswith(b"<") else None
    return match[1].lower()


def _ends(body: bytes, root: bytes) -> bool:
    """Returns whether the end tag of the root has come; scripts and comments may follow it."""
    tail = body[-_TAIL_BYTES:].replace(b"\0", b"")
    ends = [match.lower() for match in _LAST_TAG.findall(tail)]
    if root.decode("ascii") in _ROOTS or body.lstrip().startswith(b"<?xml"):
        return root in ends
    return b"html" in ends  # the start tag of HTML may be left out


def _is_whole_archive(body: bytes) -> bool:
    """Returns whether a zip archive has its last record, which gives the length of its comment."""
    at = body.rfind(b"PK\x05\x06")
    return at >= 0 and at + 22 + int.from_bytes(body[at + 20 : at + 22], "little") <= len(body)


def _is_whole_gzip(body: bytes) -> bool:
    reader, unpacked, rest = zlib.decompressobj(zlib.MAX_WBITS | 16), 0, body
    try:
        while rest and not reader.eof and unpacked < _MAX_UNPACKED_BYTES:
            unpacked += len(reader.decompress(rest, _PIECE_BYTES))
            rest = reader.unconsumed_tail
    except zlib.error:
        return False
    return reader.eof


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True
