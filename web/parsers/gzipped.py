"""Unpacks documents in gzip files, such as sitemap.xml.gz."""

import dataclasses
import re
import zlib
from collections.abc import Callable

from ..content.content_type import sniff, type_of_name
from ..content.gzip_members import unpack_gzip
from ..pages.page import NoParser, ParseFailed, Source

# sitemaps.org: 50 MiB when unpacked.
MAX_UNPACKED_BYTES = 50 << 20
_FIRST_BYTES = 65_536
GZIP = "application/gzip"
_NAME = re.compile(r"([^/?#]*)\.gz(?:ip)?(?:[?#].*)?\Z", re.IGNORECASE)


def unpacked_document(source: Source, has_parser: Callable[[str], bool]) -> Source:
    """Returns the document in a gzip file, with its own type.

    Content without a parser is not unpacked beyond its first bytes. Of a file that is cut, this is
    the part before the cut.

    Args:
        source: The file.
        has_parser: Returns whether there is a parser for a type.

    Raises:
        NoParser: There is no parser for the content, or it is packed twice.
        ParseFailed: ``too_large``: more than 50 MiB are in it. Or ``malformed_gzip``.

    >>> import gzip
    >>> file = Source("http://example.com/sitemap.xml.gz", gzip.compress(b"<urlset></urlset>"))
    >>> unpacked_document(file, lambda mime: True).body
    b'<urlset></urlset>'
    """
    name = _NAME.search(source.url[-100:])
    header = type_of_name(name[1]) if name else None
    mime = sniff(_unpacked(source.body, _FIRST_BYTES), header)
    if mime == GZIP or not has_parser(mime):
        raise NoParser
    body = _unpacked(source.body, MAX_UNPACKED_BYTES + 1)
    if len(body) > MAX_UNPACKED_BYTES:
        raise ParseFailed("too_large")
    return dataclasses.replace(source, body=body, content_type=mime)


def _unpacked(packed: bytes, most: int) -> bytes:
    try:
        return unpack_gzip(packed, most)
    except zlib.error as error:
        raise ParseFailed("malformed_gzip") from error
