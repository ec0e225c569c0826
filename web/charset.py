"""Which encoding a body is in, and its text."""

import codecs
import functools
import re

# WHATWG Encoding 4.2, by the codec of Python that decodes it and the labels that mean it.
_ENCODINGS = {
    "utf-8": ("utf-8", "utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8"),
    "windows-1252": (
        "cp1252",
        (
            "ansi_x3.4-1968 ascii cp1252 cp819 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
            "iso_8859-1 iso_8859-1:1987 l1 latin1 latin-1 us-ascii x-cp1252 x-user-defined"
        ),
    ),
    "windows-1250": ("cp1250", "cp1250 x-cp1250"),
    "windows-1251": ("cp1251", "cp1251 x-cp1251"),
    "windows-1253": ("cp1253", "cp1253 x-cp1253"),
    "windows-1254": (
        "cp1254",
        "cp1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 iso_8859-9 iso-ir-148 l5 latin5",
    ),
    "windows-1255": ("cp1255", "cp1255 x-cp1255"),
    "windows-1256": ("cp1256", "cp1256 x-cp1256"),
    "windows-1257": ("cp1257", "cp1257 x-cp1257"),
    "windows-1258": ("cp1258", "cp1258 x-cp1258"),
    "windows-874": ("cp874", "tis-620 iso-8859-11 iso8859-11 iso885911 dos-874"),
    "iso-8859-2": ("iso8859-2", "iso8859-2 iso88592 iso_8859-2 iso-ir-101 l2 latin2"),
    "iso-8859-3": ("iso8859-3", "iso8859-3 iso88593 iso_8859-3 iso-ir-109 l3 latin3"),
    "iso-8859-4": ("iso8859-4", "iso8859-4 iso88594 iso_8859-4 iso-ir-110 l4 latin4"),
    "iso-8859-5": ("iso8859-5", "iso8859-5 iso88595 iso_8859-5 iso-ir-144 cyrillic"),
    "iso-8859-6": ("iso8859-6", "iso8859-6 iso88596 iso_8859-6 iso-ir-127 arabic"),
    "iso-8859-7": ("iso8859-7", "iso8859-7 iso88597 iso_8859-7 iso-ir-126 greek greek8"),
    "iso-8859-8": ("iso8859-8", "iso8859-8 iso88598 iso_8859-8 iso-ir-138 iso-8859-8-i hebrew"),
    "iso-8859-10": ("iso8859-10", "iso8859-10 iso885910 iso-ir-157 l6 latin6"),
    "iso-8859-13": ("iso8859-13", "iso8859-13 iso885913"),
    "iso-8859-14": ("iso8859-14", "iso8859-14 iso885914"),
    "iso-8859-15": ("iso8859-15", "iso8859-15 iso885915 iso_8859-15 l9 latin9"),
    "iso-8859-16": ("iso8859-16", "iso8859-16 iso885916"),
    "ibm866": ("cp866", "866 cp866 csibm866"),
    "koi8-r": ("koi8-r", "koi koi8 koi8_r cskoi8r"),
    "koi8-u": ("koi8-u", "koi8-ru"),
    "macintosh": ("mac-roman", "mac x-mac-roman csmacintosh"),
    "x-mac-cyrillic": ("mac-cyrillic", "x-mac-ukrainian"),
    # gb18030 holds all of gbk and gb2312, which pages name and do not keep to.
    "gb18030": ("gb18030", "gbk gb2312 gb_2312 gb_2312-80 x-gbk chinese iso-ir-58 csgb2312"),
    "big5": ("big5hkscs", "big5-hkscs cn-big5 x-x-big5 csbig5"),
    "euc-jp": ("euc-jp", "x-euc-jp eucjp"),
    "iso-2022-jp": ("iso2022-jp", "csiso2022jp"),
    "shift_jis": ("cp932", "shift-jis sjis x-sjis ms_kanji windows-31j ms932 csshiftjis"),
    "euc-kr": ("cp949", "korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 windows-949 cseuckr"),
    "utf-16le": ("utf-16-le", "utf-16 unicode ucs-2 iso-10646-ucs-2 csunicode unicodefeff"),
    "utf-16be": ("utf-16-be", "unicodefffe"),
    # Not of the standard, but met.
    "utf-32le": ("utf-32-le", "utf-32 ucs-4"),
    "utf-32be": ("utf-32-be", ""),
}
_LABELS = {
    label: name
    for name, (_, labels) in _ENCODINGS.items()
    for label in (name, *labels.split())
    # Nutch: "charset=unicode" means nothing.
    if label != "unicode"
}
_BY_CODEC = {codec.replace("-", "_"): name for name, (codec, _) in _ENCODINGS.items()}
# The longer first: UTF-32's begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32le"),
    (codecs.BOM_UTF32_BE, "utf-32be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)
_DEFAULT = "windows-1252"
_PRESCAN_BYTES = 8192
_SAMPLE_BYTES = 20_000
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.IGNORECASE)
_META = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(?:meta\b[^<>]*?\bcharset|\?xml\b[^<>]*?\bencoding)"
    rb"\s*=\s*[\"']?\s*([^\s\"'/>;]+)",
    re.IGNORECASE | re.DOTALL,
)


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """Returns the text of a body and the name of its encoding.

    The first of these that names a known encoding wins: a byte-order mark, the
    charset of ``content_type``, a ``meta`` or XML declaration in the first 8192
    bytes. Else UTF-8 if the bytes are valid, else what charset-normalizer makes
    of 20,000 of them, else windows-1252. Labels mean what the WHATWG Encoding
    Standard says (``iso-8859-1`` is windows-1252). Bytes that are wrong in the
    encoding become U+FFFD, and a byte-order mark is no part of the text.

    >>> decode(b"caf\\xe9", "text/html; charset=ISO-8859-1")
    ('café', 'windows-1252')
    """
    name, start = _detect(body, content_type)
    return body[start:].decode(_ENCODINGS[name][0], "replace"), name


def to_utf8(body: bytes, content_type: str | None) -> tuple[bytes, str]:
    """Returns a body as valid UTF-8, and the name of the encoding it was in.

    As ``decode(...)`` and encoded again, but a body that is UTF-8 is itself the
    answer: most are, and neither pass is then paid for.
    """
    name, start = _detect(body, content_type)
    if name == "utf-8" and not start and _first_wrong_byte(body) is None:
        return body, name
    text = body[start:].decode(_ENCODINGS[name][0], "replace")
    return text.encode("utf-8", "replace"), name


@functools.lru_cache(maxsize=1024)
def canonical(label: str) -> str | None:
    """Returns the standard's name for a label, or None where it knows none.

    >>> canonical(" Latin1 "), canonical("base64")
    ('windows-1252', None)
    """
    return _LABELS.get(label.strip().lower())


def _detect(body: bytes, content_type: str | None) -> tuple[str, int]:
    """Returns the encoding's name and where the text starts."""
    if body[:1] in b"\xef\xff\xfe\x00":
        for mark, name in _MARKS:
            if body.startswith(mark):
                return name, len(mark)
    declared = _from_header(content_type) or _from_markup(body[:_PRESCAN_BYTES])
    return declared or _guess(body), 0


@functools.lru_cache(maxsize=1024)
def _from_header(content_type: str | None) -> str | None:
    found = _HEADER.search(content_type[:1000]) if content_type else None
    return canonical(found[1]) if found else None


def _from_markup(start: bytes) -> str | None:
    for found in _META.finditer(start):
        name = canonical(found[1].decode("ascii", "replace")) if found[1] else None
        if name:
            # WHATWG HTML 13.2.3.2: the declaration was read as ASCII, so this cannot be.
            return "utf-8" if name.startswith(("utf-16", "utf-32")) else name
    return None


def _guess(body: bytes) -> str:
    wrong = _first_wrong_byte(body)
    # Latin text seldom looks like UTF-8: one such letter before the first
    # mistake, or a page cut within a letter, and it is UTF-8 with a mistake.
    if wrong is None or wrong >= len(body) - 3 or not body[:wrong].isascii():
        return "utf-8"
    start = max(0, wrong - 1000)
    return _ask_normalizer(body[start : start + _SAMPLE_BYTES])


def _ask_normalizer(sample: bytes) -> str:
    import charset_normalizer  # takes 50 ms, and few pages need it

    best = charset_normalizer.from_bytes(
        sample, cp_isolation=list(_BY_CODEC), preemptive_behaviour=False, enable_fallback=False
    ).best()
    if best is None or _DEFAULT in map(_BY_CODEC.get, best.could_be_from_charset):
        return _DEFAULT
    return _BY_CODEC.get(best.encoding, _DEFAULT)


def _first_wrong_byte(body: bytes) -> int | None:
    if body.isascii():
        return None
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None
