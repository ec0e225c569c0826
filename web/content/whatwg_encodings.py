"""The encodings of the WHATWG Encoding Standard, by Python's codecs; encodes queries as browsers do.

WHATWG URL, query state: the query of a link is percent-encoded after it is encoded in the encoding
of its document; path and fragment always in UTF-8. Servers that send pages in windows-1251 or
Shift_JIS expect their queries in the same encoding.
"""

import codecs
import functools
import re
import unicodedata

from webencodings import PYTHON_NAMES
from webencodings.labels import LABELS

# Python's codecs, where they are others than those of the ``webencodings`` package, and encodings
# that it lacks. tests/web/content/test_web_encodings.py shows where this differs from the
# standard, and why.
_CODECS = {
    # Pages name gbk and do not keep to it: its decoder is gb18030's (WHATWG Encoding 10.1.1).
    "gbk": "gb18030",
    "iso-2022-jp": "iso2022-jp-ext",
    # Browsers replace these texts by one U+FFFD, since scripts could hide in them.
    "hz-gb-2312": "hz",
    "iso-2022-kr": "iso2022-kr",
    # Not of the standard, but met.
    "utf-32le": "utf-32-le",
    "utf-32be": "utf-32-be",
}
# Labels that the package lacks, or has for something that is not decoded.
_MORE_LABELS = {
    "eucjp": "euc-jp",
    **dict.fromkeys(("latin-1", "x-user-defined"), "windows-1252"),
    "latin9": "iso-8859-15",
    **dict.fromkeys(("iso8859-16", "iso885916"), "iso-8859-16"),
    "csiso2022kr": "iso-2022-kr",
    "cp874": "windows-874",
    **dict.fromkeys(("utf-32", "ucs-4"), "utf-32le"),
    **{name: name for name in _CODECS},
}
# "unicode" is of the standard; Nutch: "charset=unicode" means nothing.
_LABELS = {
    label: name
    for label, name in (LABELS | _MORE_LABELS).items()
    if name not in ("replacement", "x-user-defined") and label != "unicode"
}
CODECS = {name: _CODECS.get(name) or PYTHON_NAMES.get(name) or name for name in _LABELS.values()}
_AMENDED = frozenset({"euc-jp", "gb18030", "gbk", "iso-2022-jp"})
_WIDE = frozenset(
    {
        "utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be", "gbk", "gb18030", "hz-gb-2312",
        "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "iso-2022-kr",
    }
)  # fmt: skip
# IANA's registry has capitals, except in these names.
_SMALL = ("windows-", "x-", "macintosh")
_SPELLINGS = {"big5": "Big5", "shift_jis": "Shift_JIS"}


def _signs(ours: str, theirs: str) -> dict[int, str]:
    return dict(zip(map(ord, ours), theirs, strict=True))


# Where the standard's tables have another character than Python's.
_OTHER_CHARS: dict[str, dict[int, str]] = {
    "big5": _signs("•､‾∼♁☉¥¢£￭", "‧﹑¯～⊕⊙￥￠￡▓"),  # noqa: RUF001
    **dict.fromkeys(("euc-jp", "iso-2022-jp"), _signs("〜‖−¢£¬", "～∥－￠￡￢")),  # noqa: RUF001
    # Single bytes that Python takes and the standard does not.
    "shift_jis": dict.fromkeys(range(0xF8F0, 0xF8F4), "\ufffd"),
}
_OTHER_BYTES = {"koi8-u": {0xAE: "ў", 0xBE: "Ў"}, "windows-1255": {0xCA: "\u05ba"}}


def registered_name(name: str) -> str:
    """Returns the name of an encoding as IANA's registry and Common Crawl's index spell it.

    >>> [registered_name(name) for name in ("utf-8", "shift_jis", "windows-1252")]
    ['UTF-8', 'Shift_JIS', 'windows-1252']
    """
    return name if name.startswith(_SMALL) else _SPELLINGS.get(name, name.upper())


@functools.lru_cache(maxsize=1024)
def encoding_name(label: str) -> str | None:
    """Returns the standard's name for a label, or None for an unknown label.

    >>> encoding_name(" Latin1 "), encoding_name("base64")
    ('windows-1252', None)
    """
    return _LABELS.get(label.strip().lower())


def decode_as(name: str, body: bytes) -> str:
    """Returns the text of a body in an encoding of that name; wrong bytes become U+FFFD.

    >>> decode_as("euc-jp", bytes.fromhex("ada1"))
    '①'
    """
    if name not in _WIDE:
        return codecs.charmap_decode(body, "strict", _table(name))[0]
    # Python's own handler is much faster, where many bytes are wrong.
    text = body.decode(CODECS[name], _AS_BROWSERS if name in _AMENDED else "replace")
    replacements = _OTHER_CHARS.get(name, {})
    # To look for each is much faster than to translate.
    if any(chr(letter) in text for letter in replacements):
        return text.translate(replacements)
    return text


@functools.cache
def _table(name: str) -> str:
    """Returns the characters of the 256 bytes; U+FFFD for a byte without a character."""
    letters = [bytes([byte]).decode(CODECS[name], "replace") for byte in range(256)]
    for byte in range(0x80, 0xA0):  # the control characters where Python has nothing
        letters[byte] = letters[byte].replace("\ufffd", chr(byte))
    for byte, letter in _OTHER_BYTES.get(name, {}).items():
        letters[byte] = letter
    return "".join(letters)


def _as_browsers(error: UnicodeError) -> tuple[str, int]:
    """Reads what browsers read and Python's codecs do not."""
    assert isinstance(error, UnicodeDecodeError)
    pair = error.object[error.start : error.start + 2]
    if error.encoding in ("euc_jp", "iso2022_jp_ext") and len(pair) == 2:
        # The circled digits and such that NEC and IBM added, which Shift_JIS has.
        lead, trail = pair[0] & 0x7F, pair[1] & 0x7F
        if (pair[0] ^ pair[1]) < 0x80 and 0x21 <= lead < 0x7F and 0x21 <= trail < 0x7F:
            text = _jis_to_shift_jis(lead, trail).decode("cp932", "replace")
            if len(text) == 1:
                return text, error.start + 2
    if error.encoding == "gb18030" and pair[:1] == b"\x80":
        return "€", error.start + 1
    return "\ufffd", error.end


def _jis_to_shift_jis(lead: int, trail: int) -> bytes:
    first = (lead - 0x21 >> 1) + 0x81
    second = trail + 0x7E if lead % 2 == 0 else trail + 0x1F + (trail >= 0x60)
    return bytes((first + 0x40 if first > 0x9F else first, second))


_AS_BROWSERS = "nutbeam.as_browsers"
codecs.register_error(_AS_BROWSERS, _as_browsers)


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
