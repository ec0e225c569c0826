"""Takes the text of an HTML page as a person would copy it, and its blocks: headings, lists, tables and so on.

It reads the mark-up that lexbor writes of its tree: each element there has an end tag, and each value is in
double quotes, so one expression finds all tags. That takes a fifth of the time of a walk over the nodes.
"""

import re
from typing import NamedTuple

from ..pages.spans import Span
from .containers import Containers
from .tag_actions import ACTIONS_WITH_LINE_NUMBERS, ACTIONS_WITH_NOSCRIPT, TAG_ACTIONS
from .tag_reader import TagReader
from .text_writer import LINE_BREAK, MARK_END, MARK_START

_CONTROLS = dict.fromkeys((*range(1, 9), 11, *range(14, 32), 127))

# Comments and the like; elements whose content is no text, which is not escaped; tags.
_TAGS = re.compile(
    r"<(?:!--.*?--|\?[^>]*+"
    + "".join(
        rf"|{tag}(?=[\s>]).*?</{tag}"
        for tag in ("script", "style", "iframe", "noembed", "noframes")
    )
    + r"|(/?[a-z][^\s>/]*+)([^>]*+))>",
    re.DOTALL,
)
_RAW_TEXT = re.compile(r"<(?:!--.*?--|(xmp|plaintext)(?=[\s>])([^>]*+)>(.*?)</\1)>", re.DOTALL)
# Words in the mark-up without which nothing is hidden, or no line has a number.
_HIDING = ("hidden", "display", "Display", "DISPLAY")
_NUMBERING = ("lineno", "line-num", "gutter")


class BlockText(NamedTuple):
    """A text, its spans, and the elements around its blocks."""

    text: str
    spans: list[Span]
    containers: Containers


def block_text(markup: str, *, with_noscript: bool = False) -> BlockText:
    """Returns the text of an element, its spans, and its containers.

    Blocks are lines; paragraphs, headings, preformatted text, and lists, quotes and tables as a whole have
    an empty line before and after; the cells of a row are separated by tabs. A run of white space is one
    space, except in preformatted text. What is hidden is left out. An image is the text that stands in for it.

    Args:
        markup: The element as lexbor writes it.
        with_noscript: Whether what stands in for scripts is text.

    >>> text, found, _ = block_text("<body><h1>A</h1><p>b <b>c</b></p><ul><li>d</li><li>e</li></ul></body>")
    >>> text
    'A\\n\\nb c\\n\\nd\\ne'
    >>> [(kind, text[start:end]) for kind, start, end, *_ in found][:4]
    [('heading', 'A'), ('paragraph', 'b c'), ('strong', 'c'), ('list', 'd\\ne')]
    """
    if MARK_START in markup or MARK_END in markup or LINE_BREAK in markup or "\0" in markup:
        markup = markup.replace("\0", "").translate(_CONTROLS)
    if "<xmp" in markup or "<plaintext" in markup:
        markup = _RAW_TEXT.sub(_as_preformatted, markup)
    actions = TAG_ACTIONS
    if with_noscript:
        actions = actions | ACTIONS_WITH_NOSCRIPT
    if any(word in markup for word in _NUMBERING):
        actions = actions | ACTIONS_WITH_LINE_NUMBERS
    may_hide = any(word in markup for word in _HIDING)
    reader = TagReader(_TAGS.split(markup), actions, may_hide=may_hide)
    reader.read()
    return BlockText(*reader.writer.finish(), reader.containers)


def _as_preformatted(element: re.Match[str]) -> str:
    if not element[1]:
        return element[0]
    text = element[3].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<pre{element[2]}>{text}</pre>"
