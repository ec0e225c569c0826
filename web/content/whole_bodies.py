"""Decides whether a body is whole although the frame of its answer is wrong; unpacks gzip, also cut.

Many servers send a length that is too large, or leave out the last chunk. A document that has its own
end is whole if the end has come, and little comes after it. Others are whole if the frame lacks a few
bytes at most.
"""

import json
import re
import zlib
from typing import NamedTuple

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


# Values of ``truncated`` for bodies that are whole: the answer ended early or late, or the checksum of
# its coding is wrong.
FRAME, CHECKSUM = "frame", "checksum"
WHOLE = (FRAME, CHECKSUM)
# Those of bodies that broke off: the connection ended, time was up, a coding lacks its end.
BROKEN = ("disconnect", "time", "encoding")

_FEW_BYTES = 16
_TAIL_BYTES = 4_096
_MAX_UNPACKED_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_XML_ROOTS = frozenset([b"rss", b"feed", b"urlset", b"sitemapindex", b"rdf:rdf", b"svg", b"opml"])
_HTML_TYPES = ("text/html", "application/xhtml+xml")
# The first end of a PDF that is made for the web names no place, and others come after it.
_PDF_END = re.compile(rb"startxref\s+0*[1-9][0-9]*\s+%%EOF")
_MOST_BYTES_AFTER_PDF = 1_024
_FIRST_TAG = re.compile(
    rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?\s*"
    rb"(?:(?:<!--(?:[^-]|-(?!->))*+-->|<\?[^>]*+>|<![^-][^>]*+>)\s*)*+<([A-Za-z_][A-Za-z0-9_:.-]*)"
)
# Types without an end of their own.
_PLAIN = ("", "text/plain", "text/csv", "text/markdown", "text/css", "text/tab-separated-values")
# What may follow the end tag of a document, besides blanks, comments, scripts and end tags.
_MOST_BYTES_AFTER = 200
# Elements whose content is no mark-up (HTML 13.2.5.2 to 13.2.5.4).
_RAW = frozenset(
    [b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes"]
)
# A quoted value that does not end takes the rest.
_TAG = re.compile(
    rb"<(?P<end>/?)(?P<name>[A-Za-z_][^\s/>]*+)"
    rb"(?P<rest>(?:=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|(?![\"']))|[^>=])*+)>"
)
_ENDS_OF_RAW = {
    name: re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE) for name in sorted(_RAW)
}
_TAG_START = re.compile(rb"</?[A-Za-z_]")
_SHORT_COMMENT = re.compile(rb"<!---?>")
_COMMENT_END = re.compile(rb"--!?>")
_MARKS = (b"!", b"?", b"/")
_SECTIONS = ((b"<![CDATA[", b"]]>"), (b"<?", b"?>"))


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
    if body.lstrip().startswith(b"%PDF-"):
        return _is_whole_pdf(body)
    if body.startswith(b"PK\x03\x04"):
        return _is_whole_archive(body)
    if body.startswith(GZIP_MARK):
        return _is_whole_gzip(body)
    kind = content_type.partition(";")[0].strip().lower()
    text = _as_ascii(body)
    root = _root_of(text)
    if root is not None or kind in _HTML_TYPES:
        return _is_whole_markup(text, root or b"", missing)
    if kind.endswith(("/json", "+json")):
        return _is_json(body)
    return kind in _PLAIN and missing is not None and missing <= _FEW_BYTES


def _as_ascii(body: bytes) -> bytes:
    """Returns a text in UTF-16 in UTF-8, and others as they are."""
    for encoding, mark, start in (
        ("utf-16-le", b"\xff\xfe", b"<\0"),
        ("utf-16-be", b"\xfe\xff", b"\0<"),
    ):
        if body.startswith((mark, start)):
            return body.decode(encoding, "replace").lstrip("\ufeff").encode("utf-8", "replace")
    return body


def _root_of(text: bytes) -> bytes | None:
    """Returns the name of the first tag, in lower case; None if the body does not begin as markup."""
    head = text[:_TAIL_BYTES]
    match = _FIRST_TAG.match(head)
    if match is None:
        return b"" if head.lstrip().startswith(b"<") else None
    return match[1].lower()


def _is_whole_markup(text: bytes, root: bytes, missing: int | None) -> bool:
    """Returns whether the end tag of the root has come.

    That of HTML may be left out (HTML 13.1.2.4). A page without it is whole if its length lacks a few
    bytes, and if it does not end within a tag, a comment or a script.
    """
    is_xml = root in _XML_ROOTS or (text.lstrip().startswith(b"<?xml") and root != b"html")
    if is_xml:
        return find_markup_end(text, root, False).has_root_end
    # The start tag of HTML may be left out, too.
    end = find_markup_end(text, b"html", True)
    few = missing is not None and 0 < missing <= _FEW_BYTES  # 0: chunks, one of which may lack
    return end.has_root_end or (end.in_text and few)


def _is_whole_pdf(body: bytes) -> bool:
    """Returns whether the last end of a PDF is there, and no object after it."""
    ends = list(_PDF_END.finditer(body, max(0, len(body) - _TAIL_BYTES)))
    return (
        bool(ends)
        and len(tail := body[ends[-1].end() :]) <= _MOST_BYTES_AFTER_PDF
        and b"obj" not in tail
    )


def _is_whole_archive(body: bytes) -> bool:
    """Returns whether a zip archive has its last record, after its directory and before its comment.

    An archive within it has a last record, too; its directory begins elsewhere than the record says.
    """
    at = body.rfind(b"PK\x05\x06")
    if at < 0 or at + 22 > len(body):
        return False
    size, start = (int.from_bytes(body[at + n : at + n + 4], "little") for n in (12, 16))
    is_large = start == 0xFFFFFFFF or size == 0xFFFFFFFF  # ZIP64 has the place in another record
    in_place = start + size == at or is_large
    return in_place and at + 22 + int.from_bytes(body[at + 20 : at + 22], "little") <= len(body)


def _is_whole_gzip(body: bytes) -> bool:
    """Returns whether all members of a gzip file have their ends."""
    packed, unpacked_bytes = body, 0
    for _ in range(MAX_MEMBERS):
        reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            while packed and not reader.eof and unpacked_bytes < _MAX_UNPACKED_BYTES:
                unpacked_bytes += len(reader.decompress(packed, _PIECE_BYTES))
                packed = reader.unconsumed_tail
        except zlib.error:
            return False
        packed = reader.unused_data
        if not reader.eof or packed[:1] != GZIP_MARK[:1]:
            return reader.eof
    return False


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


class MarkupEnd(NamedTuple):
    """How mark-up ends.

    Attributes:
        in_text: Whether the last byte is outside of tags, comments, scripts and the like.
        has_root_end: Whether the end tag of the root is there, with little after it.
    """

    in_text: bool
    has_root_end: bool


_UNFINISHED_MARKUP = MarkupEnd(False, False)


def find_markup_end(text: bytes, root: bytes, is_html: bool) -> MarkupEnd:
    """Returns how mark-up ends, in time proportional to its length.

    Args:
        text: The document, in a superset of ASCII.
        root: Name of the root, in lower case.
        is_html: Whether it is read as HTML; else as XML, with mistakes.

    >>> find_markup_end(b"<html><p>a</html><!-- b -->", b"html", True)
    MarkupEnd(in_text=True, has_root_end=True)
    >>> find_markup_end(b"<html><p title='</html>'>a", b"html", True)
    MarkupEnd(in_text=True, has_root_end=False)
    """
    at = depth = bytes_after = 0
    is_over = False
    while (begin := text.find(b"<", at)) >= 0:
        bytes_after += _text_bytes(text, at, begin) if is_over else 0
        tag = _TAG.match(text, begin)
        if tag is None:
            at = _end_of_other(text, begin, is_html)
            if at < 0:
                return _UNFINISHED_MARKUP
            continue
        name, at = tag["name"].lower(), tag.end()
        if name == root:
            depth = _depth(depth, tag, is_html)
            is_over, bytes_after = depth == 0, 0
        elif is_html and name in _RAW and not tag["end"]:
            end = _ENDS_OF_RAW[name].search(text, at)
            if end is None:
                return _UNFINISHED_MARKUP
            at = end.start()
        elif not tag["end"]:
            bytes_after += len(tag[0])
    bytes_after += _text_bytes(text, at, len(text))
    return MarkupEnd(True, is_over and bytes_after <= _MOST_BYTES_AFTER)


def _depth(depth: int, tag: re.Match[bytes], is_html: bool) -> int:
    """Returns how many elements with the name of the root are open after a tag."""
    if tag["end"]:
        return 0 if is_html else max(0, depth - 1)
    if is_html:
        return 1
    return depth if tag["rest"].endswith(b"/") else depth + 1


def _text_bytes(text: bytes, start: int, end: int) -> int:
    """Returns the length of a text without the blanks around it."""
    return len(text[start:end].strip(b" \t\r\n\0\x1a"))


def _end_of_other(text: bytes, begin: int, is_html: bool) -> int:
    """Returns where a comment, a declaration or a ``<`` that is text ends; negative: it does not."""
    if text.startswith(b"<!--", begin):
        if is_html and (short := _SHORT_COMMENT.match(text, begin)):
            return short.end()
        end = _COMMENT_END.search(text, begin + 4)
        return end.end() if end else -1
    for mark, closing in _SECTIONS:
        if not is_html and text.startswith(mark, begin):
            end_at = text.find(closing, begin)
            return end_at + len(closing) if end_at >= 0 else -1
    if _TAG_START.match(text, begin):
        return -1
    return text.find(b">", begin) + 1 or -1 if text[begin + 1 : begin + 2] in _MARKS else begin + 1
