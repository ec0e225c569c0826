"""The encodings of the WHATWG Encoding Standard, by Python's codecs."""

import codecs
import functools

# WHATWG Encoding 4.2: name, Python's codec, the labels besides the name.
# tests/test_web_encodings.py says where this differs from the standard, and why.
ENCODINGS = {
    "utf-8": ("utf-8", "utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8"),
    "windows-1252": (
        "cp1252",
        (
            "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 "
            "iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 latin-1 us-ascii x-cp1252 x-user-defined"
        ),
    ),
    "windows-1250": ("cp1250", "cp1250 x-cp1250"),
    "windows-1251": ("cp1251", "cp1251 x-cp1251"),
    "windows-1253": ("cp1253", "cp1253 x-cp1253"),
    "windows-1254": (
        "cp1254",
        (
            "cp1254 x-cp1254 csisolatin5 iso-8859-9 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 "
            "iso-ir-148 l5 latin5"
        ),
    ),
    "windows-1255": ("cp1255", "cp1255 x-cp1255"),
    "windows-1256": ("cp1256", "cp1256 x-cp1256"),
    "windows-1257": ("cp1257", "cp1257 x-cp1257"),
    "windows-1258": ("cp1258", "cp1258 x-cp1258"),
    "windows-874": ("cp874", "tis-620 iso-8859-11 iso8859-11 iso885911 dos-874"),
    "iso-8859-2": (
        "iso8859-2",
        "csisolatin2 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 iso-ir-101 l2 latin2",
    ),
    "iso-8859-3": (
        "iso8859-3",
        "csisolatin3 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 iso-ir-109 l3 latin3",
    ),
    "iso-8859-4": (
        "iso8859-4",
        "csisolatin4 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 iso-ir-110 l4 latin4",
    ),
    "iso-8859-5": (
        "iso8859-5",
        "csisolatincyrillic cyrillic iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988 iso-ir-144",
    ),
    "iso-8859-6": (
        "iso8859-6",
        (
            "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e "
            "iso-8859-6-i iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987 iso-ir-127"
        ),
    ),
    "iso-8859-7": (
        "iso8859-7",
        (
            "csisolatingreek ecma-118 elot_928 greek greek8 iso8859-7 iso88597 iso_8859-7 "
            "iso_8859-7:1987 iso-ir-126 sun_eu_greek"
        ),
    ),
    "iso-8859-8": (
        "iso8859-8",
        (
            "csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso8859-8 iso88598 iso_8859-8 "
            "iso_8859-8:1988 iso-ir-138 visual"
        ),
    ),
    # The text is in the order that it is read in, not in the order of the page.
    "iso-8859-8-i": ("iso8859-8", "csiso88598i logical"),
    "iso-8859-10": ("iso8859-10", "csisolatin6 iso8859-10 iso885910 iso-ir-157 l6 latin6"),
    "iso-8859-13": ("iso8859-13", "iso8859-13 iso885913"),
    "iso-8859-14": ("iso8859-14", "iso8859-14 iso885914"),
    "iso-8859-15": (
        "iso8859-15",
        "csisolatin9 iso8859-15 iso885915 iso_8859-15 l9 latin9",
    ),
    "iso-8859-16": ("iso8859-16", "iso8859-16 iso885916"),
    "ibm866": ("cp866", "866 cp866 csibm866"),
    "koi8-r": ("koi8-r", "koi koi8 koi8_r cskoi8r"),
    "koi8-u": ("koi8-u", "koi8-ru"),
    "macintosh": ("mac-roman", "mac x-mac-roman csmacintosh"),
    "x-mac-cyrillic": ("mac-cyrillic", "x-mac-ukrainian"),
    # Pages name gbk and do not keep to it: its decoder is gb18030's (WHATWG Encoding 10.1.1).
    "gbk": (
        "gb18030",
        ("chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk"),
    ),
    "gb18030": ("gb18030", ""),
    "big5": ("big5hkscs", "big5-hkscs cn-big5 x-x-big5 csbig5"),
    "euc-jp": ("euc-jp", "cseucpkdfmtjapanese x-euc-jp eucjp"),
    "iso-2022-jp": ("iso2022-jp-ext", "csiso2022jp"),
    "shift_jis": ("cp932", "shift-jis sjis x-sjis ms_kanji windows-31j ms932 csshiftjis"),
    "euc-kr": (
        "cp949",
        (
            "cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 "
            "ksc_5601 windows-949"
        ),
    ),
    # "unicode" is of the standard; Nutch: "charset=unicode" means nothing.
    "utf-16le": ("utf-16-le", "utf-16 ucs-2 iso-10646-ucs-2 csunicode unicodefeff"),
    "utf-16be": ("utf-16-be", "unicodefffe"),
    # Browsers replace these texts by one U+FFFD, since scripts could hide in them.
    "hz-gb-2312": ("hz", ""),
    "iso-2022-kr": ("iso2022-kr", "csiso2022kr"),
    # Not of the standard, but met.
    "utf-32le": ("utf-32-le", "utf-32 ucs-4"),
    "utf-32be": ("utf-32-be", ""),
}
_LABELS = {
    label: name for name, (_, labels) in ENCODINGS.items() for label in (name, *labels.split())
}
BY_CODEC = {codec.replace("-", "_"): name for name, (codec, _) in ENCODINGS.items()}
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
_OTHERWISE: dict[str, dict[int, str]] = {
    "big5": _signs("•､‾∼♁☉¥¢£￭", "‧﹑¯～⊕⊙￥￠￡▓"),  # noqa: RUF001
    "euc-jp": _signs("〜‖−¢£¬", "～∥－￠￡￢"),  # noqa: RUF001 - these are the point
    "iso-2022-jp": _signs("〜‖−¢£¬", "～∥－￠￡￢"),  # noqa: RUF001
    # Single bytes that Python takes and the standard does not.
    "shift_jis": dict.fromkeys(range(0xF8F0, 0xF8F4), "\ufffd"),
}
_BYTES_OTHERWISE = {"koi8-u": {0xAE: "ў", 0xBE: "Ў"}, "windows-1255": {0xCA: "\u05ba"}}


@functools.lru_cache(maxsize=1024)
def canonical(label: str) -> str | None:
    """Returns the standard's name for a label, or None where it knows none.

    >>> canonical(" Latin1 "), canonical("base64")
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
    text = body.decode(ENCODINGS[name][0], _AS_BROWSERS if name in _AMENDED else "replace")
    otherwise = _OTHERWISE.get(name, {})
    # To look for each is much faster than to translate.
    if any(chr(letter) in text for letter in otherwise):
        return text.translate(otherwise)
    return text


@functools.cache
def _table(name: str) -> str:
    """Returns the characters of the 256 bytes; what has none has U+FFFD."""
    letters = [bytes([byte]).decode(ENCODINGS[name][0], "replace") for byte in range(256)]
    for byte in range(0x80, 0xA0):  # the control characters where Python has nothing
        letters[byte] = letters[byte].replace("\ufffd", chr(byte))
    for byte, letter in _BYTES_OTHERWISE.get(name, {}).items():
        letters[byte] = letter
    return "".join(letters)


def _as_browsers(error: UnicodeError) -> tuple[str, int]:
    """Reads what browsers read and Python's codecs do not."""
    assert isinstance(error, UnicodeDecodeError)
    wrong = error.object[error.start : error.start + 2]
    if error.encoding in ("euc_jp", "iso2022_jp_ext") and len(wrong) == 2:
        # The circled digits and such that NEC and IBM added, which Shift_JIS has.
        lead, trail = wrong[0] & 0x7F, wrong[1] & 0x7F
        if (wrong[0] ^ wrong[1]) < 0x80 and 0x21 <= lead < 0x7F and 0x21 <= trail < 0x7F:
            text = _jis_to_shift_jis(lead, trail).decode("cp932", "replace")
            if len(text) == 1:
                return text, error.start + 2
    if error.encoding == "gb18030" and wrong[:1] == b"\x80":
        return "€", error.start + 1
    return "\ufffd", error.end


def _jis_to_shift_jis(lead: int, trail: int) -> bytes:
    first = (lead - 0x21 >> 1) + 0x81
    second = trail + 0x7E if lead % 2 == 0 else trail + 0x1F + (trail >= 0x60)
    return bytes((first + 0x40 if first > 0x9F else first, second))


_AS_BROWSERS = "nutbeam.as_browsers"
codecs.register_error(_AS_BROWSERS, _as_browsers)
