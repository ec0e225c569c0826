"""The characters of texts: tells text that people may have written from bytes in a wrong encoding."""

import functools
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise

from .whatwg_encodings import decode_as

# Of the letters beyond ASCII, this share is of the kinds that texts consist of.
_LEAST = 0.95
# Kinds of characters beyond ASCII in a text that shows its language.
_LEAST_KINDS = 8
# Pairs of letters of ASCII are such characters, too, if they are read as UTF-16.
_IDEOGRAPHS = ("CJK", "HANGUL")
_MARKS = frozenset("«»‘’“”„–—…№·\xa0")  # noqa: RUF001
# The rows of each character set that hold its punctuation, its letters and its common characters
# (GB 2312, JIS X 0208: level 1; KS X 1001: syllables): the encoding, and the first byte of each.
_ROWS = {
    "gb2312": (*range(0xA1, 0xA4), *range(0xB0, 0xD8)),
    "euc-jp": (*range(0xA1, 0xA6), *range(0xB0, 0xD0)),
    "euc-kr": (*range(0xA1, 0xA4), *range(0xB0, 0xC9)),
    "big5": tuple(range(0xA1, 0xC7)),
}
_CHARACTER_SETS = {"gbk": "gb2312", "gb18030": "gb2312", "shift_jis": "euc-jp"}
# What windows-1250 has in the place of other letters of windows-1252, and of it the letters of Hungarian:
# Ő, Ű, ő, ű in the places of Õ, Û, õ, û.
_DIFFERENT = frozenset(
    code
    for code in range(0x80, 0x100)
    if decode_as("windows-1250", bytes((code,))) != decode_as("windows-1252", bytes((code,)))
)
_HUNGARIAN = frozenset(b"\xd5\xdb\xf5\xfb")
_HUNGARIAN_SMALL = frozenset(b"\xf5\xfb")
_TO_SMALL = 0x20
# Ranges for a character class: Thai, Lao, Myanmar, Khmer, Kana, Bopomofo, Han.
SPACELESS_RANGES = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)


def reads_well(body: bytes, name: str) -> bool:
    """Returns whether a body can be text in an encoding of that name.

    In Chinese, Japanese and Korean nearly all characters are common ones. In alphabets they are
    letters of one script, in words that neither have letters of ASCII beside those of another
    script nor capitals after small letters.

    >>> body = "これは日本語です".encode("cp932")
    >>> reads_well(body, "shift_jis"), reads_well(body, "windows-1251")
    (True, False)
    """
    text = decode_as(name, body)
    chars = [char for char in text if char > "\x7f"]
    charset = _CHARACTER_SETS.get(name, name)
    if charset in _ROWS:
        common = _common_characters(charset)
        return sum(char in common for char in chars) >= _LEAST * len(chars)
    letters = set(filter(str.isalpha, chars))
    usual_count = sum(char in letters or char in _MARKS for char in chars)
    scripts = {_script(char) for char in letters}
    return (
        usual_count >= _LEAST * len(chars) and len(scripts) == 1 and _has_words(text, scripts.pop())
    )


def is_hungarian(body: bytes, domain: bytes | None) -> bool:
    """Returns whether a text in windows-1252 is rather one in windows-1250, in Hungarian.

    Of the letters in which both differ it has only ő and ű: both of them, or one, if the top-level
    domain is that of Hungary. No language has õ and û without other such letters (Portuguese has ã,
    French è, Estonian no û).

    >>> is_hungarian("nő a fű".encode("cp1250"), None), is_hungarian("nő".encode("cp1250"), b"hu")
    (True, True)
    >>> is_hungarian("não põe, dû".encode("cp1252"), None)
    False
    """
    codes = _DIFFERENT.intersection(body)
    small = {code | _TO_SMALL for code in codes}
    return codes <= _HUNGARIAN and (small == _HUNGARIAN_SMALL or (domain == b"hu" and bool(codes)))


def reads_as_one_language(text: str) -> bool:
    """Returns whether a text of over 16 characters beyond ASCII has only those of one language.

    Chinese, Japanese and Korean have common characters of many, of which a tenth of random ones are;
    others have letters of one script.

    >>> reads_as_one_language("これは日本語です。これは日本語です。"), reads_as_one_language("慢慣扡" * 9)
    (True, False)
    """
    chars = [char for char in text if char > "\x7f"]
    if len(set(chars)) < _LEAST_KINDS:
        return False
    least = _LEAST * len(chars)
    if any(sum(map(_common_characters(name).__contains__, chars)) >= least for name in _ROWS):
        return True
    scripts = Counter(_script(char) for char in chars)
    scripts -= Counter({name: scripts[name] for name in _IDEOGRAPHS})
    return bool(scripts) and max(scripts.values()) >= least


@functools.cache
def _common_characters(charset: str) -> frozenset[str]:
    trails = (*range(0x40, 0x7F), *range(0xA1, 0xFF))
    pairs = (bytes((lead, trail)) for lead in _ROWS[charset] for trail in trails)
    chars = chain.from_iterable(pair.decode(charset, "ignore") for pair in pairs)
    return frozenset(char for char in chars if char > "\x7f")


def _has_words(text: str, script: str) -> bool:
    return not any(
        (b > "\x7f" and a.islower() and b.isupper())
        or (script != "LATIN" and a.isascii() != b.isascii())
        for a, b in _neighbours(text)
    )


def _neighbours(text: str) -> Iterator[tuple[str, str]]:
    """Yields the letters that stand beside one another."""
    return ((a, b) for a, b in pairwise(text) if a.isalpha() and b.isalpha())


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
