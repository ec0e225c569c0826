"""Sitemaps in a robots.txt whose bytes are not UTF-8."""

import re

from ..urls.escaped_bytes import url_of_bytes

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
