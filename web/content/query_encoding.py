"""Escapes the queries of links in the encoding of their page, as browsers do.

WHATWG URL, query state: the query of a link is percent-encoded after it is encoded in the encoding
of its document; path and fragment always in UTF-8. Servers that send pages in windows-1251 or
Shift_JIS expect their queries in the same encoding.
"""

import functools
import re
import unicodedata

from .whatwg_encodings import decode_as

# WHATWG Encoding 4.3, get an output encoding: for UTF-16 and encodings that browsers do not decode.
_ALWAYS_UTF8 = ("utf-", "hz-gb-2312", "iso-2022-kr")
_UP_TO_FRAGMENT = re.compile(r"([^?#]*)(\?[^#]*)")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
# WHATWG URL 1.3: the special-query percent-encode set, among ASCII.
_ESCAPED_BYTES = frozenset(b"\"#<>' \x7f") | frozenset(range(0x20))
# The first bytes of pairs that encoders make (WHATWG Encoding 10 to 14): not those of Hong Kong's part
# of Big5, and of Shift_JIS neither those that repeat characters nor those for private use.
_KANA_LEAD = 0x8E
_LEADS = {
    "big5": range(0xA1, 0xFF),
    "euc-jp": (_KANA_LEAD, *range(0xA1, 0xFF)),
    "shift_jis": (*range(0x81, 0xA0), *range(0xE0, 0xED), *range(0xFA, 0xFD)),
    **dict.fromkeys(("euc-kr", "gb18030", "gbk"), range(0x81, 0xFF)),
}
_LAST_IN_BIG5 = "═╞╡╪十卅"
_JAPANESE = ("euc-jp", "iso-2022-jp", "shift_jis")
_JAPANESE_SAME = {"\u2212": "\uff0d"}  # minus signs
_YEN_AND_OVERLINE = {"¥": b"\\", "‾": b"~"}
_HALF_WIDTH_KANA = ("\uff61", "\uff9f")
_SOUND_MARKS = {"\uff9e": "\u309b", "\uff9f": "\u309c"}
_TO_JIS, _TO_ASCII = b"\x1b$B", b"\x1b(B"


def encode_query(href: str, charset: str) -> str:
    """Returns a link whose query has no character beyond ASCII; other links as they are.

    A character that the encoding lacks becomes its escaped reference, ``%26%23N%3B``.

    Args:
        href: The link, as in the page.
        charset: Name of the page's encoding in the WHATWG Encoding Standard.

    >>> encode_query("/é?q=тест&e=é#é", "windows-1251")
    '/é?q=%F2%E5%F1%F2&e=%26%23233%3B#é'
    >>> encode_query("?é", "utf-8"), encode_query("?é", "utf-16le")
    ('?é', '?é')
    """
    if href.isascii() or charset.startswith(_ALWAYS_UTF8):
        return href
    parts = _UP_TO_FRAGMENT.match(href)
    if parts is None:
        return href
    query = _BEYOND_ASCII.sub(lambda run: _escape_text(run[0], charset), parts[2])
    return f"{parts[1]}{query}{href[parts.end() :]}"


def _escape_text(text: str, charset: str) -> str:
    pieces: list[str] = []
    is_jis = False
    for letter in text:
        code = _bytes_of(letter, charset)
        if charset == "iso-2022-jp" and is_jis != (code is not None):
            is_jis = not is_jis
            pieces.append(_percent(_TO_JIS if is_jis else _TO_ASCII))
        pieces.append(f"%26%23{ord(letter)}%3B" if code is None else _percent(code))
    return "".join(pieces) + (_percent(_TO_ASCII) if is_jis else "")


def _percent(data: bytes) -> str:
    return "".join(
        f"%{byte:02X}" if byte > 0x7E or byte in _ESCAPED_BYTES else chr(byte) for byte in data
    )


def _bytes_of(letter: str, charset: str) -> bytes | None:
    """Returns a character in an encoding, or None if it is not in it; in ISO-2022-JP its JIS code."""
    if charset in _JAPANESE:
        letter = _JAPANESE_SAME.get(letter, letter)
    if charset == "iso-2022-jp":
        if _HALF_WIDTH_KANA[0] <= letter <= _HALF_WIDTH_KANA[1]:
            letter = _SOUND_MARKS.get(letter) or unicodedata.normalize("NFKC", letter)
        code = _bytes_by_letter("euc-jp").get(letter)
        return bytes(byte & 0x7F for byte in code) if code and code[0] > _KANA_LEAD else None
    letter_code = _bytes_by_letter(charset).get(letter)
    if letter_code is None and charset == "gb18030":
        return letter.encode(charset, "ignore") or None  # four bytes
    return letter_code


@functools.cache
def _bytes_by_letter(charset: str) -> dict[str, bytes]:
    """Returns the bytes of each character of an encoding; of gb18030 only those of two bytes.

    If bytes of several places mean one character, the first place counts (WHATWG Encoding 5).
    """
    codes: dict[str, bytes] = {}
    for lead in _LEADS.get(charset, ()):
        pairs = [bytes((lead, trail)) for trail in range(0x40, 0xFF)]
        for letter, pair in zip(
            decode_as(charset, b"\n".join(pairs)).split("\n"), pairs, strict=True
        ):
            if letter not in codes or (charset == "big5" and letter in _LAST_IN_BIG5):
                codes[letter] = pair
    if charset != "gb18030":
        singles = [bytes((byte,)) for byte in range(0x80, 0x100)]
        codes |= {decode_as(charset, byte): byte for byte in singles}
    if charset in ("euc-jp", "shift_jis"):
        codes |= _YEN_AND_OVERLINE
    codes.pop("\ufffd", None)
    return codes
