"""Plain text."""

import re

from ..charset import decode
from .directives import header_directives, obey_nofollow
from .html_tree import collapse_long
from .options import ParseOptions
from .page import Page, Source

# Nutch's OutlinkExtractor; the look-behind keeps it linear.
_URL_IN_TEXT = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,120}:[A-Za-z0-9/]"
    r"(?:[A-Za-z0-9$_.+!*,;/?:@&~=-]|%[A-Fa-f0-9]{2}){1,333}"
    r"(?:#[A-Za-z0-9][A-Za-z0-9$_.+!*,;/?:@&~=%-]{0,1000})?"
)


def parse_text(source: Source, options: ParseOptions) -> Page:
    """Parses plain text, where links are what looks like a URL.

    >>> document = Source("http://example.com/", b"See http://example.com/a.")
    >>> parse_text(document, ParseOptions()).hrefs
    ['http://example.com/a']
    """
    text, charset = decode(source.body, source.content_type)
    page = Page(base=source.url, charset=charset, body=text.encode("utf-8", "replace"))
    page.directives = header_directives(source, options)
    if "noindex" not in page.directives:
        page.text = collapse_long(text)
    page.hrefs = [found[0].rstrip(".,;:!?*") for found in _URL_IN_TEXT.finditer(text)]
    page.anchors = [""] * len(page.hrefs)
    page.rels = [""] * len(page.hrefs)
    obey_nofollow(page)
    return page
