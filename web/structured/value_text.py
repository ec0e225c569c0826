"""The text of an element as the value of a property."""

import html
import re

from selectolax.lexbor import LexborNode

# What has no end reaches to the end of the markup, so that nothing is searched twice.
_HIDDEN = re.compile(
    r"<(script|style)\b(?:(?!</\1).)*+(?:</\1>)?+|<!--(?:(?!-->).)*+(?:-->)?+", re.DOTALL
)
_TAG = re.compile(r"</?([a-z][^\s>/]*+)(?:[^\">]|\"[^\"]*+(?:\"|\Z))*+(?:>|\Z)")
# Elements within a line; other ones keep the texts around them apart.
_IN_LINE = frozenset(
    [
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
        "kbd",
        "label",
        "mark",
        "meta",
        "nobr",
        "link",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
        "wbr",
    ]
)


def value_markup(node: LexborNode) -> str:
    """Returns the markup in an element; of one with nothing but text the same, more cheaply."""
    child = node.child
    if child is None:
        return ""
    if child.is_text_node and child.next is None:
        return html.escape(child.text_content or "", quote=False)
    return node.inner_html or ""


def text_of_markup(markup: str) -> str:
    """Returns the text of well-formed markup in one line, without scripts.

    A price in several elements, such as ``<b>9</b>.<sup>99</sup>``, is one word.

    >>> text_of_markup('<b>9</b>.<sup>99</sup> &amp; <p title="a>b">new</p><p>line</p><script>x</script>')
    '9.99 & new line'
    """
    text = _TAG.sub(_space_for, _HIDDEN.sub(" ", markup)) if "<" in markup else markup
    return " ".join(html.unescape(text).split())


def _space_for(tag: re.Match[str]) -> str:
    return "" if tag[1] in _IN_LINE else " "
