"""Parses gzip files, such as sitemap.xml.gz, by their content."""

import dataclasses
import re
import zlib

from ..content.content_type import sniff, type_of_name
from ..pages.page import NoParser, Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .dispatch import has_parser, parse_document

# sitemaps.org: 50 MiB when unpacked.
MAX_UNPACKED_BYTES = 50 << 20
_FIRST_BYTES = 65_536
# Each costs a copy of what follows it.
_MAX_MEMBERS = 100
_GZIP = "application/gzip"
_NAME = re.compile(r"([^/?#]*)\.gz(?:ip)?(?:[?#].*)?\Z", re.IGNORECASE)


def parse_gzipped(source: Source, options: ParseOptions) -> Page:
    """Parses the content of a gzip file by its own type.

    Content without a parser is not unpacked beyond its first bytes. Of a file that is cut, the part
    before the cut is parsed.

    Raises:
        NoParser: There is no parser for the content, or it is packed twice.
        ParseFailed: ``too_large``: more than 50 MiB are in it. ``malformed_gzip``. Or
            as the other parser.

    >>> import gzip
    >>> body = gzip.compress(b"<urlset><url><loc>http://example.com/a</loc></url></urlset>")
    >>> parse_gzipped(Source("http://example.com/sitemap.xml.gz", body), ParseOptions()).hrefs
    ['http://example.com/a']
    """
    name = _NAME.search(source.url[-100:])
    header = type_of_name(name[1]) if name else None
    mime = sniff(_unpack(source.body, _FIRST_BYTES), header)
    if mime == _GZIP or not has_parser(mime):
        raise NoParser
    body = _unpack(source.body, MAX_UNPACKED_BYTES + 1)
    if len(body) > MAX_UNPACKED_BYTES:
        raise ParseFailed("too_large")
    return parse_document(dataclasses.replace(source, body=body, content_type=mime), options)


def _unpack(packed: bytes, most: int) -> bytes:
    """Returns the first ``most`` bytes of the content of all members of a gzip file."""
    parts: list[bytes] = []
    try:
        while packed.startswith(b"\x1f\x8b") and most > 0 and len(parts) < _MAX_MEMBERS:
            inflate = zlib.decompressobj(wbits=31)
            parts.append(inflate.decompress(packed, most))
            most -= len(parts[-1])
            packed = inflate.unused_data
    except zlib.error as error:
        if not any(parts):
            raise ParseFailed("malformed_gzip") from error
    return b"".join(parts)
