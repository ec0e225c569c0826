"""The sitemaps that robots.txt names: their bytes, values and URLs."""

import re
from collections.abc import Iterable

from ..urls.percent import url_of_bytes
from ..urls.userinfo import parse_target

MAX_SITEMAPS = 100
MAX_SITEMAP_CHARS = 2048
# What people put around a URL. No URL begins or ends with them.
_QUOTES = "\"'`<>\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e"
# A URL, or what is relative to that of robots.txt; "none" is neither.
_SITEMAP = re.compile(
    r"(?:https?://|(?![a-z][a-z0-9+.-]*:)(?=\S*[./?]))[!-~\u00a1-\U0010ffff]+", re.IGNORECASE
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
