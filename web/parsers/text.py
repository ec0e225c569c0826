"""Plain text."""

import re
from collections.abc import Callable

from ..content.charset import decode_body
from ..pages.directives import header_directives, obey
from ..pages.page import Page, Source
from ..pages.parse_options import ParseOptions
from ..pages.white_space import collapse_long

# Nutch's OutlinkExtractor; the look-behind keeps it linear.
_URL_IN_TEXT = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,120}:[A-Za-z0-9/]"
    r"(?:[A-Za-z0-9$_.+!*,;/?:@&~=-]|%[A-Fa-f0-9]{2}){1,333}"
    r"(?:#[A-Za-z0-9][A-Za-z0-9$_.+!*,;/?:@&~=%-]{0,1000})?"
)
# A value in quotes, which may hold separators; or a separator.
_COMMAS = re.compile(r'"[^"]*+"|,')
_SEMICOLONS = re.compile(r'"[^"]*+"|;')
_HEADER_CHARS = 10_000


def parse_text(source: Source, options: ParseOptions) -> Page:
    """Parses plain text; what looks like a URL is a link.

    This also reads sitemaps that are lists of URLs.

    >>> document = Source("http://example.com/", b"See http://example.com/a.")
    >>> parse_text(document, ParseOptions()).hrefs
    ['http://example.com/a']
    """
    text, page = text_page(source, options)
    fill(page, collapse_long(text))
    return page


def parse_csv(source: Source, options: ParseOptions) -> Page:
    """Parses comma-separated values as plain text; a URL ends with its value.

    >>> document = Source("http://example.com/", b'http://a/1,"http://a/2,3"')
    >>> parse_csv(document, ParseOptions()).hrefs
    ['http://a/1', 'http://a/2,3']
    """
    text, page = text_page(source, options)
    header = text[:_HEADER_CHARS].lstrip().partition("\n")[0]
    # Where the comma is the decimal one, the semicolon is between values.
    between = _SEMICOLONS if ";" in header and "," not in header else _COMMAS
    apart = between.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)
    fill(page, collapse_long(text), linked=apart)
    return page


def text_page(
    source: Source, options: ParseOptions, decoder: Callable[..., tuple[str, str]] = decode_body
) -> tuple[str, Page]:
    """Returns the decoded text of a document, and a page without text and links so far.

    Args:
        source: The document.
        options: For the directives of its header.
        decoder: Returns (text, encoding) of a body and its content type, as ``decode_body`` does.
    """
    text, charset = decoder(source.body, source.content_type)
    page = Page(base=source.url, charset=charset, body=text.encode("utf-8", "replace"))
    page.directives = header_directives(source, options)
    return text, page


def fill(page: Page, text: str, linked: str | None = None) -> None:
    """Gives a page its text and the links in it, as far as its directives allow.

    Args:
        page: A page with base and directives.
        text: All of its text, with white space collapsed.
        linked: Where to look for links, if not in the text.
    """
    urls = _URL_IN_TEXT.finditer(text if linked is None else linked)
    page.hrefs += [found[0].rstrip(".,;:!?*") for found in urls]
    page.anchors = [""] * len(page.hrefs)
    page.rels = [""] * len(page.hrefs)
    obey(page, text)
