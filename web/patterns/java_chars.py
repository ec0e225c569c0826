r"""Sets of characters, as the classes of Java's regular expressions mean them.

ASCII is a mask of 128 bits, so all that URLs are made of is exact and small. What is beyond it is
written as the ``regex`` package writes a set.
"""

import dataclasses
import functools
import unicodedata

import regex

LAST = 0x10FFFF
_EVERY = (1 << 128) - 1
_LOWER = sum(1 << code for code in range(ord("a"), ord("z") + 1))
_UPPER = _LOWER >> 32
# Only below it do letters have two cases.
_LAST_CASED = 0x1E943
_SPECIAL = frozenset("\\.^$*+?{}[]|()")
_SPECIAL_IN_SET = frozenset("\\[]^-&~|")


@dataclasses.dataclass(frozen=True, slots=True)
class Chars:
    r"""A set of characters.

    Attributes:
        mask: Which ASCII characters are in it, as bits.
        beyond: Which others are: "" for none, "*" for all, else a set as the ``regex``
            package writes it, whose ASCII does not count.

    >>> (~span(ord("a"), ord("c")) & span(ord("b"), ord("z"))).python
    '[d-z]'
    >>> (property_set(r"\p{Lu}") & span(ord("a"), LAST)).python
    '[[[\\p{Lu}]&&[^\\x00-\\x7f]]]'
    """

    mask: int
    beyond: str = ""

    def __or__(self, other: "Chars") -> "Chars":
        beyond = self.beyond or other.beyond
        if "*" in (self.beyond, other.beyond):
            beyond = "*"
        elif other.beyond and other.beyond != beyond:
            beyond = f"[{beyond}{other.beyond}]"
        return Chars(self.mask | other.mask, beyond)

    def __and__(self, other: "Chars") -> "Chars":
        if not self.beyond or not other.beyond:
            beyond = ""
        elif "*" in (self.beyond, other.beyond):
            beyond = other.beyond if self.beyond == "*" else self.beyond
        else:
            beyond = f"[{self.beyond}&&{other.beyond}]"
        return Chars(self.mask & other.mask, beyond)

    def __invert__(self) -> "Chars":
        beyond = {"": "*", "*": ""}.get(self.beyond, f"[^{self.beyond}]")
        return Chars(_EVERY & ~self.mask, beyond)

    @property
    def python(self) -> str:
        """It for the ``regex`` package."""
        return _written_set(self.mask, self.beyond)

    @property
    def column(self) -> str:
        """It for polars' engine, or with all beyond ASCII where that may know other letters."""
        if not self.mask and not self.beyond:
            return r"[^\s\S]"
        return _written_set(self.mask, self.beyond if self.in_columns else "*")

    @property
    def in_columns(self) -> bool:
        """Whether ``column`` is just it."""
        return not self.letters

    @property
    def letters(self) -> bool:
        """Whether it depends on what Unicode says of characters."""
        return r"\p" in self.beyond.lower()

    @property
    def letter(self) -> str:
        """The letter of which it is both cases; else empty."""
        low = self.mask >> 32 & _UPPER
        both = low.bit_count() == 1 and self == Chars(low | low << 32)
        return chr(low.bit_length() - 1) if both else ""


@functools.cache
def _written_set(mask: int, beyond: str) -> str:
    if not beyond:
        if mask.bit_count() == 1:
            return written(mask.bit_length() - 1, _SPECIAL)
        return f"[{_ranges(mask)}]" if mask else "(?!)"
    others = _ranges(_EVERY & ~mask)
    if beyond == "*":
        return f"[^{others}]" if others else r"[\s\S]"
    if r"\p" not in beyond.lower():
        if "^" not in beyond:
            return f"[{_ranges(mask)}{_flat(beyond)}]"
        if beyond.rindex("^") == 1:
            return f"[^{others}{_flat(beyond[2:-1])}]"
    return rf"[{_ranges(mask)}[{beyond}&&[^\x00-\x7f]]]"


def _flat(text: str) -> str:
    return text if "[" in text[1:] else text[1:-1]


def written(code: int, special: frozenset[str] = _SPECIAL_IN_SET) -> str:
    """Returns a character as it stands in a pattern."""
    char = chr(code)
    if code < 0x80:
        return f"\\{char}" if char in special else char if char.isprintable() else f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _ranges(mask: int) -> str:
    words = []
    while mask:
        low = (mask & -mask).bit_length() - 1
        length = (~(mask >> low) & ((mask >> low) + 1)).bit_length() - 1
        codes = [low, low + length - 1] if length > 2 else range(low, low + length)
        words.append(("-" if length > 2 else "").join(map(written, codes)))
        mask &= ~(((1 << length) - 1) << low)
    return "".join(words)


def span(low: int, high: int) -> Chars:
    """Returns the characters between two, which are in it."""
    mask = sum(1 << code for code in range(low, min(high, 127) + 1))
    if high < 128:
        return Chars(mask)
    if low <= 128 and high == LAST:
        return Chars(mask, "*")
    return Chars(mask, f"[{written(max(low, 128))}-{written(high)}]")


@functools.cache
def one(code: int) -> Chars:
    """Returns the set of a character."""
    return span(code, code)


def several(*codes: int) -> Chars:
    """Returns the set of some characters."""
    mask = functools.reduce(int.__or__, (1 << code for code in codes if code < 128), 0)
    beyond = "".join(written(code) for code in codes if code > 127)
    return Chars(mask, beyond and f"[{beyond}]")


@functools.cache
def in_any_case(chars: Chars) -> Chars:
    """Returns a set with the other case of its ASCII letters: Java's flag ``i``."""
    return Chars(
        chars.mask | (chars.mask & _UPPER) << 32 | (chars.mask & _LOWER) >> 32, chars.beyond
    )


@functools.cache
def one_in_any_case(code: int) -> Chars:
    """Returns a character in all cases that Unicode has: Java's flags ``i`` and ``u``."""
    folded = _folded(code)
    if folded == _upper(code):
        return one(code)
    return several(folded, *(c for c, (_, other) in _cased().items() if other == folded))


def span_in_any_case(low: int, high: int) -> Chars:
    """Returns the characters between two, in all cases that Unicode has."""
    cases = (c for c, forms in _cased().items() if any(low <= form <= high for form in forms))
    return span(low, high) | several(*cases)


def _upper(code: int) -> int:
    char = chr(code)
    # Where capitals are several characters the title form may be the single one.
    found = next((c for c in (char.upper(), char.title()) if len(c) == 1), char)
    return ord(found)


def _folded(code: int) -> int:
    return ord(chr(_upper(code)).lower()[0])


@functools.cache
def _cased() -> dict[int, tuple[int, int]]:
    """Each letter that has cases: its capital, and that one's small letter."""
    forms = ((code, (_upper(code), _folded(code))) for code in range(_LAST_CASED + 1))
    return {code: found for code, found in forms if found != (code, code)}


@functools.cache
def property_set(text: str) -> Chars:
    r"""Returns what a set of the ``regex`` package holds, as ``\p{L}\d``.

    Raises:
        ValueError: It knows no such property.
    """
    try:
        compiled = regex.compile(f"[{text}]", regex.VERSION1)
    except regex.error as error:
        raise ValueError(f"no property {text}") from error
    mask = sum(1 << code for code in range(128) if compiled.match(chr(code)))
    return Chars(mask, f"[{text}]")


def code_named(name: str) -> int:
    """Returns the number of the character that Unicode calls so.

    Raises:
        ValueError: None is.
    """
    try:
        return ord(unicodedata.lookup(name))
    except (KeyError, TypeError) as error:
        raise ValueError(f"Unicode has no character {name}") from error
