"""CSS selectors with a bounded time, and with Scrapy's ``::text`` and ``::attr(name)``.

lexbor tries all ancestors for each part of a selector: ``x div div div p`` takes 48 s on a page whose
elements nest 500 deep. Here a selector is cut where it descends, and each part is searched within the
outermost elements of the part before it, so no element is visited twice. Parts that compare siblings take
the square of the number of siblings; they are only used on pages with few elements.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from ..html.tree import parse_tree

MAX_SELECTOR_CHARS = 1_000
# Of a page on which siblings are compared: 20,000 siblings take 4 s.
MAX_SIBLING_TAGS = 20_000
_TEXT, _ATTRIBUTE = "::text", re.compile(r"::attr\(\s*([\w:.-]+)\s*\)$")
# A quoted text, brackets, or what separates: a comma, a combinator, white space.
_TOKEN = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<open>[(\[])|(?P<close>[)\]])"""
    r"|(?P<comma>\s*,\s*)|(?P<combinator>\s*[>+~]\s*)|(?P<space>\s+)|(?P<other>\\.|[^\s,>+~()\[\]\"']+)"
)
_SIBLINGS = re.compile(r"~|:(?:nth|only|last)-[a-z-]+", re.IGNORECASE)


class TooManyElements(Exception):
    """A page has too many elements for a selector that compares siblings."""


class _Piece(NamedTuple):
    """A part of a selector without a descent.

    Attributes:
        text: The part.
        levels: By how many levels its first element is above its last one.
    """

    text: str
    levels: int


class CssAlternative(NamedTuple):
    """One of the selectors that commas separate.

    Attributes:
        pieces: Its parts, each a descendant of the one before.
        attribute: The attribute that is taken; ``::text`` means the text nodes of the element itself,
            and empty the text of the element.
    """

    pieces: tuple[_Piece, ...]
    attribute: str


class CssPath(NamedTuple):
    """A checked selector.

    Attributes:
        text: As it was written.
        alternatives: Its selectors.
        compares_siblings: Whether its time grows with the square of the number of siblings.
    """

    text: str
    alternatives: tuple[CssAlternative, ...]
    compares_siblings: bool


def read_css(text: str) -> CssPath:
    """Checks a selector.

    Raises:
        ValueError: It is none, or its time could not be bounded; the message says why.

    >>> path = read_css("ul.prices > li a::attr(href), h1::text")
    >>> [(len(one.pieces), one.attribute) for one in path.alternatives]
    [(2, 'href'), (1, '::text')]
    """
    if len(text) > MAX_SELECTOR_CHARS:
        raise ValueError(f"it is longer than {MAX_SELECTOR_CHARS:,} characters")
    alternatives = tuple(map(_read_alternative, _split(text, "comma")))
    if text.count("~") - text.count("~=") > len(alternatives):
        raise ValueError("it may have '~' once, because that compares all siblings")
    return CssPath(text, alternatives, _SIBLINGS.search(text) is not None)


def _read_alternative(text: str) -> CssAlternative:
    text, attribute = _split_attribute(text.strip())
    pieces = tuple(_Piece(piece, _count_levels(piece)) for piece in _split(text, "space"))
    for piece in pieces:
        try:
            _empty_tree().css(piece.text)
        except SelectolaxError:
            raise ValueError(f"{piece.text!r} is no CSS selector that nutbeam knows") from None
    if not pieces:
        raise ValueError("a selector is missing")
    return CssAlternative(pieces, attribute)


def _split_attribute(text: str) -> tuple[str, str]:
    if text.endswith(_TEXT):
        return text.removesuffix(_TEXT).strip() or "*", _TEXT
    if match := _ATTRIBUTE.search(text):
        return text[: match.start()].strip() or "*", match[1].lower()
    if "::" in text:
        raise ValueError(
            f"of what begins with '::' only ::text and ::attr(name) are known, got {text!r}"
        )
    return text, ""


def _split(text: str, separator: str) -> list[str]:
    """Cuts a selector at the commas, or at the white space by which it descends, outside of brackets.

    Raises:
        ValueError: A bracket is open, or there is a combinator in brackets.
    """
    parts, depth, at = [""], 0, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"{text[at:]!r} is no part of a CSS selector")
        at = token.end()
        kind = token.lastgroup
        depth += (kind == "open") - (kind == "close")
        if kind in ("space", "combinator") and depth and _is_combinator(text, token):
            raise ValueError("it may have no combinator in brackets but :has(> …)")
        if kind == separator and not depth:
            parts.append("")
        else:
            parts[-1] += token[0]
    if depth:
        raise ValueError("a bracket is open")
    return [part.strip() for part in parts if part.strip() or separator == "comma"]


def _is_combinator(text: str, token: re.Match[str]) -> bool:
    """Returns whether white space or a sign in brackets joins two elements."""
    inside = text[: token.start()].rstrip()
    if inside.endswith(":has(") and token[0].strip() in ("", ">"):
        return False
    if inside.rfind("[") > inside.rfind("]") or text[token.end() : token.end() + 1] == "=":
        return False  # of an attribute, such as [class~=a]
    in_nth = re.search(r":nth-[a-z-]+\([^()]*$", inside) is not None  # 2n + 1
    is_edge = inside.endswith(("(", ",")) or text[token.end() :].lstrip()[:1] in (")", ",")
    return not in_nth and not is_edge


def _count_levels(piece: str) -> int:
    return len(_split_at_children(piece)) - 1


def _split_at_children(piece: str) -> list[str]:
    parts, depth = [""], 0
    for token in _TOKEN.finditer(piece):
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
        if token.lastgroup == "combinator" and ">" in token[0] and not depth:
            parts.append("")
        else:
            parts[-1] += token[0]
    return parts


@functools.cache
def _empty_tree() -> LexborHTMLParser:
    return parse_tree(b"<p>")


def select_nodes(scope: LexborNode, alternative: CssAlternative) -> list[LexborNode]:
    """Returns the elements that match, in the order of the page, each once.

    Args:
        scope: The element in which is searched; it may match itself.
        alternative: The selector.
    """
    nodes = _within(scope, alternative.pieces[0], itself=True)
    for piece in alternative.pieces[1:]:
        nodes = [node for outer in _outermost(nodes) for node in _within(outer, piece)]
    return nodes


def _within(scope: LexborNode, piece: _Piece, *, itself: bool = False) -> list[LexborNode]:
    """Returns the elements that match a part, all of whose elements are in the scope."""
    nodes = scope.css(piece.text)
    if itself and scope.parent is None:  # nothing is around it
        return nodes
    levels = piece.levels if itself else piece.levels + 1
    return [node for node in nodes if not _reaches(node, scope, levels)]


def _reaches(node: LexborNode, scope: LexborNode, levels: int) -> bool:
    """Returns whether an element is among a node and the elements around it, up to some levels."""
    around: LexborNode | None = node
    for _ in range(levels):
        if around is None or around.mem_id == scope.mem_id:
            return True
        around = around.parent
    return False


def _outermost(nodes: Sequence[LexborNode]) -> Iterator[LexborNode]:
    """Yields the nodes that are in no other one; they are in the order of the page."""
    if len(nodes) < 2:
        yield from nodes
        return
    chosen, outside = {node.mem_id for node in nodes}, set[int]()
    for node in nodes:
        path, around = [node.mem_id], node.parent
        while around is not None and around.mem_id not in outside:
            if around.mem_id in chosen:
                break
            path.append(around.mem_id)
            around = around.parent
        else:
            outside.update(path[1:])
            yield node


def in_page_order(root: LexborNode, nodes: Iterable[LexborNode]) -> list[LexborNode]:
    """Returns nodes of several searches in the order of the page, each once."""
    by_id = {node.mem_id: node for node in nodes}
    if len(by_id) < 2:
        return list(by_id.values())
    return [by_id[node.mem_id] for node in root.traverse() if node.mem_id in by_id]
