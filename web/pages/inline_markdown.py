"""Makes Markdown of what is within a block of text: escapes signs, and writes marks."""

import re
import string
import unicodedata
from collections.abc import Container, Sequence

from ..urls.userinfo import parse_target
from . import spans
from .delimiter_runs import Sign, unpaired_marks
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
_MOST_PASSES = 8
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
    """A mark that is open, and what is written in it.

    Attributes:
        kind: What it is.
        number: Its number among the marks.
        end: The character after it.
        of: Its target.
        pieces: What is written in it.
        length: Number of characters of the pieces.
        signs: The signs in them of emphasis and deletion.
    """

    __slots__ = ("end", "kind", "length", "number", "of", "pieces", "signs")

    def __init__(self, kind: str, number: int, end: int, of: str) -> None:
        self.kind, self.number, self.end, self.of = kind, number, end, of
        self.pieces: list[str] = []
        self.length = 0
        self.signs: list[Sign] = []

    def append(self, piece: str, signs: Sequence[Sign] = ()) -> None:
        """Writes a piece; its signs count from its start."""
        if signs:
            self.signs += (sign.moved(self.length) for sign in signs)
        self.pieces.append(piece)
        self.length += len(piece)

    def escape_last(self) -> None:
        """Escapes an exclamation mark before a link, which would be an image with it."""
        if self.pieces and self.pieces[-1].endswith("!"):
            self.pieces[-1] = f"{self.pieces[-1][:-1]}\\!"
            self.length += 1


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
        if not marks:
            return escape_text(self._text[start:end])
        ordered, left_out = _ordered(marks), set[int]()
        for _ in range(_MOST_PASSES):
            markdown, unpaired = self._render(start, end, ordered, left_out, line_break)
            if not unpaired:
                return markdown
            left_out.update(unpaired)
        left_out.update(number for number, mark in enumerate(ordered) if mark[0] in _WRAPS)
        return self._render(start, end, ordered, left_out, line_break)[0]

    def _render(
        self, start: int, end: int, marks: Sequence[Span], left_out: Container[int], line_break: str
    ) -> tuple[str, list[int]]:
        """Returns Markdown, and the numbers of the marks whose signs would not count in it."""
        unpaired: list[int] = []
        stack = [_Open("", -1, end, "")]
        at = start
        for number, (kind, first, after, _, of) in enumerate(marks):
            if number in left_out:
                continue
            while len(stack) > 1 and first >= stack[-1].end:
                at = self._add_text(stack, at, stack[-1].end)
                is_sign = stack[-1].end == first and _WRAPS.get(kind, "")[:1] != "*"
                following = _PUNCTUATION if is_sign else self._char(stack[-1].end, end)
                unpaired += self._close(stack, following)
            at = self._add_text(stack, at, first)
            if kind == spans.BREAK:
                stack[-1].append(line_break)
                at = after
            elif not any(mark.kind == kind for mark in stack):
                stack.append(_Open(kind, number, min(after, stack[-1].end), of))
        while len(stack) > 1:
            at = self._add_text(stack, at, stack[-1].end)
            unpaired += self._close(stack, self._char(stack[-1].end, end))
        self._add_text(stack, at, end)
        markdown = "".join(stack[0].pieces)
        if stack[0].signs:
            unpaired += unpaired_marks(markdown, stack[0].signs)
        return markdown, unpaired

    def _char(self, at: int, end: int) -> str:
        """Returns the character at a place, or a space after the end."""
        return self._text[at] if at < end else " "

    def _add_text(self, stack: list[_Open], start: int, end: int) -> int:
        if end > start:
            piece = self._text[start:end]
            stack[-1].append(piece if stack[-1].kind == spans.CODE else escape_text(piece))
        return max(start, end)

    def _close(self, stack: list[_Open], following: str) -> list[int]:
        """Writes what is in a mark; returns the numbers of marks in it whose signs would not count."""
        mark = stack.pop()
        content, signs, unpaired = "".join(mark.pieces), mark.signs, list[int]()
        target = self._target(mark.of) if mark.kind in (spans.IMAGE_TEXT, spans.LINK) else ""
        if mark.kind == spans.CODE:
            content = _code(content)
        elif sign := _WRAPS.get(mark.kind, ""):
            start, end = _wrapped_part(content, sign, _last_char(stack), following)
            if start < end:
                begin = Sign(start, len(sign), mark.number, True)
                finish = Sign(end + len(sign), len(sign), mark.number, False)
                signs = [begin, *(inner.moved(len(sign)) for inner in signs), finish]
                content = f"{content[:start]}{sign}{content[start:end]}{sign}{content[end:]}"
        elif target and mark.kind == spans.LINK:
            # Signs in a link pair with one another only.
            if signs:
                unpaired = unpaired_marks(f"[{content}]", [inner.moved(1) for inner in signs])
            content, signs = f"[{content}]({target})", []
        elif target:
            content = f"![{content}]({target})"
        if content[:1] == "[":
            stack[-1].escape_last()
        elif content[:1] in ("*", "`") and content[:1] == _last_char(stack):
            # They would be one with the signs before them, which end another mark.
            stack[-1].append("<!-- -->")
        stack[-1].append(content, signs)
        return unpaired

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
    # Numbers of the marks that are open; and of those that have ended, the outermost last.
    around, ended = list[int](), list[int]()
    end_of_code = 0
    for mark in sorted(marks, key=lambda mark: (mark[1], -mark[2], mark[0] != spans.LINK)):
        kind, start, end, level, of = mark
        if start < end_of_code:
            continue
        if kind == spans.CODE:
            end_of_code = end
        while around and ordered[around[-1]][2] <= start:
            ended.append(around.pop())
        last = ordered[ended[-1]] if ended else mark
        if kind in _MERGED and (last[0], last[2]) == (kind, start):
            ordered[ended[-1]] = (kind, last[1], end, level, of)
            around.append(ended.pop())
        else:
            ended.clear()
            around.append(len(ordered))
            ordered.append(mark)
    return ordered


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


def _wrapped_part(content: str, sign: str, before: str, after: str) -> tuple[int, int]:
    """Returns the start and the end of what gets signs in a text; both 0 if they would not count.

    CommonMark 6.2: at a word's letter, what the signs hold must not begin or end with punctuation there.
    Such punctuation gets before or after the signs.

    >>> _wrapped_part("Note:", "**", " ", "t"), _wrapped_part("「a」", "*", "b", "c")
    ((0, 4), (1, 2))
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
    return (start, end) if is_clear and begins and ends else (0, 0)


def _parts_words(char: str) -> bool:
    """Returns whether a character is white space or punctuation for all versions of CommonMark."""
    return char.isspace() or char in string.punctuation or unicodedata.category(char)[0] == "P"
