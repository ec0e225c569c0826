"""Reads times that people type, and writes durations that people read."""

import datetime


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
