"""Leaves out of mark-up what is not seen: comments, elements whose content is no text, and hidden elements.

The mark-up is what lexbor writes of its tree: each element has an end tag, unless it is void.
"""

import re
from collections.abc import Iterator

from .tag_attributes import is_hidden

_VOID = "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
VOID_TAGS = frozenset(_VOID.split())
# Elements whose content is no text, and is not escaped. Comments and the like are left out with them.
_RAW_TAGS = ("script", "style", "iframe", "noembed", "noframes")
_NO_TEXT = "!--[^-]*+(?:-(?!->)[^-]*+)*+--|\\?[^>]*+" + "".join(
    rf"|{tag}(?=[ >]).*?</{tag}" for tag in _RAW_TAGS
)
_UNSEEN = re.compile(f"<(?:{_NO_TEXT})>", re.DOTALL)
_ODD = re.compile(
    f"<(?:{_NO_TEXT}"
    # Elements whose content is text that is not escaped, the second up to the end of the page; tags with
    # a "<" in the name of an attribute.
    + r"|(?P<raw>xmp|(?P<last>plaintext))(?=[ >])(?P<of>[^>]*+)>(?P<text>(?(last).*|.*?))</(?P=raw)"
    + r"|(?P<before>/?[a-z][^<>]*+)<(?P<after>[^>]*+))>",
    re.DOTALL,
)
# Text that is not escaped; names of tags with a "<", and names of attributes that begin as comments do.
_ODD_START = re.compile(r'<(?:(?:xmp|plaintext)[ >]|[a-z][^ <>]*+<|(?:!--|\?)[^ =>]*+=")')
# A word of these is in all attributes that hide an element.
_HIDING = ("hidden", "HIDDEN", "isplay", "ISPLAY", "popover", ":collapse", ": collapse")
_TAG = re.compile(r"<([a-z][^ >/]*+)([^>]*+)>")


def seen_markup(markup: str) -> str:
    """Returns mark-up without what is not seen; text that is not escaped becomes preformatted.

    >>> seen_markup('<p>a<!-- b --><b hidden="">c<b>d</b></b> <xmp>&e</xmp></p>')
    '<p>a <pre>&amp;e</pre></p>'
    """
    is_odd = _ODD_START.search(markup) is not None
    if not is_odd:
        markup = _UNSEEN.sub("", markup)
    if is_odd or markup.count("<") != markup.count(">"):
        markup = _ODD.sub(_plain_form, markup)
    pieces, after = list[str](), 0
    for start, end in _hidden_elements(markup):
        pieces.append(markup[after:start])
        after = end
    return "".join(pieces) + markup[after:] if after else markup


def _plain_form(odd: re.Match[str]) -> str:
    if odd["raw"]:
        text = odd["text"].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"<pre{odd['of'].replace('<', '_')}>{text}</pre>"
    return f"<{odd['before']}_{odd['after'].replace('<', '_')}>" if odd["before"] else ""


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
