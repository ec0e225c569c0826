"""HTML: from bytes to title, text, links and what the page says to robots."""

import functools
import re
from collections.abc import Mapping
from typing import Any

from .. import urls
from ..charset import to_utf8
from .directives import obey_nofollow, robots_directives
from .html_guard import is_hazardous
from .html_tree import NOT_TEXT, LexborTree, SoupTree, Tree, collapse, collapse_long
from .options import ParseOptions
from .page import Page, ParseFailed, Source

# Where the link of an element is.
_LINKS = {
    "a": "href",
    "area": "href",
    "form": "action",
    "frame": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "script": "src",
    "source": "src",
}
_BASE_SCHEMES = ("http:", "https:", "ftp:")

_MAX_HREF_CHARS = 65_536
_MAX_ANCHOR_CHARS = 1_000
_MAX_LANGUAGE_CHARS = 35
_MAX_METAS = 64
_MAX_META_CHARS = 2_000
_MAX_SOUP_BYTES = 4 << 20

_METAS = frozenset({"author", "description", "generator", "keywords"})
_META_PREFIXES = ("article:", "dc.", "dcterms.", "og:", "twitter:")
_REFRESH = re.compile(
    r"\s*(\d{1,9})[\d.]*(?:[;,\s]\s*[;,]?\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*)))?",
    re.IGNORECASE | re.DOTALL,
)


def parse_html(source: Source, options: ParseOptions) -> Page:
    """Parses an HTML document as browsers do.

    A page on which the fast parser would be quadratic goes to BeautifulSoup,
    which takes twenty times as long on usual pages.

    Raises:
        ParseFailed: ``too_complex``: such a page has over 4 MiB.

    >>> document = Source("http://example.com/d/", b"<title>T</title>A <a href=b>B</a>")
    >>> page = parse_html(document, ParseOptions())
    >>> page.title, page.text, page.hrefs, page.anchors, page.base
    ('T', 'A B', ['b'], ['B'], 'http://example.com/d/')
    """
    utf8, charset = to_utf8(source.body, source.content_type)
    page = Page(charset=charset, body=utf8)
    if robots_header := source.header("x-robots-tag"):
        page.directives = robots_directives(robots_header)
    tree: Tree
    if not is_hazardous(utf8, options.max_nesting):
        tree = LexborTree(utf8)
    elif len(utf8) <= _MAX_SOUP_BYTES:
        tree = SoupTree(page.soup)
    else:
        raise ParseFailed("too_complex")
    links = _followed(options.outlinks_ignore_tags, options.form_use_action)
    _Reader(page, tree, source.url).read(links)
    return page


class _Reader:
    """Fills a page from one walk over the elements of a tree."""

    def __init__(self, page: Page, tree: Tree, url: str) -> None:
        self.page = page
        self._tree = tree
        self._url = url
        self._base: str | None = None
        self._title: str | None = None
        self._canonical: str | None = None
        self._refresh: tuple[str, int] | None = None
        self._not_text: list[Any] = []
        # Links nest in tables; the text of long ones may be taken twice, not a thousand times.
        self._long_anchor_chars = 2 * len(page.body)

    def read(self, links: Mapping[str, str]) -> None:
        page = self.page
        self._tree.feed(self, links)
        page.language = (self._tree.language() or "").strip()[:_MAX_LANGUAGE_CHARS] or page.language
        if "noindex" not in page.directives:
            page.title = self._title or ""
            page.text = collapse_long(self._tree.body_text(self._not_text))
        obey_nofollow(page)
        self._resolve()

    def element(
        self,
        tag: str,
        attributes: Mapping[str, str | None],
        node: Any,
        links: Mapping[str, str],
    ) -> None:
        """Takes any one element."""
        if tag != "a":
            self._fact(tag, attributes, node)
        href = attributes.get(links[tag]) if tag in links else None
        if href and (href := href.strip()):
            self._link(tag, href, attributes, node)

    def _link(self, tag: str, href: str, attributes: Mapping[str, str | None], node: Any) -> None:
        page = self.page
        rel = (attributes.get("rel") or "").lower()
        if tag == "form" and (attributes.get("method") or "").strip().lower() == "post":
            return
        if "nofollow" in rel.split():
            page.drop("nofollow")
        elif len(href) > _MAX_HREF_CHARS:
            page.drop("url_too_long")
        else:
            alt = (attributes.get("alt") or "")[:_MAX_ANCHOR_CHARS]
            page.hrefs.append(href)
            page.anchors.append(self._anchor(node) if tag == "a" else collapse(alt))
            page.rels.append(rel)

    def _anchor(self, node: Any) -> str:
        if self._long_anchor_chars < 0:
            return ""
        text = self._tree.text(node)
        if len(text) > _MAX_ANCHOR_CHARS:
            self._long_anchor_chars -= len(text)
        anchor = collapse(text[: 4 * _MAX_ANCHOR_CHARS])
        return (anchor or collapse(self._tree.image_alt(node) or ""))[:_MAX_ANCHOR_CHARS]

    def _fact(self, tag: str, attributes: Mapping[str, str | None], node: Any) -> None:
        """Takes what an element says of the page as a whole."""
        if tag in NOT_TEXT:
            self._not_text.append(node)
        elif tag == "meta":
            self._meta(attributes)
        elif tag == "title" and self._title is None and not self._tree.is_in_svg(node):
            self._title = collapse(self._tree.text(node))
        elif tag == "base" and self._base is None:
            self._base = attributes.get("href")
        elif tag == "link" and "canonical" in (attributes.get("rel") or "").lower().split():
            self._canonical = self._canonical or attributes.get("href")

    def _meta(self, attributes: Mapping[str, str | None]) -> None:
        page = self.page
        name = (attributes.get("name") or attributes.get("property") or "").strip().lower()
        equivalent = (attributes.get("http-equiv") or "").strip().lower()
        content = (attributes.get("content") or "")[:_MAX_HREF_CHARS].strip()
        if name == "robots":
            # Anywhere: a stray element in the head moves the rest of it into the body.
            page.directives |= robots_directives(content)
        elif equivalent == "refresh" and (found := _REFRESH.match(content)):
            target = found[2] or found[3] or found[4] or ""
            self._refresh = self._refresh or (target.strip(), int(found[1]))
        elif equivalent == "pragma" and "no-cache" in content.lower():
            page.directives.add("noarchive")
        elif "content-language" in (equivalent, name):
            page.language = content[:_MAX_LANGUAGE_CHARS] or None
        elif _is_kept(name) and len(page.metas) < _MAX_METAS:
            page.metas.setdefault(name, collapse(content[:_MAX_META_CHARS]))

    def _resolve(self) -> None:
        page = self.page
        base = urls.parse(self._base.strip(), self._url) if self._base else None
        page.base = base if base and base.startswith(_BASE_SCHEMES) else self._url
        if self._canonical:
            page.canonical = urls.parse(self._canonical.strip(), page.base)
        if self._refresh:
            target, seconds = self._refresh
            absolute = urls.parse(target, page.base) if target else self._url
            page.refresh = (absolute, seconds) if absolute else None


@functools.lru_cache(maxsize=64)
def _followed(ignored: tuple[str, ...], forms: bool) -> dict[str, str]:
    """Returns which attribute holds the link, by tag."""
    without = {tag.strip().lower() for tag in ignored} | (set() if forms else {"form"})
    return {tag: attribute for tag, attribute in _LINKS.items() if tag not in without}


def _is_kept(meta: str) -> bool:
    return meta in _METAS or (len(meta) < 100 and meta.startswith(_META_PREFIXES))
