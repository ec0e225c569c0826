"""Makes Markdown of what is within a block of text: escapes signs, and writes marks."""

import re
import string
import unicodedata
from collections.abc import Sequence

from ..urls.userinfo import parse_target
from . import spans
from .spans import Span

# Signs that mean something anywhere in a line. An underscore does not between letters.
_SIGNS = re.compile(r"[\\`*\[\]~]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
# What means something at the start of a line.
_LINE_START = re.compile(
    r"(?=#{1,6}(?:\s|$)|[-+](?:\s|$)|>|=+\s*$|[-|:][-:|\s]*$)|(?<=\d)(?=[.)](?:\s|$))"
)
_NUMBER = re.compile(r"\d{1,9}(?=[.)](?:\s|$))")
_TICKS = re.compile(r"`+")
_WRAPS = {spans.STRONG: "**", spans.EMPHASIS: "*", spans.DELETION: "~~"}
# Between two of these nothing in Markdown says where one ends.
_MERGED = frozenset({spans.CODE, *_WRAPS})
_PUNCTUATION = "("
# Punctuation that means nothing in Markdown, at the start and at the end of words.
_OPENING = "\"'(" + "\u201c\u2018\u00ab\u300c\u300e\uff08\u3010\u300a"
_CLOSING = (
    " \"':,.;!?"
    + "\u2026\u201d\u2019\u00bb\u300d\u300f\uff09\u3011\u300b\uff1a\uff0c\u3002\uff1b\uff01\uff1f\u3001"
)
_UNSAFE_IN_TARGET = re.compile(r"[\s<>()\\]")


def escape_text(text: str) -> str:
    """Returns a text in which no sign means anything within a line.

    >>> escape_text("a*b <c> snake_case _d_ R&D &amp;")
    'a\\\\*b \\\\<c> snake_case \\\\_d\\\\_ R&D \\\\&amp;'
    """
    return _SIGNS.sub(r"\\\g<0>", text)


def escape_line_start(line: str) -> str:
    """Returns a line whose start means nothing.

    >>> [escape_line_start(line) for line in ("# a", "1. b", "- c", "2020", "===")]
    ['\\\\# a', '1\\\\. b', '\\\\- c', '2020', '\\\\===']
    """
    if number := _NUMBER.match(line):
        return f"{number[0]}\\{line[number.end() :]}"
    return f"\\{line}" if _LINE_START.match(line) else line


class _Open:
    """A mark that is open, and what is written in it."""

    __slots__ = ("end", "kind", "of", "pieces")

    def __init__(self, kind: str, end: int, of: str) -> None:
        self.kind, self.end, self.of = kind, end, of
        self.pieces: list[str] = []


class InlineRenderer:
    """Writes parts of a text with their marks.

    Args:
        text: The text.
        base: URL that targets are relative to.
        with_links: Whether targets and images are written.
    """

    def __init__(self, text: str, base: str, with_links: bool) -> None:
        self._text, self._base, self._with_links = text, base, with_links

    def render(self, start: int, end: int, marks: Sequence[Span], line_break: str) -> str:
        """Returns the Markdown of a part.

        Args:
            start: Its first character.
            end: The character after it.
            marks: The marks in it, in their order.
            line_break: What a break becomes.
        """
        stack = [_Open("", end, "")]
        at = start
        for kind, first, after, _, of in _ordered(marks):
            while len(stack) > 1 and first >= stack[-1].end:
                at = self._add_text(stack, at, stack[-1].end)
                is_sign = stack[-1].end == first and _WRAPS.get(kind, "")[:1] != "*"
                self._close(stack, _PUNCTUATION if is_sign else self._char(stack[-1].end, end))
            at = self._add_text(stack, at, first)
            if kind == spans.BREAK:
                _append(stack, line_break)
                at = after
            elif not any(mark.kind == kind for mark in stack):
                stack.append(_Open(kind, min(after, stack[-1].end), of))
        while len(stack) > 1:
            at = self._add_text(stack, at, stack[-1].end)
            self._close(stack, self._char(stack[-1].end, end))
        self._add_text(stack, at, end)
        return "".join(stack[0].pieces)

    def _char(self, at: int, end: int) -> str:
        """Returns the character at a place, or a space after the end."""
        return self._text[at] if at < end else " "

    def _add_text(self, stack: list[_Open], start: int, end: int) -> int:
        if end > start:
            piece = self._text[start:end]
            is_code = any(mark.kind == spans.CODE for mark in stack)
            stack[-1].pieces.append(piece if is_code else escape_text(piece))
        return max(start, end)

    def _close(self, stack: list[_Open], following: str) -> None:
        mark = stack.pop()
        content = "".join(mark.pieces)
        if mark.kind == spans.CODE:
            _append(stack, _code(content))
        elif mark.kind == spans.IMAGE_TEXT:
            target = self._target(mark.of)
            _append(stack, f"![{content}]({target})" if target else content)
        elif mark.kind == spans.LINK:
            target = self._target(mark.of)
            _append(stack, f"[{content}]({target})" if target else content, is_link=bool(target))
        else:
            last = _last_char(stack)
            wrapped = _wrapped(content, _WRAPS[mark.kind], last, following)
            # The signs of a mark in one that got none itself.
            _append(stack, f"<!-- -->{wrapped}" if wrapped[:1] == last == "*" else wrapped)

    def _target(self, target: str) -> str:
        if not self._with_links or not target:
            return ""
        absolute = parse_target(target, self._base) if self._base else target
        return _UNSAFE_IN_TARGET.sub(lambda char: f"%{ord(char[0]):02X}", absolute or "")


def _ordered(marks: Sequence[Span]) -> list[Span]:
    """Returns marks in their order, those around others first, a link around code as long as it.

    There are none in code, and neighbours of the same kind are one.
    """
    ordered: list[Span] = []
    end_of_code = 0
    for mark in sorted(marks, key=lambda mark: (mark[1], -mark[2], mark[0] != spans.LINK)):
        kind, start, end, level, of = mark
        last = ordered[-1] if ordered else mark
        if start < end_of_code:
            continue
        if kind == spans.CODE:
            end_of_code = end
        if kind in _MERGED and last[0] == kind and last[2] == start:
            ordered[-1] = (kind, last[1], end, level, of)
        else:
            ordered.append(mark)
    return ordered


def _append(stack: list[_Open], piece: str, is_link: bool = False) -> None:
    pieces = stack[-1].pieces
    if is_link and pieces and pieces[-1].endswith("!"):
        pieces[-1] = f"{pieces[-1][:-1]}\\!"
    pieces.append(piece)


def _last_char(stack: list[_Open]) -> str:
    for mark in reversed(stack):
        if mark.kind and not mark.pieces:
            return _PUNCTUATION  # the sign of the mark around it
        if mark.pieces and mark.pieces[-1]:
            return mark.pieces[-1][-1]
    return " "


def _code(text: str) -> str:
    """Returns a text as code.

    >>> _code("a`b"), _code("`"), _code("\\n")
    ('``a`b``', '`` ` ``', '')
    """
    text = text.replace("\n", " ")
    if not text.strip():
        return ""
    ticks = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    pad = (
        " "
        if text[0] == "`" or text[-1] == "`" or (len(ticks) > 1 and text[0] == text[-1] == " ")
        else ""
    )
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _wrapped(content: str, sign: str, before: str, after: str) -> str:
    """Returns a text within signs, or without them where they would not count.

    CommonMark 6.2: at a word's letter, what the signs hold must not begin or end with punctuation there.
    Such punctuation gets before or after the signs.

    >>> _wrapped("Note:", "**", " ", "t"), _wrapped("「a」", "*", "b", "c")
    ('**Note**:', '「*a*」')
    """
    start, end = 0, len(content)
    parts_before, parts_after = _parts_words(before), _parts_words(after)
    if not parts_before:
        start -= len(content.lstrip(_OPENING)) - end
    if not parts_after:
        end = start + len(content[start:].rstrip(_CLOSING))
    inner = content[start:end]
    is_clear = inner.strip() == inner != "" and (before != sign[0] or start > 0)
    begins = start > 0 or inner[:1].isalnum() or parts_before
    ends = end < len(content) or inner[-1:].isalnum() or parts_after
    if not (is_clear and begins and ends):
        return content
    return f"{content[:start]}{sign}{inner}{sign}{content[end:]}"


def _parts_words(char: str) -> bool:
    """Returns whether a character is white space or punctuation for all versions of CommonMark."""
    return char.isspace() or char in string.punctuation or unicodedata.category(char)[0] == "P"
