"""Types by header and content: a row for each signature, for each contradiction."""

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import wave
import zipfile

import pytest
import zstandard

from nutbeam.web.content.content_type import SITEMAP, SITEMAP_INDEX, sniff
from nutbeam.web.pages.page import ParseFailed, Source
from nutbeam.web.pages.parse_options import ParseOptions
from nutbeam.web.parsers.dispatch import parse_document

OFFICE = "application/vnd.openxmlformats-officedocument."
OPEN = "application/vnd.oasis.opendocument."


def zipped(*members, stored=None):
    """Returns a zip file of empty-ish members; ``stored`` is the text of a first ``mimetype``."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        if stored:
            file.writestr(zipfile.ZipInfo("mimetype"), stored)
        for name in members:
            file.writestr(name, b"<x/>" * 50)
    return sink.getvalue()


def tarred():
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as file:
        file.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return sink.getvalue()


def waved():
    sink = io.BytesIO()
    with wave.open(sink, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(100))
    return sink.getvalue()


def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x)")
    return connection.serialize()


def ole(name):
    """Returns a compound file with one stream in its directory."""
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + bytes.fromhex("3e000300feff0900")
    return header + bytes(480) + "Root Entry".encode("utf-16-le") + bytes(44) + name.encode(
        "utf-16-le"
    )  # fmt: skip


OOXML = ("[Content_Types].xml", "_rels/.rels")
DOCX = zipped(*OOXML, "word/document.xml")
BINARY = [
    ("pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "application/pdf"),
    ("postscript", b"%!PS-Adobe-3.0\n", "application/postscript"),
    ("rtf", b"{\\rtf1\\ansi Hello}", "application/rtf"),
    ("zip", zipped("a.txt"), "application/zip"),
    ("zip-empty", zipped(), "application/zip"),
    ("docx", DOCX, OFFICE + "wordprocessingml.document"),
    ("xlsx", zipped(*OOXML, "xl/workbook.xml"), OFFICE + "spreadsheetml.sheet"),
    ("pptx", zipped(*OOXML, "ppt/presentation.xml"), OFFICE + "presentationml.presentation"),
    ("docx-media-first", zipped("word/media/1", *OOXML, "word/document.xml"),
     OFFICE + "wordprocessingml.document"),
    ("odt", zipped("content.xml", stored=OPEN + "text"), OPEN + "text"),
    ("ods", zipped("content.xml", stored=OPEN + "spreadsheet"), OPEN + "spreadsheet"),
    ("epub", zipped("META-INF/container.xml", stored="application/epub+zip"),
     "application/epub+zip"),
    ("epub-unstored", zipped("mimetype", "META-INF/container.xml"), "application/epub+zip"),
    ("jar", zipped("META-INF/MANIFEST.MF", "A.class"), "application/java-archive"),
    ("apk", zipped("AndroidManifest.xml"), "application/vnd.android.package-archive"),
    ("doc", ole("WordDocument"), "application/msword"),
    ("xls", ole("Workbook"), "application/vnd.ms-excel"),
    ("ppt", ole("PowerPoint Document"), "application/vnd.ms-powerpoint"),
    ("msg", ole("__substg1.0_0037001F"), "application/vnd.ms-outlook"),
    ("ole2", ole("Contents"), "application/x-ole-storage"),
    ("gzip", gzip.compress(b"x"), "application/gzip"),
    ("bzip2", bz2.compress(b"x"), "application/x-bzip2"),
    ("xz", lzma.compress(b"x"), "application/x-xz"),
    ("zstd", zstandard.compress(b"x"), "application/zstd"),
    ("7z", bytes.fromhex("377abcaf271c0004"), "application/x-7z-compressed"),
    ("rar4", b"Rar!\x1a\x07\x00", "application/vnd.rar"),
    ("rar5", b"Rar!\x1a\x07\x01\x00", "application/vnd.rar"),
    ("compress", b"\x1f\x9d\x90abc", "application/x-compress"),
    ("tar", tarred(), "application/x-tar"),
    ("deb", b"!<arch>\ndebian-binary   ", "application/vnd.debian.binary-package"),
    ("rpm", bytes.fromhex("edabeedb0300"), "application/x-rpm"),
    ("png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde", "image/png"),
    ("gif", b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;", "image/gif"),
    ("gif87", b"GIF87a\1\0\1\0\x80", "image/gif"),
    ("jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0", "image/jpeg"),
    ("webp", b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0/\0\0\0\x10", "image/webp"),
    ("bmp", b"BM:\0\0\0\0\0\0\0" + b"6\0\0\0(\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0", "image/bmp"),
    ("ico", b"\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0", "image/vnd.microsoft.icon"),
    ("tiff-le", b"II*\0\x08\0\0\0\x0a\0", "image/tiff"),
    ("tiff-be", b"MM\x00*\x00\x00\x00\x08", "image/tiff"),
    ("avif", b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf", "image/avif"),
    ("heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic"),
    ("jp2", b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 ", "image/jp2"),
    ("jxl", bytes.fromhex("0000000c4a584c200d0a870a"), "image/jxl"),
    ("psd", b"8BPS\0\1", "image/vnd.adobe.photoshop"),
    ("djvu", b"AT&TFORM\0\0\0\0DJVU", "image/vnd.djvu"),
    ("mp3-id3", b"ID3\x03\x00\x00\x00\x00\x00\x00", "audio/mpeg"),
    ("mp3", b"\xff\xfb\x90\x00" + bytes(100), "audio/mpeg"),
    ("wav", waved(), "audio/wav"),
    ("flac", b"fLaC\0\0\0\x22", "audio/flac"),
    ("ogg", b"OggS\0\2" + bytes(8), "application/ogg"),
    ("midi", b"MThd\0\0\0\6\0\1", "audio/midi"),
    ("m4a", b"\0\0\0\x20ftypM4A \0\0\0\0", "audio/mp4"),
    ("mp4", b"\0\0\0\x20ftypisom\0\0\2\0isomiso2", "video/mp4"),
    ("mov", b"\0\0\0\x14ftypqt  \0\0\0\0", "video/quicktime"),
    ("webm", b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\x82\x84webm", "video/webm"),
    ("mkv", b"\x1aE\xdf\xa3\xa3B\x86\x81\x01B\x82\x88matroska", "video/x-matroska"),
    ("avi", b"RIFF\x10\0\0\0AVI LIST", "video/x-msvideo"),
    ("flv", b"FLV\x01\x05\0\0\0\x09", "video/x-flv"),
    ("mpeg", b"\0\0\1\xba\x44", "video/mpeg"),
    ("asf", bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"), "video/x-ms-asf"),
    ("woff", b"wOFF\0\1\0\0", "font/woff"),
    ("woff2", b"wOF2\0\1\0\0", "font/woff2"),
    ("ttf", b"\0\1\0\0\0\x0f\0\x80", "font/ttf"),
    ("otf", b"OTTO\0\x0b\0\x80", "font/otf"),
    ("ttc", b"ttcf\0\1\0\0", "font/collection"),
    ("wasm", b"\0asm\1\0\0\0", "application/wasm"),
    ("class", bytes.fromhex("cafebabe00000034"), "application/java-vm"),
    ("elf", b"\x7fELF\2\1\1\0", "application/x-elf"),
    ("mach-o", bytes.fromhex("cffaedfe07000001"), "application/x-mach-binary"),
    ("exe", b"MZ\x90\0\3\0\0\0", "application/vnd.microsoft.portable-executable"),
    ("swf", b"CWS\x0a\x12\0\0\0", "application/x-shockwave-flash"),
    ("sqlite", database(), "application/vnd.sqlite3"),
    ("parquet", b"PAR1\x15\x04\x15", "application/vnd.apache.parquet"),
    ("chm", b"ITSF\3\0\0\0\x60\0\0\0", "application/vnd.ms-htmlhelp"),
    ("mobi", b"A book".ljust(60, b"\0") + b"BOOKMOBI", "application/x-mobipocket-ebook"),
    ("warc", b"WARC/1.0\r\nWARC-Type: warcinfo\r\n", "application/warc"),
]  # fmt: skip
XML = "<?xml version='1.0'?>\n"
RDF = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>"
RSS_1 = f"{XML}<!-- a -->{RDF[:-2]} xmlns='http://purl.org/rss/1.0/'/>"
TEXTUAL = [
    ("rss-2", f"{XML}<rss version='2.0'><channel/></rss>", "application/rss+xml"),
    ("rss-doctype", f"{XML}<!DOCTYPE rss PUBLIC '-//Netscape//DTD RSS 0.91//EN' 'x'><rss>",
     "application/rss+xml"),
    ("rss-1", RSS_1, "application/rss+xml"),
    ("rdf", RDF, "application/rdf+xml"),
    ("atom", f"{XML}<feed xmlns='http://www.w3.org/2005/Atom'/>", "application/atom+xml"),
    ("atom-prefix", "<a:feed xmlns:a='http://www.w3.org/2005/Atom'/>", "application/atom+xml"),
    ("atom-0.3", "<feed version='0.3' xmlns='http://purl.org/atom/ns#'/>", "application/atom+xml"),
    ("sitemap", (f"{XML}<?xml-stylesheet href='a.xsl'?><urlset "
     "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>"), SITEMAP),
    ("sitemapindex", f"\ufeff{XML}<sitemapindex>", SITEMAP_INDEX),
    ("svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
    ("xhtml", f"{XML}<html xmlns='http://www.w3.org/1999/xhtml'>", "application/xhtml+xml"),
    ("xml", f"{XML}<feed><cow/></feed>", "application/xml"),
    ("html", "<!doctype HTML>", "text/html"),
    ("html-mark", "\ufeff\n <HTML lang=en>", "text/html"),
    ("html-comments", "<!-- one --> <!-- two --><title>x", "text/html"),
    ("html-cut", "<p", "text/html"),
    ("json", '{"a": [1, 2]}\n', "application/json"),
    ("json-list", "[1, 2]", "application/json"),
    ("json-not", "[see 1] and [2]", "text/plain"),
    ("plain", "plain words\n", "text/plain"),
    ("plain-tag", "<abbr>", "text/plain"),
    ("plain-latin", "größe", "text/plain"),
    ("plain-bm", "BMW and MZ and PK", "text/plain"),
    ("plain-id3", "ID3 tags are explained here.", "text/plain"),
    ("plain-bzh", "BZh is how it begins", "text/plain"),
    ("empty", "", "text/plain"),
]  # fmt: skip


def test_there_are_at_least_30_signatures():
    assert len({mime for _, _, mime in BINARY}) >= 60


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in BINARY],
                         ids=[row[0] for row in BINARY])  # fmt: skip
def test_binary_types(body, expected):
    assert sniff(body, None) == expected
    assert sniff(body, "application/octet-stream") == expected
    # The server is wrong: nobody could read it as that.
    for header in ("text/html; charset=utf-8", "text/plain", "text/xml"):
        assert sniff(body, header) == expected


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in TEXTUAL],
                         ids=[row[0] for row in TEXTUAL])  # fmt: skip
def test_textual_types(text, expected):
    assert sniff(text.encode(), None) == expected
    assert sniff(text.encode(), "application/octet-stream") == expected


@pytest.mark.parametrize("header", [None, "", "html", "*/*", "unknown/unknown", ";", "a/b c"])
def test_a_useless_header_is_passed_over(header):
    assert sniff(b"%PDF-1.4", header) == "application/pdf"


RSS = f"{XML}<rss version='2.0'>".encode()
URLSET = f"{XML}<urlset>".encode()
XHTML = f"{XML}<html xmlns='http://www.w3.org/1999/xhtml'>".encode()


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        # The header is believed where the bytes say nothing to the contrary.
        (b"<p>", "text/html", "text/html"),
        (b"<p>", " Text/HTML ; charset=x", "text/html"),
        (b"x", "application/xhtml+xml;q=1", "application/xhtml+xml"),
        (b"{}", "application/ld+json", "application/ld+json"),
        (b"<p>", "application/x-nobody-knows", "application/x-nobody-knows"),
        (b"<p>", "image/png", "image/png"),
        # What has a signature in that format, but is text, is text.
        (b"<p>", "application/pdf", "text/html"),
        (b"<p>", "application/x-gzip", "text/html"),
        (b"Not found", OFFICE + "wordprocessingml.document", "text/plain"),
        (b"Not found", "application/vnd.oasis.opendocument.text", "text/plain"),
        (b'{"error": 1}', "application/epub+zip", "application/json"),
        (b"\r\n\n%PDF-1.7", "text/html", "application/pdf"),
        (b"\n <p>%PDF-1.7", "text/html", "text/html"),
        (b"\n" * 2000 + b"%PDF-1.7", "application/pdf", "application/pdf"),
        (b"\0\1\2", "application/pdf", "application/pdf"),
        (b"", "application/pdf", "application/pdf"),
        # RSS 1.0 is RDF, too.
        (RSS_1.encode(), "application/rdf+xml", "application/rss+xml"),
        (RSS_1.encode(), "text/rdf", "application/rss+xml"),
        (RDF.encode(), "text/rdf", "application/rdf+xml"),
        (b"<html>", "application/rdf+xml", "application/rdf+xml"),
        (b"", "image/png", "image/png"),
        # WHATWG MIME Sniffing 7.2: plain text never becomes mark-up.
        (b"<!doctype html><p>", "text/plain", "text/plain"),
        (RSS, "text/plain; charset=UTF-8", "text/plain"),
        (URLSET, "text/plain", "text/plain"),
        # WHATWG MIME Sniffing 7.3: HTML may be a feed.
        (RSS, "text/html", "application/rss+xml"),
        (b"\n<!-- x -->\n" + RSS[22:], "text/html", "application/rss+xml"),
        (URLSET, "text/html", SITEMAP),
        (XHTML, "text/html", "text/html"),
        (b"<svg></svg>", "text/html", "text/html"),
        # XML is told apart by its root element.
        (RSS, "application/xml", "application/rss+xml"),
        (RSS, "text/xml; charset=utf-8", "application/rss+xml"),
        (URLSET, "text/xml", SITEMAP),
        (b"<sitemapindex/>", "application/xml", SITEMAP_INDEX),
        (XHTML, "text/xml", "application/xhtml+xml"),
        (b"<cow/>", "text/xml", "text/xml"),
        (RSS, "application/atom+xml", "application/atom+xml"),
        # A container may be more than its first bytes tell, but not a page.
        (zipped("a.txt"), "application/vnd.apple.pages", "application/vnd.apple.pages"),
        (zipped("a.txt"), "application/xhtml+xml", "application/zip"),
        (ole("Contents"), "application/vnd.ms-works", "application/vnd.ms-works"),
        (DOCX, "application/msword", OFFICE + "wordprocessingml.document"),
        (DOCX, "application/zip", OFFICE + "wordprocessingml.document"),
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde",
            "image/jpeg",
            "image/png",
        ),
        (b"OggS\0\2", "audio/ogg", "audio/ogg"),
        # Other names for the same.
        (b"\0", "application/x-gzip", "application/gzip"),
        (b"{}", "text/json", "application/json"),
    ],
)
def test_header_and_bytes_together_decide_the_content_type(body, header, expected):
    assert sniff(body, header) == expected


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Some text, some more.", "text/plain"),
        ("\n<p>Some text, ä, some more.", "text/html"),
        ("<!doctype html><title>日本語</title>", "text/html"),
        ("<?xml version='1.0' encoding='utf-16'?><a>ä</a>", "application/xml"),
        (
            "<?xml version='1.0' encoding='utf-16'?>\n<!-- ä -->\n<rss version='2.0'>",
            "application/rss+xml",
        ),
        ("<urlset><url/></urlset>", "application/x-sitemap+xml"),
        ('{"a": ["ä", 1]}\n', "application/json"),
    ],
)
def test_documents_in_utf_16_and_utf_32_are_recognised_as_those_in_utf_8(codec, text, expected):
    assert sniff(text.encode(codec), None) == sniff(text.encode(), "unknown/unknown") == expected
    of_xml = expected if "rss" in expected or "sitemap" in expected else "text/xml"
    assert (
        sniff(text.encode(codec), "text/xml")
        == sniff(text.encode("utf-8-sig"), "text/xml")
        == of_xml
    )


def test_unknown_bytes_are_an_octet_stream():
    assert sniff(b"\x00\x01\x02", None) == "application/octet-stream"


def noise(size):
    import random

    return random.Random(1).randbytes(size)


@pytest.mark.parametrize(
    "body",
    [noise(200), noise(8000), bytes(500), b"text" + bytes(400) + noise(500), b"\xe0\0\x01" * 50],
    ids=["noise-200", "noise-8000", "zeros", "text-then-noise", "pattern"],
)
@pytest.mark.parametrize("header", ["text/html", "text/plain; charset=utf-8", "application/json",
                                    "text/html; charset=utf-16", "text/xml"])  # fmt: skip
def test_bodies_that_are_not_text_are_a_reason(body, header):
    with pytest.raises(ParseFailed) as failed:
        parse_document(Source("http://example.com/", body, header), ParseOptions())
    assert failed.value.reason == "not_text"


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (b"<p>one\0two</p>" + b"words " * 10, "text/html"),
        (b"<p>" + b"a line of a log\x1b[31m red\x1b[0m\x07\n" * 20, "text/plain"),
        ("<p>日本語の文章です".encode("utf-16-le") * 30, "text/html"),
        ("<p>日本語の文章です".encode("utf-16"), "text/html"),
        ("中文\0" .encode("gb18030") * 3 + b"words, words, words " * 10, "text/html; charset=gbk"),
    ],
    ids=["stray-zero", "terminal", "utf-16-unmarked", "utf-16", "gbk-zero"],
)  # fmt: skip
def test_real_pages_with_a_few_odd_bytes_are_text(body, header):
    assert parse_document(Source("http://example.com/", body, header), ParseOptions()).text
