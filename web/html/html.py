"""Parses HTML and XHTML: title, text, links, metadata, and directives for robots."""

import functools
import html
import re
from collections.abc import Mapping

from selectolax.lexbor import LexborNode

from ..content.charset import to_utf8
from ..content.whatwg_encodings import encode_query
from ..pages import metadata, spans
from ..pages.directives import header_directives, obey_nofollow, robot_names, robots_directives
from ..pages.language import declared_language
from ..pages.page import MAX_TITLE_CHARS, Page, Source, collapse, collapse_each
from ..pages.parse_options import ParseOptions
from ..pages.spans import Span
from ..structured.meta_items import is_item_meta
from ..structured.page_items import ItemSources, items_of_page
from ..urls.userinfo import parse_target
from . import tree
from .block_text import block_text
from .main_content import LateParts
from .tree import flatten

# The attribute that holds the link, by element.
_LINKS = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("frame", "iframe", "img", "script", "source"), "src"),
    "form": "action",
    "image": "href",  # of a drawing
}
# In a drawing the attribute may have this name instead.
_LINK_IN_DRAWING = "xlink:href"
# Their text is the anchor of their link.
_WITH_TEXT = ("a", "form")
_BASE = re.compile(rb"<[Bb][Aa][Ss][Ee]\s")
_PAGE_SCHEMES = ("http:", "https:", "ftp:")

# The first usable canonical link or refresh counts; at most this number is checked.
_MAX_TARGETS = 10
_MAX_ANCHOR_CHARS = 1_000
# Links with shorter addresses and anchors take a short cut.
_PLAIN_HREF_CHARS = 4_096
# The declarations in a document type, which HTML does not know: its parser would end the type at the
# first ">". XML 1.0, 2.8: quoted values, comments and instructions may hold brackets.
_SUBSET = re.compile(
    rb"([^<]*+(?:<\?[^>]*+>[^<]*+|<!--(?:(?!-->).)*+-->[^<]*+)*+<!doctype\s[^\[<>]*+)"
    # What has no end reaches to the end of the page, so that nothing is searched for twice.
    rb"\[(?:<!--(?:(?!-->).)*+(?:-->)?+|<\?(?:(?!\?>).)*+(?:\?>)?+|\"[^\"]*+\"|'[^']*+'|[^\]\"'])*+\]",
    re.IGNORECASE | re.DOTALL,
)


def parse_html(source: Source, options: ParseOptions) -> Page:
    """Parses an HTML document as browsers do.

    A page on which the parser would be quadratic is flattened first: elements that nest too deep
    become siblings, and elements with very many attributes lose these. ``counts`` then has
    ``flattened``.

    >>> document = Source("http://example.com/d/", b"<title>T</title>A <a href=b>B</a>")
    >>> page = parse_html(document, ParseOptions())
    >>> page.title, page.text, page.hrefs, page.anchors, page.base
    ('T', 'A B', ['b'], ['B'], 'http://example.com/d/')
    """
    return parse_markup(source, *to_utf8(source.body, source.content_type, source.url), options)


def parse_markup(source: Source, utf8: bytes, charset: str, options: ParseOptions) -> Page:
    """Parses an HTML document whose body is in UTF-8 already.

    Args:
        source: The document; its body does not count.
        utf8: The body.
        charset: Name of the encoding in which it came.
        options: What to take.
    """
    utf8 = without_subset(utf8)
    page = Page(charset=charset, body=utf8, directives=header_directives(source, options))
    safe = flatten(utf8)
    if safe != utf8:
        page.count("flattened")
    reader = _Reader(page, safe, source, options)
    reader.read()
    if "noindex" not in page.directives:
        reader.read_items(safe)
        reader.read_content()
    obey_nofollow(page)
    return page


def without_subset(utf8: bytes) -> bytes:
    """Returns a document without the declarations in its document type.

    >>> without_subset(b'<!DOCTYPE html [<!ENTITY a "]>">]><p>[x]')
    b'<!DOCTYPE html ><p>[x]'
    """
    declarations = _SUBSET.match(utf8)
    return declarations[1] + utf8[declarations.end() :] if declarations else utf8


class _Reader:
    """Fills a page from one walk over the elements of its tree."""

    def __init__(self, page: Page, markup: bytes, source: Source, options: ParseOptions) -> None:
        self.page = page
        self._document = tree.parse_tree(markup)
        self._may_have_base = _BASE.search(markup) is not None
        self._source = source
        self._page_schemes = (*_PAGE_SCHEMES, source.url.partition(":")[0] + ":")
        self._options = options
        self._robots = robot_names(options)
        self._base: str | None = None
        self._canonicals: list[str] = []
        self._alternates: dict[str, str] = {}
        self._refreshes: list[tuple[str, int]] = []
        self._languages: list[str] = []
        self._headings: list[tuple[str, LexborNode]] = []
        self._not_text: list[LexborNode] = []
        self._item_sources = ItemSources()
        # Links nest in tables. All long anchors together may be twice as long as the page.
        self._long_anchor_chars = 2 * len(page.body)

    def read(self) -> None:
        """Extracts links and facts: everything except title, text and headings."""
        self._read_elements()
        declared = tree.root_language(self._document)
        header = self._source.header("content-language")
        self.page.language = declared_language(declared, *self._languages, header)
        self.page.encode_queries()
        self._resolve()

    def _read_elements(self) -> None:
        page, options = self.page, self._options
        hrefs, anchors = page.hrefs, page.anchors
        links = _link_attributes(options.outlinks_ignore_tags, options.form_use_action)
        is_plain = "a" in links
        nodes = tree.elements(self._document, links, options.headings, self._may_have_base)
        a_tag, tags = tree.A_ID, [node.tag_id for node in nodes]
        next_tags, next_nodes = [*tags[1:], a_tag], [*nodes[1:], *nodes[:1]]
        for node, tag, next_tag, inner in zip(nodes, tags, next_tags, next_nodes, strict=False):
            attributes, text = node.attributes, None
            if tag == a_tag:
                if next_tag != a_tag and tree.is_inside(inner, node):
                    text = tree.anchor_text(node)  # of images and scripts, too
                else:
                    text = node.text(True, " ")
                # Most elements are plain links, and calls cost: they are taken right here.
                if is_plain and "rel" not in attributes:
                    href = (attributes.get("href") or "").strip()
                    if 0 < len(href) < _PLAIN_HREF_CHARS and len(text) < _MAX_ANCHOR_CHARS:
                        hrefs.append(href)
                        anchors.append(text)
                        continue
            page.rels += [""] * (len(hrefs) - len(page.rels))
            self._take_element(node, attributes, links, text)
        page.rels += [""] * (len(hrefs) - len(page.rels))
        page.anchors = collapse_each(anchors)

    def read_items(self, markup: bytes) -> None:
        """Extracts structured data."""
        if self._options.structured_data:
            page = self.page
            sources = self._item_sources
            page.items = items_of_page(self._document, markup, page.base, sources, page.count)

    def read_content(self) -> None:
        """Extracts title, text and headings; this destroys the tree."""
        page = self.page
        page.title = collapse(tree.title_of(self._document) or "")[:MAX_TITLE_CHARS]
        has_scripts = any(node.tag == "script" for node in self._not_text)
        for node in self._not_text:
            node.decompose()
        body = self._document.body
        content = block_text((body and body.html) or "", with_noscript=not has_scripts)
        is_moved = page.base != self._source.url
        base: list[Span] = [(spans.BASE, 0, 0, 0, page.base)] if is_moved else []
        page.text, page.spans = content.text, [*base, *content.spans]
        page.main = LateParts(content)
        for tag, node in self._headings:  # now without script and style in them
            metadata.add_heading(page, tag, tree.text_of(node))

    def _take_element(
        self,
        node: LexborNode,
        attributes: Mapping[str, str | None],
        links: Mapping[str, str],
        text: str | None,
    ) -> None:
        tag = node.tag or ""
        if tag != "a":
            self._take_fact(tag, attributes, node)
        if tag in links:
            href = attributes.get(links[tag]) or attributes.get(_LINK_IN_DRAWING)
            if href and (href := href.strip()):
                self._take_link(tag, href, attributes, node, text)

    def _take_link(
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
            text = tree.text_of(node) if tag == "a" else tree.anchor_text(node)
        if len(text) > _MAX_ANCHOR_CHARS:
            self._long_anchor_chars -= len(text)
        return collapse(text[: 4 * _MAX_ANCHOR_CHARS])[:_MAX_ANCHOR_CHARS]

    def _take_fact(self, tag: str, attributes: Mapping[str, str | None], node: LexborNode) -> None:
        """Extracts a fact about the whole page from an element."""
        if tag in tree.NOT_TEXT:
            self._not_text.append(node)
            if tag == "script" and metadata.is_json_ld(attributes):
                block = node.text() or ""
                metadata.add_json_ld(self.page, block)
                self._item_sources.json_ld.append(block)
        elif tag == "meta":
            self._take_meta(attributes)
        elif tag == "base" and self._base is None and not tree.is_in_drawing(node):
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

    def _take_meta(self, attributes: Mapping[str, str | None]) -> None:
        page = self.page
        name = (attributes.get("name") or attributes.get("property") or "").strip().lower()
        equivalent = (attributes.get("http-equiv") or "").strip().lower()
        whole_content = attributes.get("content") or ""
        content = whole_content[: metadata.MAX_CONTENT_CHARS].strip()
        if name == "robots" or name in self._robots:
            # Anywhere: a stray element in the head moves the rest of it into the body.
            fetch_time = self._source.fetch_time
            page.directives |= robots_directives(whole_content, self._robots, fetch_time)
        elif equivalent == "refresh":
            if (refresh := metadata.parse_refresh(content)) and len(self._refreshes) < _MAX_TARGETS:
                self._refreshes.append(refresh)
        elif equivalent == "pragma" and "no-cache" in content.lower():
            page.directives.add("noarchive")
        else:
            if (equivalent or name) in metadata.LANGUAGE_METAS:
                self._languages.append(content)
            metadata.add_meta(page, name, content)
            self._take_item_meta(attributes, content)

    def _take_item_meta(self, attributes: Mapping[str, str | None], content: str) -> None:
        names = ((attributes.get(each) or "").strip().lower() for each in ("property", "name"))
        for name in dict.fromkeys(names):
            if content and is_item_meta(name):
                self._item_sources.metas.append((name, content))

    def _resolve(self) -> None:
        page = self.page
        url = self._source.url
        base = parse_target(self._encode_href(self._base), url) if self._base else None
        page.base = base if base and base.startswith(self._page_schemes) else url
        page.canonical = next(filter(None, map(self._target, self._canonicals)), None)
        for language, href in self._alternates.items():
            if alternate := parse_target(self._encode_href(href), page.base):
                page.alternates[language] = alternate
        targets = ((self._target(href) if href else url, s) for href, s in self._refreshes)
        page.refresh = next(((target, s) for target, s in targets if target), None)

    def _target(self, href: str) -> str | None:
        """Returns the absolute URL of a canonical link or refresh, if it is that of a page."""
        absolute = parse_target(self._encode_href(href), self.page.base)
        return absolute if absolute and absolute.startswith(self._page_schemes) else None

    def _encode_href(self, href: str) -> str:
        return encode_query(href.strip(), self.page.charset)


@functools.lru_cache(maxsize=64)
def _link_attributes(ignored: tuple[str, ...], forms: bool) -> dict[str, str]:
    """Returns the attribute that holds the link, by tag, of the elements that are followed."""
    ignored_tags = {tag.strip().lower() for tag in ignored} | (set() if forms else {"form"})
    return {tag: attribute for tag, attribute in _LINKS.items() if tag not in ignored_tags}


# HTML 13.1.2: void elements; in HTML any other has no end where XML says "/>".
_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())
_SECTION = re.compile(
    # Left as they are: comments, and scripts and styles with their content.
    rb"(?P<as_is><!--(?:(?!-->).)*+(?:-->|\Z)"
    rb"|<(?P<raw>script|style)\b(?:[^<>/]|/(?!>))*+>(?:(?!</(?P=raw)).)*+)"
    rb"|<!\[CDATA\[(?P<cdata>(?:(?!\]\]>).)*+)(?:\]\]>|\Z)"
    rb"|<(?P<empty>[A-Za-z_][\w:.-]*+)(?P<rest>(?:[^<>\"'/]|/(?!>)|\"[^\"<]*+\"|'[^'<]*+')*+)/>",
    re.IGNORECASE | re.DOTALL,
)
_LANGUAGE = re.compile(rb"<html\b[^>]{0,2000}?\sxml:lang\s*=\s*[\"']([A-Za-z0-9-]{1,35})[\"']")
_HEAD_BYTES = 8192
_PREFIXED_ROOT = re.compile(rb"<([A-Za-z_][\w.-]{0,40}):html[\s>]")


def parse_xhtml(source: Source, options: ParseOptions) -> Page:
    """Parses a document that came as ``application/xhtml+xml``.

    Elements such as ``<script src="x"/>`` and ``<a id="x"/>`` end where XML ends
    them, CDATA sections are text, and elements may have the prefix of the root. A document
    that is not well-formed is read as HTML, not refused: many pages only claim to be XHTML.

    Raises:
        ParseFailed: As ``parse_html``.

    >>> body = b"<html><head><script src='x'/><title>T</title></head><body><a/>A"
    >>> page = parse_xhtml(Source("http://example.com/", body), ParseOptions())
    >>> page.title, page.hrefs, page.text
    ('T', ['x'], 'A')
    """
    utf8, charset = to_utf8(source.body, source.content_type, source.url)
    page = parse_markup(source, xhtml_as_html(utf8), charset, options)
    if page.language is None and (declared := _LANGUAGE.search(utf8, 0, _HEAD_BYTES)):
        page.language = declared[1].decode()
    return page


def xhtml_as_html(utf8: bytes) -> bytes:
    """Returns an XHTML document as HTML, without the declarations in its document type.

    >>> xhtml_as_html(b"<h:html><h:a/><h:br/><![CDATA[<]]>")
    b'<html><a></a><br/>&lt;'
    """
    if root := _PREFIXED_ROOT.search(utf8, 0, _HEAD_BYTES):  # HTML knows no prefixes
        utf8 = re.sub(rb"<(/?)%b:" % re.escape(root[1]), rb"<\1", utf8)
    # Without the declarations first: what looks like an element in them is none.
    return _SECTION.sub(_as_html, without_subset(utf8))


def _as_html(section: re.Match[bytes]) -> bytes:
    if section["as_is"] is not None:
        return section[0]
    if section["cdata"] is not None:
        return html.escape(section["cdata"].decode("utf-8", "replace"), quote=False).encode()
    name = section["empty"]
    if name.lower() in _VOID:
        return section[0]
    return b"<%b%b></%b>" % (name, section["rest"], name)
