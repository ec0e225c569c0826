"""Leaves out of mark-up what is not seen: comments, elements whose content is no text, and hidden elements.

The mark-up is what lexbor writes of its tree: each element has an end tag, unless it is void.
"""

import re
from collections.abc import Iterator

from .tag_attributes import is_hidden

VOID_TAGS = frozenset(
    [
        "area",
        "base",
        "basefont",
        "bgsound",
        "br",
        "col",
        "embed",
        "frame",
        "hr",
        "img",
        "input",
        "keygen",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
# Comments and the like, and elements whose content is not escaped.
_RAW_TAGS = ("script", "style", "iframe", "noembed", "noframes")
_RAW = re.compile(
    "<(?:!--[^-]*+(?:-(?!->)[^-]*+)*+--|\\?[^>]*+"
    + "".join(rf"|{tag}(?=[\s>]).*?</{tag}" for tag in _RAW_TAGS)
    + ")>",
    re.DOTALL,
)
_RAW_TEXT_START = re.compile(r"<(?:xmp|plaintext)[\s>]")
_RAW_TEXT = re.compile(r"<(?:!--.*?--|(xmp|plaintext)(?=[\s>])([^>]*+)>(.*?)</\1)>", re.DOTALL)
# A word of these is in all attributes that hide an element.
_HIDING = ("hidden", "isplay", "ISPLAY")
_TAG = re.compile(r"<([a-z][^\s>/]*+)([^>]*+)>")


def seen_markup(markup: str) -> str:
    """Returns mark-up without what is not seen; text that is not escaped becomes preformatted.

    >>> seen_markup('<p>a<!-- b --><b hidden="">c<b>d</b></b> <xmp>&e</xmp></p>')
    '<p>a <pre>&amp;e</pre></p>'
    """
    if _RAW_TEXT_START.search(markup):
        markup = _RAW_TEXT.sub(_as_preformatted, markup)
    markup = _RAW.sub("", markup)
    pieces, after = list[str](), 0
    for start, end in _hidden_elements(markup):
        pieces.append(markup[after:start])
        after = end
    return "".join(pieces) + markup[after:] if after else markup


def _as_preformatted(element: re.Match[str]) -> str:
    if not element[1]:
        return element[0]
    text = element[3].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<pre{element[2]}>{text}</pre>"


def _hidden_elements(markup: str) -> Iterator[tuple[int, int]]:
    """Yields where hidden elements begin and end, outer ones only."""
    after = 0  # what is before it has been looked at
    for place in sorted(place for word in _HIDING for place in _places(markup, word)):
        start = markup.rfind("<", after, place)
        after = max(after, place)
        if start < 0 or not (tag := _TAG.match(markup, start)) or tag.end() < place:
            continue
        after = tag.end()
        # Scripts show the body once they have run.
        if tag[1] != "body" and is_hidden(tag[2]):
            after = after if tag[1] in VOID_TAGS else _end_of(markup, tag[1], after)
            yield start, after


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))


def _end_of(markup: str, name: str, at: int) -> int:
    """Returns where an element ends whose content begins at a place."""
    end_tag, depth = f"</{name}>", 1
    while depth:
        end = markup.find(end_tag, at)
        if end < 0:
            return len(markup)
        depth += markup.count(f"<{name}>", at, end) + markup.count(f"<{name} ", at, end) - 1
        at = end + len(end_tag)
    return at
