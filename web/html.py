"""Documents: from bytes to title, text, links and what the page says to robots."""

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any

from . import urls
from .charset import decode, to_utf8
from .content_type import sniff
from .html_guard import is_hazardous
from .html_page import NoParser, Page, ParseFailed, soup
from .html_tree import NOT_TEXT, LexborTree, SoupTree, Tree, collapse, collapse_long
from .options import option

__all__ = [
    "NoParser",
    "Page",
    "ParseFailed",
    "ParseOptions",
    "parse",
    "parse_html",
    "parse_text",
    "robots_directives",
    "soup",
]

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

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
_ROBOTS_TOKENS = {
    "none": ("noindex", "nofollow"),
    "noindex": ("noindex",),
    "nofollow": ("nofollow",),
    "noarchive": ("noarchive",),
    "nocache": ("noarchive",),
}
# Rules with a value; any other word before a colon is the name of one robot.
_ROBOTS_RULES = frozenset(
    {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}
)
# Nutch's OutlinkExtractor; the look-behind keeps it linear.
_URL_IN_TEXT = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,120}:[A-Za-z0-9/]"
    r"(?:[A-Za-z0-9$_.+!*,;/?:@&~=-]|%[A-Fa-f0-9]{2}){1,333}"
    r"(?:#[A-Za-z0-9][A-Za-z0-9$_.+!*,;/?:@&~=%-]{0,1000})?"
)


@dataclasses.dataclass(frozen=True)
class ParseOptions:
    """What is taken from a page, and how much trouble it may make."""

    max_outlinks: int = option(
        100,
        "links kept per page, of those that pass the filters; negative: all",
        unit="links",
        nutch="db.max.outlinks.per.page",
        group="parse",
    )
    outlinks_ignore_tags: tuple[str, ...] = option(
        (),
        "elements whose links are not followed, such as img or script",
        nutch="parser.html.outlinks.ignore_tags",
        group="parse",
    )
    form_use_action: bool = option(
        False,
        "follow the action of forms, except of those that post",
        nutch="parser.html.form.use_action",
        group="parse",
    )
    parser_timeout: float = option(
        30.0,
        "time after which the parsing of a page is given up",
        unit="s",
        nutch="parser.timeout",
        minimum=0.1,
        group="parse",
    )
    max_nesting: int = option(
        5000,
        "pages that nest deeper go to a slower parser that does not mind",
        unit="elements",
        minimum=100,
        group="parse",
    )
    skip_truncated: bool = option(
        True,
        "do not parse pages that were cut at the content limit",
        nutch="parser.skip.truncated",
        group="parse",
    )


def parse(
    url: str,
    body: bytes,
    content_type: str | None,
    options: ParseOptions,
    robots_header: str | None = None,
) -> Page:
    """Parses a document with the parser for its type.

    Args:
        url: Absolute URL that the body came from.
        body: The body, with any content coding removed.
        content_type: The value of ``Content-Type``, if there was one.
        options: What to take.
        robots_header: The values of ``X-Robots-Tag``, joined by commas.

    Raises:
        NoParser: The type is neither HTML nor plain text.
        ParseFailed: The page is too much for any parser.
    """
    mime = sniff(body, content_type)
    if mime in HTML_TYPES:
        return parse_html(url, body, content_type, options, robots_header)
    if mime == "text/plain":
        return parse_text(url, body, content_type, robots_header)
    raise NoParser


def parse_text(
    url: str, body: bytes, content_type: str | None, robots_header: str | None = None
) -> Page:
    """Parses plain text, where links are what looks like a URL.

    >>> parse_text("http://example.com/", b"See http://example.com/a.", None).hrefs
    ['http://example.com/a']
    """
    text, charset = decode(body, content_type)
    page = Page(base=url, charset=charset, body=text.encode("utf-8", "replace"))
    page.directives = robots_directives(robots_header or "")
    if "noindex" not in page.directives:
        page.text = collapse_long(text)
    page.hrefs = [found[0].rstrip(".,;:!?*") for found in _URL_IN_TEXT.finditer(text)]
    page.anchors = [""] * len(page.hrefs)
    page.rels = [""] * len(page.hrefs)
    _obey_nofollow(page)
    return page


def parse_html(
    url: str,
    body: bytes,
    content_type: str | None,
    options: ParseOptions,
    robots_header: str | None = None,
) -> Page:
    """Parses an HTML document as browsers do; arguments as ``parse``.

    A page on which the fast parser would be quadratic goes to BeautifulSoup,
    which takes twenty times as long on usual pages.

    Raises:
        ParseFailed: ``too_complex``: such a page has over 4 MiB.

    >>> page = parse_html("http://example.com/d/", b"<title>T</title>A <a href=b>B</a>",
    ...                   "text/html", ParseOptions())
    >>> page.title, page.text, page.hrefs, page.anchors, page.base
    ('T', 'A B', ['b'], ['B'], 'http://example.com/d/')
    """
    utf8, charset = to_utf8(body, content_type)
    page = Page(charset=charset, body=utf8)
    if robots_header:
        page.directives = robots_directives(robots_header)
    tree: Tree
    if not is_hazardous(utf8, options.max_nesting):
        tree = LexborTree(utf8)
    elif len(utf8) <= _MAX_SOUP_BYTES:
        tree = SoupTree(page.soup)
    else:
        raise ParseFailed("too_complex")
    links = _followed(options.outlinks_ignore_tags, options.form_use_action)
    _Reader(page, tree, url).read(links)
    return page


def robots_directives(value: str) -> set[str]:
    """Returns the directives in a robots meta or an ``X-Robots-Tag``.

    What is said to one robot by its name is passed over.

    >>> sorted(robots_directives("None, max-image-preview:none"))
    ['nofollow', 'noindex']
    >>> robots_directives("googlebot: noindex, nofollow")
    set()
    """
    directives: set[str] = set()
    for part in value[:_MAX_META_CHARS].lower().split(","):
        words, colon, _ = part.partition(":")
        if colon and words.strip() not in _ROBOTS_RULES:
            break
        for word in words.replace(";", " ").split():
            directives.update(_ROBOTS_TOKENS.get(word, ()))
    return directives


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
        _obey_nofollow(page)
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


def _obey_nofollow(page: Page) -> None:
    if "nofollow" in page.directives:
        page.drop("page_nofollow", len(page.hrefs))
        page.hrefs, page.anchors, page.rels = [], [], []
