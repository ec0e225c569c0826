"""Which kind of document a body is: what the server says, else its first bytes."""

import re

# RFC 9110 8.3.1: type "/" subtype, both tokens.
_MIME = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+", re.ASCII)
# Said by servers that do not know either.
_UNKNOWN = frozenset(
    {"application/octet-stream", "application/unknown", "unknown/unknown", "application/x-unknown"}
)
_HTML = re.compile(
    rb"<(?:!doctype html|html|head|body|title|meta|script|style|link|base|iframe|"
    rb"h[1-6]|div|font|table|a|p|b|br)[\s>/]",
    re.IGNORECASE,
)
_MAGIC = (
    (b"%PDF-", "application/pdf"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\xfe\xff", "text/plain"),
    (b"\xff\xfe", "text/plain"),
)
_SNIFFED_BYTES = 1024
# WHATWG MIME Sniffing 3: bytes that no text holds.
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_COMMENT = re.compile(rb"\s*<!--.*?-->", re.DOTALL)


def sniff(body: bytes, header: str | None) -> str:
    """Returns the MIME type of a body, in lower case and without parameters.

    Args:
        body: The decoded body.
        header: The value of ``Content-Type``, if there was one. It is believed
            unless it is malformed or says that the server does not know.

    Returns:
        The type; ``application/octet-stream`` for what nothing is known of.

    >>> sniff(b"", "Text/HTML; charset=utf-8")
    'text/html'
    >>> sniff(b"<!DOCTYPE html><title>x</title>", None)
    'text/html'
    >>> sniff(b"%PDF-1.7", "application/octet-stream")
    'application/pdf'
    """
    if header:
        declared = header.partition(";")[0].strip().lower()
        if declared not in _UNKNOWN and "*" not in declared and _MIME.fullmatch(declared):
            return declared
    return _by_content(body[:_SNIFFED_BYTES])


def _by_content(start: bytes) -> str:
    for magic, mime in _MAGIC:
        if start.startswith(magic):
            return mime
    if _BINARY.search(start):
        return "application/octet-stream"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    markup = text[5:] if text.startswith(b"<?xml") else text
    while comment := _COMMENT.match(markup):
        markup = markup[comment.end() :]
    if text.startswith(b"<?xml"):
        return "application/xhtml+xml" if b"<html" in markup else "application/xml"
    return "text/html" if _HTML.match(markup.lstrip() + b" ") else "text/plain"
