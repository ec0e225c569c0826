"""Documents: from bytes to title, text, links and what the page says to robots."""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from selectolax.lexbor import LexborHTMLParser, LexborNode

from . import urls
from .charset import decode, to_utf8
from .content_type import sniff
from .html_guard import is_hazardous
from .html_page import NoParser, Page, ParseFailed, soup
from .options import option

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

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
# Their content is no text of the page.
_NOT_TEXT = frozenset({"iframe", "script", "style"})
# What says something of the page as a whole.
_FACTS = ("base", "link", "meta", "title", *sorted(_NOT_TEXT))
# All of these and all links in one walk, which costs a quarter of the parsing; each
# alternative costs 2 % of it.
_SELECTOR = "[href],[src],meta,title,style,script"
_BASE_SCHEMES = ("http:", "https:", "ftp:")

_MAX_HREF_CHARS = 65_536
_MAX_ANCHOR_CHARS = 1_000
_MAX_LANGUAGE_CHARS = 35
_MAX_METAS = 64
_MAX_META_CHARS = 2_000
_MAX_SOUP_BYTES = 4 << 20
# lxb_dom_document_opt WO_EVENTS: 10 % faster; only <selectedcontent> would differ.
_WITHOUT_EVENTS = 1
_A_ID = LexborHTMLParser(b"<a>").tags("a")[0].tag_id

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
        page.text = _collapse_long(text)
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
    tree: _Tree
    if not is_hazardous(utf8, options.max_nesting):
        tree = _LexborTree(utf8)
    elif len(utf8) <= _MAX_SOUP_BYTES:
        tree = _SoupTree(page.soup)
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


class _Tree(Protocol):
    """What is read of a document, whichever parser made it."""

    def feed(self, reader: "_Reader", links: Mapping[str, str]) -> None:
        """Gives the reader all elements it needs, in document order."""

    def text(self, node: Any) -> str: ...

    def image_alt(self, node: Any) -> str | None: ...

    def is_in_svg(self, node: Any) -> bool: ...

    def language(self) -> str | None: ...

    def body_text(self, without: list[Any]) -> str: ...


class _Reader:
    """Fills a page from one walk over the elements of a tree."""

    def __init__(self, page: Page, tree: _Tree, url: str) -> None:
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
            page.text = _collapse_long(self._tree.body_text(self._not_text))
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
        if href:
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
            page.hrefs.append(href.strip())
            page.anchors.append(self._anchor(node) if tag == "a" else _collapse(alt))
            page.rels.append(rel)

    def _anchor(self, node: Any) -> str:
        if self._long_anchor_chars < 0:
            return ""
        text = self._tree.text(node)
        if len(text) > _MAX_ANCHOR_CHARS:
            self._long_anchor_chars -= len(text)
        anchor = _collapse(text[: 4 * _MAX_ANCHOR_CHARS])
        return (anchor or _collapse(self._tree.image_alt(node) or ""))[:_MAX_ANCHOR_CHARS]

    def _fact(self, tag: str, attributes: Mapping[str, str | None], node: Any) -> None:
        """Takes what an element says of the page as a whole."""
        if tag in _NOT_TEXT:
            self._not_text.append(node)
        elif tag == "meta":
            self._meta(attributes)
        elif tag == "title" and self._title is None and not self._tree.is_in_svg(node):
            self._title = _collapse(self._tree.text(node))
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
        elif name in _METAS or name.startswith(_META_PREFIXES):
            if len(page.metas) < _MAX_METAS and len(name) <= _MAX_LANGUAGE_CHARS:
                page.metas.setdefault(name, _collapse(content[:_MAX_META_CHARS]))

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


class _LexborTree:
    def __init__(self, body: bytes) -> None:
        self._parser = LexborHTMLParser(body, options=_WITHOUT_EVENTS)

    def feed(self, reader: _Reader, links: Mapping[str, str]) -> None:
        """Takes plain links itself: they are most of all elements, and calls cost."""
        page = reader.page
        add_href, add_anchor = page.hrefs.append, page.anchors.append
        plain = _A_ID if "a" in links else None
        selector = _SELECTOR if "form" not in links else f"{_SELECTOR},form"
        for node in self._parser.css(selector):
            attributes = node.attributes
            if node.tag_id == plain and "rel" not in attributes:
                href = attributes["href"]
                text = node.text(True, " ")
                if href and len(href) < 4096 and 0 < len(text) < 1000 and not text.isspace():
                    add_href(href.strip())
                    add_anchor(text)
                    page.rels.append("")
                    continue
            reader.element(node.tag, attributes, node, links)
        page.anchors = _collapse_each(page.anchors)

    def text(self, node: LexborNode) -> str:
        return node.text(True, " ")

    def image_alt(self, node: LexborNode) -> str | None:
        image = node.css_first("img[alt]")
        return image.attributes["alt"] if image else None

    def is_in_svg(self, node: LexborNode) -> bool:
        return node.parent is not None and node.parent.tag == "svg"

    def language(self) -> str | None:
        root = self._parser.root
        return root.attributes.get("lang") if root else None

    def body_text(self, without: list[LexborNode]) -> str:
        for node in without:
            node.decompose()
        body = self._parser.body
        # Without empty text nodes: less to collapse.
        return body.text(True, " ", False, True) if body else ""


class _SoupTree:
    def __init__(self, document: "BeautifulSoup") -> None:
        self._document = document

    def feed(self, reader: _Reader, links: Mapping[str, str]) -> None:
        found: Iterable[Any] = self._document.find_all([*links, *_FACTS])
        for node in found:
            reader.element(node.name, node.attrs, node, links)

    def text(self, node: Any) -> str:
        return node.get_text(" ")

    def image_alt(self, node: Any) -> str | None:
        image = node.find("img", alt=True)
        return image["alt"] if image else None

    def is_in_svg(self, node: Any) -> bool:
        return node.parent.name == "svg"

    def language(self) -> str | None:
        root: Any = self._document.html
        return root.get("lang") if root else None

    def body_text(self, without: list[Any]) -> str:
        from bs4 import NavigableString

        root: Any = self._document.body or self._document
        # Comments, scripts, styles and templates are of other classes.
        texts = (text for text in root.find_all(string=True) if type(text) is NavigableString)
        return " ".join(text for text in texts if text.parent.name not in _NOT_TEXT | {"title"})


@functools.lru_cache(maxsize=64)
def _followed(ignored: tuple[str, ...], forms: bool) -> dict[str, str]:
    """Returns which attribute holds the link, by tag."""
    without = {tag.strip().lower() for tag in ignored} | (set() if forms else {"form"})
    return {tag: attribute for tag, attribute in _LINKS.items() if tag not in without}


def _obey_nofollow(page: Page) -> None:
    if "nofollow" in page.directives:
        page.drop("page_nofollow", len(page.hrefs))
        page.hrefs, page.anchors, page.rels = [], [], []


def _collapse(text: str) -> str:
    return " ".join(text.split())


def _collapse_long(text: str) -> str:
    """As ``_collapse`` for ASCII white space, with fewer pieces: a third less time.

    >>> _collapse_long("  a b\\n c\\t   d ")
    'a b c d'
    """
    text = text.replace("\n", " ")
    for rare in "\t\r\f\v":
        if rare in text:
            text = text.replace(rare, " ")
    return " ".join([part.strip(" ") for part in text.split("  ") if part]).strip(" ")


def _collapse_each(texts: list[str]) -> list[str]:
    """Collapses white space in many short texts at a third of the cost."""
    # U+0000 is in no text that the HTML parser makes.
    parts = _collapse("\0".join(texts)).split("\0") if texts else []
    if len(parts) != len(texts):
        return [_collapse(text) for text in texts]
    return [part.strip() for part in parts]
