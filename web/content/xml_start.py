"""Finds where XML begins, whatever stands before it."""

import codecs
import re

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
