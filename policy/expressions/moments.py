"""Times that are written in expressions."""

import datetime

from .expression_error import Refused


def time_of(text: str) -> int:
    """Returns a time in ISO form as ms since 1970; without a zone it is UTC.

    Raises:
        Refused: It is no time.

    >>> time_of("1970-01-02"), time_of("1970-01-01T00:00:01Z"), time_of("1970-01-01 01:00+01:00")
    (86400000, 1000, 0)
    """
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise Refused(
            f"a time is written as '2026-01-31' or '2026-01-31T12:00:00Z', not as {text[:40]!r},"
        ) from None
