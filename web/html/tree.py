"""Reads a document that lexbor has parsed: its elements, its text, the texts of elements."""

import functools
from collections.abc import Iterator, Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

# The content of these elements is not text of the page.
NOT_TEXT = frozenset({"iframe", "noembed", "noframes", "script", "style"})
# One query finds all links and all facts; it costs a quarter of the parsing, and each further
# alternative costs 2 % of it. The alternatives must not overlap: an element that matches two of
# them is found twice.
_SELECTOR = (
    "[href]:not([href^='#']:not([href^='#!'])),[src]:not([href]),meta,img[alt]:not([href],[src])"
    + "".join(f",{tag}:not([href],[src])" for tag in sorted(NOT_TEXT))
)
# A fragment leads to a place on the same page, so it is no link; unless it is a state of a script
# (nutch.md 3.4, ajax), or the page has a base.
_FRAGMENTS = ",[href^='#']:not([href^='#!'])"
# lxb_dom_document_opt WO_EVENTS: 10 % faster; only <selectedcontent> would differ.
_WITHOUT_EVENTS = 1
# An element that nests deeper in a link does not belong to its anchor; this bounds the time.
_MAX_ANCESTORS = 64


def parse_tree(body: bytes) -> LexborHTMLParser:
    """Returns the tree of a document in UTF-8."""
    return LexborHTMLParser(body, options=_WITHOUT_EVENTS)


A_ID = parse_tree(b"<a>").tags("a")[0].tag_id


def elements(
    document: LexborHTMLParser,
    links: Mapping[str, str],
    headings: tuple[str, ...],
    may_have_base: bool = True,
) -> list[LexborNode]:
    """Returns the elements with a link or a fact, and the headings, in document order.

    Links to places on the same page are not among them.

    Args:
        document: The tree.
        links: The attribute that holds the link, by tag; forms are found if ``form`` is a key.
        headings: Tags of the headings.
        may_have_base: Whether there may be a ``base``.
    """
    selector = _selector(headings if "form" not in links else (*headings, "form"))
    if may_have_base and any(not is_in_drawing(base) for base in document.css("base[href]")):
        selector += _FRAGMENTS
    return document.css(selector)


@functools.lru_cache(maxsize=64)
def _selector(more: tuple[str, ...]) -> str:
    return ",".join((_SELECTOR, *(f"{tag}:not([href],[src])" for tag in more)))


def text_of(node: LexborNode) -> str:
    """Returns the text of an element, with a space between text nodes."""
    return node.text(True, " ")


def anchor_text(link: LexborNode) -> str:
    """Returns the text of a link or form, with the ``alt`` of its images, up to a second ``a``.

    Nutch's anchors end there, too.
    """
    texts: list[str] = []
    anchors = 0
    for node in link.traverse(include_text=True):
        anchors += node.tag_id == A_ID
        if anchors > 1:
            break
        if node.is_text_node:
            if node.parent is None or node.parent.tag not in NOT_TEXT:
                texts.append(node.text_content or "")
        elif node.tag == "img":
            texts.append(node.attributes.get("alt") or "")
    return " ".join(texts)


def title_of(document: LexborHTMLParser) -> str | None:
    """Returns the text of the first ``title`` that is not in a drawing, or None without one."""
    # Nearly all are in the head, which is small, and has no drawing.
    first = document.head.css_first("title") if document.head is not None else None
    if first is None:
        titles = document.css("title")
        first = next((title for title in titles if not is_in_drawing(title)), None)
    return None if first is None else text_of(first)


def is_inside(node: LexborNode, outer: LexborNode) -> bool:
    """Returns whether an element is inside another one."""
    child = outer.child
    if child is None or (child.is_text_node and child.next is None):
        return False
    return any(ancestor.mem_id == outer.mem_id for ancestor in _ancestors(node))


def is_in_drawing(node: LexborNode) -> bool:
    """Returns whether an element is inside a drawing (SVG)."""
    return any(ancestor.tag == "svg" for ancestor in _ancestors(node))


def _ancestors(node: LexborNode) -> Iterator[LexborNode]:
    """Yields the elements around an element, the nearest first."""
    for _ in range(_MAX_ANCESTORS):
        if node.parent is None:
            return
        node = node.parent
        yield node


def root_language(document: LexborHTMLParser) -> str | None:
    """Returns the language that the root element declares."""
    attributes = document.root.attributes if document.root else {}
    return attributes.get("lang") or attributes.get("xml:lang")


def page_text(document: LexborHTMLParser, not_text: list[LexborNode], with_head: bool) -> str:
    """Returns the text of the body, with that of the head (its title) before it if wanted.

    Removes the elements in ``not_text`` from the tree.
    """
    for node in not_text:
        node.decompose()
    nodes = (document.head if with_head else None, document.body)
    # Without empty text nodes there is less white space to collapse.
    return " ".join(node.text(True, " ", False, True) for node in nodes if node)
