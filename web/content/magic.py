"""Reads the first bytes of a document: its type by magic numbers, and where its XML begins."""

import codecs
import re

# The bytes that documents of a type begin with.
_SIGNATURES = {
    "application/pdf": (b"%PDF-",),
    "application/postscript": (b"%!PS-Adobe-",),
    "application/rtf": (b"{\\rtf",),
    "application/zip": (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"),
    "application/x-ole-storage": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",),
    "application/gzip": (b"\x1f\x8b",),
    "application/x-bzip2": (b"BZh",),
    "application/x-xz": (b"\xfd7zXZ\0",),
    "application/zstd": (b"(\xb5/\xfd",),
    "application/x-7z-compressed": (b"7z\xbc\xaf'\x1c",),
    "application/vnd.rar": (b"Rar!\x1a\x07",),
    "application/x-compress": (b"\x1f\x9d",),
    "application/vnd.debian.binary-package": (b"!<arch>\ndebian",),
    "application/x-rpm": (b"\xed\xab\xee\xdb",),
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/tiff": (b"II*\0", b"MM\0*"),
    "image/vnd.microsoft.icon": (b"\0\0\1\0", b"\0\0\2\0"),
    "image/vnd.adobe.photoshop": (b"8BPS\0",),
    "image/vnd.djvu": (b"AT&TFORM",),
    "image/jp2": (b"\0\0\0\x0cjP  \r\n\x87\n",),
    "image/jxl": (b"\0\0\0\x0cJXL \r\n\x87\n",),
    "audio/mpeg": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "audio/flac": (b"fLaC",),
    "application/ogg": (b"OggS\0",),
    "audio/midi": (b"MThd\0\0\0\x06",),
    "audio/amr": (b"#!AMR",),
    "audio/basic": (b".snd",),
    "video/x-matroska": (b"\x1aE\xdf\xa3",),
    "video/x-flv": (b"FLV\x01",),
    "video/mpeg": (b"\0\0\1\xba", b"\0\0\1\xb3"),
    "video/x-ms-asf": (b"0&\xb2u\x8ef\xcf\x11",),
    "font/woff": (b"wOFF",),
    "font/woff2": (b"wOF2",),
    "font/ttf": (b"\0\1\0\0\0", b"true\0"),
    "font/otf": (b"OTTO\0",),
    "font/collection": (b"ttcf\0",),
    "application/wasm": (b"\0asm",),
    "application/x-elf": (b"\x7fELF",),
    "application/java-vm": (b"\xca\xfe\xba\xbe",),
    "application/x-mach-binary": (
        b"\xfe\xed\xfa\xce",
        b"\xfe\xed\xfa\xcf",
        b"\xce\xfa\xed\xfe",
        b"\xcf\xfa\xed\xfe",
    ),
    "application/x-shockwave-flash": (b"CWS", b"FWS", b"ZWS"),
    "application/vnd.sqlite3": (b"SQLite format 3\0",),
    "application/vnd.apache.parquet": (b"PAR1",),
    "application/avro": (b"Obj\x01",),
    "application/vnd.ms-htmlhelp": (b"ITSF\x03\0\0\0",),
    "application/warc": (b"WARC/1.",),
    "application/vnd.microsoft.portable-executable": (b"MZ",),
}
# Words may begin like shorter signatures, so bytes that no text holds must follow these.
_SURE_BYTES = 5
# At the ninth byte: the form of RIFF, and the brand of ISO media (ISO 14496-12 4.3).
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
    **dict.fromkeys((b"heic", b"heix"), "image/heic"),
    **dict.fromkeys((b"mif1", b"msf1"), "image/heif"),
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    **dict.fromkeys((b"3gp4", b"3gp5"), "video/3gpp"),
    b"qt  ": "video/quicktime",
    b"crx ": "image/x-canon-cr3",
}
_BY_FIRST: dict[int, list[tuple[bytes, str]]] = {}
for _mime, _starts in _SIGNATURES.items():
    for _start in _starts:
        _BY_FIRST.setdefault(_start[0], []).append((_start, _mime))

# As a name in the headers of a zip file's members, at their start or end (APPNOTE 4.3.7, 4.3.12).
_MEMBER = re.compile(
    rb"PK(?:\x03\x04.{26}|\x01\x02.{42})"
    rb"(?:\./|[/\\])?(word[/\\]document|xl[/\\]workbook|ppt[/\\]presentation|visio[/\\]document"
    rb"|META-INF[/\\]container\.xml|AndroidManifest\.xml|META-INF[/\\]MANIFEST\.MF)",
    re.DOTALL | re.IGNORECASE,
)
_MEMBERS = {
    b"word/document": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    b"xl/workbook": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    b"ppt/presentation": (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    ),
    b"visio/document": "application/vnd.ms-visio.drawing",
    b"meta-inf/container.xml": "application/epub+zip",
    b"androidmanifest.xml": "application/vnd.android.package-archive",
    b"meta-inf/manifest.mf": "application/java-archive",
}
# OpenDocument and EPUB: the first member, stored as it is, holds the type.
_STORED_TYPE = re.compile(rb"PK\x03\x04.{26}mimetype(application/[a-z0-9.+-]{1,100})", re.DOTALL)
_STREAMS = tuple(
    (name.encode("utf-16-le"), mime)
    for name, mime in (
        ("WordDocument", "application/msword"),
        ("PowerPoint Document", "application/vnd.ms-powerpoint"),
        ("Workbook", "application/vnd.ms-excel"),
        ("Book", "application/vnd.ms-excel"),
        ("__substg1.0_", "application/vnd.ms-outlook"),
        ("VisioDocument", "application/vnd.visio"),
    )
)
_MEMBERS_BYTES = 65_536
_TAR = (b"ustar\0", b"ustar ")
# WHATWG MIME Sniffing 3: bytes that no text holds.
BINARY_BYTES = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def type_of_binary(body: bytes) -> str | None:
    r"""Returns the MIME type of a binary document by its first bytes, or None.

    The content of a zip file is recognized by the names and the ``mimetype`` in its headers
    and its directory; nothing is unpacked.

    >>> type_of_binary(b"\x89PNG\r\n\x1a\n"), type_of_binary(b"<html>")
    ('image/png', None)
    """
    for signature, mime in _BY_FIRST.get(body[0] if body else -1, ()):
        if body.startswith(signature) and not (len(signature) < _SURE_BYTES and _is_text(body)):
            return _specific_type(body, mime)
    if body[4:8] == b"ftyp":
        return _BRANDS.get(body[8:12], "video/mp4")
    if body.startswith(b"RIFF"):
        return _RIFF.get(body[8:12])
    if body.startswith(b"BM") and body[6:10] == b"\0\0\0\0" and len(body) > 14:
        return "image/bmp"
    if body[60:68] == b"BOOKMOBI":
        return "application/x-mobipocket-ebook"
    return "application/x-tar" if body[257:263] in _TAR else None


def _is_text(body: bytes) -> bool:
    return BINARY_BYTES.search(body, 0, 512) is None


def _specific_type(body: bytes, mime: str) -> str:
    """Returns a more specific type for a container, if its content shows one."""
    if mime == "application/zip":
        stored_type = _STORED_TYPE.match(body)
        if stored_type:
            return stored_type[1].decode()
        ends = (body[:_MEMBERS_BYTES], body[-_MEMBERS_BYTES:])
        member = _MEMBER.search(ends[0]) or _MEMBER.search(ends[1])
        return _MEMBERS[member[1].lower().replace(b"\\", b"/")] if member else mime
    if mime == "application/x-ole-storage":
        return next((kind for name, kind in _STREAMS if name in body), mime)
    if mime == "video/x-matroska" and b"webm" in body[:64]:
        return "video/webm"
    return mime


# Before a document: byte-order marks, spaces, empty lines.
BLANKS = "\ufeff \t\r\n"
# What may stand before it is no longer than this.
_JUNK_BYTES = 8_192
_BEGIN = rb"<(?:\?xml\s|!doctype\s|(?:[a-z][\w.-]{0,40}:)?(?:rss|rdf|feed|urlset|sitemapindex|html)[\s>/])"
# Of warnings, as PHP and its debuggers write them, and what plug-ins of sites put into every answer.
# Other elements are those of the document.
_OF_WARNINGS = rb"</?(?:a|b|br|center|code|div|em|font|h[1-6]|hr|i|link|meta|p|pre|small|span|strong|su[bp]|t[drht]|table|tbody|u)(?:\s[^<>]*)?/?>"
_JUNK = re.compile(
    rb"(?:[^<]++|<(?![A-Za-z/!?])|<!--(?:(?!-->).)*+-->"
    # No group: within possessive repetitions, Python's re fails with SystemError.
    rb"|<script[\s>](?:(?!</script).)*+</script\s*+>|<style[\s>](?:(?!</style).)*+</style\s*+>|"
    + _OF_WARNINGS
    + rb")*+(?="
    + _BEGIN
    + rb")",
    re.IGNORECASE | re.DOTALL,
)


def without_junk(start: bytes) -> bytes:
    r"""Returns XML from its declaration on, or from the root element of a feed or a sitemap.

    Comments, warnings of PHP, scripts and empty lines before it are dropped, if they take at most 8 KiB. A
    byte-order mark at the start stays.

    Args:
        start: A document, or its first bytes, in an encoding that begins with ASCII.

    >>> without_junk(b"\n<!-- 3 ms --><b>Warning</b>: x.php\n<?xml version='1.0'?><rss/>")
    b"<?xml version='1.0'?><rss/>"
    """
    mark = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
    junk = _JUNK.match(start, mark, _JUNK_BYTES)
    return start[:mark] + start[junk.end() :] if junk and junk.end() > mark else start
