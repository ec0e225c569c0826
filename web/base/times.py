"""Reads times that people type."""

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
