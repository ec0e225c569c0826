"""Takes the marks of inline text out of mark-up, such as links and emphasis, and places them in the text.

Most tags of a page are these. So they do not come one by one: expressions over the whole page leave a sign where
each mark begins and ends, and the signs are counted when a block of text is written.
"""

import re
from typing import Any, TypeAlias

from ..pages import spans
from ..urls.userinfo import mask_users
from .tag_attributes import MAX_VALUE_CHARS, attribute_source, unescape

# What stands in a run of text until it is written: the start and the end of a mark, and a break of a line.
MARK_START, MARK_END, LINE_BREAK = "\x01", "\x02", "\x03"
_SIGNS = re.compile("([\x01\x02\x03])")
NO_START = -1

_KINDS = {
    **dict.fromkeys(("code", "kbd", "samp", "tt", "var"), spans.CODE),
    **dict.fromkeys(("b", "strong"), spans.STRONG),
    **dict.fromkeys(("i", "em", "cite", "dfn"), spans.EMPHASIS),
    **dict.fromkeys(("del", "s", "strike"), spans.DELETION),
}
_STARTS = re.compile(rf"<(a|img|{'|'.join(_KINDS)})(?=[ >])([^>]*+)>")
_ENDS = re.compile(rf"</(?:a|{'|'.join(_KINDS)})>")
# What a link to the place where it stands may show.
_SELF_LINKS = frozenset(["¶", "#", "§", "🔗", "\u200b"])

# Kind and target; one without a kind only waits for its end.
Mark: TypeAlias = tuple[str, str]
# A span that is not complete yet.
OpenSpan: TypeAlias = list[Any]


def take_marks(markup: str) -> tuple[str, list[Mark]]:
    """Returns mark-up with signs in place of the tags of marks, and the marks in their order.

    An image is the text that stands in for it. Links that only lead to where they stand are left out.

    >>> take_marks('<p>a <b>c</b> <img alt="d"></p>')
    ('<p>a \\x01c\\x02 \\x01d\\x02</p>', [('strong', ''), ('image', '')])
    """
    tokens = _STARTS.split(markup)
    if len(tokens) == 1:
        return markup, []
    pieces, marks = [tokens[0]], list[Mark]()
    for name, attributes, text in zip(tokens[1::3], tokens[2::3], tokens[3::3], strict=True):
        if name == "a":
            target = _target(attributes, ' href="')
            if "#" in target:
                shown, _, after = text.partition("</a>")
                if shown.strip() in _SELF_LINKS:
                    pieces.append(after)
                    continue
            is_link = target and not target[:11].lower().startswith("javascript:")
            marks.append((spans.LINK, target) if is_link else ("", ""))
        elif name == "img":
            if instead := attribute_source(attributes, "alt").strip():
                source = _target(attributes, ' src="')
                is_data = source[:5].lower() == "data:"
                marks.append((spans.IMAGE_TEXT, "" if is_data else source))
                pieces += (MARK_START, instead, MARK_END)
            pieces.append(text)
            continue
        else:
            marks.append((_KINDS[name], ""))
        pieces.append(MARK_START)
        pieces.append(text)
    return _ENDS.sub(MARK_END, "".join(pieces)), marks


def _target(attributes: str, start: str) -> str:
    """Returns the URL in an attribute, as it stands there, but without a user and a password.

    Args:
        attributes: Those of the tag.
        start: What is before the value.
    """
    target = attributes.partition(start)[2].partition('"')[0][:MAX_VALUE_CHARS]
    if "&" in target:
        target = unescape(target)
    if "@" in target:  # as browsers: a backslash is a slash
        target = mask_users(target.replace("\\", "/"))
    return target.strip()


def tidy_marks(text: str) -> str:
    r"""Returns a text in which most spaces at the ends of marks are moved out of them.

    >>> tidy_marks("a \x01 b \x02c")
    'a \x01b\x02 c'
    """
    if f"{MARK_START} " in text or f" {MARK_END}" in text:
        text = text.replace(f"{MARK_START} ", f" {MARK_START}").replace(
            f" {MARK_END}", f"{MARK_END} "
        )
        text = " ".join(text.split())
    return text


def are_tidy(text: str) -> bool:
    """Returns whether a text has no breaks, no marks of nothing, and no marks with spaces at their ends."""
    return not (
        MARK_START + MARK_END in text
        or LINE_BREAK in text
        or f"{MARK_START} " in text
        or f" {MARK_END}" in text
        or text[-1] == MARK_START
    )


def place_tidy_marks(text: str, marks: list[Mark], start: int) -> tuple[list[OpenSpan], list[Mark]]:
    r"""Returns the spans of the marks of a tidy text, and the marks that go on after it.

    Args:
        text: The text with signs; see ``are_tidy``.
        marks: As many as it has signs for their starts.
        start: Place of the text.

    >>> place_tidy_marks("a \x01b\x02", [("strong", "")], 5)
    ([['strong', 7, 8, 0, '']], [])
    """
    first, *pieces = text.split(MARK_START)
    at, entries, open_marks = start + len(first), list[OpenSpan](), list[OpenSpan]()
    for (kind, of), piece in zip(marks, pieces, strict=True):
        inner, sign, after = piece.partition(MARK_END)
        if sign and not open_marks and MARK_END not in after:  # as most are
            end = at + len(inner)
            if kind:
                entries.append([kind, at, end, 0, of])
            at = end + len(after)
            continue
        entry = _open_mark((kind, of), at, open_marks)
        if entry[0]:
            entries.append(entry)
        at += len(inner)
        for part in after.split(MARK_END) if sign else ():
            open_marks.pop()[2] = at
            at += len(part)
    for entry in open_marks:
        entry[2] = at
    return entries, [(entry[0], entry[4]) for entry in open_marks]


def place_marks(text: str, marks: list[Mark]) -> tuple[str, list[OpenSpan], list[Mark]]:
    r"""Returns a text without signs, the spans of its marks and breaks, and the marks that go on after it.

    Spaces at the ends of a mark are outside of it. Breaks at the ends of the text, marks of nothing, and
    marks within one of their kind are left out.

    Args:
        text: The text; a run of white space in it is one space.
        marks: As many as the text has signs for their starts.

    >>> place_marks("a\x01 b \x02\x01c", [("strong", ""), ("code", "")])
    ('a b c', [['strong', 2, 3, 0, ''], ['code', 4, 5, 0, '']], [('code', '')])
    """
    entries, open_marks, waiting = list[OpenSpan](), list[OpenSpan](), list[OpenSpan]()
    pieces, length, space, coming = list[str](), 0, False, iter(marks)
    for number, piece in enumerate(_SIGNS.split(text)):
        if number % 2 == 0:
            core = piece.strip(" ")
            space = space or piece[:1] == " "
            if not core:
                continue
            if space and length and pieces[-1] != "\n":
                pieces.append(" ")
                length += 1
            for entry in waiting:
                entry[1] = length
            waiting.clear()
            pieces.append(core)
            length += len(core)
            space = piece[-1] == " "
        elif piece == MARK_START:
            entry = _open_mark(next(coming), NO_START, open_marks)
            entries.append(entry)
            waiting.append(entry)
        elif piece == MARK_END:
            entry = open_marks.pop()
            entry[2] = length
            if waiting and waiting[-1] is entry:
                waiting.pop()
        elif length:
            space = False
            pieces.append("\n")
            entries.append([spans.BREAK, length, length + 1, 0, ""])
            length += 1
    while pieces and pieces[-1] in "\n ":
        length -= len(pieces.pop())
    return "".join(pieces), *_finish_marks(entries, open_marks, length)


def _open_mark(mark: Mark, at: int, open_marks: list[OpenSpan]) -> OpenSpan:
    kind, of = mark
    entry: OpenSpan = [kind, at, 0, 0, of]
    for around in open_marks:
        if around[0] == kind:
            entry[0] = ""
    open_marks.append(entry)
    return entry


def _finish_marks(
    entries: list[OpenSpan], open_marks: list[OpenSpan], length: int
) -> tuple[list[OpenSpan], list[Mark]]:
    """Returns the spans that are left of some, cut to the length of the text, and the marks that go on."""
    going_on = [(entry[0], entry[4]) for entry in open_marks]
    for entry in open_marks:
        entry[2] = length
    entries_left = list[OpenSpan]()
    for entry in entries:
        entry[2] = min(entry[2], length)
        if entry[0] and NO_START != entry[1] < entry[2]:
            entries_left.append(entry)
    return entries_left, going_on
