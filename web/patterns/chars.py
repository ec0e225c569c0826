r"""Sets of characters in patterns of Java and dk.brics, as ranges of code points; Java's named sets."""

import dataclasses
import functools
import re
from collections.abc import Iterable

import regex

LAST = 0x10FFFF
# The last code point with two cases.
_LAST_CASED = 0x1E943
_SPECIAL = frozenset("\\.^$*+?{}[]|()-&~")


@dataclasses.dataclass(frozen=True, slots=True)
class Chars:
    r"""A set of characters.

    Attributes:
        ranges: The first and last code point of each range, ascending; no two ranges touch.

    >>> (~span(ord("a"), ord("c")) & span(ord("b"), ord("z"))).pattern
    '[d-z]'
    >>> (~span(ord(":"), ord(":"))).pattern
    '[^:]'
    """

    ranges: tuple[tuple[int, int], ...]

    def __or__(self, other: "Chars") -> "Chars":
        return union((*self.ranges, *other.ranges))

    def __and__(self, other: "Chars") -> "Chars":
        return ~(~self | ~other)

    def __invert__(self) -> "Chars":
        edges = [-1, *(edge for ends in self.ranges for edge in ends), LAST + 1]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return Chars(tuple((low + 1, high - 1) for low, high in gaps if low + 1 < high))

    def __contains__(self, code: int) -> bool:
        return any(low <= code <= high for low, high in self.ranges)

    @property
    def pattern(self) -> str:
        """The set as a pattern, for the ``regex`` package and for polars."""
        return _pattern(self.ranges)

    @property
    def letter(self) -> str:
        """The lower-case ASCII letter if the set is just its two cases; else empty."""
        code = self.ranges[-1][0] if self.ranges else 0
        return chr(code) if self == in_any_case(span(code, code)) and len(self.ranges) == 2 else ""


def union(ranges: Iterable[tuple[int, int]]) -> Chars:
    """Returns the set of all characters in some ranges.

    >>> union([(5, 7), (1, 2), (3, 4)])
    Chars(ranges=((1, 7),))
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return Chars(tuple(merged))


@functools.cache
def span(low: int, high: int) -> Chars:
    """Returns the characters from one code point to another, inclusive."""
    return Chars(((low, high),))


NONE, EVERY = Chars(()), span(0, LAST)
_LOWER, _UPPER = span(ord("a"), ord("z")), span(ord("A"), ord("Z"))


@functools.lru_cache(maxsize=1 << 12)
def _pattern(ranges: tuple[tuple[int, int], ...]) -> str:
    chars = Chars(ranges)
    if chars == NONE or (LAST in chars and chars != EVERY):
        return f"[^{_inner((~chars).ranges)}]"
    if ranges[0][0] == ranges[-1][1]:
        return _escape_char(ranges[0][0])
    return f"[{_inner(ranges)}]"


def _inner(ranges: Iterable[tuple[int, int]]) -> str:
    words = []
    for low, high in ranges:
        ends = [low, high] if high > low else [low]
        words.append(("-" if high > low + 1 else "").join(map(_escape_char, ends)))
    return "".join(words)


def _escape_char(code: int) -> str:
    char = chr(code)
    if code < 0x80 and char.isprintable():
        return f"\\{char}" if char in _SPECIAL else char
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@functools.cache
def in_any_case(chars: Chars) -> Chars:
    """Returns a set with the other case of its ASCII letters: Java's flag ``i``."""
    upper = [(low - 32, high - 32) for low, high in (chars & _LOWER).ranges]
    lower = [(low + 32, high + 32) for low, high in (chars & _UPPER).ranges]
    return union((*chars.ranges, *upper, *lower))


@functools.cache
def one_in_any_case(code: int) -> Chars:
    """Returns a character in all cases that Unicode has: Java's flags ``i`` and ``u``."""
    folded = _fold_case(code)
    if folded == _upper(code):
        return span(code, code)
    others = [c for c, (_, other) in _case_forms().items() if other == folded]
    return union((c, c) for c in (folded, *others))


def span_in_any_case(low: int, high: int) -> Chars:
    """Returns the characters from one to another, in all cases that Unicode has."""
    cases = (c for c, forms in _case_forms().items() if any(low <= form <= high for form in forms))
    return union(((low, high), *((c, c) for c in cases)))


def _upper(code: int) -> int:
    char = chr(code)
    # If the capital is several characters, the title form may be a single one.
    capital = next((c for c in (char.upper(), char.title()) if len(c) == 1), char)
    return ord(capital)


def _fold_case(code: int) -> int:
    return ord(chr(_upper(code)).lower()[0])


@functools.cache
def _case_forms() -> dict[int, tuple[int, int]]:
    """Returns the capital of each letter that has cases, and the small letter of the capital."""
    forms = ((code, (_upper(code), _fold_case(code))) for code in range(_LAST_CASED + 1))
    return {code: cases for code, cases in forms if cases != (code, code)}


@functools.cache
def property_chars(text: str) -> Chars:
    r"""Returns the characters with a property, as the ``regex`` package writes it: ``\p{L}``.

    Raises:
        regex.error: The package does not know it.
    """
    every = "".join(map(chr, range(LAST + 1)))
    runs = regex.compile(f"{text}+", regex.VERSION1).finditer(every)
    return Chars(tuple((run.start(), run.end() - 1) for run in runs))


def _spans(ends: str) -> Chars:
    """Returns the characters from the first to the second of a text, the third to the fourth, …"""
    codes = list(map(ord, ends))
    return union(zip(codes[::2], codes[1::2], strict=True))


_PLAIN = {
    "Lower": _spans("az"),
    "Upper": _spans("AZ"),
    "ASCII": _spans("\0\x7f"),
    "Alpha": _spans("AZaz"),
    "Digit": _spans("09"),
    "Alnum": _spans("09AZaz"),
    "Punct": _spans("!/:@[`{~"),
    "Graph": _spans("!~"),
    "Print": _spans(" ~"),
    "Blank": _spans("\t\t  "),
    "Cntrl": _spans("\0\x1f\x7f\x7f"),
    "XDigit": _spans("09AFaf"),
    "Space": _spans("\t\r  "),
    "L1": _spans("\0\xff"),
    "all": EVERY,
}
LINE_ENDS = _spans("\n\n\r\r\x85\x85\u2028\u2029")
SHORT = {
    "d": _PLAIN["Digit"],
    "w": _spans("09AZ__az"),
    "s": _PLAIN["Space"],
    "h": _spans("\t\t  \xa0\xa0\u1680\u1680\u180e\u180e\u2000\u200a\u202f\u202f\u205f\u205f\u3000\u3000"),
    "v": _spans("\n\r\x85\x85\u2028\u2029"),
}  # fmt: skip
# With Java's flag U.
UNICODE_SHORT = {"d": "IsDigit", "w": "IsWord", "s": "IsWhite_Space"}

_NAME = re.compile(r"(Is|In|[^=]*=)?(.*)", re.DOTALL)
_KINDS = {
    "In": "Block=", "blk=": "Block=", "block=": "Block=", "sc=": "Script=", "script=": "Script=",
    "gc=": "", "general_category=": "", "": "", "Is": "Is",
}  # fmt: skip
_CATEGORY = re.compile("[CLMNPSZ][a-z]?|LC")
# Java's names for properties that the regex package calls otherwise.
_ALIASES = {
    "cntrl": "Cc", "control": "Cc", "digit": "Nd", "hexdigit": "IsXDigit", "hex_digit": "IsXDigit",
    "letter": "L", "punct": "P", "punctuation": "P", "titlecase": "Lt",
}  # fmt: skip
# With Java's flag i: capitals and small letters are the same.
_ANY_CASE = {"Lower": "Alpha", "Upper": "Alpha", "Ll": "LC", "Lu": "LC", "Lt": "LC"}
_CASES = frozenset({"lower", "upper", "lowercase", "uppercase", "titlecase"})


def family(name: str, any_case: bool, unicode: bool) -> Chars:
    r"""Returns the characters that ``\p{name}`` stands for.

    Args:
        name: The name in braces.
        any_case: With Java's flag ``i``.
        unicode: With Java's flag ``U``.

    Raises:
        ValueError: The name is not known.

    >>> family("XDigit", any_case=False, unicode=False).pattern
    '[0-9A-Fa-f]'
    """
    chars = _find(name, any_case, unicode)
    if chars is None:
        raise ValueError(f"\\p{{{name}}} is not known")
    return chars


def _find(name: str, any_case: bool, unicode: bool) -> Chars | None:
    match = _NAME.fullmatch(name)
    assert match is not None
    prefix, value = match.groups("")
    kind = _KINDS.get(prefix if "=" not in prefix else prefix.lower())
    if kind is None:
        return None
    if kind.endswith("="):
        return _property(f"{kind}{value}")
    if kind == "Is" or (unicode and value in _PLAIN):
        key = value.lower()
        cased = any_case and key in _CASES
        chars = _property("IsCased" if cased else _ALIASES.get(key, f"Is{key}"))
        if chars is not None:
            return chars
    if any_case:
        value = _ANY_CASE.get(value, value)
    if value in _PLAIN:
        return _PLAIN[value]
    return _property(value) if _CATEGORY.fullmatch(value) else None


def _property(name: str) -> Chars | None:
    try:
        return property_chars(rf"\p{{{name}}}") if re.fullmatch(r"[\w= -]+", name) else None
    except regex.error:
        return None
