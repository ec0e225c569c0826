"""A value that is read from a text, or the reason why the text has none; digits of all scripts; yes or no."""

import unicodedata
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

# The reasons why a text has no value of a type, each a word for a count.
NO_WORD, TOO_LONG, OUT_OF_RANGE = "empty", "too_long", "out_of_range"
NO_NUMBER, UNCLEAR_NUMBER = "no_number", "unclear_number"
NO_DATE, UNCLEAR_DATE, INCOMPLETE_DATE = "no_date", "unclear_date", "incomplete_date"
NO_DURATION, NO_BOOL = "no_duration", "no_bool"


class TypedValue(NamedTuple, Generic[T]):
    """What reading a text as a type brings.

    Attributes:
        value: The value; None if the text has none.
        reason: Why it has none, a word; empty if it has one.
    """

    value: T | None
    reason: str = ""


_BOOLS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def read_bool(text: str) -> TypedValue[bool]:
    """Reads yes or no, also as schema.org's ``https://schema.org/True``.

    >>> read_bool("Yes"), read_bool("http://schema.org/False"), read_bool("maybe").reason
    (TypedValue(value=True, reason=''), TypedValue(value=False, reason=''), 'no_bool')
    """
    if not (word := text.strip().lower()):
        return TypedValue(None, NO_WORD)
    value = _BOOLS.get(word.rpartition("schema.org/")[2] if len(word) < 40 else word)
    return TypedValue(value, "" if value is not None else NO_BOOL)


class _PlainForms(dict[int, int | str]):
    """The form in ASCII, by code point, of digits and of what may stand between them."""

    def __missing__(self, code: int) -> int | str:
        digit = unicodedata.decimal(chr(code), None)
        self[code] = code if digit is None else ord("0") + digit
        if len(self) > 2_000:  # of all scripts
            self.clear()
            self.update(_SEPARATORS)
        return self.get(code, code)


# Arabic and wide separators, apostrophes, spaces that do not break, the minus of mathematics, marks of
# direction, which are not seen.
_SEPARATORS: dict[int, int | str] = {
    **str.maketrans(
        "\u066b\u066c\u060c\uff0c\uff0e\uff04\uffe5\uffe6\uffe1\u2019\u2032\u2212\uff0d\uff0b\uff05",
        ".',,.$¥₩£''--+%",
    ),
    **dict.fromkeys(map(ord, "\xa0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"), " "),
    **dict.fromkeys(map(ord, "\u200b\u200e\u200f\u061c\u2066\u2067\u2068\u2069\ufeff"), ""),
}  # fmt: skip
_PLAIN_FORMS = _PlainForms(_SEPARATORS)


def plain_digits(text: str) -> str:
    """Returns a text with the digits of all scripts, and their separators, as those of ASCII.

    Superscripts and fractions stay: they are no digits of a number's place.

    >>> plain_digits("١٢٣ १२ m²")
    '123 12 m²'
    """
    return text if text.isascii() else text.translate(_PLAIN_FORMS)
