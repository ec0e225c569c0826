"""Finds out whether mark-up has come to its end: whether the end tag of its root is there, and where."""

import re
from typing import NamedTuple

# What may follow the end tag of a document, besides blanks, comments, scripts and end tags.
_MOST_BYTES_AFTER = 200
# Elements whose content is no mark-up (HTML 13.2.5.2 to 13.2.5.4).
_RAW = frozenset(
    [b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes"]
)
# A quoted value that does not end takes the rest.
_TAG = re.compile(
    rb"<(?P<end>/?)(?P<name>[A-Za-z_][^\s/>]*+)"
    rb"(?P<rest>(?:=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|(?![\"']))|[^>=])*+)>"
)
_ENDS_OF_RAW = {
    name: re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE) for name in sorted(_RAW)
}
_TAG_START = re.compile(rb"</?[A-Za-z_]")
_SHORT_COMMENT = re.compile(rb"<!---?>")
_COMMENT_END = re.compile(rb"--!?>")
_MARKS = (b"!", b"?", b"/")
_SECTIONS = ((b"<![CDATA[", b"]]>"), (b"<?", b"?>"))


class MarkupEnd(NamedTuple):
    """How mark-up ends.

    Attributes:
        in_text: Whether the last byte is outside of tags, comments, scripts and the like.
        has_root_end: Whether the end tag of the root is there, with little after it.
    """

    in_text: bool
    has_root_end: bool


_UNFINISHED = MarkupEnd(False, False)


def find_markup_end(text: bytes, root: bytes, is_html: bool) -> MarkupEnd:
    """Returns how mark-up ends, in time proportional to its length.

    Args:
        text: The document, in a superset of ASCII.
        root: Name of the root, in lower case.
        is_html: Whether it is read as HTML; else as XML, with mistakes.

    >>> find_markup_end(b"<html><p>a</html><!-- b -->", b"html", True)
    MarkupEnd(in_text=True, has_root_end=True)
    >>> find_markup_end(b"<html><p title='</html>'>a", b"html", True)
    MarkupEnd(in_text=True, has_root_end=False)
    """
    at = depth = after = 0
    is_over = False
    while (begin := text.find(b"<", at)) >= 0:
        after += _text_bytes(text, at, begin) if is_over else 0
        tag = _TAG.match(text, begin)
        if tag is None:
            at = _end_of_other(text, begin, is_html)
            if at < 0:
                return _UNFINISHED
            continue
        name, at = tag["name"].lower(), tag.end()
        if name == root:
            depth = _depth(depth, tag, is_html)
            is_over, after = depth == 0, 0
        elif is_html and name in _RAW and not tag["end"]:
            end = _ENDS_OF_RAW[name].search(text, at)
            if end is None:
                return _UNFINISHED
            at = end.start()
        elif not tag["end"]:
            after += len(tag[0])
    after += _text_bytes(text, at, len(text))
    return MarkupEnd(True, is_over and after <= _MOST_BYTES_AFTER)


def _depth(depth: int, tag: re.Match[bytes], is_html: bool) -> int:
    """Returns how many elements with the name of the root are open after a tag."""
    if tag["end"]:
        return 0 if is_html else max(0, depth - 1)
    if is_html:
        return 1
    return depth if tag["rest"].endswith(b"/") else depth + 1


def _text_bytes(text: bytes, start: int, end: int) -> int:
    """Returns the length of a text without the blanks around it."""
    return len(text[start:end].strip(b" \t\r\n\0\x1a"))


def _end_of_other(text: bytes, begin: int, is_html: bool) -> int:
    """Returns where a comment, a declaration or a ``<`` that is text ends; negative: it does not."""
    if text.startswith(b"<!--", begin):
        if is_html and (short := _SHORT_COMMENT.match(text, begin)):
            return short.end()
        end = _COMMENT_END.search(text, begin + 4)
        return end.end() if end else -1
    for mark, closing in _SECTIONS:
        if not is_html and text.startswith(mark, begin):
            end_at = text.find(closing, begin)
            return end_at + len(closing) if end_at >= 0 else -1
    if _TAG_START.match(text, begin):
        return -1
    return text.find(b">", begin) + 1 or -1 if text[begin + 1 : begin + 2] in _MARKS else begin + 1
