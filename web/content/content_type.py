"""Finds the type of a body: by the header, unless the first bytes contradict it."""

import functools
import re

from .charset import markup_of
from .magic import BINARY_BYTES, type_of_binary, without_junk

# Types of XML documents. Sitemaps have no registered type, so these names are ours.
ATOM = "application/atom+xml"
HTML = "text/html"
RDF = "application/rdf+xml"
RSS = "application/rss+xml"
SITEMAP = "application/x-sitemap+xml"
SITEMAP_INDEX = "application/x-sitemapindex+xml"
SVG = "image/svg+xml"
XHTML = "application/xhtml+xml"
XML = "application/xml"
OCTETS = "application/octet-stream"
PDF = "application/pdf"
PLAIN_TEXT = "text/plain"
# What an entry of a sitemap may link to beside its page.
ALTERNATE, IMAGE, VIDEO = "alternate", "image", "video"
LINK_KINDS = (ALTERNATE, IMAGE, VIDEO)
# Name of metadata: the type that the bytes of a document show, if its header has another one or none.
TYPE_FOUND = "type_found"

# RFC 9110 8.3.1: type "/" subtype, both tokens.
_MIME = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+", re.ASCII)
# Sent by servers that do not know the type.
_UNKNOWN = frozenset(
    {OCTETS, "application/unknown", "unknown/unknown", "application/x-unknown",
     "application/download", "application/force-download", "application/x-download",
     "binary/octet-stream"}
)  # fmt: skip
_FEEDS = frozenset({ATOM, RSS})
# What is sent as a feed and is none, by its first bytes.
_NO_FEEDS = frozenset({HTML, XHTML, SITEMAP, SITEMAP_INDEX, "application/json"})
_GENERIC_XML = frozenset({XML, "text/xml", "application/x-xml"})
_PLAIN_STARTS = (b"<!doctype html", b"<html")
# No signature begins so.
_TEXT_STARTS = b"<\t\n\r "
# Other names of the same types.
_ALIASES = {
    "application/x-pdf": "application/pdf",
    "application/x-gzip": "application/gzip",
    **dict.fromkeys(("application/x-zip", "application/x-zip-compressed"), "application/zip"),
    **dict.fromkeys(("application/x-json", "text/json"), "application/json"),
    "text/x-markdown": "text/markdown",
    "text/rtf": "application/rtf",
    **dict.fromkeys(("text/rss", "text/rss+xml", "application/x-rss+xml"), RSS),
    **dict.fromkeys(("text/rdf", "text/rdf+xml"), RDF),
    **dict.fromkeys(("text/atom", "text/atom+xml"), ATOM),
}
# Containers, and the more specific types that a server may send for them.
_OFFICE = re.compile(r"application/(?!.*(?:gzip|javascript|json|pdf|xml)$)")
_MEDIA = re.compile(r"(?:audio|image|video)/")
# Documents that begin with a signature. A body without one that is text is usually an error page.
_SIGNED = re.compile(
    r"application/(?:pdf|gzip|zip|epub\+zip|msword|vnd\.ms-(?:word|excel|powerpoint)\b.*"
    r"|vnd\.openxmlformats-officedocument\..*|vnd\.oasis\.opendocument\..*)"
)
_PDF_MARK = b"%PDF-"
_BLANK_BYTES = 64
_CONTAINERS = {
    **dict.fromkeys(
        ("application/zip", "application/java-archive", "application/x-ole-storage"), _OFFICE
    ),
    **dict.fromkeys(
        ("application/ogg", "image/tiff", "video/mp4", "video/webm", "video/x-ms-asf"), _MEDIA
    ),
}
_HTML_TAG = re.compile(
    rb"<(?:!doctype html|html|head|body|title|meta|script|style|link|base|iframe|"
    rb"h[1-6]|div|font|table|a|p|b|br)[\s>/]",
    re.IGNORECASE,
)
_START_BYTES = 1024
_ROOT_BYTES = 8192
_TEXT_MARKS = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\0\0\xfe\xff")
# Programs that join files may leave byte-order marks between them.
_BLANKS = re.compile(rb"(?:\s++|\xef\xbb\xbf)*+")
# The part before a root element; the quantifiers are possessive, so matching is linear.
_PROLOG = re.compile(
    rb"(?:\s++|\xef\xbb\xbf|<!--(?:(?!-->).)*+-->|<\?(?:(?!\?>).)*+\?>"
    rb"|<!doctype[^<>\[]*+(?:\[[^\]]*+\]\s*+)?>)*+",
    re.IGNORECASE | re.DOTALL,
)
_ROOT = re.compile(rb"<(?:[\w.-]{1,40}:)?([A-Za-z_][\w.-]{0,40})([^>]{0,4096})", re.DOTALL)
_ROOTS = {
    b"rss": RSS,
    b"feed": ATOM,
    b"RDF": RDF,
    b"urlset": SITEMAP,
    b"sitemapindex": SITEMAP_INDEX,
    b"svg": SVG,
    b"html": XHTML,
}
# Any XML may have elements of these names; WHATWG MIME Sniffing 7.3 looks closer at RDF, too.
_NAMESPACES = {
    ATOM: (b"http://www.w3.org/2005/Atom", b"http://purl.org/atom/ns#", b"version="),
    RDF: (b"http://www.w3.org/1999/02/22-rdf-syntax-ns#",),
}
_RSS_1 = (b"http://purl.org/rss/1.0/", b"http://my.netscape.com/rdf/simple/0.9/",
          b"http://channel.netscape.com/rdf/simple/0.9/")  # fmt: skip
_JSON = re.compile(rb"[\[{]\s*+(?:[\[{}\]\"0-9-]|true|false|null)")
_JSON_END = re.compile(rb"[}\]]\s*+\Z")


# For files without a header: types that the extension shows better than the bytes.
_BY_EXTENSION = {
    **dict.fromkeys(("html", "htm", "shtml"), HTML),
    **dict.fromkeys(("xhtml", "xht"), XHTML),
    **dict.fromkeys(("txt", "text", "rst", "log"), PLAIN_TEXT),
    "csv": "text/csv",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "tsv": "text/tab-separated-values",
    "xml": XML,
}


def type_of_name(name: str) -> str | None:
    """Returns the MIME type for a file's extension; None if unknown, and for hidden files.

    >>> type_of_name("a.b.CSV"), type_of_name(".md"), type_of_name("a")
    ('text/csv', None, None)
    """
    stem, _, extension = name.rpartition(".")
    return _BY_EXTENSION.get(extension.lower()) if stem else None


def sniff(body: bytes, header: str | None) -> str:
    r"""Returns the MIME type of a body, in lower case and without parameters.

    The rules are those of WHATWG MIME Sniffing, and Nutch's ``mime.type.magic``
    where that leaves a document unread:

    * A signature of a binary format beats the header: a PDF is a PDF, whether it
      comes as ``text/html``, ``text/plain`` or ``application/octet-stream`` (Nutch).
      But a more specific header of a container stays: a zip file
      that comes as ``application/vnd.android.package-archive``.
    * ``text/html`` stays, but for feeds (WHATWG 7.3) and sitemaps.
    * ``text/plain`` never becomes mark-up, whatever its first bytes look like
      (WHATWG 7.2; Nutch would believe the bytes).
    * ``text/xml`` and ``application/xml`` are refined by the root element:
      feeds, sitemaps, XHTML, SVG.
    * No header, a malformed one, or one that says that the server does not know
      (``application/octet-stream``): all by the first bytes.
    * A feed that begins as HTML, a sitemap or JSON: by the first bytes.
    * ``application/rdf+xml`` stays, unless it is RSS 1.0.
    * A document of a binary format that has a signature, such as PDF or docx, but begins as text:
      by the first bytes.
    * Any other header is believed.

    Args:
        body: The decoded body.
        header: The value of ``Content-Type``, if there was one.

    Returns:
        The type; ``application/octet-stream`` if nothing is known.

    >>> sniff(b"", "Text/HTML; charset=utf-8")
    'text/html'
    >>> sniff(b"<!DOCTYPE html><title>x</title>", None)
    'text/html'
    >>> sniff(b"%PDF-1.7", "text/html"), sniff(b"<html>", "text/plain")
    ('application/pdf', 'text/plain')
    >>> sniff(b'<?xml version="1.0"?>\n<rss version="2.0">', "text/xml")
    'application/rss+xml'
    """
    declared = _declared_type(header)
    if declared == HTML and body[:14].lower().startswith(_PLAIN_STARTS):
        return HTML  # nearly all pages
    binary_type = _type_of_late_pdf(body) if body[:1] in _TEXT_STARTS else type_of_binary(body)
    if binary_type:
        specific = _CONTAINERS.get(binary_type)
        return declared if declared and specific and specific.match(declared) else binary_type
    markup = markup_of(body)
    if declared is None:
        return _type_of_text(body, markup)
    if declared == HTML or declared in _GENERIC_XML:
        kind = _type_of_root(markup)
        # An XHTML page that is sent as HTML was written for parsers of HTML.
        return (
            declared if kind is None or (declared == HTML and kind in (XHTML, SVG, RDF)) else kind
        )
    if declared in _FEEDS:  # or an error page
        kind = _type_of_text(body, markup)
        return kind if kind in _NO_FEEDS else declared
    if declared == RDF:  # RSS 1.0 is RDF, too
        return RSS if _type_of_root(markup) == RSS else RDF
    if body and _SIGNED.fullmatch(declared) and _PDF_MARK not in body:  # which may come late
        kind = _type_of_text(body, markup)
        return declared if kind == OCTETS else kind
    return declared


def _type_of_late_pdf(body: bytes) -> str | None:
    """Returns the type of a PDF after blank lines, which scripts of PHP may begin with."""
    return PDF if body[:_BLANK_BYTES].lstrip().startswith(_PDF_MARK) else None


@functools.lru_cache(maxsize=1024)
def _declared_type(header: str | None) -> str | None:
    """Returns the type that a header names, or None without a usable one."""
    mime = (header or "").partition(";")[0].strip().lower()
    mime = _ALIASES.get(mime, mime)
    return mime if mime not in _UNKNOWN and "*" not in mime and _MIME.fullmatch(mime) else None


def _type_of_text(body: bytes, markup: bytes) -> str:
    """Returns the type of a body without a usable header or signature."""
    start = markup[:_START_BYTES]
    if not body.startswith(_TEXT_MARKS) and BINARY_BYTES.search(start):
        return OCTETS
    text = _BLANKS.sub(b"", start, count=1)
    if text.startswith(b"<"):
        kind = _type_of_root(markup)
        if text.startswith(b"<?xml"):
            return kind or XML
        if kind and kind != XHTML:
            return kind
        after_prolog = markup[_prolog(markup) : _ROOT_BYTES]
        if _HTML_TAG.match(text + b" ") or _HTML_TAG.match(after_prolog + b" "):
            return HTML
    if _JSON.match(text) and _JSON_END.search(markup[-100:]):
        return "application/json"
    return PLAIN_TEXT


def _type_of_root(markup: bytes) -> str | None:
    """Returns the type for the root element of XML, if known, also after what PHP has put there."""
    root = _ROOT.match(markup, _prolog(markup), _ROOT_BYTES)
    if (root is None or root[1] not in _ROOTS) and markup.find(b"<?xml", 0, _ROOT_BYTES) >= 0:
        start = without_junk(markup[:_ROOT_BYTES])
        if start.startswith(b"<?xml"):
            root = _ROOT.match(start, _prolog(start))
    kind = _ROOTS.get(root[1]) if root else None
    if root is None or kind is None:
        return None
    namespaces = _NAMESPACES.get(kind)
    if namespaces and not any(name in root[2] for name in namespaces):
        return None
    return RSS if kind == RDF and any(name in root[2] for name in _RSS_1) else kind


def _prolog(markup: bytes) -> int:
    """Returns where the root element begins."""
    prolog = _PROLOG.match(markup, 0, _ROOT_BYTES)
    return prolog.end() if prolog else 0
