"""The encodings of the WHATWG Encoding Standard, by Python's codecs."""

import codecs
import functools

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
