"""Makes the tree of a document with lexbor; reads its elements, its text, the texts of elements.

lexbor is linear on all pages that people write. Three things make it quadratic, and one such page
could block a worker for minutes or fill its memory: deep nesting (the parser looks through all open
elements at each block), ten thousands of distinct attributes, and open formatting elements that
each new paragraph repeats. Such pages are flattened before.

The first check costs a few per cent of the parser's time, so it only counts bytes. It finds
careless and plainly hostile pages. A page that is made to pass it stays within the time and memory
limits of the parse process.
"""

import functools
import re
import string
from collections.abc import Iterator, Mapping

import numpy as np
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
# (Nutch's ajax), or the page has a base.
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


# Up to this number of tags any page is harmless (0.05 s at worst).
_SAFE_TAGS = 1_000
_SAFE_OPEN = 500
# With more tags, a page may hide its nesting from the estimate.
_MANY_TAGS = 100_000
# By the character after "<": 1 begins an element, -1 ends one.
_KINDS = np.array(
    [(chr(byte) in string.ascii_letters) - (chr(byte) == "/") for byte in range(256)], np.int8
)
# 16,000 attributes of one element take 0.3 s.
_MAX_ATTRIBUTES = 16_000
_WINDOW_BYTES = 32_768
# As in browsers, which make deeper elements siblings.
_MAX_NESTING = 512
# Links nest in these elements, and the reader goes through the text of each.
_MAX_SCOPES = 64
# Elements that repeating the open formatting elements may make: about 100 MB.
_MAX_REPEATED = 1_000_000

_TAG = re.compile(rb"<(/?)([a-z][^\s/>]*)", re.IGNORECASE)
# HTML 13.2.4.3, list of active formatting elements; an open <a> ends at the next.
_FORMATTING = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
# Elements within a line, whose text is not apart from that around it.
_INLINE = _FORMATTING | frozenset(
    b"abbr bdi bdo cite del dfn ins kbd label mark q ruby samp span sub sup time var".split()
)
# HTML 13.2.4.3: the parser begins a new list of formatting elements in these; in a table, in its cells.
_SCOPES = frozenset(b"applet marquee object table".split())
_UNTOUCHED_TAGS = frozenset(
    # Elements that are never open, or that the next one of their kind ends.
    b"area base br col embed hr img input link meta param source track wbr "
    b"p li dt dd option optgroup tr td th tbody thead tfoot colgroup rp rt "
    # Elements that do not nest in themselves, that hold text only, or that the reader needs.
    b"a body form head html iframe noembed noframes plaintext script style textarea "
    b"title xmp".split()
)


def flatten(body: bytes) -> bytes:
    """Returns a document in UTF-8 that the HTML parser reads in linear time.

    Tags beyond a depth become ``br``, which keep texts apart, or ``wbr`` if they stand within a line,
    and elements with very many attributes lose these. Other text and links stay as they are. A tag
    in a script or an attribute may change, too.

    >>> nested = b"<div>" * 1001
    >>> flatten(nested + b"<a href=x>y</a></div></div>")[5 * 512 :].replace(b"<br>", b"")
    b'<a href=x>y</a>'
    """
    for start, end in reversed(list(_crowded_tags(body))):
        body = body[:start] + body[end:]
    return _flatten_nesting(body) if may_nest_deep(body) else body


def may_nest_deep(body: bytes) -> bool:
    """Returns whether few end tags, or very many tags, make deep nesting likely."""
    if len(body) <= 3 * _SAFE_TAGS or body.count(b"<") <= _SAFE_TAGS:
        return False
    chars = np.frombuffer(body, np.uint8)
    starts = np.flatnonzero(chars[:-1] == ord("<")) + 1
    # HTML 13.2.5.6: other characters begin no tag, as in scripts.
    kinds = _KINDS[chars[starts]]
    steps = kinds[kinds != 0]
    if len(steps) <= _SAFE_TAGS or len(steps) > _MANY_TAGS:
        return len(steps) > _MANY_TAGS
    balance = np.cumsum(steps, dtype=np.int64)
    return bool(np.max(balance - np.minimum.accumulate(np.minimum(balance, 0))) > _SAFE_OPEN)


def _flatten_nesting(body: bytes) -> bytes:
    """Replaces the tags beyond a depth.

    An end tag counts if an element of its name is open, whatever stands between them.
    """
    most_formatting = _MAX_REPEATED // (body.count(b"<") + 1)
    open_counts: dict[bytes, int] = {}
    hidden_counts: dict[bytes, int] = {}
    nesting = formatting = scoping = 0

    def replace_tag(tag: re.Match[bytes]) -> bytes:
        nonlocal nesting, formatting, scoping
        slash, name = tag[1], tag[2].lower()
        if name in _UNTOUCHED_TAGS:
            return tag[0]
        formats, scopes = name in _FORMATTING, name in _SCOPES
        if slash:
            if hidden_counts.get(name):
                hidden_counts[name] -= 1
                return b"<wbr" if name in _INLINE else b"<br"
            if open_counts.get(name):
                open_counts[name] -= 1
                nesting, formatting, scoping = nesting - 1, formatting - formats, scoping - scopes
            return tag[0]
        too_many = (formats and formatting >= most_formatting) or (
            scopes and scoping >= _MAX_SCOPES
        )
        if too_many or nesting >= _MAX_NESTING:
            hidden_counts[name] = hidden_counts.get(name, 0) + 1
            return b"<wbr" if name in _INLINE else b"<br"
        open_counts[name] = open_counts.get(name, 0) + 1
        nesting, formatting, scoping = nesting + 1, formatting + formats, scoping + scopes
        return tag[0]

    return _TAG.sub(replace_tag, body)


def _crowded_tags(body: bytes) -> Iterator[tuple[int, int]]:
    """Yields the start and end of the attributes of each tag that has too many attributes."""
    at = 0
    while len(body) > 2 * _WINDOW_BYTES and at < len(body):
        window_end = at + _WINDOW_BYTES
        if body.find(b">", at, window_end) >= 0:
            at = window_end
            continue
        end = body.find(b">", window_end)
        end = len(body) if end < 0 else end
        tag = _TAG.match(body, max(0, body.rfind(b"<", 0, window_end)), window_end)
        # Without a match this is text after a tag, or a comparison in a script.
        attributes = body[tag.end() : end] if tag and not tag[1] else b">"
        if tag and b">" not in attributes and _count(attributes) > _MAX_ATTRIBUTES:
            yield tag.end(), end
        at = end


def _count(attributes: bytes) -> int:
    """Returns the approximate number of attributes, with any characters between them."""
    return max(len(attributes.split()), attributes.count(b"="), attributes.count(b"/"))
