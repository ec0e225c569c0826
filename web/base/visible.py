"""Makes foreign text safe to print: terminals execute and hide no part of it."""

import re
import unicodedata
from collections.abc import Iterable

# Control, format, surrogate, private and unassigned characters; separators of lines and paragraphs.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Invisible letters and marks: fillers, joiners of graphemes, supplementary variations.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\U000e0100-\U000e01ef]"
)
# Joiners and non-joiners between characters of Arabic, Indian scripts and emoji, which need them.
_LETTER = "[\u0600-\u109f\u1780-\u17ff\U00011000-\U00011fff]"
_EMOJI = "[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]"
_JOINERS = re.compile(f"(?<={_LETTER})[\u200c\u200d](?={_LETTER})|(?<={_EMOJI})\u200d(?={_EMOJI})")
# As Python keeps bytes that are no UTF-8: PEP 383.
_BYTE = re.compile("[\udc80-\udcff]")
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, keep: str = "\t") -> str:
    r"""Escapes characters that a terminal would execute, reorder or hide.

    The escapes are those of JSON, so JSON stays JSON, except for C0, which JSON never has raw.
    Backslashes stay: the result is for reading, and cannot be decoded.

    Args:
        text: Any text.
        keep: Control characters to keep, such as line feeds if the text may have many lines.

    >>> visible("a\x1b[2J\nb\u202e \x9b Straße"), visible("\U000e0041")
    ('a\\x1b[2J\\nb\\u202e \\u009b Straße', '\\udb40\\udc41')
    """
    if text.isascii() and text.isprintable():
        return text
    joiners = {joiner.start() for joiner in _JOINERS.finditer(text)}
    return "".join(
        char if char in keep or at in joiners or not _is_hidden(char) else _escape(char)
        for at, char in enumerate(text)
    )


def check_utf8(what: str, text: str) -> None:
    r"""Checks that a text from a command line or the environment has no bytes beside UTF-8.

    Python keeps such bytes as halves of surrogate pairs, which no file of a table can hold.

    Args:
        what: What the text is, for the message.
        text: The text.

    Raises:
        ValueError: It has such bytes; the message shows them.

    >>> check_utf8("an argument", "caf\udce9")
    Traceback (most recent call last):
    ValueError: an argument must be UTF-8, got 'caf\xe9'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        text = visible(_BYTE.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", text[:200]))
        raise ValueError(f"{what} must be UTF-8, got '{text}'") from None


def visible_lines(lines: Iterable[str]) -> str:
    r"""Joins lines to one text; line ends within a line are escaped.

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
        return _NAMED_ESCAPES.get(char) or f"\\x{ord(char):02x}"
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
