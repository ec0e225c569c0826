"""Decodes the body of a robots.txt, and reads the sitemaps that it names."""

import html
import re
import zlib
from collections.abc import Iterable

from ..content.charset import decode_as_declared
from ..content.whatwg_encodings import decode_as
from ..content.whole_bodies import BROKEN, GZIP_MARK, unpack_gzip
from ..exchange.status import Response
from ..urls.percent import url_of_bytes
from ..urls.userinfo import mask_users, parse_target
from .rules import number_of_lines

MAX_SITEMAPS = 100
MAX_SITEMAP_CHARS = 2048
# What people put around a URL. No URL begins or ends with them.
_QUOTES = "\"'`<>\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e"
# A URL, or what is relative to that of robots.txt; "none" is neither.
_SITEMAP = re.compile(
    r"(?:(?i:https?://)|(?![A-Za-z][A-Za-z0-9+.-]*:)(?=\S*[./?]))[!-~\u00a1-\U0010ffff]+"
)
_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)
_LINE = re.compile(
    rb"^([^\S\r\n]*site-?maps?[^\S\r\n]*:[^\S\r\n]*)([^\r\n]+)", re.IGNORECASE | re.MULTILINE
)


def escape_sitemaps(body: bytes) -> bytes:
    r"""Returns a robots.txt in which the bytes of URLs of sitemaps that are not UTF-8 are escaped.

    >>> escape_sitemaps(b"Disallow: /\xe9\nSitemap: http://a/\xe9.xml")
    b'Disallow: /\xe9\nSitemap: http://a/%E9.xml'
    """
    if body.isascii():
        return body
    return _LINE.sub(lambda line: line[1] + url_of_bytes(line[2]).encode(), body)


def usable_sitemaps(values: Iterable[str]) -> tuple[str, ...]:
    """Returns the first hundred values that may be URLs, without the quotes around them."""
    bare = (value.strip(_QUOTES).strip() for value in values)
    urls = (url for url in bare if len(url) <= MAX_SITEMAP_CHARS and _SITEMAP.fullmatch(url))
    return tuple(list(dict.fromkeys(urls))[:MAX_SITEMAPS])


def absolute_sitemaps(values: Iterable[str], origin: str) -> tuple[str, ...]:
    """Returns the absolute URLs of sitemaps that robots.txt names, as Nutch and Scrapy read them.

    >>> absolute_sitemaps(["/a.xml", "b.xml", "//c.com/d.xml"], "http://example.com")
    ('http://example.com/a.xml', 'http://example.com/b.xml', 'http://c.com/d.xml')
    """
    urls = (
        url if _ABSOLUTE.match(url) else parse_target(url, f"{origin}/robots.txt") for url in values
    )
    return tuple(dict.fromkeys(filter(None, urls)))


MAX_ROBOTS_BYTES = 500 * 1024  # RFC 9309 2.5
_HTML_TYPE = re.compile(r"\s*(?:text/html|application/xhtml\+xml)\b", re.IGNORECASE)
_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
# The inside of a tag. It may go over lines, but not over one that begins as those of robots.txt.
_INSIDE = r"(?:[^<>\r\n]|\r?\n(?![^\S\n]*+(?:user|allow|dis|crawl|site)))*+"
# Elements after which a browser begins a line. What follows is looked at, so no line is added
# where the text has one.
_BREAK = re.compile(
    r"<(?:br|hr|/?(?:p|div|pre|li|ul|ol|dl|dt|dd|tr|table|h[1-6]|head|title|body|html|section"
    rf"|article|main|header|footer|nav|aside|blockquote|center|address|form|textarea))\b{_INSIDE}>"
    r"(?=[^\S\n]*+\S)",
    re.IGNORECASE,
)
_TAG = re.compile(rf"<{_INSIDE}>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});", re.IGNORECASE)
# At the start of a line: byte-order marks (one more for each file that was appended, also as
# windows-1252 shows them), other characters that nobody sees, and what stands for wrong bytes.
_MARKS = re.compile(
    r"(?<![^\r\n])[ \t]*+(?:[\ufeff\ufffd\u00ad\u200b-\u200f\u2060]|ï»¿)"
    r"[ \t\ufeff\ufffd\u00ad\u200b-\u200f\u2060ï»¿]*+"
)
# Characters that nobody sees, beside a field or a value; inside a path they may be part of it.
_UNSEEN = "\u00ad\u200b-\u200f\u2060\ufeff"
_EDGES = re.compile(
    rf"(?<=:)[ \t]*+[{_UNSEEN}][ \t{_UNSEEN}]*+"
    rf"|(?<![{_UNSEEN}])[{_UNSEEN}]++(?=[ \t]*+(?:[:\r\n#]|\Z))"
)
# At the end of a file: what DOS puts there, and in UTF-16 and UTF-32 the bytes of line ends in ASCII that
# a program has appended, or less than a letter.
_DOS_END = "\x1a"
_ODD_END = "\ufffd\u0a0a\u0a0d\u0d0a"
# First bytes of files that are packed: gzip, zstd, xz, bzip2, zip.
_PACKED_MARKS = (GZIP_MARK, b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PK\3\4")
_ZLIB_MARKS = (b"x\x01", b"x^", b"x\x9c", b"x\xda")  # RFC 1950 2.2, by level
_RANGE = re.compile(r"bytes 0-([0-9]{1,9})/([0-9]{1,9})", re.IGNORECASE)
_SITEMAP_LINE = re.compile(r"^[ \t]*site-?maps?\b.*$", re.IGNORECASE | re.MULTILINE)


def decode_robots(body: bytes, content_type: str | None = None) -> str:
    r"""Returns the text of a robots.txt: of at most 500 KiB, up to the end of a line.

    The body may be a gzip file or zlib data without a header that says so. Its encoding is UTF-8 (RFC 9309
    2.2.2), or what a byte-order mark or the zero bytes of UTF-16 and UTF-32 show; bytes that are
    wrong in it become U+FFFD, but those in URLs of sitemaps are escaped. A robots.txt that has become a page of HTML loses its tags, as in
    Nutch. Marks at the start of a line and users in URLs of sitemaps are left out.

    Args:
        body: The body of the answer.
        content_type: The value of its header, or None.

    >>> decode_robots(b"\xff\xfea\x00")
    'a'
    >>> decode_robots(b"<pre>User-agent: *<br>Disallow: /a</pre>", "text/html").split("\n")
    ['User-agent: *', 'Disallow: /a']
    """
    body = _unpack(body)
    text = _decode_body(body[:MAX_ROBOTS_BYTES])
    if len(body) > MAX_ROBOTS_BYTES:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    if _HTML_TYPE.match(content_type or "") or ("<" in text and _HTML.search(text)):
        text = _TAG.sub("", _BREAK.sub("\n", text)).lstrip("\n")
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if not text.isascii():
        text = _EDGES.sub("", _MARKS.sub("", text))
    return _SITEMAP_LINE.sub(lambda line: mask_users(line[0]), text) if "@" in text else text


def incomplete_of(answer: Response) -> str | None:
    """Returns why an answer is no whole robots.txt, so that it may lack the rule that matters.

    It broke off, is a part of the file (206), or has a coding that cannot be undone. None: it is
    whole, or there is no answer.
    """
    if answer.error is not None or answer.truncated in BROKEN:
        return answer.error or "incomplete"
    if answer.status == 206 and not _is_whole_range(answer.header("content-range") or ""):
        return "incomplete"
    is_packed = answer.header("content-encoding") or answer.body.startswith(_PACKED_MARKS)
    if is_packed and not number_of_lines(decode_robots(answer.body)):
        return "bad_encoding" if "\ufffd" in answer.body.decode("utf-8", "replace") else None
    return None


def _is_whole_range(value: str) -> bool:
    """Returns whether a Content-Range (RFC 9110 14.4) is that of the whole file.

    >>> _is_whole_range("bytes 0-9/10"), _is_whole_range("bytes 0-8/10"), _is_whole_range("")
    (True, False, False)
    """
    match = _RANGE.fullmatch(value.strip())
    return match is not None and int(match[1]) + 1 == int(match[2])


def _unpack(body: bytes) -> bytes:
    try:
        if body.startswith(GZIP_MARK):
            return unpack_gzip(body, MAX_ROBOTS_BYTES + 1)
        if body.startswith(_ZLIB_MARKS):
            return zlib.decompressobj().decompress(body, MAX_ROBOTS_BYTES + 1)
    except zlib.error:
        pass
    return body


def _decode_body(body: bytes) -> str:
    """Returns the text, without zeros.

    Lines in ASCII are often appended to a file in UTF-16, and the other way round. Such a file has
    more lines that are understood if all of it is read as ASCII with zeros.
    """
    text, name = decode_as_declared(body, None)
    if name == "utf-8" and "\ufffd" in text:
        text, _ = decode_as_declared(escape_sitemaps(body), None)
    text = text.replace("\0", "").rstrip(_DOS_END)
    if name == "utf-8":
        return text
    text = text.rstrip(_ODD_END + _DOS_END)
    narrow = decode_as("utf-8", body).replace("\0", "").rstrip(_DOS_END)
    return max(text, _MARKS.sub("", narrow), key=number_of_lines)
