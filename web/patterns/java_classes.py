r"""The names that Java's regular expressions have for sets of characters: ``\w``, ``\p{Punct}``."""

from .java_chars import LAST, Chars, one, property_set, several, span


def _of(text: str) -> Chars:
    return several(*map(ord, text))


_LOWER, _UPPER, _DIGIT = span(97, 122), span(65, 90), span(48, 57)
_ALPHA = _LOWER | _UPPER
_ALNUM = _ALPHA | _DIGIT
_GRAPH = span(33, 126)
_ASCII = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": span(0, 127),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALNUM,
    "Punct": _GRAPH & ~_ALNUM,
    "Graph": _GRAPH,
    "Print": span(32, 126),
    "Blank": _of(" \t"),
    "Cntrl": span(0, 31) | one(127),
    "XDigit": _DIGIT | span(65, 70) | span(97, 102),
    "Space": span(9, 13) | one(32),
}
ENDS_OF_LINES = _of("\n\r\x85\u2028\u2029")
_HORIZONTAL = _of(" \t\xa0\u1680\u180e\u202f\u205f\u3000") | span(0x2000, 0x200A)
SHORT = {
    "d": _DIGIT,
    "w": _ALNUM | one(ord("_")),
    "s": _ASCII["Space"],
    "h": _HORIZONTAL,
    "v": ENDS_OF_LINES | _of("\x0b\f"),
}

_CASES = r"\p{Lowercase}\p{Uppercase}\p{Lt}"
_WHITE = r"\p{Z}\t-\r\x85"
_HEX = r"\p{Nd}A-Fa-f\uff21-\uff26\uff41-\uff46"
_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d"
_GRAPHIC = r"^\p{Z}\p{Cc}\p{Cs}\p{Cn}"
_BLANK = r"\p{Zs}\t"
# With Java's flag U.
UNICODE_SHORT = {"d": r"\p{Nd}", "w": _WORD, "s": _WHITE}
_UNICODE_POSIX = {
    "ALPHA": r"\p{Alphabetic}", "LOWER": r"\p{Lowercase}", "UPPER": r"\p{Uppercase}",
    "SPACE": _WHITE, "PUNCT": r"\p{P}", "XDIGIT": _HEX, "ALNUM": r"\p{Alphabetic}\p{Nd}",
    "CNTRL": r"\p{Cc}", "DIGIT": r"\p{Nd}", "BLANK": _BLANK, "GRAPH": _GRAPHIC,
    "PRINT": rf"[{_GRAPHIC}]{_BLANK}--\p{{Cc}}",
}  # fmt: skip
_BINARY = {
    "ALPHABETIC": r"\p{Alphabetic}", "ASSIGNED": r"\P{Cn}", "CONTROL": r"\p{Cc}",
    "HEXDIGIT": _HEX, "HEX_DIGIT": _HEX, "IDEOGRAPHIC": r"\p{Ideographic}",
    "JOINCONTROL": r"\u200c\u200d", "JOIN_CONTROL": r"\u200c\u200d", "LETTER": r"\p{L}",
    "LOWERCASE": r"\p{Lowercase}", "UPPERCASE": r"\p{Uppercase}", "TITLECASE": r"\p{Lt}",
    "NONCHARACTERCODEPOINT": r"\p{Noncharacter_Code_Point}",
    "NONCHARACTER_CODE_POINT": r"\p{Noncharacter_Code_Point}",
    "PUNCTUATION": r"\p{P}", "WHITESPACE": _WHITE, "WHITE_SPACE": _WHITE, "WORD": _WORD,
    "DIGIT": r"\p{Nd}",
}  # fmt: skip
_IGNORABLE = r"\x00-\x08\x0e-\x1b\x7f-\x9f\p{Cf}"
_JAVA = {
    "LowerCase": r"\p{Lowercase}", "UpperCase": r"\p{Uppercase}", "TitleCase": r"\p{Lt}",
    "Alphabetic": r"\p{Alphabetic}", "Ideographic": r"\p{Ideographic}", "Digit": r"\p{Nd}",
    "Defined": r"\P{Cn}", "Letter": r"\p{L}", "LetterOrDigit": r"\p{L}\p{Nd}",
    "JavaIdentifierStart": r"\p{L}\p{Nl}\p{Sc}\p{Pc}",
    "JavaIdentifierPart": rf"\p{{L}}\p{{Nl}}\p{{Sc}}\p{{Pc}}\p{{Nd}}\p{{Mn}}\p{{Mc}}{_IGNORABLE}",
    "UnicodeIdentifierStart": r"\p{ID_Start}",
    "UnicodeIdentifierPart": rf"\p{{ID_Continue}}{_IGNORABLE}",
    "IdentifierIgnorable": _IGNORABLE, "SpaceChar": r"\p{Z}",
    "Whitespace": r"[\p{Z}\t-\r\x1c-\x1f]--[\xa0\u2007\u202f]",
    "ISOControl": r"\x00-\x1f\x7f-\x9f", "Mirrored": r"\p{Bidi_Mirrored=Yes}",
}  # fmt: skip
_CATEGORIES = frozenset(
    (  # noqa: SIM905
        "C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm "
        "So Z Zl Zp Zs"
    ).split()
)
_MORE = {"LC": r"\p{Lu}\p{Ll}\p{Lt}", "LD": r"\p{L}\p{Nd}"}
_CASED_NAMES = {"Ll": _MORE["LC"], "Lu": _MORE["LC"], "Lt": _MORE["LC"]}


def family(name: str, any_case: bool, unicode: bool) -> Chars:
    r"""Returns what ``\p{name}`` stands for.

    Args:
        name: As it stands there.
        any_case: With Java's flag ``i``, for which capitals and small letters are the same.
        unicode: With Java's flag ``U``.

    Raises:
        ValueError: Java has no such name.

    >>> family("XDigit", any_case=False, unicode=False).python
    '[0-9A-Fa-f]'
    """
    key, equals, value = name.partition("=")
    found: Chars | None = None
    if equals:
        found = _valued(key.lower(), value, any_case)
    elif name.startswith("In"):
        found = _known(rf"\p{{Block={name[2:]}}}")
    elif name.startswith("Is"):
        found = (
            _cased_or(_BINARY | _UNICODE_POSIX, name[2:].upper(), any_case)
            or _plain(name[2:], any_case)
            or _known(rf"\p{{Script={name[2:]}}}")
        )
    else:
        if unicode:
            found = _cased_or(_UNICODE_POSIX, name.upper(), any_case)
        found = found or _plain(name, any_case)
    if found is None:
        raise ValueError(f"\\p{{{name}}} is not known")
    return found


def _valued(key: str, value: str, any_case: bool) -> Chars | None:
    match key:
        case "sc" | "script":
            return _known(rf"\p{{Script={value}}}")
        case "blk" | "block":
            return _known(rf"\p{{Block={value}}}")
        case "gc" | "general_category":
            return _plain(value, any_case)
    return None


def _plain(name: str, any_case: bool) -> Chars | None:
    if name in _ASCII:
        return _ASCII["Alpha" if any_case and name in ("Lower", "Upper") else name]
    if name in ("L1", "all"):
        return span(0, 255 if name == "L1" else LAST)
    if name.startswith("java"):
        return _cased_or(_JAVA, name.removeprefix("java"), any_case)
    if any_case and name in _CASED_NAMES:
        return property_set(_CASED_NAMES[name])
    text = rf"\p{{{name}}}" if name in _CATEGORIES else _MORE.get(name)
    return property_set(text) if text else None


def _cased_or(names: dict[str, str], name: str, any_case: bool) -> Chars | None:
    if any_case and name.upper() in ("LOWER", "UPPER", "LOWERCASE", "UPPERCASE", "TITLECASE"):
        return property_set(_CASES) if name in names else None
    return property_set(names[name]) if name in names else None


def _known(text: str) -> Chars | None:
    if not text[3:-1].replace("=", "").replace("_", "").replace(" ", "").replace("-", "").isalnum():
        return None
    try:
        return property_set(text)
    except ValueError:
        return None
