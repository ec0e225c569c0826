"""Takes the text of an HTML page as a person would copy it, and its blocks: headings, lists, tables and so on.

It reads the mark-up that lexbor writes of its tree: each element there has an end tag, and each value is in
double quotes and escaped, so one expression finds all tags. That takes a fifth of the time of a walk over the nodes.
"""

import re
from typing import NamedTuple

from ..content.control_characters import without_controls
from ..pages.spans import Span
from .containers import Containers
from .inline_marks import take_marks
from .seen_markup import seen_markup
from .tag_actions import ACTIONS_WITH_LINE_NUMBERS, ACTIONS_WITH_NOSCRIPT, TAG_ACTIONS
from .tag_attributes import CODE_IN_PRE
from .tag_reader import TagReader
from .text_writer import TextWriter

# A name ends only with a space of lexbor: a space of Unicode is a letter of it.
_TAGS = re.compile(r"<(/?[a-z][^ >/]*+)([^>]*+)>")
# Tags that say nothing here; they are many, and leave the mark-up all at once.
_NEUTRAL = "font|small|sup|sub|label|time|abbr|u|svg|path|g|use|picture|source"
_NEUTRAL_TAGS = re.compile(rf"</?(?:span|{_NEUTRAL})(?=[ >])[^>]*+>")
_NEUTRAL_TAGS_BUT_SPANS = re.compile(rf"</?(?:{_NEUTRAL})(?=[ >])[^>]*+>")
_CODE_IN_PRE = re.compile(r"(<pre(?=[ >])[^>]*+>[^<]*+<)code((?: [^>]*+)?>)")
# Words in the mark-up without which no line has a number.
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
    markup = seen_markup(without_controls(markup))  # signs of marks are among the controls
    actions, neutral_tags = TAG_ACTIONS, _NEUTRAL_TAGS
    if with_noscript:
        actions = actions | ACTIONS_WITH_NOSCRIPT
    if "<pre" in markup:
        if any(word in markup for word in _NUMBERING):
            actions, neutral_tags = actions | ACTIONS_WITH_LINE_NUMBERS, _NEUTRAL_TAGS_BUT_SPANS
        markup = _CODE_IN_PRE.sub(rf"\1{CODE_IN_PRE}\2<code>", markup)
    markup, marks = take_marks(neutral_tags.sub("", markup))
    reader = TagReader(_TAGS.split(markup), actions, TextWriter(marks))
    reader.read()
    text, found = reader.writer.finish()
    return BlockText(text, found, reader.containers())
