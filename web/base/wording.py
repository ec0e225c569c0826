"""Writes values, counts and durations in messages, and reads times that people type."""

import datetime

_LONGEST = 200


def quote_value(value: object) -> str:
    """Returns the ``repr`` of a value, cut where it is long.

    >>> quote_value("a" * 300)[-9:]
    "aaaaa...'"
    """
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"


def value_error(expected: str, value: object, reason: object = None) -> ValueError:
    """Returns the error for a value that is not what was expected; its message quotes the value.

    Args:
        expected: What must have which value: ``rules.txt:3: a line must be HOST SCHEME``.
        value: The value.
        reason: The error in the value, if that says more.

    >>> value_error("--include must be a regular expression", "(", "missing )")
    ValueError("--include must be a regular expression, got '(': missing )")
    """
    reason_text = "" if reason is None else f": {reason}"
    return ValueError(f"{expected}, got {quote_value(value)}{reason_text}")


def format_count(number: int, things: str) -> str:
    """Returns a number and its things, in the singular if it is one.

    Args:
        number: How many.
        things: Their name in the plural, such as ``pages``.

    >>> format_count(1, "pages"), format_count(2_000, "pages"), format_count(1, "entries"), format_count(0, "URLs")
    ('1 page', '2,000 pages', '1 entry', '0 URLs')
    """
    return f"{number:,} {things if number != 1 else singular(things)}"


def singular(things: str) -> str:
    """Returns the singular of a plural.

    >>> singular("bodies"), singular("URLs")
    ('body', 'URL')
    """
    return f"{things[:-3]}y" if things.endswith("ies") else things.removesuffix("s")


def time_of(text: str) -> int:
    """Returns a date, or a date and time, as UTC ms; without an offset it is UTC.

    Raises:
        ValueError: It is none; the message quotes it.

    >>> time_of("2026-11-01"), time_of("2026-11-01T02:00+02:00")
    (1793491200000, 1793491200000)
    """
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"must be a date such as 2026-11-01 or a time such as 2026-11-01T12:30Z, got {text!r}"
        ) from error


def in_words(seconds: float) -> str:
    """Returns a duration for people, in days and hours, minutes and seconds.

    >>> in_words(2_592_000), in_words(90_061.4), in_words(3_600), in_words(-5)
    ('30 days', '1 day, 1:01:01', '1:00:00', '-0:00:05')
    """
    if round(seconds) < 0:
        return f"-{in_words(-seconds)}"
    try:
        return str(datetime.timedelta(seconds=round(seconds))).removesuffix(", 0:00:00")
    except OverflowError:
        return f"{seconds:.3g} s"
