"""Reads a document that lexbor has parsed: its elements, its text, the texts of elements."""

import functools
from collections.abc import Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

# The content of these elements is not text of the page.
NOT_TEXT = frozenset({"iframe", "script", "style"})
# One query finds all links and all facts; it costs a quarter of the parsing, and each further
# alternative costs 2 % of it. The alternatives must not overlap: an element that matches two of
# them is found twice.
_SELECTOR = (
    "[href]:not([href^='#']),[href^='#!'],[src]:not([href]),"
    "meta,title,style:not([href],[src]),script:not([href],[src])"
)
# A fragment leads to a place on the same page, so it is no link; unless it is a state of a script
# (nutch.md 3.4, ajax), or the page has a base.
_FRAGMENTS = ",[href^='#']:not([href^='#!'])"
# lxb_dom_document_opt WO_EVENTS: 10 % faster; only <selectedcontent> would differ.
_WITHOUT_EVENTS = 1


def parsed(body: bytes) -> LexborHTMLParser:
    """Returns the tree of a document in UTF-8."""
    return LexborHTMLParser(body, options=_WITHOUT_EVENTS)


A_ID = parsed(b"<a>").tags("a")[0].tag_id


def elements(
    document: LexborHTMLParser, links: Mapping[str, str], headings: tuple[str, ...]
) -> list[LexborNode]:
    """Returns the elements with a link or a fact, and the headings, in document order.

    Links to places on the same page are not among them.

    Args:
        document: The tree.
        links: The attribute that holds the link, by tag; forms are found if ``form`` is a key.
        headings: Tags of the headings.
    """
    selector = _selector(headings if "form" not in links else (*headings, "form"))
    head = document.head
    # A base in the body does not count.
    if head is not None and head.css_first("base") is not None:
        selector += _FRAGMENTS
    return document.css(selector)


@functools.lru_cache(maxsize=64)
def _selector(more: tuple[str, ...]) -> str:
    return ",".join((_SELECTOR, *(f"{tag}:not([href],[src])" for tag in more)))


def text_of(node: LexborNode) -> str:
    """Returns the text of an element, with a space between text nodes."""
    return node.text(True, " ")


def form_text(form: LexborNode) -> str:
    """Returns the text of a form up to its second ``a``, as Nutch's anchors of forms are."""
    texts: list[str] = []
    anchors = 0
    for node in form.traverse(include_text=True):
        anchors += node.tag_id == A_ID
        if anchors > 1:
            break
        if node.is_text_node and (node.parent is None or node.parent.tag not in NOT_TEXT):
            texts.append(node.text_content or "")
    return " ".join(texts)


def image_alt(node: LexborNode) -> str:
    """Returns the ``alt`` of the first image in an element that has one, else nothing."""
    image = node.css_first("img[alt]")
    return (image.attributes["alt"] if image else None) or ""


def is_in_svg(node: LexborNode) -> bool:
    """Returns whether an element is inside a drawing."""
    return node.parent is not None and node.parent.tag == "svg"


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
