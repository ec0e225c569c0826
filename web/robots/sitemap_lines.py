"""The sitemaps that robots.txt names."""

import re
from collections.abc import Iterable

from ..urls.userinfo import parse_target

_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)


def absolute_sitemaps(named: Iterable[str], origin: str) -> tuple[str, ...]:
    """Returns the absolute URLs of sitemaps that robots.txt names, as Nutch and Scrapy read them.

    >>> absolute_sitemaps(["/a.xml", "b.xml", "//c.com/d.xml"], "http://example.com")
    ('http://example.com/a.xml', 'http://example.com/b.xml', 'http://c.com/d.xml')
    """
    urls = (
        url if _ABSOLUTE.match(url) else parse_target(url, f"{origin}/robots.txt") for url in named
    )
    return tuple(dict.fromkeys(filter(None, urls)))
