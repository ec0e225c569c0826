"""Parses HTML: title, text, links, metadata, and directives for robots."""

import functools
from collections.abc import Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..content.charset import to_utf8
from ..pages import metadata
from ..pages.directives import header_directives, obey_nofollow, robot_names, robots_directives
from ..pages.language import declared_language
from ..pages.page import MAX_TITLE_CHARS, Page, Source
from ..pages.parse_options import ParseOptions
from ..pages.white_space import collapse, collapse_each, collapse_long
from ..urls.userinfo import parse_target
from . import tree
from .flatten import flattened
from .main_content import main_content

# The attribute that holds the link, by element.
_LINKS = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("frame", "iframe", "img", "script", "source"), "src"),
    "form": "action",
}
# Their text is the anchor of their link.
_WITH_TEXT = ("a", "form")
_BASE_SCHEMES = ("http:", "https:", "ftp:")

# The first usable canonical link or refresh counts; at most this number is checked.
_MAX_TARGETS = 10
_MAX_ANCHOR_CHARS = 1_000
# Links with shorter addresses and anchors take a short cut.
_PLAIN_HREF_CHARS = 4_096


def parse_html(source: Source, options: ParseOptions) -> Page:
    """Parses an HTML document as browsers do.

    A page on which the parser would be quadratic is flattened first: elements that nest too deep
    become siblings, and elements with very many attributes lose these. ``counts`` then has
    ``flattened``.

    >>> document = Source("http://example.com/d/", b"<title>T</title>A <a href=b>B</a>")
    >>> page = parse_html(document, ParseOptions())
    >>> page.title, page.text, page.hrefs, page.anchors, page.base
    ('T', 'T A B', ['b'], ['B'], 'http://example.com/d/')
    """
    utf8, charset = to_utf8(source.body, source.content_type)
    page = Page(charset=charset, body=utf8, directives=header_directives(source, options))
    safe = flattened(utf8)
    hazardous = safe != utf8
    if hazardous:
        page.count("flattened")
    document = tree.parsed(safe)
    reader = _Reader(page, document, source, options)
    reader.read()
    if "noindex" not in page.directives:
        text = None
        if options.text_of == "main":
            text = None if hazardous else main_content(utf8)
            if text is None:
                page.count("no_main_content")
        reader.read_content(text)
    obey_nofollow(page)
    return page


class _Reader:
    """Fills a page from one walk over the elements of its tree."""

    def __init__(
        self, page: Page, document: LexborHTMLParser, source: Source, options: ParseOptions
    ) -> None:
        self.page = page
        self._document = document
        self._source = source
        self._options = options
        self._robots = robot_names(options)
        self._base: str | None = None
        self._title: str | None = None
        self._canonicals: list[str] = []
        self._alternates: dict[str, str] = {}
        self._refreshes: list[tuple[str, int]] = []
        self._languages: list[str] = []
        self._headings: list[tuple[str, LexborNode]] = []
        self._not_text: list[LexborNode] = []
        # Links nest in tables. All long anchors together may be twice as long as the page.
        self._long_anchor_chars = 2 * len(page.body)

    def read(self) -> None:
        """Extracts links and facts: everything except title, text and headings."""
        self._read_elements()
        declared = tree.root_language(self._document)
        header = self._source.header("content-language")
        self.page.language = declared_language(declared, *self._languages, header)
        self._resolve()

    def _read_elements(self) -> None:
        page, options = self.page, self._options
        hrefs, anchors = page.hrefs, page.anchors
        links = _followed(options.outlinks_ignore_tags, options.form_use_action)
        plain = tree.A_ID if "a" in links else None
        for node in tree.elements(self._document, links, options.headings):
            attributes, text = node.attributes, None
            # Most elements are plain links, and calls cost: they are taken right here.
            if node.tag_id == plain and "rel" not in attributes:
                href = (attributes.get("href") or "").strip()
                if 0 < len(href) < _PLAIN_HREF_CHARS:
                    text = node.text(True, " ")
                    if len(text) < _MAX_ANCHOR_CHARS and text and not text.isspace():
                        hrefs.append(href)
                        anchors.append(text)
                        continue
            page.rels += [""] * (len(hrefs) - len(page.rels))
            self._element(node, attributes, links, text)
        page.rels += [""] * (len(hrefs) - len(page.rels))
        page.anchors = collapse_each(anchors)

    def read_content(self, text: str | None) -> None:
        """Extracts title, headings and, unless it is given, the text; this destroys the tree."""
        page, with_title = self.page, self._options.text_with_title
        page.title = self._title or ""
        whole = tree.page_text(self._document, self._not_text, with_title)
        if text is None:
            page.text = collapse_long(whole)
        else:
            page.text = f"{page.title} {text}".strip() if with_title else text
        for tag, node in self._headings:  # now without script and style in them
            metadata.add_heading(page, tag, tree.text_of(node))

    def _element(
        self,
        node: LexborNode,
        attributes: Mapping[str, str | None],
        links: Mapping[str, str],
        text: str | None,
    ) -> None:
        tag = node.tag or ""
        if tag != "a":
            self._fact(tag, attributes, node)
        href = attributes.get(links[tag]) if tag in links else None
        if href and (href := href.strip()):
            self._link(tag, href, attributes, node, text)

    def _link(
        self,
        tag: str,
        href: str,
        attributes: Mapping[str, str | None],
        node: LexborNode,
        text: str | None,
    ) -> None:
        page = self.page
        rel = (attributes.get("rel") or "").lower()
        if tag == "form" and (attributes.get("method") or "").strip().lower() == "post":
            return
        alt = (attributes.get("alt") or "")[:_MAX_ANCHOR_CHARS]
        anchor = self._anchor(tag, node, text) if tag in _WITH_TEXT else collapse(alt)
        if "nofollow" in rel and "nofollow" in rel.replace(",", " ").split():
            page.drop("nofollow")
            page.add_unfollowed(href, anchor, rel)
        else:
            page.add_link(href, anchor, rel)

    def _anchor(self, tag: str, node: LexborNode, text: str | None) -> str:
        """Returns the anchor of a link; ``text`` is that of its element, None if it is not known."""
        if self._long_anchor_chars < 0:
            return ""
        if text is None:
            text = tree.text_of(node) if tag == "a" else tree.form_text(node)
        if len(text) > _MAX_ANCHOR_CHARS:
            self._long_anchor_chars -= len(text)
        anchor = collapse(text[: 4 * _MAX_ANCHOR_CHARS])
        if not anchor and self._has_image_alt:
            anchor = collapse(tree.image_alt(node))
        return anchor[:_MAX_ANCHOR_CHARS]

    @functools.cached_property
    def _has_image_alt(self) -> bool:
        return self._document.css_first("img[alt]") is not None

    def _fact(self, tag: str, attributes: Mapping[str, str | None], node: LexborNode) -> None:
        """Extracts a fact about the whole page from an element."""
        if tag in tree.NOT_TEXT:
            self._not_text.append(node)
            if tag == "script" and metadata.is_json_ld(attributes):
                metadata.add_json_ld(self.page, tree.text_of(node))
        elif tag == "meta":
            self._meta(attributes)
        elif tag == "title" and self._title is None and not tree.is_in_svg(node):
            self._title = collapse(tree.text_of(node))[:MAX_TITLE_CHARS]
        elif tag == "base" and self._base is None:
            self._base = attributes.get("href")
        elif tag == "link":
            rel = (attributes.get("rel") or "").lower().split()
            if "canonical" in rel:
                if (href := attributes.get("href")) and len(self._canonicals) < _MAX_TARGETS:
                    self._canonicals.append(href)
            elif "alternate" in rel and "hreflang" in attributes:
                metadata.add_alternate(self.page, self._alternates, attributes)
        elif tag in self._options.headings:
            self._headings.append((tag, node))

    def _meta(self, attributes: Mapping[str, str | None]) -> None:
        page = self.page
        name = (attributes.get("name") or attributes.get("property") or "").strip().lower()
        equivalent = (attributes.get("http-equiv") or "").strip().lower()
        whole = attributes.get("content") or ""
        content = whole[: metadata.MAX_CONTENT_CHARS].strip()
        if name == "robots" or name in self._robots:
            # Anywhere: a stray element in the head moves the rest of it into the body.
            fetch_time = self._source.fetch_time
            page.directives |= robots_directives(whole, self._robots, fetch_time)
        elif equivalent == "refresh":
            if (refresh := metadata.parse_refresh(content)) and len(self._refreshes) < _MAX_TARGETS:
                self._refreshes.append(refresh)
        elif equivalent == "pragma" and "no-cache" in content.lower():
            page.directives.add("noarchive")
        else:
            if (equivalent or name) in metadata.LANGUAGE_METAS:
                self._languages.append(content)
            metadata.add_meta(page, name, content)

    def _resolve(self) -> None:
        page = self.page
        url = self._source.url
        base = parse_target(self._base.strip(), url) if self._base else None
        page.base = base if base and base.startswith(_BASE_SCHEMES) else url
        page.canonical = next(filter(None, map(self._target, self._canonicals)), None)
        for language, href in self._alternates.items():
            if alternate := parse_target(href, page.base):
                page.alternates[language] = alternate
        targets = ((self._target(href) if href else url, s) for href, s in self._refreshes)
        page.refresh = next(((target, s) for target, s in targets if target), None)

    def _target(self, href: str) -> str | None:
        """Returns the absolute URL of a canonical link or refresh, if it is that of a page."""
        absolute = parse_target(href.strip(), self.page.base)
        own = self._source.url.partition(":")[0] + ":"
        return absolute if absolute and absolute.startswith((*_BASE_SCHEMES, own)) else None


@functools.lru_cache(maxsize=64)
def _followed(ignored: tuple[str, ...], forms: bool) -> dict[str, str]:
    """Returns the attribute that holds the link, by tag, of the elements that are followed."""
    without = {tag.strip().lower() for tag in ignored} | (set() if forms else {"form"})
    return {tag: attribute for tag, attribute in _LINKS.items() if tag not in without}
