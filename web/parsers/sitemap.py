"""Sitemaps and indexes of sitemaps (the protocol of sitemaps.org), read piece by piece."""

import codecs
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator

from ..content.charset import decode_as_declared, encoding_as_declared, is_text
from ..content.magic import BLANKS, without_junk
from ..content.whatwg_encodings import CODECS, encode_query
from ..content.whole_bodies import GZIP_MARK, MAX_MEMBERS
from ..pages.directives import obey_nofollow, parse_moment
from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from ..pages.xml_events import (
    CHARACTERS,
    START,
    Event,
    MalformedXml,
    drop_xml_controls,
    text_events,
)
from ..urls.percent import ESCAPED
from .text import text_page

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
        yield drop_xml_controls(text.encode("utf-8", "replace"))
    yield drop_xml_controls(decoder.decode(b"", final=True).encode("utf-8", "replace"))


# sitemaps.org, "Sitemap file location": 50,000 URLs, 50 MiB, which Page and body are held to.
MAX_URLS = 50_000
_MAX_BYTES = 50 << 20
_MAX_CHARS = 4_096
ENTRIES = frozenset({"url", "sitemap"})
_MAX_DATE_CHARS = 40
_FACTS = ("lastmod", "changefreq", "priority")
# W3C dates may be those of a month, or of a year; those of XML Schema may have a zone, too.
_NO_DAY = re.compile(r"(?a)(\d{4})(-\d\d)?(Z|[+-]\d\d:\d\d)?")


def parse_sitemap(source: Source, options: ParseOptions) -> Page:
    """Parses a sitemap or an index of sitemaps; its entries are the links.

    A link's ``rel`` is ``sitemap`` for what an index lists, ``alternate`` for
    the same page in other languages (``xhtml:link``), else empty. ``metas`` hold
    the number of entries, the latest ``lastmod`` that is a date (an index has it, too), and how
    many entries have a ``changefreq`` and a ``priority``: ``sitemap:entries``, ``sitemap:lastmod``
    and so on.

    The part after a mistake in the XML is lost; ``dropped`` counts the mistake as
    ``malformed_xml``.
    Entries after the 50,000th are dropped as ``sitemap_max_urls``, URLs with bytes that are invalid
    in the declared encoding, or else UTF-8, as ``malformed``.

    Raises:
        ParseFailed: ``too_large``: over 50 MiB. ``malformed_xml``: there is no entry before the
            first mistake. Others as ``xml_events``.

    >>> body = b"<urlset><url><loc> /a </loc><lastmod>2026-01-02</lastmod></url></urlset>"
    >>> page = parse_sitemap(Source("http://example.com/sitemap.xml", body), ParseOptions())
    >>> page.hrefs, page.metas["sitemap:lastmod"]
    (['/a'], '2026-01-02')
    """
    if len(source.body) > _MAX_BYTES:
        raise ParseFailed("too_large")
    text, page = text_page(source, options, _decode)
    reader = _Reader(page)
    try:
        reader.read(text_events(text))
    except MalformedXml as mistake:
        if not page.hrefs:
            raise
        page.drop(mistake.reason)
    page.is_list = True
    page.metas = reader.metas()
    obey_nofollow(page)
    return page


def _decode(body: bytes, content_type: str | None, url: str) -> tuple[str, str]:
    """Decodes as declared; bytes that are invalid in UTF-8 are escaped, as in ``utf8_stream``."""
    text, name = decode_as_declared(body, content_type)
    if name == "utf-8" and INVALID in text:
        text = body.decode("utf-8", ESCAPED).removeprefix("\ufeff")
    return text, name


class _Reader:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._entries = 0
        self._counts = dict.fromkeys(_FACTS, 0)
        self._lastmod = ""
        self._latest: int | None = None

    def read(self, events: Iterable[Event]) -> None:
        path: list[str] = []
        text = ""
        for kind, value, attributes in events:
            if kind == CHARACTERS:
                text = (text + value)[: 16 * _MAX_CHARS]
            elif kind == START:
                path.append(value)
                text = ""
                if value in ENTRIES and len(path) == 2:
                    self._entries += 1
                elif value == "link" and path[1:2] == ["url"]:
                    self._add(attributes.get("href", ""), attributes.get("rel", "").lower())
            else:
                path.pop()
                # Elements of the same names in image:image and video:video lie deeper.
                if len(path) == 2 and path[1] in ENTRIES:
                    self._take(path[1], value, text.strip())

    def _take(self, entry: str, name: str, text: str) -> None:
        """Processes the text of an element of an entry."""
        if name == "loc":
            self._add(text, "sitemap" if entry == "sitemap" else "")
        elif name in _FACTS and text:
            self._counts[name] += 1
            if name == "lastmod":
                self._take_lastmod(text[:_MAX_DATE_CHARS])

    def metas(self) -> dict[str, str]:
        facts = {"entries": self._entries, **self._counts, "lastmod": self._lastmod}
        return {f"sitemap:{name}": str(value) for name, value in facts.items() if value}

    def _take_lastmod(self, date: str) -> None:
        moment = moment_of_lastmod(date)
        if moment is not None and (self._latest is None or moment > self._latest):
            self._latest, self._lastmod = moment, date

    def _add(self, href: str, rel: str) -> None:
        page = self._page
        if href and self._entries > MAX_URLS:
            page.drop("sitemap_max_urls")
        elif len(href) > _MAX_CHARS:
            page.drop("url_too_long")
        elif INVALID in href:
            page.drop("malformed")
        elif href:
            page.add_link(url_of_markup(href, page.charset), rel=rel)


def url_of_markup(text: str, charset: str) -> str:
    """Returns a URL of a sitemap or feed as links of pages are read.

    ``&amp;`` in CDATA, or escaped once too often, is ``&``. The query is escaped in the encoding of
    the document.

    >>> url_of_markup("/т?q=т&amp;a=1", "windows-1251")
    '/т?q=%F2&a=1'
    """
    url = text.replace("&amp;", "&") if "&amp;" in text else text
    return encode_query(url, charset)


def moment_of_lastmod(date: str) -> int | None:
    """Returns a ``lastmod`` as UTC ms, or None if it is no date; of a month or a year the start.

    >>> moment_of_lastmod("2026"), moment_of_lastmod("2026-01"), moment_of_lastmod("soon")
    (1767225600000, 1767225600000, None)
    """
    short = _NO_DAY.fullmatch(date)
    if short is None:
        return parse_moment(date)
    year, month, zone = short.groups("")
    return parse_moment(f"{year}{month or '-01'}-01{zone}")
