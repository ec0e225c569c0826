r"""The sets of characters that Java's regular expressions name: ``\w``, ``\p{Punct}``."""

import re

import regex

from .chars import EVERY, Chars, property_chars, union


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
