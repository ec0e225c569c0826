"""The two parsers, each as a tree that is walked once."""

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..pages.page import Page

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

# Their content is no text of the page.
NOT_TEXT = frozenset({"iframe", "script", "style"})
# What says something of the page as a whole.
FACTS = ("base", "link", "meta", "title", *sorted(NOT_TEXT))
# All of these and all links in one walk, which costs a quarter of the parsing; each
# alternative costs 2 % of it.
# Parts must not overlap: what two match comes twice.
_SELECTOR = (
    "[href]:not([href^='#']),[href^='#!'],[src]:not([href]),"
    "meta,title,style:not([href],[src]),script:not([href],[src])"
)
# A place on the page at hand, so it leads nowhere else: unless that is a state of a script
# (nutch.md 3.4, ajax), or the page has a base.
_PLACES = ",[href^='#']:not([href^='#!'])"
# lxb_dom_document_opt WO_EVENTS: 10 % faster; only <selectedcontent> would differ.
_WITHOUT_EVENTS = 1
_SPACES = bytes.maketrans(b"\t\n\r\f\v\x1c\x1d\x1e\x1f", b" " * 9)
# Unicode's other white space: what ``str.split`` takes for it.
_WIDE_SPACES = (
    "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + ("\u2028\u2029\u202f\u205f\u3000")
)
_A_ID = LexborHTMLParser(b"<a>").tags("a")[0].tag_id

# A link that needs a closer look goes the long way.
_PLAIN_HREF_CHARS = 4_096
_PLAIN_ANCHOR_CHARS = 1_000


class Sink(Protocol):
    """What takes the elements: attributes are by lower-case name."""

    page: Page

    def element(
        self, tag: str, attributes: Mapping[str, str | None], node: Any, links: Mapping[str, str]
    ) -> None: ...


class Tree(Protocol):
    """What is read of a document, whichever parser made it."""

    def feed(self, sink: Sink, links: Mapping[str, str], more: tuple[str, ...]) -> None:
        """Gives the sink all elements it needs, and ``more`` by name, in document order.

        Not those that lead to a place on the same page.
        """

    def text(self, node: Any) -> str: ...

    def form_text(self, form: Any) -> str:
        """Returns the text of a form up to its second ``a``, as Nutch's anchors of forms are."""

    def image_alt(self, node: Any) -> str | None: ...

    def is_in_svg(self, node: Any) -> bool: ...

    def language(self) -> str | None: ...

    def page_text(self, without: list[Any], with_head: bool) -> str:
        """Returns the text of the body, that of the head (its title) before it if asked for."""


class LexborTree:
    def __init__(self, body: bytes) -> None:
        self._parser = LexborHTMLParser(body, options=_WITHOUT_EVENTS)

    def feed(self, sink: Sink, links: Mapping[str, str], more: tuple[str, ...]) -> None:
        """Takes plain links itself: they are most of all elements, and calls cost."""
        page = sink.page
        hrefs, anchors = page.hrefs, page.anchors
        plain = _A_ID if "a" in links else None
        selector = _selector(more if "form" not in links else (*more, "form"))
        head = self._parser.head
        # One that is astray in the body makes no places elsewhere.
        if head is not None and head.css_first("base") is not None:
            selector += _PLACES
        for node in self._parser.css(selector):
            attributes = node.attributes
            if node.tag_id == plain and "rel" not in attributes:
                href = (attributes.get("href") or "").strip()
                if 0 < len(href) < _PLAIN_HREF_CHARS:
                    text = node.text(True, " ")
                    if len(text) < _PLAIN_ANCHOR_CHARS and text and not text.isspace():
                        hrefs.append(href)
                        anchors.append(text)
                        continue
            page.rels += [""] * (len(hrefs) - len(page.rels))
            sink.element(node.tag or "", attributes, node, links)
        page.rels += [""] * (len(hrefs) - len(page.rels))
        page.anchors = collapse_each(anchors)

    def text(self, node: LexborNode) -> str:
        return node.text(True, " ")

    def form_text(self, form: LexborNode) -> str:
        texts: list[str] = []
        anchors = 0
        for node in form.traverse(include_text=True):
            anchors += node.tag_id == _A_ID
            if anchors > 1:
                break
            if node.is_text_node and (node.parent is None or node.parent.tag not in NOT_TEXT):
                texts.append(node.text_content or "")
        return " ".join(texts)

    def image_alt(self, node: LexborNode) -> str | None:
        image = node.css_first("img[alt]")
        return image.attributes["alt"] if image else None

    def is_in_svg(self, node: LexborNode) -> bool:
        return node.parent is not None and node.parent.tag == "svg"

    def language(self) -> str | None:
        root = self._parser.root
        said = root.attributes if root else {}
        return said.get("lang") or said.get("xml:lang")

    def page_text(self, without: list[LexborNode], with_head: bool) -> str:
        for node in without:
            node.decompose()
        nodes = (self._parser.head if with_head else None, self._parser.body)
        # Without empty text nodes: less to collapse.
        return " ".join(node.text(True, " ", False, True) for node in nodes if node)


class SoupTree:
    def __init__(self, document: "BeautifulSoup") -> None:
        self._document = document

    def feed(self, sink: Sink, links: Mapping[str, str], more: tuple[str, ...]) -> None:
        found: Iterable[Any] = self._document.find_all([*links, *FACTS, *more])
        head = self._document.head
        has_base = head is not None and head.find("base") is not None
        for node in found:
            href = node.get("href") or ""
            if has_base or not href.startswith("#") or href.startswith("#!"):
                sink.element(node.name, node.attrs, node, links)

    def text(self, node: Any) -> str:
        return node.get_text(" ")

    def form_text(self, form: Any) -> str:
        texts: list[str] = []
        anchors = 0
        for node in form.descendants:
            anchors += node.name == "a"
            if anchors > 1:
                break
            if self._is_text(node) and node.parent.name not in NOT_TEXT:
                texts.append(node)
        return " ".join(texts)

    def image_alt(self, node: Any) -> str | None:
        image = node.find("img", alt=True)
        return image["alt"] if image else None

    def is_in_svg(self, node: Any) -> bool:
        return node.parent.name == "svg"

    def language(self) -> str | None:
        root: Any = self._document.html
        return (root.get("lang") or root.get("xml:lang")) if root else None

    def page_text(self, without: list[Any], with_head: bool) -> str:
        root: Any = (not with_head and self._document.body) or self._document
        texts = filter(self._is_text, root.find_all(string=True))
        unwanted = NOT_TEXT if with_head else {*NOT_TEXT, "title"}
        return " ".join(text for text in texts if text.parent and text.parent.name not in unwanted)

    @staticmethod
    def _is_text(node: Any) -> bool:
        from bs4.element import NavigableString

        # Comments, scripts, styles and templates are of other classes.
        return type(node) is NavigableString


@functools.lru_cache(maxsize=64)
def _selector(more: tuple[str, ...]) -> str:
    return ",".join((_SELECTOR, *(f"{tag}:not([href],[src])" for tag in more)))


def collapse(text: str) -> str:
    return " ".join(text.split())


def collapse_long(text: str) -> str:
    """As ``collapse``; of a page's text in a third of the time.

    >>> collapse_long("  a b\\n c\\t   d\\xa0\\u3000e ")
    'a b c d e'
    """
    if not text.isascii():
        for space in _WIDE_SPACES:
            text = text.replace(space, " ")
    chars = np.frombuffer(text.encode("utf-8", "replace").translate(_SPACES), np.uint8)
    spaces = chars == ord(" ")
    kept = np.ones(len(chars), np.bool_)
    np.logical_not(spaces[1:] & spaces[:-1], out=kept[1:])
    return np.compress(kept, chars).tobytes().decode().strip(" ")


def collapse_each(texts: list[str]) -> list[str]:
    """Collapses white space in many short texts at a third of the cost."""
    # U+0000 is in no text that the HTML parser makes.
    parts = collapse("\0".join(texts)).split("\0") if texts else []
    if len(parts) != len(texts):
        return [collapse(text) for text in texts]
    return [part.strip() for part in parts]
