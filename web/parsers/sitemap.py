"""Sitemaps and indexes of sitemaps: the protocol of sitemaps.org."""

import re

from ..content.charset import decode
from ..pages.directives import header_directives, obey_nofollow, parse_moment
from ..pages.page import Page, ParseFailed, Source
from ..pages.parse_options import ParseOptions
from .xml_reader import read_xml

# sitemaps.org, "Sitemap file location": 50,000 URLs, 50 MiB, which Page and body are held to.
MAX_URLS = 50_000
MAX_BYTES = 50 << 20
_MAX_CHARS = 4_096
_ENTRIES = frozenset({"url", "sitemap"})
_MAX_DATE_CHARS = 40
# W3C dates may be those of a month, or of a year.
_NO_DAY = re.compile(r"\d{4}(?:-\d\d)?")
_FACTS = ("lastmod", "changefreq", "priority")


def parse_sitemap(source: Source, options: ParseOptions) -> Page:
    """Parses a sitemap or an index of sitemaps; what it lists are its links.

    A link's ``rel`` is ``sitemap`` for what an index lists, ``alternate`` for
    the same page in other languages (``xhtml:link``), else empty. ``metas`` tell how
    many entries there are, the latest ``lastmod`` that is a date (an index has it, too), and how many say a
    ``changefreq`` and a ``priority``: ``sitemap:entries``, ``sitemap:lastmod`` and so on.

    What follows a mistake in the XML is lost: ``dropped`` counts it as one ``malformed_xml``.
    Entries after the 50,000th are dropped as ``sitemap_max_urls``.

    Raises:
        ParseFailed: ``too_large``: over 50 MiB. ``malformed_xml``: there is no entry before the
            first mistake. Others as ``read_xml``.

    >>> body = b"<urlset><url><loc> /a </loc><lastmod>2026-01-02</lastmod></url></urlset>"
    >>> page = parse_sitemap(Source("http://example.com/sitemap.xml", body), ParseOptions())
    >>> page.hrefs, page.metas["sitemap:lastmod"]
    (['/a'], '2026-01-02')
    """
    if len(source.body) > MAX_BYTES:
        raise ParseFailed("too_large")
    text, charset = decode(source.body, source.content_type)
    page = Page(base=source.url, charset=charset, body=text.encode("utf-8", "replace"))
    page.directives = header_directives(source, options)
    reader = _Reader(page)
    if not read_xml(text, reader.start, reader.end, reader.data):
        if not page.hrefs:
            raise ParseFailed("malformed_xml")
        page.drop("malformed_xml")
    page.is_list = True
    page.metas = reader.metas()
    page.anchors = [""] * len(page.hrefs)
    obey_nofollow(page)
    return page


class _Reader:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._entries = 0
        self._path: list[str] = []
        self._text: list[str] = []
        self._counts = dict.fromkeys(_FACTS, 0)
        self._lastmod = ""
        self._latest: int | None = None

    def start(self, name: str, attributes: dict[str, str]) -> bool:
        self._path.append(name)
        self._text = []
        if name in _ENTRIES and len(self._path) == 2:
            self._entries += 1
        if name == "link" and self._path[1:2] == ["url"]:
            self._add(attributes.get("href", ""), attributes.get("rel", "").lower())
        return False

    def data(self, text: str) -> None:
        self._text.append(text)

    def end(self, name: str) -> None:
        self._path.pop()
        # Elements of the same names in image:image and video:video lie deeper.
        if len(self._path) != 2 or self._path[1] not in _ENTRIES:
            return
        text = "".join(self._text)[: 16 * _MAX_CHARS].strip()
        if name == "loc":
            self._add(text, "sitemap" if self._path[1] == "sitemap" else "")
        elif name in _FACTS and text:
            self._counts[name] += 1
            if name == "lastmod":
                self._take_lastmod(text[:_MAX_DATE_CHARS])

    def metas(self) -> dict[str, str]:
        found = {"entries": str(self._entries), "lastmod": self._lastmod} | {
            name: str(number) for name, number in self._counts.items() if name != "lastmod"
        }
        return {f"sitemap:{name}": value for name, value in found.items() if value not in ("", "0")}

    def _take_lastmod(self, date: str) -> None:
        whole = date + "-01" * (2 - date.count("-")) if _NO_DAY.fullmatch(date) else date
        moment = parse_moment(whole)
        if moment is not None and (self._latest is None or moment > self._latest):
            self._latest, self._lastmod = moment, date

    def _add(self, href: str, rel: str) -> None:
        page = self._page
        if not href:
            return
        if self._entries > MAX_URLS:
            page.drop("sitemap_max_urls")
        elif len(href) > _MAX_CHARS:
            page.drop("url_too_long")
        else:
            page.hrefs.append(href)
            page.rels.append(rel)
