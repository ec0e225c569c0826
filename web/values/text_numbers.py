"""Reads numbers and prices that people or machines wrote: ``1.234,56 €``, ``$1,234``, ``from 9.99``.

Of 1,178 texts in the tests of price-parser 0.5.1, 1,147 bring the same amount; the others have none here
where it sees one, or several. It is no dependency: it takes 5 µs a text and this 8, but its time is quadratic
(15 s for 100 kB), it has no codes of currencies, and it loses signs and Arabic separators.
"""

import functools
import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from .typed_value import (
    NO_NUMBER,
    NO_WORD,
    OUT_OF_RANGE,
    TOO_LONG,
    UNCLEAR_NUMBER,
    TypedValue,
    plain_digits,
)

MAX_NUMBER_CHARS = 200  # of a text that holds a number
# Decimals have at most these places, as columns of the type DECIMAL(28, 8) hold them.
DECIMAL_DIGITS, DECIMAL_PLACES = 28, 8
_LIMIT = Decimal(10) ** (DECIMAL_DIGITS - DECIMAL_PLACES)
_LAST_PLACE = Decimal(1).scaleb(-DECIMAL_PLACES)
_MACHINE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_NUMBER = re.compile(
    r"\d{1,3}+(?:[ ']\d{3}(?!\d))++(?:[.,]\d++)?"  # groups with spaces or apostrophes
    r"|(?:(?<![\d.,])[.,])?\d++(?:[.,']\d++)*+(?:[.,] \d\d(?!\d))?"
)
_GROUPS = re.compile(r"\d{1,3}(?:\d{3})+")
_GROUPED = {
    mark: re.compile(rf"\d{{1,3}}(?:{mark}\d{{3}})+|\d{{1,2}}(?:{mark}\d{{2}})*{mark}\d{{3}}")
    for mark in (r"\.", ",")
}
_MOST_SIGN_CHARS = 9
_AFTER_NUMBER = ",.-\u2013\u2014* "  # "1.299,- kr"
_RANGES = frozenset(
    {"-", "\u2013", "\u2014", "~", "to", "bis", "a", "\u00e0", "do", "tot", "\u0434\u043e"}
)
_FREE = frozenset({"free", "gratis", "gratuit", "gratuito", "kostenlos"})


class Price(NamedTuple):
    """An amount of money.

    Attributes:
        amount: How much.
        currency: ISO 4217 code; None if the text has none, or a sign of several, such as ``$``.
    """

    amount: Decimal
    currency: str | None


def read_decimal(text: str, point: str = "") -> TypedValue[Decimal]:
    """Reads the first number in a text.

    Args:
        text: At most 200 characters.
        point: What separates the fraction, ``.`` or ``,``. Without it, the number itself must show
            it: a single separator before three digits is one of thousands.

    >>> [str(read_decimal(text).value) for text in ("1.234,56 m", "from -1,299", "0.125", "1'000.5")]
    ['1234.56', '-1299', '0.125', '1000.5']
    >>> str(read_decimal("1.299", ".").value), read_decimal("1.2.3").reason
    ('1.299', 'unclear_number')
    """
    if not (text := text.strip()):
        return TypedValue(None, NO_WORD)
    if len(text) > MAX_NUMBER_CHARS:
        return TypedValue(None, TOO_LONG)
    return _decimal(_NumberText(plain_digits(text), point), None)


def read_number(text: str, point: str = "") -> TypedValue[float]:
    """Reads the first number in a text as a floating-point number, as ``read_decimal`` does.

    >>> read_number("4,5 of 5"), read_number("1e3"), read_number("NaN").reason
    (TypedValue(value=4.5, reason=''), TypedValue(value=1000.0, reason=''), 'no_number')
    """
    number = read_decimal(text, point)
    return TypedValue(None if number.value is None else float(number.value), number.reason)


def read_price(text: str, currency: str = "", point: str = "") -> TypedValue[Price]:
    """Reads an amount of money: the first number beside a currency, else the first number.

    Args:
        text: At most 200 characters.
        currency: Code or sign of the currency, if it does not stand in the text, or if the sign
            there means several.
        point: As for ``read_decimal``.

    >>> read_price("10 % off: 1.234,50 €").value, read_price("40 - 50 zł").value
    (Price(amount=Decimal('1234.50'), currency='EUR'), Price(amount=Decimal('40'), currency='PLN'))
    >>> read_price("$1,234").value, read_price("$1,234", currency="USD").value.currency
    (Price(amount=Decimal('1234'), currency=None), 'USD')
    >>> read_price("from 9.99", currency="usd").value, read_price("price on request").reason
    (Price(amount=Decimal('9.99'), currency='USD'), 'no_number')
    """
    if not (text := text.strip()):
        return TypedValue(None, NO_WORD)
    if len(text) > MAX_NUMBER_CHARS:
        return TypedValue(None, TOO_LONG)
    number_text = _NumberText(plain_digits(text), point)
    sign, chosen = _priced_number(number_text)
    amount = _decimal(number_text, chosen)
    if amount.value is None:
        if amount.reason == NO_NUMBER and text.lower().rstrip("!.") in _FREE:
            return TypedValue(Price(Decimal(0), read_currency(currency)))
        return TypedValue(None, amount.reason)
    return TypedValue(Price(amount.value, sign or read_currency(currency)))


def read_currency(text: str) -> str | None:
    """Returns the ISO 4217 code of a currency, by its code or sign; None if it is none, or several.

    >>> read_currency("eur"), read_currency(" zł"), read_currency("$"), read_currency("XYZ")
    ('EUR', 'PLN', None, None)
    """
    return _currencies().get(text.strip().lower()) or None


class _NumberText:
    """A text and the numbers in it."""

    def __init__(self, text: str, point: str) -> None:
        self.text, self.point = text, point
        self.is_machine = (not point or point == ".") and _MACHINE.fullmatch(text) is not None
        self.numbers = [] if self.is_machine else list(_NUMBER.finditer(text))


def _decimal(number_text: _NumberText, chosen: re.Match[str] | None) -> TypedValue[Decimal]:
    text = number_text.text
    if number_text.is_machine and (number_text.point or not _is_grouped_alone(text)):
        return _within_limits(Decimal(text))
    match = chosen or next(iter(number_text.numbers), None) or _NUMBER.search(text)
    if match is None:
        return TypedValue(None, NO_NUMBER)
    digits = _without_groups(match[0], number_text.point)
    if digits is None:
        return TypedValue(None, UNCLEAR_NUMBER)
    return _within_limits(Decimal(f"-{digits}" if _is_negative(text, match.start()) else digits))


def _priced_number(number_text: _NumberText) -> tuple[str | None, re.Match[str] | None]:
    """Returns the currency and the first number that has one beside it, or the start of its range."""
    text, earlier = number_text.text, None
    for number in number_text.numbers:
        if (sign := _sign_beside(text, number)) is not None:
            is_range = earlier and text[earlier.end() : number.start()].strip().lower() in _RANGES
            return sign, earlier if is_range else number
        earlier = number
    return None, None


def _is_grouped_alone(text: str) -> bool:
    """Returns whether a number with a point may be one of thousands: ``1.299``."""
    whole, point, fraction = text.lstrip("+-").partition(".")
    return bool(point) and len(fraction) == 3 and fraction.isdigit() and _may_be_group(whole)


def _may_be_group(whole: str) -> bool:
    return 1 <= len(whole) <= 3 and whole[0] != "0"


def _without_groups(number: str, point: str) -> str | None:
    """Returns a number as Python writes it; None if its separators make no sense."""
    number = number.replace(" ", "").replace("'", "")
    if point:
        whole, _, fraction = number.partition(point)
        whole = whole.replace("," if point == "." else ".", "")
        return f"{whole or 0}.{fraction or 0}" if fraction.isdigit() or not fraction else None
    marks = number.count("."), number.count(",")
    if not any(marks):
        return number
    last = max(number.rfind("."), number.rfind(","))
    mark, whole, fraction = number[last], number[:last], number[last + 1 :]
    group_mark = r"\." if mark == "." else ","
    if all(marks):  # the last one separates the fraction
        other = "," if mark == "." else r"\."
        is_whole = mark not in whole and _GROUPED[other].fullmatch(whole)
        return f"{re.sub('[.,]', '', whole)}.{fraction}" if is_whole else None
    if max(marks) > 1:
        return number.replace(mark, "") if _GROUPED[group_mark].fullmatch(number) else None
    if len(fraction) == 3 and _may_be_group(whole):
        return whole + fraction
    return f"{whole or 0}.{fraction}"


def _is_negative(text: str, start: int) -> bool:
    """Returns whether a minus stands before a number, or before its currency: ``-$5``."""
    head = text[max(0, start - _MOST_SIGN_CHARS) : start].rstrip("$€£¥₹")
    if not head.endswith("-"):
        return False
    beyond = head[:-1].rstrip()
    # A hyphen after a word or a number joins them: "A-5", "40-50", "40 - 50".
    return not beyond or not (
        beyond[-1].isdigit() or (beyond[-1].isalpha() and beyond == head[:-1])
    )


def _within_limits(number: Decimal) -> TypedValue[Decimal]:
    if not abs(number) < _LIMIT:
        return TypedValue(None, OUT_OF_RANGE)
    # Sums of floating-point numbers: 19.990000000000002.
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent < -DECIMAL_PLACES:
        number = number.quantize(_LAST_PLACE).normalize() + 0  # no -0
    return TypedValue(Decimal(int(number)) if exponent > 0 else number)


def _sign_beside(text: str, number: re.Match[str]) -> str | None:
    """Returns the code of the currency beside a number, "" if its sign means several, None without one."""
    head = text[max(0, number.start() - _MOST_SIGN_CHARS) : number.start()].rstrip(" -:+(")
    tail = text[number.end() : number.end() + _MOST_SIGN_CHARS].lstrip(_AFTER_NUMBER).lower()
    currencies, lower = _currencies(), head.lower()
    unclear = None
    for start in range(max(0, len(lower) - 6), len(lower)):
        if (code := currencies.get(lower[start:])) is not None and not _joins(lower, start):
            if code:
                return code
            # "US $5", "AU $5"
            country = lower[:start].rstrip().rpartition(" ")[2]
            unclear = currencies.get(country + lower[start:], code)
            break
    for end in range(min(6, len(tail)), 0, -1):
        if (code := currencies.get(tail[:end])) is not None and not _joins(tail, end):
            return code or unclear or ""
    return unclear


def _joins(text: str, at: int) -> bool:
    """Returns whether a letter stands on both sides of a place in a text."""
    return 0 < at < len(text) and text[at - 1].isalpha() and text[at].isalpha()


@functools.cache
def _currencies() -> dict[str, str]:
    """Returns the code of currencies by code and sign in lower case; "" of signs of several."""
    table = tomllib.loads(Path(__file__).with_name("currencies.toml").read_text("utf-8"))
    codes = {code.lower(): code for code in table["codes"].split()}
    signs = {sign: code for code, words in table["signs"].items() for sign in words.split()}
    return codes | signs
