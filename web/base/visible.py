"""Makes text from outside safe to show: nothing in it is obeyed or hidden by a terminal."""

import re
import unicodedata
from collections.abc import Iterable

# Control, format, surrogate, private and unassigned characters; separators of lines and paragraphs.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Invisible letters and marks: fillers, joiners of graphemes, supplementary variations.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\U000e0100-\U000e01ef]"
)
# What Arabic, the scripts of India and emoji need: a joiner or non-joiner between their characters.
_LETTER = "[\u0600-\u109f\u1780-\u17ff\U00011000-\U00011fff]"
_EMOJI = "[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]"
_JOINED = re.compile(f"(?<={_LETTER})[\u200c\u200d](?={_LETTER})|(?<={_EMOJI})\u200d(?={_EMOJI})")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, keep: str = "\t") -> str:
    r"""Escapes characters that a terminal would obey, reorder or not show.

    The escapes are those of JSON, so that JSON stays JSON, but for C0, which JSON never has raw.
    A backslash stays one: the result is to be read, not to be undone.

    Args:
        text: From anywhere.
        keep: Which control characters stay; line feeds among them, where there may be many lines.

    >>> visible("a\x1b[2J\nb\u202e \x9b Straße"), visible("\U000e0041")
    ('a\\x1b[2J\\nb\\u202e \\u009b Straße', '\\udb40\\udc41')
    """
    if text.isascii() and text.isprintable():
        return text
    joiners = {found.start() for found in _JOINED.finditer(text)}
    return "".join(
        char if char in keep or at in joiners or not _is_hidden(char) else _escape(char)
        for at, char in enumerate(text)
    )


def visible_lines(lines: Iterable[str]) -> str:
    r"""Returns lines as one text, each of them on one line whatever is in it.

    >>> visible_lines(["title: a\nforged: b", "c"])
    'title: a\\nforged: b\nc'
    """
    return "\n".join(visible(line) for line in lines)


def _is_hidden(char: str) -> bool:
    if char.isascii():
        return not char.isprintable()
    return unicodedata.category(char) in _HIDDEN or _BLANK.match(char) is not None


def _escape(char: str) -> str:
    if char < " ":
        return _NAMED.get(char) or f"\\x{ord(char):02x}"
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
